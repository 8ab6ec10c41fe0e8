#!/usr/bin/env bash
# A hang is told by the doctor's verdict: in the log, as a metric, on the page, to the hook; once, and taken back.
. "$(dirname "$0")/agent.sh"

calls=$tap_scratch/calls
hook=$tap_scratch/hook
cat >"$hook" <<EOF
#!/bin/sh
cat >>$tap_scratch/input
echo "\$1 \$RINGSIDE_EVENT \$RINGSIDE_CLASS rank \$RINGSIDE_RANK host \$RINGSIDE_HOST job \$RINGSIDE_JOB" >>$calls
grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status | tr -d '\n\t' >$tap_scratch/rights
echo "told somebody"
[ "\$RINGSIDE_EVENT" = appeared ] || exit 3
EOF
chmod +x "$hook"
: >"$calls"
has_called() { # pattern
	grep -qE -- "$1" "$calls"
}

# By somebody who ignores the end of children: that is inherited.
before=(perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV')
# Three seconds: a job that runs does not stand still for so long, unless the whole machine does. Then that is told before, and is over.
start_agent --hang 3s --lag 3s --hook "$hook word"
before=()
start_sim --nodes 1 --gpus 4 -w ddp -f never-arrives:rank=1,at=500ms
expect_soon "a rank that did not come is told" says 'never_issued: .*rank 1 '
expect_ok "since when, and how sure" says 'never_issued: .*; job sim-1, since 20[0-9-]*T[0-9:]*Z, (certain|very likely|likely|possible)'
expect_ok "with what to do next" says 'never_issued: .*; try: '
page_has_it() {
	perl -MJSON::PP -e 'my $now = decode_json(shift);
		exit !grep { $_->{class} eq "never_issued" && $_->{rank} == 1 && @{$_->{evidence}} && @{$_->{advice}} } @{$now->{verdicts}}' \
		"$(fetch /api/v1/now)"
}
expect_soon "the page's data have it" page_has_it
expect_soon "and the metrics" shows \
	'^nccl_verdict_info\{nccl_job="sim-1",class="never_issued",comm="[0-9a-f]{16}",rank="1",global_rank="1",.*confidence="[a-z ]+"\} 1'
expect_ok "where it is counted" shows '^ringside_agent_verdicts_total\{class="never_issued"\} [1-9]'
expect_soon "the hook was called" has_called '^word appeared never_issued rank 1 host [^ ]+ job sim-1$'
expect_soon "that it went well is told" says "hook $hook: done in .* \(appeared: never_issued\)"
expect_ok "and what it said" says 'hook says: told somebody'
expect_same "it has no capability and no way to gain one" "$(cat "$tap_scratch/rights")" \
	"CapPrm:0000000000000000CapEff:0000000000000000NoNewPrivs:1"
told_of_it() { # what was said of it, in order, from the first time on
	sed -n 's/.*\(over\) after .*never_issued: .*rank 1 .*/\1/p; s/.*\(never_issued\): .*rank 1 .*; job.*/\1/p' "$log" | tr '\n' ' '
}
handed_on() { sed -n 's/^word \([a-z]*\) never_issued rank 1 .*/\1/p' "$calls" | tr '\n' ' '; }
so_far=$(told_of_it)
is_over() { [ "$(told_of_it)" = "${so_far}over " ]; }
is_handed_on() { [ "$(handed_on | wc -w)" = "$(told_of_it | wc -w)" ]; }
stop_sim TERM
expect_soon "that it is over is told" is_over
expect_soon "to the hook as well" is_handed_on
expect_soon "which then failed, and that is told" says "hook $hook: exit code 3 after .* \(cleared: never_issued\)"
expect_same "each once, and taken back once" "$(told_of_it | sed 's/never_issued over //g') $(handed_on | sed 's/appeared cleared //g')" " "
expect_same "the verdict was on its standard input, each time" "$(perl -MJSON::PP -e '
	print map { "$_->{event} " } grep { $_->{verdict}{class} eq "never_issued" && $_->{verdict}{rank} == 1 } map { decode_json($_) } <>' \
	"$tap_scratch/input")" "$(handed_on)"
expect_soon "none was told and not taken back" eval '[ "$(times_said "; job sim-1, since")" = "$(times_said "over after [0-9]+ s: ")" ]'
expect_ok "and it is no metric any more" test -z "$(fetch /metrics | grep '^nccl_verdict_info')"
stop_agent

expect_refusal "a hook without a path is refused" 2 "hook page-me is not the whole path" \
	"$agent" --directory "$shm" --hook page-me
start_agent --hook /nowhere/page-me
expect_ok "one that is not there is told at once" says '/nowhere/page-me: No such file'
expect_ok "and is no reason to end" is_running
stop_agent
tap_done
