#!/usr/bin/env bash
# ringside trace --merge: torch.profiler's events beside our own, on one clock; what cannot belong together is refused.
. "$(dirname "$0")/../cli/cli.sh"
command -v node >/dev/null || tap_skip_all "node is not installed"

make_job() { # name option...
	"$ringside" sim --offline --kernel -o "$tap_scratch/$1" "${@:2}" >/dev/null 2>&1 || exit 1
	"$ringside" dump "$tap_scratch/$1" >"$tap_scratch/$1.dump" 2>/dev/null
}
make_job job --nodes 1 --gpus 2 -w ddp --seconds 3s --seed 7
make_job other --nodes 1 --gpus 2 -w ddp --seconds 3s --seed 8
"$ringside" export "$tap_scratch/job" --format jsonl -o - >"$tap_scratch/ops" 2>/dev/null
kineto() { # NAME RANK [KEY=VALUE...]
	python3 tests/viewer/make_kineto.py "$tap_scratch/$1" "${@:2}" <"$tap_scratch/ops"
}
merged() { # expression over the JSON summary, file...
	local expression=$1 name
	local -a options=()
	shift
	for name in "$@"; do options+=(--merge "$tap_scratch/$name"); done
	"$ringside" trace "$tap_scratch/job" -o "$tap_scratch/merged.json" --json "${options[@]}" 2>"$tap_scratch/err" |
		node -e 'const all = JSON.parse(require("fs").readFileSync(0)), t = all.torch_traces; console.log(eval(process.argv[1]))' "$expression"
}
refused() { # sentence pattern [option...]
	expect_refusal "$1" 3 "$2" "$ringside" trace "$tap_scratch/job" -o "$tap_scratch/refused.json" "${@:3}"
}

kineto zero.json.gz 0
kineto one.json 1
expect_same "both ranks, packed and plain" "$(merged 't.map((one) => [one.rank, one.offset_ns, one.agreed === one.compared, one.compared > 100]).join(" ")' zero.json.gz one.json)" \
	"0,0,true,true 1,0,true,true"
expect_ok "every operation is still there, and slices nest" node tests/viewer/check.mjs "$tap_scratch/merged.json" "$tap_scratch/job.dump"
# Each launch lies within the call that was recorded: of each of ours from issue to launch, with --calls.
expect_same "torch's kernels are tracks of their rank" "$(node -e '
	const events = JSON.parse(require("fs").readFileSync(process.argv[1])).traceEvents;
	const names = events.filter((e) => e.name === "thread_name" && e.args.name.startsWith("torch")).map((e) => e.pid + " " + e.args.name.replace(/\d{3,}/g, "N"));
	console.log([...new Set(names)].sort().join("; "));' "$tap_scratch/merged.json")" \
	"1 torch: GPU 0 stream 20; 1 torch: GPU 0 stream 7; 1 torch: thread N (python); 2 torch: GPU 0 stream 20; 2 torch: GPU 0 stream 7; 2 torch: thread N (python)"
"$ringside" trace "$tap_scratch/job" -o "$tap_scratch/calls.json" --calls --merge "$tap_scratch/zero.json.gz" 2>/dev/null
expect_same "on one clock: launches lie within our calls" "$(node -e '
	const events = JSON.parse(require("fs").readFileSync(process.argv[1])).traceEvents.filter((e) => e.ph === "X" && e.pid === 1);
	const calls = events.filter((e) => e.cat === "call"), launches = events.filter((e) => e.name === "cuLaunchKernelEx");
	const within = (l) => calls.some((c) => c.ts <= l.ts + 0.01 && l.ts + l.dur <= c.ts + c.dur + 0.01);
	console.log(launches.length > 100 && launches.every(within));' "$tap_scratch/calls.json")" true
expect_ok "as protobuf, too" "$ringside" trace "$tap_scratch/job" -o "$tap_scratch/merged.pftrace" --merge "$tap_scratch/zero.json.gz"
mkdir "$tap_scratch/both" && cp "$tap_scratch/zero.json.gz" "$tap_scratch/one.json" "$tap_scratch/both"
expect_same "a directory of traces" "$(merged 't.length' both)" 2

kineto late.json 0 shift=3000
expect_same "another clock is measured" "$(merged 'Math.abs(t[0].offset_ns + 3e6) <= t[0].within_ns && t[0].within_ns < 2e4 && t[0].agreed === t[0].compared' late.json)" true
expect_ok "and reported" grep -q "moved by -3.*known within .*launches of NCCL's kernels fit" "$tap_scratch/err"
kineto host.json 0 host=1
expect_same "without CUDA, by PyTorch's own calls" "$(merged 't[0].clock.replace(/within [\d.]+ us/, "within").replace(/\d+/g, "N")' host.json)" \
	"clocks agree within: N of N calls of collectives fit"
kineto silent.json 0 calls=0
expect_same "without anything of NCCL, by the wall clock" "$(merged 't[0].clock' silent.json)" \
	"placed by wall clocks, not checked: too few calls of NCCL"
kineto absolute.json 0 absolute=1
expect_same "absolute times, as before PyTorch 2.4" "$(merged 't[0].offset_ns' absolute.json)" 0
kineto array.json 0 array=1 absolute=1
expect_same "events alone: whose they are is known from the process" "$(merged 't[0].rank' array.json)" 0

kineto rank.json 0 rank=5
refused "a rank that is not there" "rank.json: of rank 5, which is not in the recording" --merge "$tap_scratch/rank.json"
kineto pid.json 0 pid=77
refused "another process" "pid.json: of rank 0, process 77; rank 0 of the recording is process [0-9]+: another run" --merge "$tap_scratch/pid.json"
kineto hours.json 0 hours=5
refused "another time" "hours.json: no overlap in time: it covers 2026-01-01 05:00:.* the recording of process [0-9]+ 2026-01-01 00:00:" --merge "$tap_scratch/hours.json"
kineto random.json 0 random=1
refused "other calls" "random.json: does not belong to this recording: of [0-9]+ NCCL calls in it, [0-9]+ are in the recording" --merge "$tap_scratch/random.json"
head -c 4000 "$tap_scratch/zero.json.gz" >"$tap_scratch/cut.json.gz"
refused "a packed file that was cut" "cut.json.gz: .*(ends too early|damaged)" --merge "$tap_scratch/cut.json.gz"
head -c 4000 "$tap_scratch/one.json" >"$tap_scratch/cut.json"
refused "a file that was cut" "cut.json: not a trace of torch.profiler: the file ends too early, at byte 4000" --merge "$tap_scratch/cut.json"
echo '{"traceEvents": []}' >"$tap_scratch/empty.json"
refused "a trace without events" "empty.json: no event with a time in it" --merge "$tap_scratch/empty.json"
echo 'hello' >"$tap_scratch/text.json"
refused "not a trace at all" "text.json: not a trace of torch.profiler: not a JSON trace" --merge "$tap_scratch/text.json"
refused "a missing file" "nothing.json: No such file" --merge "$tap_scratch/nothing.json"
mkdir "$tap_scratch/none"
refused "a directory without traces" "none: no .json or .json.gz in it" --merge "$tap_scratch/none"
expect_same "a refused trace leaves no file" "$(ls "$tap_scratch/refused.json" 2>/dev/null)" ""
expect_refusal "of another job" 3 "process [0-9]+: another run|does not belong|not in the recording" \
	"$ringside" trace "$tap_scratch/other" -o "$tap_scratch/refused.json" --merge "$tap_scratch/zero.json.gz"

# Memory does not grow with the file: 70 MB of events in an address space that could not hold them.
kineto large.json.gz 0 pad=1000 times=250
expect_ok "a large trace needs little memory" bash -c 'ulimit -v 65536; exec "$@"' bash \
	"$ringside" trace "$tap_scratch/job" -o /dev/null --format json --merge "$tap_scratch/large.json.gz"
tap_done
