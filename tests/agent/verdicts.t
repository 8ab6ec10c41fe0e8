#!/usr/bin/env bash
# A hang is reported as a verdict of the doctor: in the log, as a metric, on the page, to the hook; once, and its end once.
. "$(dirname "$0")/agent.sh"

calls=$tap_scratch/calls
hook=$tap_scratch/hook
cat >"$hook" <<EOF
#!/bin/sh
cat >>$tap_scratch/input
echo "\$1 \$RINGSIDE_EVENT \$RINGSIDE_CLASS rank \$RINGSIDE_RANK host \$RINGSIDE_HOST job \$RINGSIDE_JOB" >>$calls
grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status | tr -d '\n\t' >$tap_scratch/rights
echo "message sent"
[ "\$RINGSIDE_EVENT" = appeared ] || exit 3
EOF
chmod +x "$hook"
: >"$calls"
has_called() { # pattern
	grep -qE -- "$1" "$calls"
}

# The parent ignores SIGCHLD, which is inherited.
before=(perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV')
# A running job makes progress within three seconds, unless the whole machine is stalled. Then that is reported first, and clears.
start_agent --hang 3s --lag 3s --hook "$hook word"
before=()
start_sim --nodes 1 --gpus 4 -w ddp -f never-arrives:rank=1,at=500ms
expect_soon "a rank that has not arrived is reported" says 'never_issued: .*rank 1 '
expect_ok "with start time and confidence" says 'never_issued: .*; job sim-1, since 20[0-9-]*T[0-9:]*Z, confidence [0-9]+%'
expect_ok "with a next step" says 'never_issued: .*; next step: '
page_has_it() {
	perl -MJSON::PP -e 'my $now = decode_json(shift);
		exit !grep { $_->{class} eq "never_issued" && $_->{rank} == 1 && @{$_->{evidence}} && @{$_->{advice}} } @{$now->{verdicts}}' \
		"$(fetch /api/v1/now)"
}
expect_soon "the data of the live page have the verdict" page_has_it
expect_soon "so have the metrics" shows \
	'^nccl_verdict_info\{nccl_job="sim-1",class="never_issued",comm="[0-9a-f]{16}",rank="1",global_rank="1",.*confidence="[a-z ]+"\} 1'
expect_ok "which count it" shows '^ringside_agent_verdicts_total\{class="never_issued"\} [1-9]'
expect_soon "the hook was called" has_called '^word appeared never_issued rank 1 host [^ ]+ job sim-1$'
expect_soon "its success is logged" says "hook $hook: done in .* \(appeared: never_issued\)"
expect_ok "and its output" says 'hook output: message sent'
expect_same "it has no capabilities and cannot gain any" "$(cat "$tap_scratch/rights")" \
	"CapPrm:0000000000000000CapEff:0000000000000000NoNewPrivs:1"
told_of_it() { # the log lines about it, in order
	sed -n 's/.*\(cleared\) after .*never_issued: .*rank 1 .*/\1/p; s/.*\(never_issued\): .*rank 1 .*; job.*/\1/p' "$log" | tr '\n' ' '
}
handed_on() { sed -n 's/^word \([a-z]*\) never_issued rank 1 .*/\1/p' "$calls" | tr '\n' ' '; }
so_far=$(told_of_it)
is_over() { [ "$(told_of_it)" = "${so_far}cleared " ]; }
is_handed_on() { [ "$(handed_on | wc -w)" = "$(told_of_it | wc -w)" ]; }
stop_sim TERM
expect_soon "its end is logged" is_over
expect_soon "and the hook is called" is_handed_on
expect_soon "a failure of the hook is logged" says "hook $hook: exit code 3 after .* \(cleared: never_issued\)"
expect_same "each is reported once, and cleared once" "$(told_of_it | sed 's/never_issued cleared //g') $(handed_on | sed 's/appeared cleared //g')" " "
expect_same "the hook always had the verdict on its standard input" "$(perl -MJSON::PP -e '
	print map { "$_->{event} " } grep { $_->{verdict}{class} eq "never_issued" && $_->{verdict}{rank} == 1 } map { decode_json($_) } <>' \
	"$tap_scratch/input")" "$(handed_on)"
expect_soon "every reported verdict has cleared" eval '[ "$(times_said "; job sim-1, since")" = "$(times_said "cleared after [0-9]+ s: ")" ]'
expect_ok "and is no longer a metric" test -z "$(fetch /metrics | grep '^nccl_verdict_info')"
stop_agent

expect_refusal "a hook without a path is rejected" 2 "hook page-me is not an absolute path" \
	"$agent" --directory "$shm" --hook page-me
start_agent --hook /nowhere/page-me
expect_ok "a missing hook is logged at once" says '/nowhere/page-me: No such file'
expect_ok "and the agent keeps running" is_running
stop_agent
tap_done
