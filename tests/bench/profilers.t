#!/usr/bin/env bash
# Comparing profilers with a fake GPU and NCCL on the CPU: a good one, and one with faults.
. "$(dirname "$0")/../tap.sh"

ringside=$BUILD/ringside
lossy=$BUILD/tests/lossy_plugin.so
fake=$BUILD/tests/fake_gpu
[ -e "$fake/libnccl.so.2" ] || tap_skip_all "the fake GPU is not built"
export RINGSIDE_CUDA=$fake/libcuda.so.1 RINGSIDE_NCCL=$fake/libnccl.so.2 FAKE_GPU_CLOCK=model
export TMPDIR=$tap_scratch/tmp
mkdir "$TMPDIR"
unset CUDA_VISIBLE_DEVICES NCCL_PROFILER_PLUGIN RINGSIDE_MODE RINGSIDE_DIR RINGSIDE_SHM LD_PRELOAD

# One comparison; its JSON is in $tap_scratch/NAME.json, its messages in NAME.err.
compare() { # name options...
	local name=$1
	shift
	"$ringside" bench profilers --ranks 2 --sizes 1K,64K --calls 12 --warmup 2 -o "$tap_scratch/$name.json" "$@" \
		>"$tap_scratch/$name.txt" 2>"$tap_scratch/$name.err"
}
# "ringside blocking 100.0%" for each plugin and mode, from the JSON.
completeness() { # name
	python3 - "$tap_scratch/$1.json" <<-'PYTHON'
		import json, sys
		from collections import defaultdict
		of = json.load(open(sys.argv[1]))
		issued, lacks, more = defaultdict(int), defaultdict(int), defaultdict(int)
		for row in of["completeness"]:
		    key = of["plugins"][row["plugin"]]["label"], row["mode"]
		    issued[key] += row["issued"]
		    lacks[key] += row["missing"]
		    more[key] += row["excess"]
		for key in issued:
		    print("%s %s %.1f%%%s" % (*key, 100 * (1 - lacks[key] / issued[key]), " and more" if more[key] else ""))
	PYTHON
}
# "lossy blocking: 0 read, 0 silent, 2 failed: problem"
jobs() { # name label
	python3 - "$tap_scratch/$1.json" "$2" <<-'PYTHON'
		import json, sys
		of = json.load(open(sys.argv[1]))
		for row in of["jobs"]:
		    if of["plugins"][row["plugin"]]["label"] == sys.argv[2]:
		        print("%s: %d read, %d silent, %d unreadable, %d failed: %s" % (
		            row["mode"], row["read"], row["silent"], row["unreadable"], row["failed"], row["problem"]))
	PYTHON
}

# ---- a good one ---------------------------------------------------------------------------------
# Enough calls for times to be read before the communicator ends.
expect_ok "the Ringside plugin is compared in all modes with all its settings" \
	compare good --plugin ringside --plugin ringside:flight --plugin ringside:full --plugin ringside:cuda-events --runs 1 --calls 100 --keep "$tap_scratch/kept"
expect_same "it records everything in every mode" "$(completeness good | grep -v 'cuda-events graph')" "$(
	for label in ringside ringside:flight ringside:full ringside:cuda-events; do
		for mode in blocking back-to-back graph; do echo "$label $mode 100.0%"; done
	done | grep -v 'cuda-events graph' # inside a node NCCL shows replays with kernel events only
)"
expect_same "times are those of the GPU" \
	"$(python3 - "$tap_scratch/good.json" <<-'PYTHON'
		import json, sys
		rows = [row["ratio"] for row in json.load(open(sys.argv[1]))["accuracy"] if row["source"] == "kernel_gpu"]
		# The ends of the interval are unknown if a busy machine timed few operations.
		print(len(rows) > 0, {ratio[2] for ratio in rows}, {part for ratio in rows for part in ratio} - {None})
	PYTHON
	)" "True {1} {1}"
expect_same "those between CUDA events are named so" \
	"$(python3 - "$tap_scratch/good.json" <<-'PYTHON'
		import json, sys
		of = json.load(open(sys.argv[1]))
		rows = [row for row in of["accuracy"] if of["plugins"][row["plugin"]]["label"] == "ringside:cuda-events"]
		print(sorted({(row["mode"], row["source"]) for row in rows if row["source"] in ("kernel_gpu", "cuda_event") and row["mode"] != "graph"}))
	PYTHON
	)" "[('back-to-back', 'cuda_event'), ('blocking', 'cuda_event')]"
expect_same "--keep keeps results and logs of every job" \
	"$(find "$tap_scratch/kept" -name results.json | wc -l) $(find "$tap_scratch/kept" -name 'rank-*.log' | wc -l)" "15 30"
expect_ok "kept recordings can be read" "$ringside" verify "$tap_scratch/kept/run1-blocking-ringside/output"
expect_ok "so can kept regions" "$ringside" verify "$tap_scratch/kept/run1-graph-ringside-flight/output"

# ---- a lossy one --------------------------------------------------------------------------------
expect_ok "a lossy plugin is compared" compare lossy --plugin "$lossy" --plugin ringside --runs 1
expect_same "and its losses are found" "$(completeness lossy | grep -c '^inspector .* 7[45]\.[0-9]%$')" 3
expect_same "besides one without losses" "$(completeness lossy | grep -c '^ringside .* 100.0%$')" 3
expect_same "the kind is recognized from the file" \
	"$(python3 -c 'import json, sys; print([p["kind"] for p in json.load(open(sys.argv[1]))["plugins"]])' "$tap_scratch/lossy.json")" \
	"['none', 'inspector', 'ringside']"
expect_same "its settings are reported" \
	"$(grep -c 'NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500' "$tap_scratch/lossy.json")" 1

# ---- failures -----------------------------------------------------------------------------------
few=(--runs 2 --modes blocking --functions allreduce)
LOSSY_CRASH=20 expect_ok "a plugin that crashes is a result" compare crash --plugin "$lossy" --plugin ringside "${few[@]}"
expect_same "with the reason" "$(jobs crash inspector | grep -c 'blocking: 0 read, 0 silent, 0 unreadable, 2 failed: .*signal 11')" 1
expect_same "and the others continue" "$(jobs crash ringside)" "blocking: 2 read, 0 silent, 0 unreadable, 0 failed: "
expect_same "jobs alternate, a different one starts each run" \
	"$(sed -n 's/.*job [0-9]* of 6: run \([0-9]\), blocking, \([a-z:]*\).*/\1 \2/p' "$tap_scratch/crash.err" | tr '\n' ',')" \
	"1 none,1 inspector,1 ringside,2 inspector,2 ringside,2 none,"
cp "$lossy" "$tap_scratch/libother-1.2.so"
LOSSY_CRASH=20 expect_ok "so are two of them" compare crashes --plugin "$lossy" --plugin "$tap_scratch/libother-1.2.so" \
	--runs 1 --modes blocking --functions allreduce
expect_same "labelled by their files" "$(jobs crashes lossy_plugin | cut -c 1-51) $(jobs crashes other-1.2 | cut -c 1-51)" \
	"blocking: 0 read, 0 silent, 0 unreadable, 1 failed: blocking: 0 read, 0 silent, 0 unreadable, 1 failed:"
expect_same "the second was repeated: it may have been the first one's fault" \
	"$(grep -c '"run 1, blocking, other-1.2 failed right after a job with lossy_plugin failed, and was repeated' "$tap_scratch/crashes.json")" 1
LOSSY_SILENT=1 expect_ok "a plugin that writes nothing is a result" compare silent --plugin "$lossy" "${few[@]}"
expect_same "which is 0%" "$(jobs silent inspector) $(completeness silent)" \
	"blocking: 0 read, 2 silent, 0 unreadable, 0 failed:  inspector blocking 0.0%"
# All jobs have the same limit: find one that suffices for the others on this host.
compare_hang() {
	local seconds
	for seconds in 1 5 25; do
		LOSSY_HANG=1 compare hang --plugin "$lossy" --plugin ringside --job-seconds "$seconds" --runs 3 --modes blocking --functions allreduce &&
			[ "$(jobs hang ringside)" = "blocking: 3 read, 0 silent, 0 unreadable, 0 failed: " ] && return
	done
	cat "$tap_scratch/hang.err"
	return 1
}
expect_ok "a plugin that hangs is a result" compare_hang
expect_same "which is ended, and not repeated forever" \
	"$(jobs hang inspector | grep -cE ' 2 failed: not finished after [0-9]+ s') $(grep -c 'with inspector from run 3 on: the job hung' "$tap_scratch/hang.err")" "1 1"
expect_ok "a plugin with an unknown format is compared" compare other --plugin "$lossy=other" "${few[@]}"
expect_same "by its overhead only" "$(jobs other lossy_plugin | cut -d: -f2) $(completeness other)" \
	" 0 read, 0 silent, 2 unreadable, 0 failed "
FAKE_CUDA_FAIL=cuMemAlloc_v2:1 expect_complaint "a job that fails without a plugin ends the comparison" \
	"nothing to compare" "$ringside" bench profilers --plugin ringside --ranks 2 --runs 1

# ---- limits -------------------------------------------------------------------------------------
expect_ok "a total time limit" compare budget --plugin ringside --runs 50 --seconds 1 --modes blocking,graph --functions allreduce
expect_same "reports what it skipped" \
	"$(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["not_run"], sep="\n")' "$tap_scratch/budget.json" | sed 's/runs* [0-9]*\( to 50\)*/runs/' | sort)" \
	"runs of blocking: no time left (--seconds 1)
runs of graph: no time left (--seconds 1)"
FAKE_GPU_CLOCK='' FAKE_NCCL_LATENCY_US=20000 expect_ok "a time limit per cell" \
	compare cell --plugin ringside --runs 1 --modes blocking --functions allreduce --seconds-per-cell 0.1 --least-calls 2
expect_same "reports what it reduced" \
	"$(grep -c 'calls instead of 12 (--seconds-per-cell 0.1)' "$tap_scratch/cell.json")" 1

# ---- training -----------------------------------------------------------------------------------
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -Isrc -I. -g -o "$tap_scratch/train" tests/bench/train_program.c \
	"$fake/libnccl.so.2" "$fake/libcuda.so.1" -Wl,-rpath,"$fake"
mkdir "$tap_scratch/bin"
cat >"$tap_scratch/bin/python3" <<SCRIPT
#!/bin/sh
[ "\$1" != -c ] || { echo fine; exit; }
exec "$tap_scratch/train" "\$@"
SCRIPT
chmod +x "$tap_scratch/bin/python3"
PATH=$tap_scratch/bin:$PATH expect_ok "a training is compared" \
	compare train --plugin ringside --plugin "$lossy" --train-only --train-epochs 3 --train-steps 4 --train-runs 2
expect_same "issued and recorded calls are counted" \
	"$(python3 - "$tap_scratch/train.json" <<-'PYTHON'
		import json, sys
		of = json.load(open(sys.argv[1]))
		for row in of["training"]:
		    print(of["plugins"][row["plugin"]]["label"], row["epochs"], *[
		        (f["function"], f["calls"]) for side in ("issued", "recorded") for f in row[side]])
	PYTHON
	)" \
	"no plugin 3 ('AllReduce', 48) ('Broadcast', 12)
ringside 3 ('AllReduce', 48) ('Broadcast', 12) ('AllReduce', 48) ('Broadcast', 12)
inspector 3 ('AllReduce', 48) ('Broadcast', 12) ('AllReduce', 36) ('Broadcast', 12)"
printf '#!/bin/sh\nexit 1\n' >"$tap_scratch/bin/python3"
PATH=$tap_scratch/bin:$PATH expect_ok "without torch the rest continues" compare untrained --plugin ringside --train --train-runs 1 "${few[@]}"
expect_same "with a message" "$(grep -c 'training skipped: python3 cannot load torch' "$tap_scratch/untrained.err")" 1
expect_same "which is in the comparison, too" "$(grep -c '"training: python3 cannot load torch"' "$tap_scratch/untrained.json")" 1

# ---- shown again, and errors --------------------------------------------------------------------
expect_ok "a comparison is shown again" "$ringside" bench profilers --from "$tap_scratch/lossy.json" \
	-o "$tap_scratch/again.json" -o "$tap_scratch/again.txt" --html "$tap_scratch/again.html"
expect_ok "and is the same" cmp "$tap_scratch/lossy.json" "$tap_scratch/again.json"
expect_ok "as a page" grep -q '<svg' "$tap_scratch/again.html"
expect_ok "as text" cmp "$tap_scratch/lossy.txt" "$tap_scratch/again.txt"
expect_same "with --json, standard output is the JSON" "$("$ringside" bench profilers --from "$tap_scratch/lossy.json" --json)" \
	"$(cat "$tap_scratch/lossy.json")"

usage() { # sentence pattern options...
	local sentence=$1 pattern=$2
	shift 2
	expect_complaint "$sentence" "$pattern.*\(see 'ringside bench profilers --help'\)" "$ringside" bench profilers "$@"
}
usage "no plugin" "no plugin given"
usage "a missing plugin" "cannot read the plugin 'nothing.so': No such file" --plugin nothing.so
usage "a file that is not a plugin" "is not a profiler plugin" --plugin "$fake/libcuda.so.1"
usage "an unknown kind" "'else': unknown kind of plugin" --plugin "$lossy=else"
usage "an unknown setting" "ringside has no setting 'best'" --plugin ringside:best
usage "an invalid number" "'x': expected a number from 1" --plugin ringside --calls x
usage "standard output as a file" "results go to standard output anyway" --plugin ringside -o -
usage "a mode without calls" "loop does not time single calls" --plugin ringside --modes loop
usage "several types, for which tables have no room" "--types 'int32,float32': only one value is allowed here" --plugin ringside --types int32,float32
usage "plugins together with --from" "--from runs nothing" --plugin ringside --from x.json
expect_complaint "--from with another file" "is not a comparison of profilers" \
	"$ringside" bench profilers --from "$(sample wrong.json <<<'{}')"
expect_complaint "--keep with a nonempty directory" "is not empty" \
	"$ringside" bench profilers --plugin ringside --ranks 2 --keep "$tap_scratch"
expect_same "a file that cannot be written is reported before anything runs" \
	"$("$ringside" bench profilers --plugin ringside --ranks 2 -s 1K -n 2 --runs 1 --html "$tap_scratch/nowhere/x.html" 2>&1)" \
	"ringside bench profilers: cannot write $tap_scratch/nowhere/x.html: No such file or directory"
RINGSIDE_CUDA=/nonexistent.so expect_complaint "no CUDA: one line" "nonexistent.so" "$ringside" bench profilers --plugin ringside --ranks 2

# SIGTERM while a job hangs: ranks and directories are removed.
LOSSY_HANG=1 "$ringside" bench profilers --plugin "$lossy" --ranks 2 --sizes 1K --calls 2 --modes blocking -f allreduce \
	>/dev/null 2>"$tap_scratch/interrupted.err" &
interrupted=$!
until grep -qs 'inspector' "$tap_scratch/interrupted.err" || ! kill -0 "$interrupted"; do sleep 0.02; done
kill -TERM "$interrupted"
wait "$interrupted"
expect_same "a signal ends it" "$?" 143
expect_same "nothing is left behind" "$(find "$TMPDIR" -mindepth 1 | wc -l)" 0
tap_done
