#!/usr/bin/env bash
# Who is behind is told once when it is so, and once when it is over. What hangs is a verdict: verdicts.t.
. "$(dirname "$0")/agent.sh"

start_agent --hang 60s --lag 1s
start_sim --nodes 1 --gpus 2 -w ddp -f never-arrives:rank=1,at=500ms
expect_soon "a rank that others wait for is told" says 'behind: .*rank 1 '
# On a busy machine another one may have been behind before, and have caught up.
page_has_it() {
	perl -MJSON::PP -e 'my $now = decode_json(shift); exit !grep { $_->{kind} eq "behind" && $_->{rank} == 1 } @{$now->{notices}}' \
		"$(fetch /api/v1/now)"
}
expect_soon "the page's data have it, too" page_has_it
expect_soon "and the metrics" shows '^nccl_notice_info\{.*kind="behind"'
stop_sim TERM
expect_soon "that it is over is told" says 'over after [0-9]+ s: .*rank 1 '
# On a busy machine it may have been behind before: then that was over, too.
expect_same "all that once, however many looks see it" \
	"$(sed -n 's/.*\(over\) after .*rank 1 .*/\1/p; s/.*\(behind\): .*rank 1 .*/\1/p' "$log" | uniq -c | awk '{ print $1 }' | sort -u)" 1
stop_agent
tap_done
