#!/usr/bin/env bash
# File systems that do not answer: commands say so after two seconds and go on with what they can read.
. "$(dirname "$0")/../support/silent.sh"
silent_enter "$@"
. "$(dirname "$0")/cli.sh"

unset RANK WORLD_SIZE LOCAL_RANK SLURM_JOB_ID SLURM_JOBID SLURM_PROCID TORCHELASTIC_RUN_ID
export RINGSIDE_SHM=$tap_scratch/shm
mkdir "$RINGSIDE_SHM" "$tap_scratch/good"
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -o "$tap_scratch/stuck_job" tests/cli/stuck_job.c -ldl || exit 1
silent_begin "$tap_scratch/silent"
# How many lines say so; those of tables are wrapped.
says() { # pattern
	tr -s '\n ' ' ' <"$tap_scratch/out" | grep -cE -- "$1"
}

# Whatever hangs is killed: 124.
patient() { timeout -k 1 30 "$@"; }
silent="its file system does not answer"
"$ringside" sim --offline --gpus 2 --seconds 2s -o "$tap_scratch/good/traces" >/dev/null 2>&1 || exit 1

for name in lookup open read list names memfd:ringside; do
	patient "$ringside" report "$tap_scratch/silent/$name" "$tap_scratch/good/traces" >"$tap_scratch/out" 2>&1
	expect_same "report: what does not answer when asked to $name is named" "$? $(says "silent/$name: .*$silent")" "3 1"
	expect_ok "and the rest is shown" grep -q "job sim-1: 2 ranks" "$tap_scratch/out"
done
patient "$ringside" report "$tap_scratch/silent" >"$tap_scratch/out" 2>&1
expect_same "a directory with such files: they are named or counted" "$? $(grep -c "silent/.*$silent" "$tap_scratch/out") $(grep -c "2 more such problems" "$tap_scratch/out")" "3 5 1"
for command in ls doctor verify ps "export -o $tap_scratch/x.csv"; do
	# shellcheck disable=SC2086
	patient "$ringside" $command "$tap_scratch/silent/read" "$tap_scratch/good/traces" >"$tap_scratch/out" 2>&1 </dev/null
	expect_same "${command%% *} ends" "$(($? < 100)) $(says "silent/read: .*$silent")" "1 1"
done
for option in "doctor --nccl-log" "doctor --torch-trace" "diff --expected" "import"; do
	# shellcheck disable=SC2086
	patient "$ringside" $option "$tap_scratch/silent/lookup" "$tap_scratch/good/traces" >"$tap_scratch/out" 2>&1 </dev/null
	expect_ok "$option ends" test $? -lt 100
done

# A job whose trace was on a file server that has gone.
coproc job { exec env RANK=3 WORLD_SIZE=4 "$ringside" run --job live -m trace -o "$tap_scratch/gone" -- "$tap_scratch/stuck_job" 50 2>/dev/null; }
# shellcheck disable=SC2154
pid=$job_PID
read -r -u "${job[0]}" _
trace=$(basename "$tap_scratch"/gone/*.ringside)
silent_end "$tap_scratch/silent"
silent_begin "$tap_scratch/gone" "$trace"
patient "$ringside" ls >"$tap_scratch/out" 2>&1
expect_same "ls shows the job" "$? $(awk -v pid="$pid" '$1 == pid { print $2, $3, $4 }' "$tap_scratch/out")" "0 alive live 3/4"
expect_ok "and says what does not answer" grep -q "trace: .*/$trace ($silent)" "$tap_scratch/out"
patient "$ringside" ps "@$pid" >"$tap_scratch/out" 2>&1
expect_ok "ps shows what it waits for" grep -q "AllReduce" "$tap_scratch/out"
for command in report doctor verify; do
	patient "$ringside" $command "@$pid" >"$tap_scratch/out" 2>&1
	expect_same "$command of it ends" "$(($? < 100)) $(says "$trace.*$silent")" "1 1"
done
patient "$ringside" bundle -o "$tap_scratch/b.tar" "@$pid" >"$tap_scratch/out" 2>&1
expect_ok "a bundle is made" test -s "$tap_scratch/b.tar"
silent_end "$tap_scratch/gone"
tap_done
