#!/usr/bin/env bash
# The bundle of a hung job: what is in it, what is not and why, no secrets, and the same verdict from it.
. "$(dirname "$0")/doctor.sh"
export LC_ALL=C
unset NCCL_RAS_ADDR RINGSIDE_SHM
tool=$BUILD/ringside
[ -x "$tool" ] || tap_skip_all "the tool is not built"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

shm=$tap_scratch/shm
work=$tap_scratch/work
mkdir -p "$shm" "$work"
file_of() { # archive name
	tar xOf "$1" "ringside-bundle/$2"
}
has() { # archive name pattern
	grep -qE -- "$3" <<<"$(file_of "$1" "$2")"
}
bundle() { # option...
	RINGSIDE_SHM=$shm "$tool" bundle --hang 1s "$@"
}

# Secrets of all kinds in the job's environment, in variables that are recorded and in others.
planted=(S3cr3tValueOne S3cr3tValueTwo S3cr3tValueThree S3cr3tValueFour S3cr3tValueSix)
MY_API_TOKEN=${planted[0]} NCCL_SECRET_KEY=${planted[1]} NCCL_SOCKET_IFNAME="http://me:${planted[2]}@proxy" \
	AWS_SECRET_ACCESS_KEY=${planted[3]} NCCL_TOPO_FILE="https://h/topology?token=${planted[4]}" NCCL_IB_HCA=mlx5_0 RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB RINGSIDE_MODE=trace \
	RINGSIDE_DIR=$tap_scratch/traces "$tool" sim --nodes 1 --gpus 4 -w ddp --seconds 600s -f never-arrives:rank=1,at=500ms \
	>"$tap_scratch/sim" 2>&1 &
started+=("$!")
stands() { # the doctor sees it
	grep -q '"class":"never_issued"' <<<"$(RINGSIDE_SHM=$shm "$tool" doctor --hang 1s --json)"
}
expect_ok "a job hangs" until_ok stands

expect_ok "a bundle is made meanwhile" bundle --no-ras -o "$work/hang.tar"
moment_of() { # archive
	RINGSIDE_SHM=$tap_scratch/none "$tool" doctor --hang 1s --json "$1" | grep -o '"time_ns":[0-9]*' | head -n 1
}
made=$(moment_of "$work/hang.tar")
expect_ok "its time is when it was made" test "${made#*:}" -gt 0
expect_same "regardless of when it is read" "$(sleep 0.01 && moment_of "$work/hang.tar")" "$made"
expect_same "other users cannot read it" "$(stat -c %a "$work/hang.tar")" 600
touch "$work/there.tar"
chmod 640 "$work/there.tar"
bundle --no-ras --no-traces -o "$work/there.tar" >/dev/null
expect_same "unless they could before" "$(stat -c %a "$work/there.tar")" 640
names=$(tar tf "$work/hang.tar" | sed 's|^ringside-bundle/||; s|-[^/-]*-[0-9]*\.trace|.trace|' | grep -v '^node/' | sort)
expect_same "with these files, beside those about the node" "$names" "README.txt
doctor.json
doctor.txt
environment.txt
snapshots/0000-rank0.trace
snapshots/0001-rank1.trace
snapshots/0002-rank2.trace
snapshots/0003-rank3.trace
stacks.txt
traces/0000-rank0.trace
traces/0001-rank1.trace
traces/0002-rank2.trace
traces/0003-rank3.trace"
"$tool" sim --offline --kernel --nodes 2 --gpus 2 -f stuck-send:rank=1 --at 1s -o "$work/hung" >/dev/null
expect_ok "a bundle of a job that hung" bundle --no-ras -o "$work/hung.tar" "$work/hung"
expect_same "truncated files are included and not reported as missing" "$(file_of "$work/hung.tar" README.txt | grep -c 'closing record')" 0
# Beside another job, whose processes are listed first.
"$tool" sim --offline --nodes 1 --gpus 2 --iterations 3 -o "$work/first" >/dev/null
"$tool" sim --offline --kernel --seed 2 --nodes 2 --gpus 2 -f stuck-send:rank=1 --at 1s -o "$work/second" >/dev/null
"$tool" bundle --no-ras -o "$work/two.tar" --job sim-2 "$work/first" "$work/second" >/dev/null 2>&1
expect_same "also if there are other jobs" "$(file_of "$work/two.tar" README.txt | grep -cE 'sim-2|closing record')" "$(file_of "$work/hung.tar" README.txt | grep -c sim-1)"
missing=$(tar tf "$work/hang.tar" | sed 's|^ringside-bundle/||' | while read -r name; do
	[ "$name" = README.txt ] || has "$work/hang.tar" README.txt "^  $name \(" || echo "$name"
done)
expect_same "README lists each of them" "$missing" ""
expect_ok "and what is missing, and why" has "$work/hang.tar" README.txt 'snapshots contain their data; --regions'
expect_ok "the doctor's verdict is included" has "$work/hang.tar" doctor.txt 'rank 1 has not called AllReduce'
expect_ok "versions are, too" has "$work/hang.tar" node/versions.txt '^NCCL profiler interface  [0-9]+ \(4 processes\)'
expect_ok "and the network's counters" has "$work/hang.tar" node/interfaces.txt '^lo/rx_bytes [0-9]+$'
expect_ok "and relevant variables" has "$work/hang.tar" environment.txt '^NCCL_IB_HCA=mlx5_0$'

# Only the culprit: what is merely slow in a job of one second is random.
verdict_of() { # path...
	"$tool" doctor --hang 1s --json "$@" |
		perl -MJSON::PP -e 'for (@{decode_json(join "", <>)->{verdicts}}) {
			print join(" ", map { $_ // "-" } @$_{qw(class rank host communicator severity)}), "\n" if $_->{severity} eq "error" }'
}
live=$(RINGSIDE_SHM=$shm verdict_of)
expect_ok "the job has a verdict" grep -q '^never_issued 1 ' <<<"$live"
expect_same "the doctor's verdict on the bundle is the same as on the job" "$(verdict_of "$work/hang.tar")" "$live"
expect_same "and as in the bundle" "$(file_of "$work/hang.tar" doctor.json |
	perl -MJSON::PP -e 'print $_->{class}, " ", $_->{rank}, "\n" for grep { $_->{class} eq "never_issued" } @{decode_json(join "", <>)->{verdicts}}')" \
	"never_issued 1"
expect_ok "ps reads it" grep -q 'AllReduce' <<<"$("$tool" ps --all "$work/hang.tar" 2>/dev/null)"
expect_ok "report reads it" grep -q '^job sim-1: 4 ranks' <<<"$("$tool" report "$work/hang.tar" 2>/dev/null)"

for packing in gz zst; do
	expect_ok "compressed with $packing" bundle --no-ras --regions -o "$work/hang.tar.$packing"
	expect_same "the doctor reads it, too" "$(verdict_of "$work/hang.tar.$packing")" "$live"
done
expect_same "regions are included on request" "$(tar tf "$work/hang.tar.gz" | grep -c '/regions/')" 4
head -c 3000 "$work/hang.tar.gz" >"$work/cut.tar.gz"
expect_complaint "a truncated bundle is reported" 'cut.tar.gz: compressed data is damaged' "$tool" ps "$work/cut.tar.gz"

# Nowhere, whatever the compression.
gunzip -c "$work/hang.tar.gz" >"$work/plain.tar"
for secret in "${planted[@]}"; do
	expect_same "$secret is in none of its bytes" \
		"$(cat "$work/hang.tar" "$work/plain.tar" | grep -acF "$secret")" 0
done

# A recording of an older recorder, which did not leave out secrets.
mkdir "$tap_scratch/old"
cp "$tool" "$tool-sim" "$BUILD/libnccl-profiler-ringside.so" "$tap_scratch/old"
perl -pi -e 's/\0token\0/\0rabbi\0/' "$tap_scratch/old/libnccl-profiler-ringside.so"
NCCL_TOPO_FILE="/topology?token=S3cr3tValueFive" RINGSIDE_SHM=$tap_scratch/shm2 RINGSIDE_BUFFER=4MiB RINGSIDE_MODE=trace \
	RINGSIDE_DIR=$work/leaky "$tap_scratch/old/ringside" sim --nodes 1 --gpus 2 -w ddp --seconds 1s >/dev/null 2>&1
expect_ok "a trace may hold a secret" grep -qraF S3cr3tValueFive "$work/leaky"
expect_ok "a bundle is made from it" "$tool" bundle "$work/leaky" --no-ras -o "$work/leaky.tar"
expect_same "without it" "$(grep -acF S3cr3tValueFive "$work/leaky.tar")" 0
expect_ok "and README mentions it" has "$work/leaky.tar" README.txt '1 recorded values look like secrets and were removed'
expect_same "the trace itself is not in it" "$(tar tf "$work/leaky.tar" | grep -c '/traces/')" 0

# A path may hold one, too. Where a trace is must be in the region, but not in what is passed on.
mkdir "$tap_scratch/shm3"
RINGSIDE_SHM=$tap_scratch/shm3 RINGSIDE_BUFFER=4MiB RINGSIDE_MODE=trace RINGSIDE_DIR=$work/token=S3cr3tValueSeven \
	"$tool" sim --nodes 1 --gpus 2 -w ddp --seconds 1s >/dev/null 2>&1
expect_same "a job with a secret in the path of its traces" "$(grep -rlaF S3cr3tValueSeven "$tap_scratch/shm3" | wc -l)" 2
expect_ok "a bundle is made of it" "$tool" bundle --no-ras --regions -o "$work/path.tar" "$tap_scratch/shm3"
expect_same "without the path" "$(grep -acF S3cr3tValueSeven "$work/path.tar")" 0
expect_same "but with the processes" "$(tar tf "$work/path.tar" | grep -c '/snapshots/')" 2

expect_ok "the size can be limited" bundle --no-ras --most 1KiB -o "$work/small.tar"
expect_ok "what does not fit is listed, with its size" has "$work/small.tar" README.txt 'KiB\) exceeds the rest of the --most limit \(1 KiB\)'
expect_same "and is not included" "$(tar tf "$work/small.tar" | grep -c '/traces/')" 0
expect_same "the same in JSON" "$(bundle --no-ras --no-traces --operations 5 --json -o "$work/few.tar" |
	perl -MJSON::PP -e '$_ = decode_json(join "", <>); print scalar(grep { $_->{name} =~ /^snapshots/ } @{$_->{files}}), " ",
		scalar(grep { $_->{what} eq "traces" && $_->{why} eq "--no-traces was given" } @{$_->{missing}})')" "4 1"
expect_ok "few operations make it smaller" test "$(stat -c %s "$work/few.tar")" -lt "$(stat -c %s "$work/hang.tar")"

# ---- through agents ----------------------------------------------------------------------------
if [ -x "$BUILD/ringside-agent" ] && [ -x "$BUILD/ringside-fetch" ]; then
	"$BUILD/ringside-agent" --directory "$shm" --listen 127.0.0.1:0 2>"$tap_scratch/agent" &
	started+=("$!")
	until_ok grep -q 'listening on' "$tap_scratch/agent"
	address=$(sed -n 's|.*listening on http://||p' "$tap_scratch/agent")
	expect_ok "agents are asked" bundle --no-ras --timeout 60s --agents "$address,127.0.0.1:1" -o "$work/agents.tar.zst"
	expect_same "it has their processes" "$(tar tf "$work/agents.tar.zst" | grep -c '/snapshots/')" 4
	expect_same "and the doctor's verdict is the same" "$(verdict_of "$work/agents.tar.zst")" "$live"
	expect_ok "an agent that does not answer is listed" has "$work/agents.tar.zst" README.txt 'no answer from this agent: .*refused'
	expect_complaint "if none answers it fails" 'none of 1 agents answered: .*refused' bundle --no-ras --agents 127.0.0.1:1 -o "$work/none.tar"
	expect_ok "and there is no file" test ! -e "$work/none.tar"
	expect_complaint "paths and agents together are rejected" 'two sources: give one' bundle "$tap_scratch/traces" --agents "$address" -o "$work/two.tar"
fi

# ---- what goes wrong ----------------------------------------------------------------------------
expect_complaint "without a name it says what to do" 'no output file: use -o FILE.tar.gz' bundle
expect_complaint "unknown file name extensions are rejected" "unknown archive format '$work/x.zip': use .tar, .tar.gz or .tar.zst" bundle -o "$work/x.zip"
expect_complaint "a missing directory is reported" 'nowhere' bundle --no-ras -o "$work/nowhere/x.tar"
if [ -w /dev/full ]; then
	ln -s /dev/full "$work/full.tar"
	expect_complaint "a full disk is reported" 'No space left' bundle --no-ras -o "$work/full.tar"
	rm -f "$work/full.tar"
fi
mkdir "$work/alone"
python3 tests/doctor/ras_servers.py silent >"$tap_scratch/port" &
started+=("$!")
until_ok test -s "$tap_scratch/port"
RINGSIDE_SHM=$shm "$tool" bundle --no-traces --ras "127.0.0.1:$(cat "$tap_scratch/port")" -o "$work/alone/x.tar" >/dev/null 2>&1 &
bundle_pid=$!
started+=("$bundle_pid")
until_ok is_writing "$bundle_pid" "$work/alone"
kill -TERM "$bundle_pid"
wait "$bundle_pid" 2>/dev/null
expect_same "an interrupted bundle leaves nothing behind" "$(ls -A "$work/alone")" ""
tap_done
