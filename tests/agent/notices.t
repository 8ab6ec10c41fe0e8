#!/usr/bin/env bash
# What hangs is told once when it does, and once when it is over.
. "$(dirname "$0")/agent.sh"
[ -x "$BUILD/ringside" ] || tap_skip_all "the tool is not built"

start_agent --hang 1s --lag 1s
RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB "$BUILD/ringside" sim --nodes 1 --gpus 2 -w ddp --seconds 5s \
	-f never-arrives:rank=1,at=500ms >"$tap_scratch/sim" 2>&1 &
sim_pid=$!
started+=("$sim_pid")
expect_soon "a rank that did not come is told" says 'missing: rank 1 has not issued AllReduce'
expect_ok "with what to do next" says 'missing: .*; try: ringside ps @'
expect_ok "the page's data have it, too" \
	perl -MJSON::PP -e 'my $now = decode_json(shift); exit !grep { $_->{kind} eq "missing" } @{$now->{notices}}' \
	"$(fetch /api/v1/now)"
expect_ok "and the metrics" shows '^nccl_notice_info\{.*kind="missing"'
wait "$sim_pid"
expect_soon "that it is over is told" says 'over after [0-9]+ s: rank 1 has not issued AllReduce [0-9]* of world; 1 rank waits'
expect_same "all that once" "$(times_said 'missing: rank 1') $(times_said 'over after .*; 1 rank waits')" "1 1"
stop_agent
tap_done
