#!/usr/bin/env bash
# A running job in which one rank is slow: the agent judges speed as the doctor does, and reports it like a hang. On a busy
# machine other things may be slow as well: the test is that this rank is reported, and that a job is called fine only if it
# was judged.
. "$(dirname "$0")/agent.sh"

hook=$tap_scratch/hook
cat >"$hook" <<EOF
#!/bin/sh
echo "\$RINGSIDE_EVENT \$RINGSIDE_CLASS rank \$RINGSIDE_RANK" >>$tap_scratch/calls
EOF
chmod +x "$hook"
touch "$tap_scratch/calls"
# Prints something of the only job of /api/v1/now.
speed() { # perl expression of $speed
	perl -MJSON::PP -e 'my $speed = decode_json(shift)->{jobs}[0]{speed} or exit 1; my $value = eval shift; print defined $value ? $value : "none"' \
		"$(fetch /api/v1/now)" "\$speed->{$1}"
}
speed_is() { [ "$(speed "$1")" = "$2" ]; }
speed_like() { speed "$1" | grep -qE -- "$2"; }

start_agent --hook "$hook"
start_sim --nodes 2 --gpus 2 -w fsdp -f slow-rank:rank=2,factor=2
expect_soon "the job is found" speed_like text '^Speed: '
expect_soon "a slow rank is logged" says 'slow_rank: .*rank 2 .*; job sim-1, .*confidence >?[0-9]+%; evidence: .*next step: '
expect_soon "it is a metric" shows '^nccl_verdict_info\{nccl_job="sim-1",class="slow_rank",.*global_rank="2",'
expect_ok "which is counted" shows '^ringside_agent_verdicts_total\{class="slow_rank"\} [1-9]'
has_verdict() {
	perl -MJSON::PP -e 'my $now = decode_json(shift);
		exit !(grep({ $_->{class} eq "slow_rank" && $_->{rank} == 2 } @{$now->{verdicts}}) && grep({ $_->{kind} eq "slow" } @{$now->{notices}}))' \
		"$(fetch /api/v1/now)"
}
expect_soon "the answer for the page has it" has_verdict
expect_ok "and says over which time speed was judged" speed_like text '^Speed: judged over the last .*, [1-9] found'
expect_ok "such a job is not fine" speed_is is_fine 0
expect_soon "the hook was called" grep -q '^appeared slow_rank rank 2$' "$tap_scratch/calls"
stop_sim TERM
expect_soon "it clears when the job ends" says 'cleared after [0-9]+ s: slow_rank: '
stop_agent

rm -rf "$shm"
mkdir "$shm"
start_agent
RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB "$BUILD/ringside" sim --no-kernel --seconds 600s --nodes 1 --gpus 2 >/dev/null 2>&1 &
started+=($!)
expect_soon "without GPU times nothing inside a node is judged" speed_like text '^Speed: not judged: 0 of [0-9]+ calls are timed$'
expect_ok "such a job is not fine either" speed_is is_fine 0
expect_ok "and the settings that would help are named" speed_like advice '^ringside run --times all -- COMMAND$'
tap_done
