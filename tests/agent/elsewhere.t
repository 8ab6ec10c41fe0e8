#!/usr/bin/env bash
# A job on two nodes, an agent for each. A hang that the other node explains: no rank is named, the hook is not called,
# and the command that asks all nodes of the job is printed. The node of the culprit names it.
. "$(dirname "$0")/agent.sh"

hook=$tap_scratch/hook
cat >"$hook" <<EOF
#!/bin/sh
echo "\$RINGSIDE_EVENT \$RINGSIDE_CLASS rank \$RINGSIDE_RANK" >>$tap_scratch/calls-\$1
EOF
chmod +x "$hook"
touch "$tap_scratch/calls-0" "$tap_scratch/calls-1"

regions=$tap_scratch/regions
SLURM_JOB_NODELIST='gpu[07-08]' RINGSIDE_BUFFER=4MiB "$BUILD/ringside" sim --kernel --seconds 600s --nodes 2 --gpus 2 \
	--node-regions "$regions" -f never-arrives:rank=3,at=500ms >/dev/null 2>&1 &
started+=($!)
until_ok test -d "$regions/node0001"

urls=() logs=()
for node in 0 1; do
	shm=$regions/node000$node
	log=$tap_scratch/log-$node
	# Both have the same limit: what one reports, the other has found, too.
	start_agent --hang 4s --lag 2s --hook "$hook $node"
	urls+=("$url") logs+=("$log")
done

url=${urls[1]} log=${logs[1]}
expect_soon "the node of the culprit names it" says 'never_issued: .*rank 3 '
expect_soon "and calls the hook" grep -q '^appeared never_issued rank 3$' "$tap_scratch/calls-1"

url=${urls[0]} log=${logs[0]}
expect_soon "the other node names nobody" says 'elsewhere: 2 local ranks wait for ranks on other nodes; job sim-1, '
expect_ok "its next step asks all nodes of the job" says "elsewhere: .*; next step: ringside doctor --agents 'gpu\[07-08\]'$"
expect_soon "its metrics have the class, and no rank" shows '^nccl_verdict_info\{nccl_job="sim-1",class="elsewhere",comm="[0-9a-f]{16}",severity="error",confidence="[a-z]+"\} 1'
has_verdict() {
	perl -MJSON::PP -e 'my ($one, @more) = @{decode_json(shift)->{verdicts}};
		exit !(!@more && $one->{class} eq "elsewhere" && $one->{severity} eq "error" && $one->{job} eq "sim-1" && $one->{victims} == 2 &&
			!grep { defined } @$one{qw(rank host pid gpu peer)});' "$(fetch /api/v1/now)"
}
expect_soon "so has the answer for the page" has_verdict
expect_ok "nothing else was reported as a cause" test "$(grep -cE '(unseen|stuck|never_issued|network_stuck): ' "$log")" = 0
# An agent at a port of its own: others are expected there, too.
port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport')
log=$tap_scratch/log-port shm=$regions/node0000
start_agent_at --listen "127.0.0.1:$port" --hang 4s --lag 2s
expect_soon "an agent that does not listen at 9749 puts its port into the command" \
	says "elsewhere: .*; next step: ringside doctor --agents 'gpu\[07-08\]:$port'\$"
expect_same "the hook was not called" "$(grep -v ' behind ' "$tap_scratch/calls-0")" ""
tap_done
