#!/usr/bin/env bash
# Dumps of PyTorch's Flight Recorder: read by every command, alone or beside our own recordings.
. "$(dirname "$0")/../cli/cli.sh"

make() { # NAME KIND [SECONDS_AGO]
	python3 tests/foreign/make_torch_dumps.py "$tap_scratch/$1" "${@:2}"
}
verdict() { # PATH: class, rank and title of the first one
	"$ringside" doctor --json "$1" 2>/dev/null | python3 -c '
import json, sys
found = json.load(sys.stdin)["verdicts"]
print("%s %s: %s" % (found[0]["class"], found[0]["rank"], found[0]["title"]) if found else "none")'
}
missing="never_issued 2: rank 2 has not called AllReduce #18 of default_pg; 3 ranks wait"

for kind in pickle2 pickle3 pickle4 pickle5 json torchcomms wrapped; do
	make "$kind" "$kind"
	expect_same "$kind: the rank that has not called is named" "$(verdict "$tap_scratch/$kind")" "$missing"
done
"$ringside" doctor "$tap_scratch/pickle2" >"$tap_scratch/text"
tr -s ' \n' ' ' <"$tap_scratch/text" >"$tap_scratch/line"
expect_ok "where it made its last call" grep -q "Rank 2 made its last call at /home/user/data.py:41 in next_batch < /home/user/train.py:120 in main\." "$tap_scratch/line"
expect_ok "where the others wait" grep -q "Ranks 0, 1, 3 wait at /home/user/train.py:88 in step < /home/user/train.py:120 in main\." "$tap_scratch/line"
expect_ok "ps shows the call that is not over" grep -qE "AllReduce +1 MiB +bfloat16 +default_pg +3 ranks +18 +running" \
	<("$ringside" ps "$tap_scratch/pickle2" 2>/dev/null)
expect_same "dump has sizes as they were passed" \
	"$("$ringside" dump "$tap_scratch/pickle2" | sed -n 1p | grep -oE '"(function|datatype|count|bytes|comm_name)":[^,]*' | tr '\n' ' ')" \
	'"comm_name":"default_pg" "function":"AllReduce" "datatype":"bfloat16" "count":524288 "bytes":1048576 '
expect_ok "verify finds nothing missing" "$ringside" verify "$tap_scratch/pickle2"
expect_ok "verify finds nothing missing if the first calls were overwritten" "$ringside" verify "$tap_scratch/wrapped"

"$ringside" bundle "$tap_scratch/pickle2" --no-ras -o "$tap_scratch/bundle.tar" >/dev/null 2>&1
expect_same "a bundle of them has the same verdict" "$(verdict "$tap_scratch/bundle.tar")" "$missing"
expect_ok "with the places in the program" grep -q "made its last call at /home/user/data.py:41 in next_batch" \
	<("$ringside" doctor "$tap_scratch/bundle.tar" | tr -s ' \n' ' ')

make coalesced coalesced
expect_same "a batch that is over leaves nothing in flight" "$("$ringside" ps "$tap_scratch/coalesced" 2>/dev/null | grep -cE 'Send|Recv')" 0
expect_same "its transfers have peers" \
	"$("$ringside" dump "$tap_scratch/coalesced" | grep '"rank":1,' | grep -oE '"function":"(Send|Recv)"|"peer":[0-9]+' | tr '\n' ' ')" \
	'"function":"Send" "peer":2 "function":"Recv" "peer":0 '
make calm calm
expect_same "a job in which every call is over is not accused" "$(verdict "$tap_scratch/calm" | grep -c never_issued)" 0

make hostile hostile
"$ringside" ls "$tap_scratch/hostile" >/dev/null 2>"$tap_scratch/error"
expect_same "a pickle that names a class is refused" "$(grep -c 'only plain values are read' "$tap_scratch/error")" 4
expect_ok "and executes nothing" test ! -e "$tap_scratch/hostile/executed"
"$ringside" doctor "$tap_scratch/hostile" >/dev/null 2>&1
expect_same "a job of which nothing can be read is not healthy" $? 3
head -c 3000 "$tap_scratch/pickle2/nccl_trace_rank_1" >"$tap_scratch/cut_rank_1"
expect_ok "a truncated dump is reported with its place" grep -q "cut_rank_1: at byte [0-9]*: the file ends too early" \
	<("$ringside" ls "$tap_scratch/cut_rank_1" 2>&1)

# Who has not called needs no clock: the file's time is that of the dump or of a copy.
make copied pickle2 90000
expect_same "dumps that were copied a day later have the same verdict" "$(verdict "$tap_scratch/copied")" "$missing"
expect_ok "and it says what is not known" grep -q "The dumps do not show when they were made" \
	<("$ringside" doctor "$tap_scratch/copied" | tr -s ' \n' ' ')
expect_same "there is no duration in it" "$("$ringside" doctor --all "$tap_scratch/copied" | grep -cE '[0-9] (ns|us|ms|s|min|h)( |$)')" 0
"$ringside" bundle "$tap_scratch/copied" --no-ras -o "$tap_scratch/copied.tar" >/dev/null 2>&1
expect_same "nor in a bundle of them" "$(verdict "$tap_scratch/copied.tar") $("$ringside" doctor --all "$tap_scratch/copied.tar" | grep -c '[0-9] s ')" "$missing 0"
for later in "200 seconds" "2 days"; do
	for rank in 1 2; do
		make one pickle2
		touch -d "now + $later" "$tap_scratch/one/nccl_trace_rank_$rank"
		expect_same "that of rank $rank was copied $later later" "$(verdict "$tap_scratch/one")" "$missing"
	done
done
for when in 1970-01-02 "2 days ago" now; do
	touch -d "$when" "$tap_scratch/copied"/*
	expect_same "files of $when have the same verdict" "$(verdict "$tap_scratch/copied")" "$missing"
done
make asked asked 90000
expect_same "dumps that were made one after the other while the job worked accuse nobody" \
	"$("$ringside" doctor "$tap_scratch/asked" | grep -cE '^(error|warning)')" 0
make both both 90000
expect_same "all have called: nobody is accused" "$(verdict "$tap_scratch/both" | grep -c never_issued)" 0

# Dumps of another time say nothing about a recording.
"$ringside" sim --offline --nodes 1 --gpus 4 --iterations 3 -o "$tap_scratch/own" >/dev/null 2>&1
cp "$tap_scratch"/pickle2/* "$tap_scratch/own"
expect_same "dumps whose calls are not in the recording are not used, and each is reported" \
	"$("$ringside" ls "$tap_scratch/own" 2>&1 >/dev/null | grep -c 'dump of rank [0-3] is not used: no recording here has its calls')" 4
expect_same "and are no processes beside it" "$("$ringside" ls --json "$tap_scratch/own" 2>/dev/null | grep -o '"pid":' | wc -l)" 4

# A pickle can name one long list in very many places. Reading all of them would take hours.
mkdir "$tap_scratch/bomb"
python3 - "$tap_scratch/bomb/nccl_trace_rank_0" <<'EOF'
import pickle, sys
entry = {"process_group": ["0", "world"], "profiling_name": "nccl:all_reduce", "state": "started",
         "input_sizes": [[1] * 1000000], "time_created_ns": 1, "frames": [{"filename": "/torch/x"}] * 1000000}
pickle.dump({"version": "2.4", "pg_config": {}, "entries": [entry] * 500000}, open(sys.argv[1], "wb"), protocol=2)
EOF
expect_complaint "a dump that repeats its values" "the same values are repeated too often" \
	timeout 300 "$ringside" verify "$tap_scratch/bomb"
# Real hangs of PyTorch 2.11 with NCCL 2.28.9 on a GPU, made by tests/gpu/torch_hangs; only the names of folders were changed.
# The time of a dump is that of its file, which a repository does not keep.
for scene in skip deadlock loader checkpoint exception; do
	real=tests/foreign/torch/$scene
	dumped=$(grep -oE '"dumped": [0-9.]+' "$real/expected.json" | cut -d' ' -f2)
	mkdir -p "$tap_scratch/$scene"/{pickle,json,both}
	cp "$real"/nccl_trace_rank_* "$tap_scratch/$scene/pickle"
	cp "$real"/json_rank_* "$tap_scratch/$scene/json"
	cp "$real"/nccl_trace_rank_* "$real"/*.ringside "$tap_scratch/$scene/both"
	find "$tap_scratch/$scene" -type f -exec touch -d "@$dumped" {} +
	for kind in pickle json both; do
		# PyTorch's JSON has no frames.
		lines=has_lines
		[ $kind != json ] || lines=no_lines
		expect_same "real $scene, $kind: class, culprit and lines are right" \
			"$("$ringside" doctor --json "$tap_scratch/$scene/$kind" 2>/dev/null | python3 tests/foreign/replay_torch.py "$real" $lines)" right
	done
	# Snapshots of the same hangs, taken with stacks: Python's frames, and /proc alone.
	expect_same "real $scene: where in the program each rank is" \
		"$("$ringside" doctor --json "$real/stacks" 2>/dev/null | python3 tests/foreign/replay_torch.py "$real" has_stacks)" right
	expect_same "real $scene: what each rank does, from /proc alone" \
		"$("$ringside" doctor --json "$real/proc" 2>/dev/null | python3 tests/foreign/replay_torch.py "$real" has_states)" right
done
expect_ok "a communicator that NCCL does not name has the name of its process group" grep -q "AllReduce #11 of default_pg" \
	<("$ringside" doctor "$tap_scratch/skip/both")
tap_done
