#!/usr/bin/env bash
# Hostile clients: the agent survives, and others are still served.
. "$(dirname "$0")/agent.sh"
command -v python3 >/dev/null || tap_skip_all "python3 is not installed"
ulimit -n 4096 2>/dev/null || tap_skip_all "too few descriptors: ulimit -n"

# A client that waits until it is released.
begin_hostile() { # kind
	rm -f "$tap_scratch/hold.$1"
	mkfifo "$tap_scratch/hold.$1"
	python3 tests/agent/hostile_clients.py "$1" 127.0.0.1 "${url##*:}" \
		<"$tap_scratch/hold.$1" >"$tap_scratch/said.$1" &
	hostile_pid=$!
	started+=("$hostile_pid")
	exec 4>"$tap_scratch/hold.$1"
	until_ok grep -q holding "$tap_scratch/said.$1"
}
end_hostile() {
	exec 4>&-
	wait "$hostile_pid"
}
run_hostile() { # kind
	python3 tests/agent/hostile_clients.py "$1" 127.0.0.1 "${url##*:}" 2>&1
}
open_files() { find "/proc/$agent_pid/fd" -mindepth 1 | wc -l; }
has_at_most() { [ "$(open_files)" -le "$1" ]; }

# A separate agent for one client, so that no other client evicts it: it takes fifteen seconds, in parallel.
start_agent
run_hostile drip >"$tap_scratch/drip" &
drip_pid=$!
started+=("$drip_pid")

start_agent
quiet=$(open_files)

begin_hostile many
expect_same "a thousand connections are opened" "$(cat "$tap_scratch/said.many")" "holding 1000"
for i in 1 2 3; do
	expect_code "others are served meanwhile, $i" 200 /healthz
done
expect_ok "connections are limited per address" has_at_most $((quiet + 33))
end_hostile
begin_hostile half
expect_code "others are served during unfinished requests" 200 /healthz
end_hostile
begin_hostile deaf
# Soon, because an address with 32 answers under way gets no other.
expect_soon "others are served while clients do not read" answers 200 /metrics
end_hostile

expect_same "a thousand requests at once" "$(run_hostile pipeline)" "pipeline good"
expect_same "aborted connections" "$(run_hostile reset)" "reset good"
expect_same "bytes that are not HTTP" "$(run_hostile garbage)" "garbage good"
run_hostile oversized >"$tap_scratch/oversized"
while read -r name verdict; do
	expect_same "an oversized $name" "$verdict" good
done <"$tap_scratch/oversized"
expect_same "all kinds were tested" "$(wc -l <"$tap_scratch/oversized")" 10
expect_code "others are still served" 200 /metrics
expect_soon "no connection is left open" has_at_most $((quiet + 1))
expect_same "without a log line" "$(wc -l <"$log")" 1
stop_agent
expect_same "it exits with 0" "$?" 0

# Few descriptors: connections wait, and the agent does not spin.
before=(bash -c 'ulimit -n 64 && exec "$0" "$@"')
start_agent
before=()
begin_hostile many
expect_soon "it recovers after running out of descriptors" answers 200 /healthz
end_hostile
expect_code "and serves requests" 200 /healthz
stop_agent

if command -v openssl >/dev/null; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
		-keyout "$tap_scratch/key" -out "$tap_scratch/crt" 2>/dev/null
	printf 'tls_server_config:\n  cert_file: crt\n  key_file: key\n' >"$tap_scratch/web.yml"
	start_agent --web-config "$tap_scratch/web.yml"
	begin_hostile handshake
	expect_code "others are served during unfinished handshakes" 200 /healthz -k
	end_hostile
	expect_same "aborted handshakes" "$(run_hostile renegotiate)" "handshakes good"
	expect_same "garbage instead of TLS" "$(run_hostile garbage)" "garbage good"
	expect_code "others are still served over TLS" 200 /metrics -k
	stop_agent
	expect_same "the TLS agent exits with 0" "$?" 0
fi
wait "$drip_pid"
expect_same "a slow trickle of bytes does not extend the deadline" "$(cat "$tap_scratch/drip")" dropped
tap_done
