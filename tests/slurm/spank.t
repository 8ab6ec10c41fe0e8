#!/usr/bin/env bash
# ringside_spank.so in a real Slurm: which variables the tasks of a step have, and that no mistake fails a job.
. "$(dirname "$0")/cluster.sh"
[ -e "$spank" ] || tap_skip_all "ringside_spank.so is not built: no slurm/spank.h (scripts/install-deps check)"
unset RINGSIDE_CUDA RINGSIDE_NCCL
set_plugstack "optional $spank"
# shellcheck disable=SC2119
cluster_start

shown='env | grep -E "^(NCCL|RINGSIDE|LD_LIBRARY_PATH)" | grep -v RINGSIDE_SLURM= | LC_ALL=C sort | tr "\n" " "'
# The variables of one task; what was printed besides them is in err.
variables() { # argument of srun...
	srun -n1 "$@" sh -c "$shown" 2>"$tap_scratch/err"
}
bare=NCCL_PROFILER_PLUGIN=libnccl-profiler-ringside.so

expect_same "without arguments, steps are recorded" "$(variables)" "$bare "
expect_same "every task of every node has the variable" \
	"$(srun -N2 -n4 printenv NCCL_PROFILER_PLUGIN | sort | uniq -c | xargs)" "4 libnccl-profiler-ringside.so"
expect_same "the option sets the mode" "$(variables --ringside=trace)" "$bare RINGSIDE_MODE=trace "
expect_same "it needs no value" "$(variables --ringside)" "$bare "
expect_same "off turns the recorder off, also where /etc/nccl.conf loads it" "$(variables --ringside=off)" "RINGSIDE_DISABLE=1 "
expect_same "a wrong value is ignored" "$(variables --ringside=tarce)" "$bare "
expect_same "with one line" "$(without_waiting "$tap_scratch/err")" \
	"ringside: --ringside=tarce is not on, off, flight, profile, trace or full; ignored"
expect_ok "srun --help has the option" grep -q -- '--ringside' <(srun --help)

# What the user set stays.
export NCCL_PROFILER_PLUGIN=nsys
expect_same "another profiler stays" "$(variables)" "NCCL_PROFILER_PLUGIN=nsys "
expect_same "without --ringside, only the node's log has it" "$(without_waiting "$tap_scratch/err")/$(logged 'not recording: NCCL_PROFILER_PLUGIN=nsys')" /1
expect_same "with --ringside, too" "$(srun -N2 -n4 --ringside printenv NCCL_PROFILER_PLUGIN 2>"$tap_scratch/err" | sort -u)" nsys
expect_same "then the user reads it, once" "$(without_waiting "$tap_scratch/err")" "ringside: not recording: NCCL_PROFILER_PLUGIN=nsys is set"
NCCL_PROFILER_PLUGIN=/opt/x/libnccl-profiler-ringside.so
expect_same "the user's own way to this plugin stays" "$(variables --ringside=full)" \
	"NCCL_PROFILER_PLUGIN=/opt/x/libnccl-profiler-ringside.so RINGSIDE_MODE=full "
unset NCCL_PROFILER_PLUGIN
export RINGSIDE_MODE=profile
expect_same "so does the user's mode" "$(variables --ringside=full)" "$bare RINGSIDE_MODE=profile "
expect_same "and a line says so" "$(without_waiting "$tap_scratch/err")" "ringside: mode not changed: RINGSIDE_MODE=profile is set"
unset RINGSIDE_MODE
export RINGSIDE_DISABLE=1
expect_same "and the user's switch" "$(variables --ringside)" "$bare RINGSIDE_DISABLE=1 "
unset RINGSIDE_DISABLE

# sbatch and salloc. Slurm hands their options to each srun in the job.
cat >"$tap_scratch/script" <<END
#!/bin/bash
echo "script: \$($shown)"
echo "step: \$(srun -n1 sh -c '$shown')"
echo "off: \$(srun -n1 --ringside=off sh -c '$shown')"
echo "flight: \$(srun -n1 --ringside=flight sh -c '$shown')"
export RINGSIDE_MODE=profile
echo "export: \$(srun -n1 sh -c '$shown' 2>/dev/null)"
END
chmod +x "$tap_scratch/script"
sbatch --wait -n1 --ringside=trace -o "$tap_scratch/batch" "$tap_scratch/script" >/dev/null
expect_same "sbatch: the script and its steps have the mode; a step can have another; what the script exports stays" \
	"$(without_waiting "$tap_scratch/batch")" "script: $bare RINGSIDE_MODE=trace 
step: $bare RINGSIDE_MODE=trace 
off: $bare RINGSIDE_DISABLE=1 RINGSIDE_MODE=trace 
flight: $bare RINGSIDE_MODE=flight 
export: $bare RINGSIDE_MODE=profile "
expect_same "salloc: the same for steps; the shell is not a step" \
	"$(salloc -n1 --ringside=trace "$tap_scratch/script" 2>/dev/null)" "script: 
step: $bare RINGSIDE_MODE=trace 
off: RINGSIDE_DISABLE=1 
flight: $bare RINGSIDE_MODE=flight 
export: $bare RINGSIDE_MODE=profile "
sbatch --wait -n1 --ringside=off -o "$tap_scratch/batch" "$tap_scratch/script" >/dev/null
expect_same "a job that is off has steps that are on" "$(sed -n 's/^\(step\|flight\)/&/p' "$tap_scratch/batch")" "step: RINGSIDE_DISABLE=1 
flight: $bare RINGSIDE_MODE=flight "

# plugstack.conf.
set_plugstack "optional $spank default=off mode=trace"
expect_same "default=off: nothing without the option" "$(variables)" ""
expect_same "with it, the mode of plugstack.conf" "$(variables --ringside)" "$bare RINGSIDE_MODE=trace "
expect_same "or that of the option" "$(variables --ringside=full)" "$bare RINGSIDE_MODE=full "
set_plugstack "optional $spank plugin=$plugin dir=/scratch/%j hang_after=900 labels=site=a times=all"
expect_same "settings become variables; a path goes into LD_LIBRARY_PATH" "$(variables)" \
	"LD_LIBRARY_PATH=$BUILD $bare RINGSIDE_DIR=/scratch/%j RINGSIDE_HANG_AFTER=900 RINGSIDE_LABELS=site=a RINGSIDE_TIMES=all "
expect_same "behind what the user has there, and other variables stay" \
	"$(LD_LIBRARY_PATH=/a:/b RINGSIDE_DIR=/mine RINGSIDE_TIMES=off variables)" \
	"LD_LIBRARY_PATH=/a:/b:$BUILD $bare RINGSIDE_DIR=/mine RINGSIDE_HANG_AFTER=900 RINGSIDE_LABELS=site=a RINGSIDE_TIMES=off "
expect_same "once" "$(LD_LIBRARY_PATH=/a:$BUILD:/b variables | cut -d ' ' -f 1)" "LD_LIBRARY_PATH=/a:$BUILD:/b"
long=$(printf '/%04000d' 0)
expect_same "a list without room stays whole" "$(LD_LIBRARY_PATH=$long:$long variables)" "LD_LIBRARY_PATH=$long:$long "
expect_same "the node's log says why" "$(logged 'not recording: LD_LIBRARY_PATH has no room for')" 1
set_plugstack "optional $spank plugin=/nowhere/libnccl-profiler-ringside.so"
expect_same "a plugin that is not on the node: the job runs as it is" "$(variables --ringside=trace)" ""
expect_same "and the node's log says why" "$(logged 'not recording: cannot read /nowhere/.*: No such file')" 1
set_plugstack "optional $spank default=maybe mode=tarce mode= colour=red flight dir=/x"
expect_same "wrong arguments do not fail a job" "$(variables)" "$bare RINGSIDE_DIR=/x "
until_ok logged "ringside: 'flight' in plugstack.conf is not valid" >/dev/null
expect_same "each has a line" "$(grep -ohE "ringside: '[^']*' in plugstack.conf is not valid" "$tap_scratch"/slurmd.*.log | cut -d "'" -f 2 | xargs)" \
	"default=maybe mode=tarce mode= colour=red flight"
set_plugstack "optional $tap_scratch/nowhere.so"
expect_same "optional: where the plugin is missing, jobs run" "$(variables)" ""

# A recorded job on two nodes.
export RINGSIDE_CUDA=$fake/libcuda.so.1 RINGSIDE_NCCL=$fake/libnccl.so.2
set_plugstack "optional $spank plugin=$plugin dir=$tap_scratch/traces-%j"
expect_ok "a job on two nodes runs under the recorder" srun -N2 -n4 --ringside=trace "$ringside" bench -s 1K -n 5
expect_same "all its ranks write traces, on both nodes" \
	"$("$ringside" ls --json "$tap_scratch"/traces-* | perl -MJSON::PP -0777 -ne \
		'print join " ", map { "$_->{rank}:$_->{host}:$_->{mode}:$_->{lost}" } sort { $a->{rank} <=> $b->{rank} } @{decode_json($_)->{processes}}')" \
	"0:n0:trace:0 1:n0:trace:0 2:n0:trace:0 3:n1:trace:0"
expect_ok "complete ones" "$ringside" verify "$tap_scratch"/traces-*
tap_done
