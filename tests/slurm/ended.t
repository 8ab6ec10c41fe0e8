#!/usr/bin/env bash
# Jobs of two nodes that hang until Slurm ends them: the nodes' epilogs agree on one bundle, and it names the hang.
. "$(dirname "$0")/cluster.sh"
[ -x "$BUILD/ringside-agent" ] || tap_skip_all "ringside-agent was not built"
[ -e "$spank" ] || tap_skip_all "ringside_spank.so is not built: no slurm/spank.h (scripts/install-deps check)"
set_plugstack "optional $spank plugin=$plugin"
bundles=$tap_scratch/bundles
printf '#!/bin/sh\nexport RINGSIDE_SLURM_SETTINGS=%s/settings\nexec "%s/deploy/slurm/ringside-epilog" >>%s/epilog.log 2>&1\n' \
	"$tap_scratch" "$PWD" "$tap_scratch" >"$tap_scratch/epilog"
chmod +x "$tap_scratch/epilog"
: >"$tap_scratch/epilog.log"
settings() { # line...
	printf '%s\n' "RINGSIDE=$ringside" "BUNDLES=$bundles" "export TMPDIR=$tap_scratch/tmp" "$@" >"$tap_scratch/settings"
}
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -o "$tap_scratch/hang_job" tests/slurm/hang_job.c -ldl || exit 1
cluster_start PrologEpilogTimeout=200 OverTimeLimit=0 "Epilog=$tap_scratch/epilog"
for node in 0 1; do
	on_node $node "$BUILD/ringside-agent" --listen "192.0.2.$((node + 1)):9749" --interval 1s --hang 3s 2>"$tap_scratch/agent.$node" &
	until_ok grep -q 'listening on' "$tap_scratch/agent.$node"
done
is_idle() { [ "$(sinfo --noheader --Node --format '%N %t' | sort | xargs)" = "n0 idle n1 idle" ]; }
kept() { find "$bundles" -name '*.tar.gz' -printf '%f\n' 2>/dev/null | grep "^$job-" | cut -d - -f 2 | sort | xargs; }
is_gone() { # on both nodes
	! on_node 0 "$ringside" ls --quiet --job "$job" --run all >/dev/null 2>&1 && ! on_node 1 "$ringside" ls --quiet --job "$job" --run all >/dev/null 2>&1
}
judged() { # bundle...
	"$ringside" doctor --quiet --json --hang 3s "$@" |
		perl -MJSON::PP -0777 -ne 'my $v = decode_json($_)->{verdicts}[0]; print "$v->{class} ", $v->{rank} // ""'
}
# Starts a job of two ranks on each node, and waits until it has hung for this long.
begin() { # fault seconds [option of sbatch...]
	local fault=$1 seconds=$2
	shift 2
	settings KEEP_SECONDS=10
	job=$(sbatch --parsable -N2 --ntasks-per-node=2 -o "$tap_scratch/out.%j" "$@" --wrap "srun $tap_scratch/hang_job $fault 100; exit 0")
	until_ok eval '[ "$(grep -c hangs "$tap_scratch/out.$job" 2>/dev/null)" = 4 ]'
	sleep "$seconds"
}
# What is kept of a job once it is over. Regions go last.
ends() { # sentence verdict bundles
	expect_ok "$1: regions are removed on both nodes" until_ok is_gone
	expect_same "$1: one bundle of all nodes, and those of nodes with a reason of their own" "$(kept)" "$3"
	expect_ok "$1: it names the hang" grep -xE "$2" <(judged "$bundles/$job"-all-*)
}

settings KEEP_SECONDS=10
# Slurm allows at least a minute: this one ends last.
begin hang 0 --time=1
limited=$job
srun -N2 --ntasks-per-node=2 "$tap_scratch/hang_job" none 20
job=$(squeue --noheader --states=completed --format=%A | sort -n | tail -n 1)
expect_ok "a job that ends well leaves nothing" until_ok is_gone
expect_same "and no bundle" "$(kept)" ""
begin hang 5
scancel "$job"
ends "a rank that does not call, scancel" "never_issued 2" "all n0 n1"
begin deadlock 5
scancel "$job"
ends "a deadlock, scancel" "deadlock 2" "all n0 n1"
begin stop 5
# Slurm continues it before it ends it: it may come to its next call or not.
scancel "$job"
ends "a stopped process, scancel" "(process_dead|never_issued) 2" "all n0 n1"
job=$limited
ends "a rank that does not call, time limit" "never_issued 2" "all n0 n1"
begin hang 5
scontrol update NodeName=n1 State=DOWN Reason=test
ends "a node that fails" "never_issued 2" "all n0 n1"
tap_done
