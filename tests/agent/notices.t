#!/usr/bin/env bash
# Who is behind is told once when it is so, and once when it is over. What hangs is a verdict: verdicts.t.
. "$(dirname "$0")/agent.sh"
[ -x "$BUILD/ringside" ] || tap_skip_all "the tool is not built"

start_agent --hang 60s --lag 1s
RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB "$BUILD/ringside" sim --nodes 1 --gpus 2 -w ddp --seconds 5s \
	-f never-arrives:rank=1,at=500ms >"$tap_scratch/sim" 2>&1 &
sim_pid=$!
started+=("$sim_pid")
expect_soon "a rank that others wait for is told" says 'behind: .*rank 1 '
expect_ok "the page's data have it, too" \
	perl -MJSON::PP -e 'my $now = decode_json(shift); exit !grep { $_->{kind} eq "behind" } @{$now->{notices}}' \
	"$(fetch /api/v1/now)"
expect_ok "and the metrics" shows '^nccl_notice_info\{.*kind="behind"'
wait "$sim_pid"
expect_soon "that it is over is told" says 'over after [0-9]+ s: .*rank 1 '
expect_same "all that once" "$(times_said 'behind: .*rank 1') $(times_said 'over after .*rank 1')" "1 1"
stop_agent
tap_done
