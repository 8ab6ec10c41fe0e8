#!/usr/bin/env bash
# ringside sim: what it refuses, what it writes, and that jobs that run are recorded as they were
# issued and leave nothing behind.
. "$(dirname "$0")/tap.sh"

ringside=$BUILD/ringside
# Regions of these jobs stay out of everybody's way, and cannot push out others.
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

# Every rank and communicator: what was issued is recorded or in flight. Killed ranks may have issued
# more than they could tell.
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

# Run a job for real and compare. It must end as it should.
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

# ---- what it refuses

refused "an unknown workload" "no workload 'gpt'; there are ddp, fsdp, tp-pp, moe, loop" -w gpt
refused "an unknown fault" "no fault 'fire'; there are none, slow-rank, slow-link" --fault fire
refused "a fault that lacks its rank" "fault kill needs rank=" --fault kill
refused "a rank that is not there" "no rank 8 .*, the last one is 7" --fault kill:rank=8
refused "a release without profilers" "--release 2.20 is no release" --release 2.20
refused "a sample where switching is not safe" "cannot be sampled; say --kernel, --no-kernel or" --kernel-sampled --release 2.31
refused "a level that is none" "--sample-level 13 is not a number from 0 to 12" --sample-level 13
refused "a time that is none" "--at noon is not a time like 30s" --at noon
refused "no nodes" "--nodes 0 is not a number from 1 to 4096" --nodes 0
refused "too many ranks" "more than 16384 ranks" --nodes 4096 --gpus 16
refused "groups that do not fit" "cannot be split into groups of 3" -w tp-pp --tp 3
refused "a mode that writes no files" "mode trace or full, not flight" -m flight
refused "a link that is not there" "rank 3 has fewer than 2 links to other nodes; --channels makes more" \
	--nodes 2 -f stuck-send:rank=3,link=2
refused "a deadlock of ranks that share one communicator" "ranks 0 and 5 are not together in two communicators" \
	--nodes 2 --gpus 4 -w tp-pp -f deadlock:rank=0,peer=5
refused "too many channels" "--channels 17 is not a number from 1 to 16" --channels 17
refused "clocks that are too far apart" "more than 1s" --clock-shift 2s
expect_same "nothing was written for these" "$(ls "$tap_scratch/refused" 2>/dev/null)" ""
expect_complaint "too many ranks to run" "add --offline" "$ringside" sim --nodes 65
expect_complaint "kill needs processes" "fault kill needs a process per rank" "$ringside" sim --threads -f kill:rank=1
expect_complaint "so does stop" "fault stop needs a process per rank" "$ringside" sim --node-processes -f stop:rank=1
expect_complaint "regions of nodes need processes" "not --threads" "$ringside" sim --threads --node-regions /nowhere
expect_complaint "a plugin that is not there" "nowhere.so" "$ringside" sim --plugin /nowhere.so --gpus 2 --iterations 1

# ---- what it explains

list=$("$ringside" sim --list)
for word in ddp fsdp tp-pp moe loop none slow-rank slow-link degraded-network slow-nvlink \
	never-arrives stuck-send mismatch deadlock gpu-stuck stop kill; do
	expect_ok "--list explains $word" grep -qE "^  $word(:|$)" <<<"$list"
done
expect_ok "a slow link nobody uses is said" sh -c \
	"'$ringside' sim --offline --nodes 2 --gpus 4 -f slow-link:from=4,to=3 --iterations 1 -o '$tap_scratch/unused' 2>&1 |
	grep -q 'rank 4 sends nothing to rank 3 in this job; it sends to'"
"$ringside" sim --offline --nodes 2 --gpus 2 -w ddp -f mismatch:rank=1,what=root,at=1s --seconds 2s -o "$tap_scratch/unmet" \
	>/dev/null 2>"$tap_scratch/unmet.err"
expect_same "so is a fault that finds nothing to begin with" "$(cat "$tap_scratch/unmet.err")" \
	"ringside sim: note: fault mismatch met no call that it concerns: nothing is wrong with this job"

# ---- what it writes

offline=(--offline --nodes 4 --gpus 2 -w fsdp -f stuck-send:rank=3 --at 2s --seed 7)
"$ringside" sim "${offline[@]}" -o "$tap_scratch/first" >"$tap_scratch/one"
"$ringside" sim "${offline[@]}" -o "$tap_scratch/second" >"$tap_scratch/two"
expect_ok "the same seed writes the same bytes" diff -r "$tap_scratch/first" "$tap_scratch/second"
expect_same "a file per rank" "$(find "$tap_scratch/first" -type f | wc -l)" 8
expect_same "for their owner alone" "$(find "$tap_scratch/first" ! -perm 0600 -type f)" ""
expect_complaint "files that exist are not touched" "exists already; choose another directory" \
	"$ringside" sim "${offline[@]}" -o "$tap_scratch/first"
expect_ok "it says that the job hangs" grep -q "hangs since 2\." "$tap_scratch/one"
expect_complaint "a directory that cannot be made" "cannot write" \
	"$ringside" sim "${offline[@]}" -o "$tap_scratch/no/such/directory"

algorithms() { # name option...
	local name=$1
	shift
	"$ringside" sim --offline --nodes 2 --gpus 4 -w ddp --iterations 3 -o "$tap_scratch/$name" "$@" >/dev/null
	"$ringside" dump "$tap_scratch/$name" | grep -o '"algorithm":"[A-Z]*","protocol":"[A-Z0-9]*"' | sort | uniq -c
}
expect_same "NCCL does not know of a slow link, and chooses as ever" \
	"$(algorithms slow -f slow-link:from=2,to=7,factor=16)" "$(algorithms calm)"
"$ringside" sim --offline --kernel --nodes 4 --gpus 8 -w fsdp --channels 16 -f stuck-send:rank=11,link=2 --at 1s --seconds 9s \
	-o "$tap_scratch/link" >/dev/null
"$ringside" ps "$tap_scratch/link" >"$tap_scratch/said" 2>&1
expect_same "one link is stuck, and no other" "$(grep -o "network to complete sends to.* on channel[s]* [0-9,-]*" "$tap_scratch/said")" \
	"network to complete sends to rank 20 on channel 12"
expect_ok "channels that do not use it are through" grep -q "16 of 16 channels started, 15 stopped" "$tap_scratch/said"

timed() { # option...
	rm -rf "$tap_scratch/timed"
	"$ringside" sim --offline --nodes 2 --gpus 2 -w ddp --iterations 20 -o "$tap_scratch/timed" "$@" >/dev/null
	"$ringside" dump "$tap_scratch/timed" | awk '/"time_source":"kernel_gpu"/ { timed++ }
		END { print (timed == NR ? "all" : timed ? "some" : "none") }'
}
expect_same "2.28 times some of the collectives" "$(timed)" some
expect_same "--kernel times all" "$(timed --kernel)" all
expect_same "--no-kernel times none" "$(timed --no-kernel)" none
expect_same "2.30 times none" "$(timed --release 2.30)" none
expect_same "but some when it is told to" "$(timed --release 2.30 --kernel-sampled --sample-level 2)" some

# ---- jobs that run

short=(--nodes 2 --gpus 2 --iterations 3 --rate 20)
for workload in ddp fsdp tp-pp moe loop; do
	played "$workload is recorded as it was issued" finished "${short[@]}" -w "$workload"
done
played "threads, too" finished "${short[@]}" -w moe --threads
for release in 2.23 2.27 2.31; do
	played "NCCL $release" finished "${short[@]}" -w fsdp --release "$release"
done
played "a sample of kernel events" finished --gpus 2 -w loop --sizes 1KiB --iterations 400 --rate 400 --kernel-sampled -m trace
# With too little room in /dev/shm the recorder requests none.
if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 3000000 ]; then
	expect_same "of which some are timed, and some of these on both ranks" "$("$ringside" dump "$tap_scratch/played" |
		perl -MJSON::PP -ne '$op = decode_json($_); $op->{time_source} eq "kernel_gpu" ? $timed{$op->{match}}++ : $others++;
			END { print "some" if $others && grep { $_ == 2 } values %timed }')" some
fi
played "mode full" finished "${short[@]}" -w tp-pp -m full
hang=(--nodes 2 --gpus 2 -w fsdp --rate 20 --at 400ms --seconds 900ms)
for fault in never-arrives:rank=1 stuck-send:rank=1 mismatch:rank=1 mismatch:rank=2,what=function kill:rank=1 stop:rank=1 \
	mismatch:rank=1,what=order gpu-stuck:rank=1 gpu-stuck:rank=1,what=not-launched; do
	played "$fault hangs, and what is in flight can be seen" hung "${hang[@]}" -f "$fault"
done
played "a deadlock of two communicators hangs" hung --nodes 2 --gpus 2 -w tp-pp --rate 20 --at 400ms --seconds 900ms \
	-f deadlock:rank=1,peer=0
played "a process per node, its regions in a directory of its own" finished "${short[@]}" -w fsdp --node-processes \
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
expect_same "SIGINT ends it well" "$?" 0
expect_ok "and it says so" grep -q "interrupted" "$tap_scratch/said"
expect_ok "with all its processes" are_gone "${children[@]}"

"$ringside" sim --nodes 2 --gpus 2 --seconds 60s >/dev/null 2>&1 &
sim=$!
until_ok has_children "$sim" 4
mapfile -t children < <(children_of "$sim")
kill -KILL "$sim"
wait "$sim" 2>/dev/null
expect_ok "they do not outlive SIGKILL of the first one" until_ok are_gone "${children[@]}"

"$ringside" sim --nodes 2 --gpus 2 --seconds 60s --hang 300ms --json >"$tap_scratch/sim.json" 2>/dev/null &
sim=$!
until_ok has_children "$sim" 4
mapfile -t children < <(children_of "$sim")
until_ok has_operations "${children[1]}"
kill -KILL "${children[1]}"
wait "$sim"
expect_ok "a process that somebody kills hangs the others, as it would" \
	grep -q '"end":"hung"' "$tap_scratch/sim.json"
tap_done
