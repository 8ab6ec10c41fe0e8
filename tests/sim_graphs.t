#!/usr/bin/env bash
# ringside sim --graphs: a job that runs, with the recorder in its ranks, and the same job offline leave the same records.
# All jobs run at the same time: they mostly sleep.
. "$(dirname "$0")/tap.sh"

ringside=$BUILD/ringside
export RINGSIDE_SHM=$tap_scratch/shm
mkdir -p "$RINGSIDE_SHM"
unset RINGSIDE_JOB RINGSIDE_DIR RINGSIDE_MODE RINGSIDE_EVENTS RINGSIDE_TIMES RINGSIDE_DISABLE

# Field by field what does not depend on the machine's speed: which launch is timed follows from the pace, and which
# replay is read from the moment of the poll.
cat >"$tap_scratch/compare.py" <<'END'
import collections, json, sys

FIELDS = """comm_name comm_rank comm_ranks comm_nodes match signature captured_number function datatype algorithm protocol count
bytes root peer channels warps user_tag nccl_sequence kernels_started kernels_stopped proxies_started proxies_stopped""".split()
TIMED = {"cuda_event", "not_sampled", "place_rough", "shared_time"}


def read(path):
    ranks = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for line in file:
            one = json.loads(line)
            if one["record"] == "operation":
                ranks[one["rank"]].append(one)
    for operations in ranks.values():
        operations.sort(key=lambda one: (one["comm_id"], one["number"]))
    return ranks


def view(one):
    seen = {name: one[name] for name in FIELDS}
    seen["flags"] = sorted(set(one["flags"]) - TIMED)
    seen["launched"] = one["launch_ns"] is not None
    seen["task"] = one["task_ns"] is not None
    seen["stream"] = int(one["stream"], 16) != 0
    if one["state"] == "captured" or "replay" in one["flags"]:
        seen["state"] = one["state"]
    return seen


def difference(one, other):
    if isinstance(one, str):
        one, other = json.loads(one), json.loads(other)
    return "%s match %d: %s" % (one["function"], one["match"] or 0,
                                {k: (v, other.get(k)) for k, v in one.items() if other.get(k) != v})


def is_found(one):
    return "replay_read" in one["flags"]


def times_fit(one):
    has_time = "cuda_event" in one["flags"] or one["kernels_stopped"] > 0
    return has_time == (one["time_source"] == "cuda_event" or one["time_source"].startswith("kernel")) and \
        (not has_time or one["gpu_stop_ns"] > one["gpu_start_ns"])


live, offline, found_wanted, replays_wanted = read(sys.argv[1]), read(sys.argv[2]), *sys.argv[3:5]
wrong = []
if sorted(live) != sorted(offline) or not live:
    wrong.append("ranks %s and %s" % (sorted(live), sorted(offline)))
replays = 0
for rank in live:
    for kind in (False, True):
        one = [view(o) for o in live[rank] if is_found(o) == kind]
        other = [view(o) for o in offline[rank] if is_found(o) == kind]
        replays += sum("replay" in o["flags"] for o in one) if not kind else 0
        if kind:
            # How many were found differs, not of which captured calls and what is known of them.
            one = sorted({json.dumps(o, sort_keys=True) for o in one})
            other = sorted({json.dumps(o, sort_keys=True) for o in other})
            if (found_wanted == "found") != bool(one):
                wrong.append("rank %d: %d kinds of replays found" % (rank, len(one)))
        if len(one) != len(other):
            wrong.append("rank %d: %d and %d records" % (rank, len(one), len(other)))
        wrong += ["rank %d: %s" % (rank, difference(a, b)) for a, b in zip(one, other) if a != b]
    wrong += ["rank %d: %s" % (rank, o) for o in live[rank] + offline[rank] if not times_fit(o)]
if (replays_wanted == "shown") != (replays > 0):
    wrong.append("%d replays shown" % replays)
print("\n".join(one[:200] for one in wrong[:4]))
sys.exit(bool(wrong))
END

# name release found shown option...
jobs=(
	"one node of 2.28|2.28|found|hidden|--nodes 1 -w loop"
	"one node of 2.30|2.30|found|hidden|--nodes 1 -w ddp --times auto,graphs --sizes 4MiB"
	"two nodes of 2.28|2.28|none|shown|--nodes 2 -w loop --sizes 64MiB"
	"two nodes of 2.30|2.30|none|shown|--nodes 2 -w fsdp --rate 5"
	"two nodes of 2.31|2.31|none|shown|--nodes 2 -w loop --tag world=7"
	"one node of 2.31|2.31|found|hidden|--nodes 1 -w loop --tag world=7"
	"tensor and pipeline parallel, 2.30|2.30|found|shown|--nodes 2 -w tp-pp --rate 3"
	"kernel events in one node of 2.28|2.28|none|shown|--nodes 1 -w loop --times kernel"
	"kernel events in two nodes of 2.31|2.31|none|shown|--nodes 2 -w loop --times kernel"
	"no times in graphs|2.28|none|hidden|--nodes 1 -w loop --times all,no-graphs"
	"no times at all|2.30|none|shown|--nodes 2 -w loop --times off"
	"one node of 2.24|2.24|none|hidden|--nodes 1 -w loop"
	"two nodes of 2.26|2.26|none|hidden|--nodes 2 -w loop"
	"one node of 2.27|2.27|none|hidden|--nodes 1 -w loop"
	"two nodes of 2.27|2.27|none|hidden|--nodes 2 -w loop"
)
# The first --rate is for all jobs; a later one replaces it.
common=(--graphs --gpus 2 --rate 10 --iterations 12)

pids=()
for i in "${!jobs[@]}"; do
	IFS='|' read -r _ release _ _ options <<<"${jobs[i]}"
	read -ra options <<<"$options"
	"$ringside" sim "${common[@]}" --release "$release" "${options[@]}" --json -o "$tap_scratch/live$i" \
		>"$tap_scratch/live$i.json" 2>"$tap_scratch/live$i.said" &
	pids+=($!)
	"$ringside" sim --offline "${common[@]}" --release "$release" "${options[@]}" --json -o "$tap_scratch/offline$i" \
		>"$tap_scratch/offline$i.json" 2>"$tap_scratch/offline$i.said"
done

# Per rank and communicator: called, hidden, in flight.
counts() { # sim.json
	perl -MJSON::PP -e 'local $/; for my $rank (@{decode_json(<>)->{ranks}}) {
		print "$rank->{rank} $rank->{end} $_->{name} $_->{issued} $_->{hidden} $_->{in_flight}\n"
			for @{$rank->{communicators}} }' "$1"
}
same_counts() { # number
	diff <(counts "$tap_scratch/live$1.json") <(counts "$tap_scratch/offline$1.json")
}
same_records() { # number found shown
	"$ringside" dump "$tap_scratch/live$1" >"$tap_scratch/live.dump" &&
		"$ringside" dump "$tap_scratch/offline$1" >"$tap_scratch/offline.dump" &&
		python3 "$tap_scratch/compare.py" "$tap_scratch/live.dump" "$tap_scratch/offline.dump" "$2" "$3"
}
# Complete, and every command can read it.
is_readable() { # directory
	"$ringside" verify "$1" && "$ringside" report "$1" && "$ringside" trace -o "$tap_scratch/trace.json" "$1"
}
# How fast ranks are on a busy machine is another matter, but none of them hangs.
is_complete() { # directory
	is_readable "$1" || return 1
	"$ringside" doctor "$1" >"$tap_scratch/verdict"
	grep -qE '^(healthy|no hang|warning|note)' "$tap_scratch/verdict" && ! grep '^error' "$tap_scratch/verdict"
}
# Nobody is accused.
is_healthy() { # directory
	is_readable "$1" && "$ringside" doctor "$1"
}

for i in "${!jobs[@]}"; do
	IFS='|' read -r name _ found shown _ <<<"${jobs[i]}"
	wait "${pids[i]}" || cat "$tap_scratch/live$i.said"
	expect_ok "$name: as many calls" same_counts "$i"
	expect_ok "$name: the same records" same_records "$i" "$found" "$shown"
	expect_ok "$name: complete" is_complete "$tap_scratch/live$i"
	expect_ok "$name: complete and healthy offline" is_healthy "$tap_scratch/offline$i"
done

# The recorder reads the times of the replay before, after NCCL has shown the one that hangs.
no_time_in_flight() {
	"$ringside" sim --graphs --nodes 2 --gpus 2 -w loop --sizes 64MiB --rate 20 --at 1500ms --seconds 4s \
		-f stuck-send:rank=1 -o "$tap_scratch/open" >"$tap_scratch/open.said" 2>&1
	# The processes were killed, which `dump` reports.
	{ "$ringside" dump "$tap_scratch/open" || true; } | perl -MJSON::PP -ne '
		my $op = decode_json($_);
		next unless ($op->{state} // "") =~ /^(launched|running)$/ && grep { $_ eq "replay" } @{$op->{flags}};
		$open++;
		if (defined $op->{gpu_stop_ns}) { print; $wrong++ }
		END { print "$open in flight\n"; exit(!$open || $wrong ? 1 : 0) }'
}
expect_ok "what hangs in a replay has no time of an earlier one" no_time_in_flight

# A hang in a replay over the network has the verdict of one in a call, with one rank per node: then all show the same replays.
hung() { # pattern option...
	local pattern=$1
	shift
	rm -rf "$tap_scratch/hung"
	"$ringside" sim --offline --graphs --nodes 8 --gpus 1 -w loop --sizes 64MiB --at 2s --seconds 40s \
		-o "$tap_scratch/hung" "$@" >/dev/null
	"$ringside" doctor "$tap_scratch/hung" | grep -m 1 -E '^(error|warning)' | tee "$tap_scratch/verdict"
	grep -qE -- "$pattern" "$tap_scratch/verdict"
}
expect_ok "a stuck send in a replay" hung 'network send stuck: rank 1 -> rank 2' -f stuck-send:rank=1
expect_ok "a rank that launches no graph" hung 'rank 2 has not called .*\(graph replay\)' -f never-arrives:rank=2
expect_ok "a GPU that is stuck in a replay" hung 'rank 1 has called .*\(graph replay\) of world but its GPU has not started it' -f gpu-stuck:rank=1
expect_ok "a rank that died in a replay" hung 'rank 3 is probably dead' -f kill:rank=3
expect_ok "a rank that is stopped in a replay" hung 'rank 3 is stopped' -f stop:rank=3
expect_ok "a straggler whose iterations are replays" hung 'straggler: rank 2' -f slow-rank:rank=2,factor=2
expect_ok "a slow link in replays" hung 'slow link: rank 3 .* -> rank 4' -f slow-link:from=3,to=4,factor=8

# Otherwise ranks show different replays, and nobody is accused of what another did.
unnamed() { # option...
	rm -rf "$tap_scratch/unnamed"
	"$ringside" sim --offline --graphs --nodes 2 --gpus 4 --seconds 40s -o "$tap_scratch/unnamed" "$@" >/dev/null
	"$ringside" doctor "$tap_scratch/unnamed" | grep -E '^(error|warning)' | tee "$tap_scratch/verdict"
	! grep -qvE 'ranks stuck in .*\(graph replay\)|iterations take .* longer than before: cause not visible' "$tap_scratch/verdict"
}
expect_ok "a stuck GPU where ranks show different replays" unnamed -w ddp -f gpu-stuck:rank=1 --at 6s
expect_ok "a slow link" unnamed -w loop -f slow-link:from=3,to=4,factor=8
expect_ok "a straggler" unnamed -w ddp -f slow-rank:rank=5,factor=1.5,at=10s

tap_done
