#!/usr/bin/env bash
# Clients that mean no good: nothing falls, and others are still answered.
. "$(dirname "$0")/agent.sh"
command -v python3 >/dev/null || tap_skip_all "there is no python3"
ulimit -n 4096 2>/dev/null || tap_skip_all "too few descriptors: ulimit -n"

# A client that stands still until it is let go.
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

# An agent for one client alone, whom nobody else drives out: it lives for fifteen seconds, while the rest
# goes on.
start_agent
run_hostile drip >"$tap_scratch/drip" &
drip_pid=$!
started+=("$drip_pid")

start_agent
quiet=$(open_files)

begin_hostile many
expect_same "a thousand connections are made" "$(cat "$tap_scratch/said.many")" "holding 1000"
for i in 1 2 3; do
	expect_code "others are answered beside them, $i" 200 /healthz
done
expect_ok "no more of them are held than one address may" has_at_most $((quiet + 33))
end_hostile
begin_hostile half
expect_code "others are answered beside unfinished requests" 200 /healthz
end_hostile
begin_hostile deaf
expect_code "others are answered beside those who do not read" 200 /metrics
end_hostile

expect_same "a thousand requests at once" "$(run_hostile pipeline)" "pipeline good"
expect_same "torn connections" "$(run_hostile reset)" "reset good"
expect_same "bytes that are no HTTP" "$(run_hostile garbage)" "garbage good"
run_hostile oversized >"$tap_scratch/oversized"
while read -r name verdict; do
	expect_same "an oversized $name" "$verdict" good
done <"$tap_scratch/oversized"
expect_same "all of them" "$(wc -l <"$tap_scratch/oversized")" 10
expect_code "others are still answered" 200 /metrics
expect_soon "nothing is left open" has_at_most $((quiet + 1))
expect_same "all that without a word" "$(wc -l <"$log")" 1
stop_agent
expect_same "it ends well" "$?" 0

# Few descriptors: who does not get one waits, nobody spins.
before=(bash -c 'ulimit -n 64 && exec "$0" "$@"')
start_agent
before=()
begin_hostile many
expect_soon "descriptors run out and come back" answers 200 /healthz
end_hostile
expect_code "and all is well" 200 /healthz
stop_agent

if command -v openssl >/dev/null; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
		-keyout "$tap_scratch/key" -out "$tap_scratch/crt" 2>/dev/null
	printf 'tls_server_config:\n  cert_file: crt\n  key_file: key\n' >"$tap_scratch/web.yml"
	start_agent --web-config "$tap_scratch/web.yml"
	begin_hostile handshake
	expect_code "others are answered beside unfinished handshakes" 200 /healthz -k
	end_hostile
	expect_same "torn handshakes" "$(run_hostile renegotiate)" "handshakes good"
	expect_same "garbage instead of TLS" "$(run_hostile garbage)" "garbage good"
	expect_code "others are still answered over TLS" 200 /metrics -k
	stop_agent
	expect_same "it ends well, too" "$?" 0
fi
wait "$drip_pid"
expect_same "a byte now and then buys no time" "$(cat "$tap_scratch/drip")" dropped
tap_done
