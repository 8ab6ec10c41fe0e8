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

# One of each kind that docs/SETTINGS.md lists; what they begin with is all that may be recognized.
fresh
commit=0123456789abcdef0123456789abcdef01234567
RINGSIDE_LABELS="team=a,api_token=hidden4,cloud=AKIAHIDDEN5,commit=$commit" NCCL_HIDDEN_1=wJalrXUtnFEMI/K7MDENG/bPxRfiCYHIDDENDATA \
	NCCL_HIDDEN_2=c2VjcmV0LWhpZGRlbi1kYXRhLTEyMw== NCCL_HIDDEN_3="run --password hidden6" NCCL_HIDDEN_4=https://hooks.slack.com/services/hidden7 \
	NCCL_HIDDEN_5=SG.hidden8hidden8hidden8 NCCL_HIDDEN_6=ya29.hidden9hidden9 NCCL_HIDDEN_7=fedcba9876543210fedcba9876543210fedcba98 run_job ops=10
expect_same "nor is any kind of secret" "$(lines_of "$(region_file)" | grep HIDDEN_)" "$(printf 'env.NCCL_HIDDEN_%s=***\n' 1 2 3 4 5 6 7)"
expect_same "the same in labels" "$(LC_ALL=C grep -a -o -E 'label\.[a-z_]*=[ -~]*' "$(region_file)" | tr '\n' ' ')" \
	"label.team=a label.api_token=*** label.cloud=*** label.commit=$commit "
expect_same "they are nowhere in it" "$(grep -a -c -i -E 'hidden[0-9]|HIDDENDATA|c2VjcmV0|fedcba98' "$(region_file)")" 0

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
