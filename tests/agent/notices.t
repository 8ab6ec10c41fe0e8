#!/usr/bin/env bash
# A late rank is logged once when it is late and once when that clears. Hangs are verdicts: see verdicts.t.
. "$(dirname "$0")/agent.sh"

start_agent --hang 60s --lag 1s
start_sim --nodes 1 --gpus 2 -w ddp -f never-arrives:rank=1,at=500ms
expect_soon "a rank that others wait for is logged" says 'behind: .*rank 1 '
# On a busy machine another rank may have been late before, and have caught up.
page_has_it() {
	perl -MJSON::PP -e 'my $now = decode_json(shift); exit !grep { $_->{kind} eq "behind" && $_->{rank} == 1 } @{$now->{notices}}' \
		"$(fetch /api/v1/now)"
}
expect_soon "the data of the live page have the notice" page_has_it
expect_soon "so have the metrics" shows '^nccl_notice_info\{.*kind="behind"'
stop_sim TERM
expect_soon "its end is logged" says 'cleared after [0-9]+ s: .*rank 1 '
# On a busy machine it may have been late before: then that has cleared, too.
expect_same "each is logged once, however many scans find it" \
	"$(sed -n 's/.*\(cleared\) after .*rank 1 .*/\1/p; s/.*\(behind\): .*rank 1 .*/\1/p' "$log" | uniq -c | awk '{ print $1 }' | sort -u)" 1
stop_agent
tap_done
