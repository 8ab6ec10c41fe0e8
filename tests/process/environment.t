#!/usr/bin/env bash
# Relevant variables are in the region and in the trace file; secrets never are; the job continues in any case.
. "$(dirname "$0")/process.sh"
unset "${!NCCL_@}" "${!TORCH_NCCL_@}" MASTER_ADDR

# The lines of the info text, found in the bytes of a file.
lines_of() { # file
	LC_ALL=C grep -a -o -E '(^|[^a-z])env[._][A-Za-z_0-9.]*=[ -~]*' "$1" | sed 's/^[^e]*//' | sort -u
}
region_file() { find "$RINGSIDE_SHM" -name '*.region'; }

fresh
NCCL_ALGO=Ring NCCL_API_TOKEN=hidden1 AWS_SECRET_ACCESS_KEY=hidden2 MASTER_ADDR=http://me:hidden3@node1 run_job ops=10
lines=$(lines_of "$(region_file)")
expect_same "a variable is in the region" "$(grep -c '^env.NCCL_ALGO=Ring$' <<<"$lines")" 1
expect_same "so are the recorder's own" "$(grep -c '^env.RINGSIDE_SHM=' <<<"$lines")" 1
expect_same "a value with a password is not recorded" "$(grep '^env.MASTER_ADDR' <<<"$lines")" 'env.MASTER_ADDR=***'
expect_same "no secret is anywhere in it" "$(grep -a -c -E 'hidden[123]' "$(region_file)")" 0

fresh
NCCL_ALGO=Ring RINGSIDE_MODE=trace run_job ops=10
expect_same "the trace file has the same" "$("$BUILD/ringside" ls --json "$RINGSIDE_DIR" | grep -o '"NCCL_ALGO":"[^"]*"')" '"NCCL_ALGO":"Ring"'

fresh
NCCL_ALGO=Ring RINGSIDE_ENVIRONMENT=off run_job ops=10
expect_same "off records none" "$(lines_of "$(region_file)")$(cat "$messages")" ""
fresh
RINGSIDE_ENVIRONMENT=never run_job ops=10
expect_message "a bad value is reported" '^ringside: RINGSIDE_ENVIRONMENT=never is not on or off; using off$'

# Ten thousand variables, a value of 100 kB, and names without a value.
fresh
many=()
for ((i = 0; i < 10000; i++)); do many+=("NCCL_MANY_$i=$i"); done
long=$(printf 'x%.0s' {1..1000})
long=$long$long$long$long$long
env "${many[@]}" "NCCL_LONG=$long$long$long$long$long$long$long$long$long$long" NCCL_ALGO=Tree NCCL_EMPTY= "$job" ops=10 >"$said" 2>"$messages"
expect_same "the job runs to its end among ten thousand" "$?$(cat "$messages")" 0
lines=$(lines_of "$(region_file)")
expect_same "the most important ones are there" "$(grep -c '^env.NCCL_ALGO=Tree$' <<<"$lines")" 1
expect_same "those that do not fit are counted" "$(grep -c '^env_left_out=[0-9]*$' <<<"$lines")" 1
read_facts
expect_balance "and all operations are recorded"
tap_done
