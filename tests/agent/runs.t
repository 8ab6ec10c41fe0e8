#!/usr/bin/env bash
# A job that is killed and started again under the same name: page, metrics, summary, top, log and hook show which run is
# meant. The newest one is the job.
. "$(dirname "$0")/agent.sh"
export RINGSIDE_JOB=train RINGSIDE_SHM=$shm

hook=$tap_scratch/hook
cat >"$hook" <<EOF
#!/bin/sh
echo "\$RINGSIDE_EVENT \$RINGSIDE_CLASS \$RINGSIDE_JOB \$RINGSIDE_JOB_START" >>$tap_scratch/calls
EOF
chmod +x "$hook"
touch "$tap_scratch/calls"
# Evaluates a perl expression of /api/v1/now.
now_has() { # expression of $now
	perl -MJSON::PP -e 'my $now = decode_json(shift); exit !eval shift' "$(fetch /api/v1/now)" "$1"
}
summary_is() { # ranks, processes alive, state
	[ "$(fetch /api/v1/summary | perl -MJSON::PP -0ne 'print join " ", map { "@$_{qw(name ranks processes_alive state)}" } @{decode_json($_)->{jobs}}')" = "train $*" ]
}
start_run() {
	start_sim --nodes 1 --gpus 2 -w ddp -f never-arrives:rank=1,at=1s
}
kill_run() {
	local ours
	mapfile -t ours < <("$BUILD/ringside" ls --json | grep -oE '"pid_here":[0-9]+' | cut -d: -f2)
	kill -9 "$sim_pid" "${ours[@]}"
	wait "$sim_pid" 2>/dev/null
}

# The wall clock of agent and job, in seconds from the machine's.
set_clock() { perl -e 'print pack "q", shift() * 10**9' -- "$1" 1<>"$tap_scratch/clock"; }
set_clock 0
export STEPPED_CLOCK=$tap_scratch/clock
cp "$BUILD/tests/stepped_clock_plugin.so" "$tap_scratch/" # LD_PRELOAD cannot name a path with a space
export LD_PRELOAD=$tap_scratch/stepped_clock_plugin.so

start_agent --hang 3s --lag 1s --hook "$hook"
start_run
expect_soon "the first run hangs" says 'never_issued: rank 1 has not called .*; job train, '
expect_soon "and calls the hook" grep -q '^appeared never_issued train ' "$tap_scratch/calls"
kill_run
expect_soon "it is the job after its end, too" summary_is 2 0 ended
start_run
expect_soon "the page lists both, the ended one with its start" now_has '
	my ($old, $new) = sort { $a->{started_ms} <=> $b->{started_ms} } @{$now->{jobs}};
	@{$now->{jobs}} == 2 && $old->{name} =~ /^train \(run of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\)$/ && $old->{is_earlier_run} && !$old->{is_alive} &&
		$new->{name} eq "train" && !$new->{is_earlier_run} && $new->{is_alive}'
expect_soon "the new one has a verdict, not the ended one" now_has '
	2 == grep { $_->{hangs}{found} == ($_->{is_earlier_run} ? 0 : 1) } @{$now->{jobs}}'
expect_ok "ranks of the newest run have plain names" now_has '
	@{$now->{verdicts}} == 1 && $now->{verdicts}[0]{rank_label} eq "1" && $now->{verdicts}[0]{job} eq "train"'
expect_ok "a hub sees one job with the ranks of the newest run" summary_is 2 2 stuck
expect_ok "processes of the ended run have a label" shows '^nccl_process_info\{nccl_job="train",global_rank="0",.*state="killed",run="earlier"\} 1'
expect_ok "those of the newest do not" shows '^nccl_process_info\{nccl_job="train",global_rank="0",.*state="alive"\} 1'
expect_same "no series is there twice" "$(fetch /metrics | grep -v '^#' | sed 's/ [^ ]*$//' | sort | uniq -d)" ""
"$BUILD/ringside" top --once >"$tap_scratch/top"
expect_ok "top shows both" grep -q 'train (run of ' "$tap_scratch/top"
expect_ok "and counts one job" grep -qE '  1 job, 1 earlier run  ' "$tap_scratch/top"
hooked() { [ "$(grep -c "^appeared never_issued train [0-9]" "$tap_scratch/calls")" = 2 ]; }
expect_soon "the hook was called for the new run" hooked
expect_same "with its start" "$(grep '^appeared' "$tap_scratch/calls" | cut -d' ' -f4 | sort -nu | wc -l)" 2
expect_soon "and the verdict on the first was cleared" grep -q '^cleared never_issued train ' "$tap_scratch/calls"
kill_run
set_clock -60
start_run
expect_soon "a run that begins while the clock shows an earlier time replaces both others" now_has '
	@{$now->{jobs}} == 3 && 2 == grep { $_->{is_earlier_run} && !$_->{is_alive} && $_->{name} ne "train" } @{$now->{jobs}}'
expect_soon "and is the job" summary_is 2 2 stuck
expect_soon "and it has the verdict" now_has '
	@{$now->{verdicts}} == 1 && $now->{verdicts}[0]{rank_label} eq "1" && $now->{verdicts}[0]{job} eq "train"'
kill_run
tap_done
