#!/usr/bin/env bash
# A hub and two agents: one verdict for a job on two nodes, in the log, the metrics, the API and to the hook; its end; an agent
# that dies; wrong options.
. "$(dirname "$0")/agent.sh"
[ -x "$BUILD/ringside-fetch" ] || tap_skip_all "ringside-fetch was not built (no libcurl)"
ringside=$BUILD/ringside
[ -x "$ringside" ] || tap_skip_all "ringside is not built"

hub_log=$tap_scratch/hub.log
calls=$tap_scratch/calls
cat >"$tap_scratch/hook" <<END
#!/bin/sh
cat >>$tap_scratch/input
echo "\$RINGSIDE_EVENT \$RINGSIDE_CLASS rank \$RINGSIDE_RANK job \$RINGSIDE_JOB" >>$calls
END
chmod +x "$tap_scratch/hook"
: >"$calls"

mkdir -p "$tap_scratch/regions"
for node in 0 1; do
	mkdir -p "$tap_scratch/regions/node000$node"
	shm=$tap_scratch/regions/node000$node log=$tap_scratch/agent$node.log
	start_agent --hang 3s
	printf '%s\n' "${url#http://}" >>"$tap_scratch/agents"
	agents[node]=$agent_pid
done
RINGSIDE_JOB='a&b <c>' RINGSIDE_BUFFER=4MiB "$ringside" sim --kernel --plugin "$BUILD/libnccl-profiler-ringside.so" --seconds 600s \
	-m flight --nodes 2 --gpus 2 --rate 20 -w ddp --node-regions "$tap_scratch/regions" -f never-arrives:rank=2,at=2s \
	>"$tap_scratch/sim" 2>&1 &
sim_pid=$!
started+=("$sim_pid")

log=$hub_log
: >"$log"
"$ringside" hub --listen 127.0.0.1:0 --agents "@$tap_scratch/agents" --interval 1s --refresh 1s --hang 3s --timeout 20s \
	--hook "$tap_scratch/hook" --gpu-hour-price 2.5 2>"$log" &
agent_pid=$!
started+=("$agent_pid")
until_ok eval 'is_listening || ! is_running'
url=$(sed -n 's|.*listening on \(http://[^,]*\).*|\1|p' "$log")

expect_same "the hub has no capabilities, and its system calls are restricted" \
	"$(sed -n 's/^\(CapEff\|Seccomp\):\t//p' "/proc/$agent_pid/status" | tr '\n' ' ')" "0000000000000000 2 "
expect_soon "the hang has one verdict in the log" says '^ringside-hub: never_issued: rank 2 has not called .*; job a&b <c>, since '
expect_ok "it is certain: both nodes were seen" says 'never_issued: .* confidence 9[0-9]%'
job() { # what of the job, as Perl
	fetch /api/v1/jobs | perl -MJSON::PP -0777 -ne 'my ($j) = grep { $_->{name} eq "a&b <c>" } @{decode_json($_)->{jobs}}; print '"$1"
}
expect_same "the API has it" "$(job '"$j->{state} $j->{nodes} $j->{ranks} $j->{world_size} $j->{verdict}{class} $j->{verdict}{rank}"')" \
	"stuck 2 4 4 never_issued 2"
expect_same "with what it costs" "$(job '$j->{gpu_hours} > 0 && abs($j->{money} / $j->{gpu_hours} / 2.5 - 1) < 0.5 ? "yes" : "no"')" yes
expect_same "and the nodes of a job" "$(fetch '/api/v1/jobs?job=a%26b%20%3Cc%3E' |
	perl -MJSON::PP -0777 -ne 'my $d = decode_json($_); print join " ", map { $_->{ranks} } @{$d->{job_nodes}}')" "2 2"
expect_ok "so have the metrics" shows \
	'^ringside_hub_verdict_info\{nccl_job="a&b <c>",class="never_issued",severity="error",global_rank="2",host="[^"]+",confidence="[a-z ]+"\} 1$'
expect_soon "the hook was called" grep -q '^appeared never_issued rank 2 job a&b <c>$' "$calls"
expect_same "the doctor, asked for the same agents, has the same cause" \
	"$("$ringside" doctor --json --timeout 20s --hang 3s --agents "@$tap_scratch/agents" |
		perl -MJSON::PP -0777 -ne 'my $v = decode_json($_)->{verdicts}[0]; print "$v->{class} $v->{rank} $v->{key}"')" \
	"$(job '"$j->{verdict}{class} $j->{verdict}{rank} $j->{verdict}{key}"')"

# It stores nothing: another one, or the same after a restart, finds all this again.
"$ringside" hub --listen 127.0.0.1:0 --agents "@$tap_scratch/agents" --interval 1s --hang 3s --timeout 20s 2>"$tap_scratch/second.log" &
second_pid=$!
started+=("$second_pid")
log=$tap_scratch/second.log
expect_soon "a hub that is started later finds the same" says '^ringside-hub: never_issued: rank 2 has not called .*; job a&b <c>, since '
log=$hub_log
kill -TERM "$second_pid"
wait "$second_pid"
expect_same "and ends when asked to" $? 0

alert='{"version":"4","status":"firing","alerts":[{"status":"firing","labels":{"nccl_job":"a&b <c>"}},{"status":"firing","labels":{"nccl_job":"x"}}]}'
post() { # curl-option...
	fetch /api/v1/alerts -X POST -H 'Content-Type: application/json' "$@"
}
expect_same "a webhook of Alertmanager" "$(post -d "$alert")" '{"jobs":1,"jobs_unknown":1}'
expect_soon "is counted" shows '^ringside_hub_alerts_total 1$'
expect_code "other JSON is rejected" 400 /api/v1/alerts -X POST -H 'Content-Type: application/json' -d '{}'
expect_code "other types are rejected" 415 /api/v1/alerts -X POST -H 'Content-Type: text/plain' -d "$alert"
expect_code "alerts cannot be read" 404 /api/v1/alerts
head -c 400000 /dev/zero | tr '\0' ' ' >"$tap_scratch/long"
expect_ok "a body without end is cut off" test "$(code_of /api/v1/alerts -X POST -H 'Content-Type: application/json' --data-binary "@$tap_scratch/long")" != 200

kill -9 "${agents[1]}"
wait "${agents[1]}" 2>/dev/null
expect_soon "an agent that died is counted" shows '^ringside_hub_agents\{state="silent"\} 1$'
# Jobs are joined again at the next turn.
job_is() { # expression value
	[ "$(job "$1")" = "$2" ]
}
expect_soon "the job keeps its nodes, and its verdict" job_is '"$j->{nodes} $j->{nodes_silent} $j->{verdict}{class}"' "2 1 never_issued"

kill -TERM "$sim_pid"
wait "$sim_pid" 2>/dev/null
expect_soon "the end is logged" says 'cleared after [0-9]+ s: never_issued: rank 2 '
expect_soon "and passed to the hook" grep -q '^cleared never_issued rank 2 job a&b <c>$' "$calls"
expect_same "each is reported once" "$(grep -c appeared "$calls") $(grep -c cleared "$calls") $(times_said 'never_issued: rank 2 .*; job')" "1 1 1"
: >"$tap_scratch/agents"
expect_soon "agents that are no longer listed are forgotten" eval '[ "$(fetch /healthz | grep -o "\"agents\":[0-9]*")" = "\"agents\":0" ]'
expect_code "the page" 200 /
expect_ok "with its content security policy" grep -q "script-src 'self'" <(header_of Content-Security-Policy /)
expect_code "its script" 200 /hub.js
expect_code "nothing else is served" 404 /api/v1/now
expect_code "nothing can be changed" 405 /api/v1/jobs -X DELETE
expect_code "a key that is not escaped correctly" 400 '/api/v1/jobs?job=%zz'
expect_code "DNS rebinding" 403 /metrics -H 'Host: evil.example'
stop_agent

hub=("$ringside" hub --listen 127.0.0.1:0)
expect_refusal "no source of agents" 2 "no agents: use --agents" "${hub[@]}"
expect_refusal "a bad list" 2 "'a:b' has no port" "${hub[@]}" --agents a:b
expect_refusal "an empty list" 2 "lists no agent" "${hub[@]}" --agents ,
expect_refusal "a bad URL" 2 "is not a URL" "${hub[@]}" --http-sd file:///etc/passwd
expect_refusal "a password on the command line" 2 "goes into a file" "${hub[@]}" --prometheus http://me:pw@host
expect_refusal "a bad name" 2 "is not a host name" "${hub[@]}" --dns 'a b'
tap_done
