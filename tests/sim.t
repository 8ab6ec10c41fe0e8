#!/usr/bin/env bash
# ringside sim: what it rejects, what it writes, and that live jobs are recorded completely and leave
# nothing behind.
. "$(dirname "$0")/tap.sh"

ringside=$BUILD/ringside
# Keep the regions of these jobs separate, so that they cannot evict others.
export RINGSIDE_SHM=$tap_scratch/shm
mkdir -p "$RINGSIDE_SHM"
unset RINGSIDE_JOB RINGSIDE_DIR RINGSIDE_MODE RINGSIDE_EVENTS RINGSIDE_DISABLE

refused() { # sentence pattern option...
	local sentence=$1 pattern=$2 output code
	shift 2
	output=$("$ringside" sim --offline -o "$tap_scratch/refused" "$@" 2>&1)
	code=$?
	if [ "$code" -eq 2 ] && [ "$(wc -l <<<"$output")" -eq 1 ] && grep -qE -- "$pattern" <<<"$output"; then
		tap_line ok "$sentence" ""
	else
		tap_line "not ok" "$sentence" "exit code $code, wanted 2 and one line like: $pattern"$'\n'"$output"
	fi
}

# For every rank and communicator: every operation is recorded or in flight. Killed ranks may have called
# more than they reported.
compare() { # sim.json verify.json
	perl -MJSON::PP -e '
		sub slurp { local (@ARGV, $/) = @_; decode_json(<>) }
		my ($sim, $verify) = (slurp($ARGV[0]), slurp($ARGV[1]));
		my (%recorded, $compared);
		for my $process (@{$verify->{processes}}) {
			for (@{$process->{communicators}}) {
				$recorded{"$process->{pid} $_->{comm_hash} $_->{comm_rank}"} = $_->{recorded} + $_->{in_flight};
			}
		}
		for my $rank (@{$sim->{ranks}}) {
			next if $rank->{end} eq "killed";
			for (@{$rank->{communicators}}) {
				my $found = $recorded{"$rank->{pid} $_->{hash} $_->{rank}"} // "nothing";
				my $wanted = $_->{issued} - $_->{hidden};
				$compared++;
				next if $found eq $wanted;
				print "rank $rank->{rank} on $_->{name}: issued $wanted, recorded $found\n";
				exit 1;
			}
		}
		die "nothing to compare\n" unless $compared;' "$@"
}

# Runs a live job and compares. It must end as expected.
played() { # sentence end option...
	local sentence=$1 end=$2 directory=$tap_scratch/played
	shift 2
	rm -rf "$directory"
	if ! "$ringside" sim --json -o "$directory" "$@" >"$tap_scratch/sim.json" 2>"$tap_scratch/said"; then
		tap_line "not ok" "$sentence" "$(cat "$tap_scratch/said")"
		return
	fi
	"$ringside" verify --json "$directory" >"$tap_scratch/verify.json" 2>>"$tap_scratch/said"
	expect_ok "$sentence" compare "$tap_scratch/sim.json" "$tap_scratch/verify.json"
	expect_same "$sentence: how it ended" \
		"$(perl -MJSON::PP -e 'local $/; print decode_json(<>)->{end}' "$tap_scratch/sim.json")" "$end"
}

children_of() { # pid
	tr ' ' '\n' <"/proc/$1/task/$1/children" | grep .
}
has_children() { # pid count
	[ "$(children_of "$1" | wc -l)" -eq "$2" ]
}
has_operations() { # pid
	"$ringside" dump "@$1" 2>/dev/null | grep . >/dev/null
}
are_gone() { # pid...
	! kill -0 "$@" 2>/dev/null
}

# ---- what it rejects

refused "an unknown workload" "unknown workload 'gpt'; use one of ddp, fsdp, tp-pp, moe, loop" -w gpt
refused "an unknown fault" "unknown fault 'fire'; use one of none, slow-rank, slow-link" --fault fire
refused "a fault without its rank" "fault kill needs rank=" --fault kill
refused "a rank that does not exist" "no rank 8 .*; the last rank is 7" --fault kill:rank=8
refused "a release without profilers" "--release 2.20: expected an NCCL release" --release 2.20
refused "times of every launch in a release without launches" "use --release 2.28 or --times kernel" --times all --release 2.27
refused "unknown times" "--times some: use auto, all, off or kernel" --times some
refused "times in graphs that do not exist" "and perhaps ,graphs or ,no-graphs" --times auto,some
refused "graphs of messages that change" "messages of workload moe differ" --graphs -w moe
refused "graphs with one call that differs" "all replays have the same calls; fault mismatch" --graphs -f mismatch:rank=1
refused "kernel events in graphs that hang NCCL" "hang NCCL 2.26.2" --graphs --release 2.26 --times kernel
refused "an option of earlier versions" "'--kernel-sampled': --times auto, the default" --kernel-sampled
refused "an invalid time" "--at noon is not a time; use e.g. 30s" --at noon
refused "no nodes" "--nodes 0 is not a number from 1 to 4096" --nodes 0
refused "too many ranks" "exceed the limit of 16384 ranks" --nodes 4096 --gpus 16
refused "groups that do not fit" "cannot split .* into groups of 3" -w tp-pp --tp 3
refused "a mode that writes no files" "mode trace or full, not flight" -m flight
refused "a link that does not exist" "rank 3 has fewer than 2 links to other nodes; use --channels" \
	--nodes 2 -f stuck-send:rank=3,link=2
refused "a deadlock of ranks that share one communicator" "ranks 0 and 5 do not share two communicators" \
	--nodes 2 --gpus 4 -w tp-pp -f deadlock:rank=0,peer=5
refused "too many channels" "--channels 17 is not a number from 1 to 16" --channels 17
refused "a rail that does not exist" "no GPU 8 in a node; the last is 7" --nodes 2 -f slow-rail:rail=8
refused "an uplink of a node that does not exist" "no node 2; the last node is 1" --nodes 2 -f slow-uplink:node=2
refused "an uplink of the only node" "one node has no network" -f slow-uplink:node=0
refused "an unknown noise" "unknown noise 'hail'; use one of compute, tail" --noise hail
refused "a noise with a key of another" "noise gpus has no key 'every'; valid keys: .percent=P" --noise gpus:every=1s
refused "clocks that are too far apart" "more than 1s" --clock-shift 2s
expect_same "nothing was written for these" "$(ls "$tap_scratch/refused" 2>/dev/null)" ""
expect_complaint "too many ranks to run" "use --offline" "$ringside" sim --nodes 65
expect_complaint "kill needs processes" "fault kill needs one process per rank" "$ringside" sim --threads -f kill:rank=1
expect_complaint "so does stop" "fault stop needs one process per rank" "$ringside" sim --node-processes -f stop:rank=1
expect_complaint "regions of nodes need processes" "not --threads" "$ringside" sim --threads --node-regions /nowhere
expect_complaint "a missing plugin" "nowhere.so" "$ringside" sim --plugin /nowhere.so --gpus 2 --iterations 1

# ---- what it explains

list=$("$ringside" sim --list)
for word in ddp fsdp tp-pp moe loop none slow-rank slow-link degraded-network slow-nvlink slow-rail slow-uplink slow-receiver starved power-cap \
	never-arrives stuck-send mismatch deadlock gpu-stuck stop kill compute tail loader gc checkpoint evaluation thermal gpus \
	batches contention loss experts; do
	expect_ok "--list explains $word" grep -qE "^  $word(:|$)" <<<"$list"
done
expect_ok "a slow link without traffic is reported" sh -c \
	"'$ringside' sim --offline --nodes 2 --gpus 4 -f slow-link:from=4,to=3 --iterations 1 -o '$tap_scratch/unused' 2>&1 |
	grep -q 'rank 4 sends nothing to rank 3 in this job; it sends to'"
"$ringside" sim --offline --nodes 2 --gpus 2 -w ddp -f mismatch:rank=1,what=root,at=1s --seconds 2s -o "$tap_scratch/unmet" \
	>/dev/null 2>"$tap_scratch/unmet.err"
expect_same "so is a fault that affects no call" "$(cat "$tap_scratch/unmet.err")" \
	"ringside sim: note: fault mismatch affected no call: this job is healthy"

# ---- what it writes

offline=(--offline --nodes 4 --gpus 2 -w fsdp -f stuck-send:rank=3 --at 2s --seed 7)
"$ringside" sim "${offline[@]}" -o "$tap_scratch/first" >"$tap_scratch/one"
"$ringside" sim "${offline[@]}" -o "$tap_scratch/second" >"$tap_scratch/two"
expect_ok "the same seed writes the same bytes" diff -r "$tap_scratch/first" "$tap_scratch/second"
noisy=(--offline --nodes 2 --gpus 2 -w moe --seconds 5s --noise compute --noise experts --noise loss:percent=3)
"$ringside" sim "${noisy[@]}" -o "$tap_scratch/noisy-1" >/dev/null
"$ringside" sim "${noisy[@]}" -o "$tap_scratch/noisy-2" >/dev/null
expect_ok "so it is with noise" diff -r "$tap_scratch/noisy-1" "$tap_scratch/noisy-2"
expect_same "one file per rank" "$(find "$tap_scratch/first" -type f | wc -l)" 8
expect_same "only readable by their owner" "$(find "$tap_scratch/first" ! -perm 0600 -type f)" ""
expect_complaint "files that exist are not touched" "already exists; choose another directory" \
	"$ringside" sim "${offline[@]}" -o "$tap_scratch/first"
expect_ok "it reports that the job hangs" grep -q "hung since 2\." "$tap_scratch/one"
expect_complaint "a directory that cannot be created" "cannot write" \
	"$ringside" sim "${offline[@]}" -o "$tap_scratch/no/such/directory"

algorithms() { # name option...
	local name=$1
	shift
	"$ringside" sim --offline --nodes 2 --gpus 4 -w ddp --iterations 3 -o "$tap_scratch/$name" "$@" >/dev/null
	"$ringside" dump "$tap_scratch/$name" | grep -o '"algorithm":"[A-Z]*","protocol":"[A-Z0-9]*"' | sort | uniq -c
}
expect_same "NCCL does not know about a slow link: its choice does not change" \
	"$(algorithms slow -f slow-link:from=2,to=7,factor=16)" "$(algorithms calm)"
"$ringside" sim --offline --kernel --nodes 4 --gpus 8 -w fsdp --channels 16 -f stuck-send:rank=11,link=2 --at 1s --seconds 9s \
	-o "$tap_scratch/link" >/dev/null
"$ringside" ps "$tap_scratch/link" >"$tap_scratch/said" 2>&1
expect_same "one link is stuck, and no other" "$(grep -o "network to complete sends to.* on channel[s]* [0-9,-]*" "$tap_scratch/said")" \
	"network to complete sends to rank 20 on channel 12"
expect_ok "channels that do not use it have finished" grep -q "16 of 16 channels started, 15 stopped" "$tap_scratch/said"

timed() { # option...
	rm -rf "$tap_scratch/timed"
	"$ringside" sim --offline --nodes 2 --gpus 2 -w ddp --iterations 20 -o "$tap_scratch/timed" "$@" >/dev/null
	"$ringside" dump "$tap_scratch/timed" | awk '/"time_source":"(kernel_gpu|cuda_event)"/ { timed++ }
		END { print (timed == NR ? "all" : timed ? "some" : "none") }'
}
for release in 2.28 2.30 2.31; do
	expect_same "$release times some of the launches" "$(timed --release $release)" some
done
expect_same "--times kernel times all" "$(timed --times kernel)" all
expect_same "so does --kernel" "$(timed --kernel)" all
expect_same "so does --times all, where every operation has a launch" "$(timed --times all)" all
expect_same "--times off times none" "$(timed --times off)" none
expect_same "nor does --no-kernel" "$(timed --no-kernel)" none
expect_same "2.27 times none" "$(timed --release 2.27)" none

# ---- live jobs

short=(--nodes 2 --gpus 2 --iterations 3 --rate 20)
for workload in ddp fsdp tp-pp moe loop; do
	played "$workload is recorded completely" finished "${short[@]}" -w "$workload"
done
played "so is a job of threads" finished "${short[@]}" -w moe --threads
for release in 2.23 2.27 2.31; do
	played "NCCL $release" finished "${short[@]}" -w fsdp --release "$release"
done
# The simulated GPU is in ringside-sim: the plugin finds a CUDA driver there.
live_times() { # least most option...: percentage of the calls that are timed with CUDA events on both ranks
	rm -rf "$tap_scratch/live"
	"$ringside" sim -o "$tap_scratch/live" --gpus 2 -w loop --sizes 1KiB "${@:3}" >/dev/null || return
	"$ringside" dump "$tap_scratch/live" | perl -MJSON::PP -ne '
		$op = decode_json($_);
		$timed{$op->{match}}++ if $op->{time_source} eq "cuda_event";
		$calls++;
		END {
			$share = 200 * (grep { $_ == 2 } values %timed) / $calls;
			print "# $share % of $calls\n";
			exit($share < '"$1"' || $share > '"$2"');
		}'
}
expect_ok "inside a node launches are timed" live_times 50 100 --times all --release 2.28 --rate 200 --iterations 40
expect_ok "also where another thread polls kernels" live_times 50 100 --times all --release 2.31 --rate 200 --iterations 40 --threads
expect_ok "by default some, the same on both ranks" live_times 1 90 --release 2.30 --rate 2000 --iterations 1600
expect_ok "none if times are off" live_times 0 0 --times off --release 2.30 --iterations 5
played "mode full" finished "${short[@]}" -w tp-pp -m full
hang=(--nodes 2 --gpus 2 -w fsdp --rate 20 --at 400ms --seconds 900ms)
for fault in never-arrives:rank=1 stuck-send:rank=1 mismatch:rank=1 mismatch:rank=2,what=function kill:rank=1 stop:rank=1 \
	mismatch:rank=1,what=order gpu-stuck:rank=1 gpu-stuck:rank=1,what=not-launched; do
	played "$fault hangs, and operations in flight are visible" hung "${hang[@]}" -f "$fault"
done
played "a deadlock of two communicators hangs" hung --nodes 2 --gpus 2 -w tp-pp --rate 20 --at 400ms --seconds 900ms \
	-f deadlock:rank=1,peer=0
played "one process per node, with its regions in its own directory" finished "${short[@]}" -w fsdp --node-processes \
	--node-regions "$tap_scratch/nodes"
expect_same "two nodes, two regions" "$(find "$tap_scratch/nodes" -name '*.region' | sed 's|.*/\(node[0-9]*\)/.*|\1|' | sort)" \
	$'node0000\nnode0001'
played "a slow rank does not hang" finished "${short[@]}" -w ddp -f slow-rank:rank=1,factor=2
played "a hung job of threads ends" hung "${hang[@]}" -f stuck-send:rank=1 --threads

# ---- nothing is left behind

"$ringside" sim --nodes 2 --gpus 2 --seconds 60s >"$tap_scratch/said" 2>&1 &
sim=$!
expect_ok "a job is running" until_ok has_children "$sim" 4
mapfile -t children < <(children_of "$sim")
kill -INT "$sim"
wait "$sim"
expect_same "SIGINT ends it normally" "$?" 0
expect_ok "and is reported" grep -q "interrupted" "$tap_scratch/said"
expect_ok "with all its processes" are_gone "${children[@]}"

"$ringside" sim --nodes 2 --gpus 2 --seconds 60s >/dev/null 2>&1 &
sim=$!
until_ok has_children "$sim" 4
mapfile -t children < <(children_of "$sim")
kill -KILL "$sim"
wait "$sim" 2>/dev/null
expect_ok "they do not outlive SIGKILL of their parent" until_ok are_gone "${children[@]}"

"$ringside" sim --nodes 2 --gpus 2 --seconds 60s --hang 300ms --json >"$tap_scratch/sim.json" 2>/dev/null &
sim=$!
until_ok has_children "$sim" 4
mapfile -t children < <(children_of "$sim")
until_ok has_operations "${children[1]}"
kill -KILL "${children[1]}"
wait "$sim"
expect_ok "a killed process hangs the others, as in a real job" \
	grep -q '"end":"hung"' "$tap_scratch/sim.json"

# The machine's wall clock, and two hours: whoever waits for a moment of the one by the other sleeps that long.
perl -e 'print pack "q", 7200 * 1e9' >"$tap_scratch/step"
expect_same "a wall clock that was set holds nobody up" "$(LD_PRELOAD=$BUILD/tests/stepped_clock_plugin.so STEPPED_CLOCK=$tap_scratch/step \
	timeout 120 "$ringside" sim --nodes 2 --gpus 2 --iterations 3 --json 2>&1 | grep -o '"end":"[a-z]*"' | sort -u)" '"end":"finished"'
tap_done
