#!/usr/bin/env bash
# The command line: errors are one line.
. "$(dirname "$0")/agent.sh"

expect_ok "help" grep -q '^usage: ringside agent' <("$agent" --help)
expect_refusal "an unknown option" 2 "did you mean '--listen'" "$agent" --lissen :1
expect_refusal "an operand" 2 "unexpected argument 'x'" "$agent" x
expect_refusal "no port" 2 "--listen localhost: port missing" "$agent" --listen localhost
expect_refusal "a host name" 2 "use a numeric address" "$agent" -l example.org:80
expect_refusal "too many addresses" 2 "can be given at most 8 times" "$agent" -l :1 -l :1 -l :1 -l :1 -l :1 -l :1 -l :1 -l :1 -l :1
expect_refusal "an invalid time" 2 "--keep soon is not a time" "$agent" --keep soon
expect_refusal "a time below the minimum" 2 "--interval 10ms is less than 1s" "$agent" --interval 10ms
expect_refusal "a hang limit of 0" 2 "--hang 0 is less than 1s" "$agent" --hang 0
expect_refusal "an empty name" 2 "is not a host name" "$agent" --host ''
expect_refusal "a user who does not exist" 2 "no such user" "$agent" --user no-such-user
expect_refusal "a group which does not exist" 2 "no such group" "$agent" --group no-such-group
expect_refusal "an address of another host" 3 "cannot listen on 192.0.2.1:80" "$agent" -l 192.0.2.1:80
expect_refusal "a missing directory" 3 "cannot write files in /nowhere" \
	"$agent" -l 127.0.0.1:0 --textfile /nowhere
expect_refusal "a missing web configuration" 3 "cannot read /nowhere/web.yml: No such file" \
	"$agent" -l 127.0.0.1:0 --web-config /nowhere/web.yml
printf 'basic_auth_users:\n  a: b\n' >"$tap_scratch/web.yml"
expect_refusal "an invalid web configuration" 3 "web.yml: line 2: user a: not a bcrypt hash" \
	"$agent" -l 127.0.0.1:0 --web-config "$tap_scratch/web.yml"
expect_refusal "a Unix socket in a missing directory" 3 "cannot listen on unix:/nowhere/x: No such file" \
	"$agent" -l unix:/nowhere/x
: >"$tap_scratch/precious"
expect_refusal "a file at the path of a Unix socket" 3 "precious: Address already in use" \
	"$agent" -l "unix:$tap_scratch/precious"
expect_ok "is not removed" test -f "$tap_scratch/precious"

# shellcheck disable=SC2119
start_agent
expect_refusal "an address in use" 3 "cannot listen on .*: Address already in use; choose another" \
	"$agent" -l "${url#http://}"
stop_agent

start_agent_at --listen "unix:$tap_scratch/a.sock"
expect_refusal "a Unix socket in use" 3 "a.sock: Address already in use" \
	"$agent" -l "unix:$tap_scratch/a.sock"
kill -9 "$agent_pid"
wait "$agent_pid" 2>/dev/null
expect_ok "a killed agent leaves its socket" test -S "$tap_scratch/a.sock"
start_agent_at --listen "unix:$tap_scratch/a.sock"
expect_ok "the next agent replaces it" is_running
stop_agent

# Its port may be taken: then it says for which address.
: >"$log"
"$agent" --directory "$shm" 2>"$log" &
agent_pid=$!
started+=("$agent_pid")
expect_soon "without options it listens on loopback" eval 'is_listening || ! is_running'
expect_same "and nowhere else" "$(grep -oE 'listen(ing)? on [^ ,]*[0-9]' "$log" | sed 's|.* on \(http://\)*||')" 127.0.0.1:9749
if is_running; then
	stop_agent
fi

start_agent_at --listen :0
expect_ok "an open listener is logged with a hint, in the first line" grep -qE 'open to everyone who can reach it: see --web-config' <(head -n 1 "$log")
stop_agent
tap_done
