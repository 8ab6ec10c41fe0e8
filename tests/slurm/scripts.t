#!/usr/bin/env bash
# The prolog and the epilog under a real slurmd: only a measured fault drains a node, only bundles of failed jobs are kept.
. "$(dirname "$0")/cluster.sh"
[ -e "$spank" ] || tap_skip_all "ringside_spank.so is not built: no slurm/spank.h (scripts/install-deps check)"
set_plugstack "optional $spank plugin=$plugin"
bundles=$tap_scratch/bundles
for script in prolog epilog; do
	printf '#!/bin/sh\nexport RINGSIDE_SLURM_SETTINGS=%s/settings\nexec "%s/deploy/slurm/ringside-%s" >>%s/%s.log 2>&1\n' \
		"$tap_scratch" "$PWD" $script "$tap_scratch" $script >"$tap_scratch/$script"
	chmod +x "$tap_scratch/$script"
	: >"$tap_scratch/$script.log"
done
# The settings of both scripts; the last value counts.
settings() { # line...
	cat >"$tap_scratch/settings" <<-END
		RINGSIDE=$ringside
		export RINGSIDE_CUDA=$RINGSIDE_CUDA RINGSIDE_NCCL=$RINGSIDE_NCCL FAKE_GPUS=4 FAKE_GPU_CLOCK=model TMPDIR=$tap_scratch/tmp
		HEALTH_ARGUMENTS=(--sizes 1M)
		BUNDLES=$bundles
		AGENTS=
		$(printf '%s\n' "$@")
	END
}
settings
for gpu in 0 1 2 3; do
	mknod "$tap_scratch/gpu$gpu" c 1 3 || tap_skip_all "this host does not let a test have device files"
done
echo "NodeName=n[0-1] Name=gpu File=$tap_scratch/gpu[0-3]" >"$tap_scratch/gres.conf"
node_settings=Gres=gpu:4
cluster_start GresTypes=gpu PrologFlags=Alloc PrologEpilogTimeout=60 "Prolog=$tap_scratch/prolog" "Epilog=$tap_scratch/epilog"

# What the last job's script printed.
printed() { # script
	tail -n 1 "$tap_scratch/$1.log" | sed "s/^ringside-$1: //; s|$tap_scratch||g"
}
states() { sinfo --noheader --Node --format '%N %t' | sort | xargs; }
is_idle() { [ "$(states)" = "n0 idle n1 idle" ]; }

# ---- the prolog --------------------------------------------------------------------------------

# A job with GPUs runs, and the node takes further jobs.
runs() { # sentence message
	expect_same "$1" "$(srun -w n0 --gres=gpu:4 echo started 2>/dev/null) $(printed prolog)" "started $2"
	expect_ok "$1: no node is drained" until_ok is_idle
}
settings 'RINGSIDE_NCCL=/nowhere/libnccl.so.2'
runs "without NCCL, a job starts" "not checked (exit code 3): $("$ringside" bench --nccl /nowhere/libnccl.so.2 2>&1 | sed 's/bench:/bench health:/' | cut -c 1-200); the job starts"
settings 'RINGSIDE_CUDA=/nowhere/libcuda.so.1'
: >"$tap_scratch/prolog.log"
expect_same "without a GPU, too" "$(srun -w n0 --gres=gpu:4 echo started 2>/dev/null) $(printed prolog | cut -d : -f 1)" "started not checked (exit code 3)"
settings 'RINGSIDE=/nowhere/ringside'
runs "without ringside" "not checked (exit code 127): timeout: failed to run command '/nowhere/ringside': No such file or directory; the job starts"
printf '#!/bin/sh\necho "Traceback" >&2\nexit 1\n' >"$tap_scratch/broken"
printf '#!/bin/sh\nexec sleep 300\n' >"$tap_scratch/hung"
chmod +x "$tap_scratch/broken" "$tap_scratch/hung"
settings "RINGSIDE=$tap_scratch/broken"
runs "a program that fails with the same exit code has measured nothing" "not checked (exit code 1): Traceback; the job starts"
settings "RINGSIDE=$tap_scratch/hung" HEALTH_LIMIT=1
runs "a check that hangs is killed" "the health check took longer than 1 s; the job starts"
settings
: >"$tap_scratch/prolog.log"
runs "healthy GPUs" ""
settings "RINGSIDE=$tap_scratch/broken"
expect_same "a job without GPUs is not checked" "$(srun -w n0 echo started 2>/dev/null) $(printed prolog)" "started "

settings 'export FAKE_NCCL_SLOW=2-3:10'
sbatch -w n1 --gres=gpu:4 -o /dev/null --wrap true >/dev/null
until_ok eval '[[ "$(states)" == *"n1 drain"* ]]'
expect_same "a slow link drains the node" "$(states)" "n0 idle n1 drain"
expect_ok "and the reason is shown" grep -qE 'ringside: slow: .*2.*3' <(sinfo --noheader --Node --nodes=n1 --format=%E)
is_waiting() { [ "$(squeue --noheader --format=%t)" = PD ]; }
expect_ok "the job waits for another node" until_ok is_waiting
scancel --user="$(id -un)"
settings
scontrol update NodeName=n1 State=RESUME
until_ok is_idle

# ---- the epilog --------------------------------------------------------------------------------

kept() { find "$bundles" -name '*.tar.gz' -printf '%f\n' 2>/dev/null | cut -d - -f 1,2 | sort -n | xargs; }
regions() { on_node "$1" find /dev/shm -name '*.region' -printf '%h ' | sed 's|/dev/shm/||g'; }
# Runs a job, and waits until its epilogs have ended on both nodes.
run() { # command...
	"${as_user[@]}" srun -N2 -n2 --export="ALL,FAKE_GPU_CLOCK=model" "$@" >"$tap_scratch/out" 2>&1
	job=$(squeue --noheader --states=all --format=%A | sort -n | tail -n 1)
	until_ok is_idle
}
as_user=()
bench=("$ringside" bench -s 1K -n 2)
# A recording of somebody else: another job of the same user.
on_node 0 env RINGSIDE_JOB=other NCCL_PROFILER_PLUGIN="$plugin" "${bench[@]}" --ranks 1 >/dev/null 2>&1
run "${bench[@]}"
expect_same "a job that succeeds leaves no bundle, and no region of its own" "$(kept)/$(regions 0)/$(regions 1)" "/ringside-0 /"
run sh -c "$(printf '%q ' "${bench[@]}"); exit 3"
failed=$job
expect_same "of a job that fails each node keeps a bundle" "$(kept)" "$failed-n0 $failed-n1"
expect_same "and the reason is logged" "$(printed epilog)" "kept a bundle, because it failed (exit code 3:0)"
expect_same "its regions are removed, others stay" "$(regions 0)/$(regions 1)" "ringside-0 /"
expect_same "the bundle has the recording" \
	"$("$ringside" ls --json "$bundles/$failed"-n1-*.tar.gz | grep -o '"job":"[^"]*","rank":[0-9]*,"host":"[^"]*"')" "\"job\":\"$failed\",\"rank\":1,\"host\":\"n1\""
expect_same "only root can read it" "$(stat -c '%U %a' "$bundles/$failed"-n1-*)" "root 600"
settings BUNDLES_COUNT=3
run sh -c "$(printf '%q ' "${bench[@]}"); kill -9 \$\$"
expect_same "beyond the quota the oldest goes" "$(kept | sed "s/$failed-n./$failed/")" "$failed $job-n0 $job-n1"
# shellcheck disable=SC2016
run sh -c '"$@" -n 1000000 & until '"$ringside"' ls --quiet --job "$SLURM_JOB_ID" >/dev/null 2>&1; do sleep 0.1; done; kill -9 $!; wait; exit 0' sh "${bench[@]}"
# The rank on the other node may have noticed, and ended by itself.
has_bundle() {
	kept
	cat "$tap_scratch/out" "$tap_scratch/epilog.log"
	grep -q "$job-n" <(kept)
}
expect_ok "of a job that ends well after a process of it was killed, too" has_bundle
expect_ok "and this reason is logged" grep -q 'kept a bundle, because a process was killed or crashed' "$tap_scratch/epilog.log"
settings BUNDLES_COUNT=3 BUNDLES_MIB=0
run sh -c "$(printf '%q ' "${bench[@]}"); exit 3"
expect_same "a bundle that is too large is not kept, and removes no other" "$(kept | wc -w) $(grep -c 'no bundle: it is larger than 0 MiB' "$tap_scratch/epilog.log")" "3 2"
expect_same "the recordings stay" "$(regions 1)" "ringside-0 "
settings
as_user=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups)
run sh -c "$(printf '%q ' "${bench[@]}"); exit 3"
as_user=()
expect_same "another user's job is kept in the same way" "$(kept | tr ' ' '\n' | grep -c "^$job-") $(stat -c '%U %a' "$bundles/$job"-n1-*)" "2 root 600"
expect_same "and only that user's regions are removed" "$(regions 1)" "ringside-0 "
settings 'RINGSIDE=/nowhere/ringside'
run "${bench[@]}"
expect_same "without ringside nothing happens" "$(states) $(kept | tr " " "\n" | grep -c "^$job-")" "n0 idle n1 idle 0"
expect_same "nothing half-made is left" "$(find "$bundles" -name '.new*')" ""
tap_done
