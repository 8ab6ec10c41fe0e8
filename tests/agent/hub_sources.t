#!/usr/bin/env bash
# Where a hub finds agents: service discovery files and URLs, Slurm, DNS; problems are shown, and the agents found before stay.
. "$(dirname "$0")/agent.sh"
[ -x "$BUILD/ringside-fetch" ] || tap_skip_all "ringside-fetch was not built (no libcurl)"
[ -x "$BUILD/ringside" ] || tap_skip_all "ringside is not built"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

log=$tap_scratch/agent.log
# shellcheck disable=SC2119
start_agent
good=${url#http://}
port=${good##*:}
mkdir "$tap_scratch/sd" "$tap_scratch/bin" "$tap_scratch/www"
echo "[{\"targets\": [\"$good\"], \"labels\": {\"partition\": \"a\"}}]" >"$tap_scratch/sd/one.json"
echo '[{"targets": ["192.0.2.1:1"], "labels": {"__scheme__": "https"}}]' >"$tap_scratch/sd/two.json"
echo "[{\"targets\": [\"localhost:$port\", \"127.0.0.1:1\"]}]" >"$tap_scratch/www/targets"
printf '#!/bin/sh\nprintf "node1\\nnode1\\nnode2\\n"\n' >"$tap_scratch/bin/sinfo"
chmod +x "$tap_scratch/bin/sinfo"
python3 -u -c 'import http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), lambda *a: Handler(*a, directory=sys.argv[1]))
print(server.server_address[1]); server.serve_forever()' "$tap_scratch/www" >"$tap_scratch/port" 2>/dev/null &
started+=($!)
until_ok test -s "$tap_scratch/port"

log=$tap_scratch/hub.log
: >"$log"
PATH=$tap_scratch/bin:$PATH "$agent" hub --listen 127.0.0.1:0 --interval 1s --refresh 1s --timeout 1s --check 0s \
	--file-sd "$tap_scratch/sd/*.json" --http-sd "http://127.0.0.1:$(cat "$tap_scratch/port")/targets" --slurm --dns "localhost:$port" \
	--dns _ringside._tcp.no-such-name.invalid 2>"$log" &
agent_pid=$!
started+=("$agent_pid")
until_ok eval 'is_listening || ! is_running'
url=$(sed -n 's|.*listening on \(http://[^,]*\).*|\1|p' "$log")
sources() {
	fetch /api/v1/jobs | perl -MJSON::PP -0777 -ne 'print join " ", map { "$_->{kind}=$_->{agents}" } @{decode_json($_)->{sources}}'
}
problem_of() { # number of a source
	fetch /api/v1/jobs | perl -MJSON::PP -0777 -ne "print decode_json(\$_)->{sources}[$1]{problem} // 'none'"
}
all_found() { [ "$(sources)" = "file-sd=2 http-sd=2 slurm=2 dns=1 dns=0" ]; }
expect_soon "each source has its agents" all_found
expect_soon "a name that does not exist is a problem of that source" eval '[[ "$(problem_of 4)" == *"no SRV record"* ]]'
expect_same "and of no other" "$(problem_of 0) $(problem_of 1) $(problem_of 2) $(problem_of 3)" "none none none none"
answers_found() { shows '^ringside_hub_agents\{state="answering"\} [1-9]'; }
expect_soon "agents that run answer" answers_found
silent() { fetch /api/v1/jobs | perl -MJSON::PP -0777 -ne 'print join " ", sort map { $_->{name} } @{decode_json($_)->{agents}{silent_list}}'; }
expect_soon "the others are listed" eval '[ "$(silent)" = "127.0.0.1:1 https://192.0.2.1:1 node1:9749 node2:9749" ]'

echo 'not JSON' >"$tap_scratch/sd/two.json"
printf '#!/bin/sh\necho "slurm is down" >&2\nexit 1\n' >"$tap_scratch/bin/sinfo"
rm "$tap_scratch/www/targets"
expect_soon "a file that is not JSON is reported" eval '[[ "$(problem_of 0)" == *two.json:* ]]'
expect_soon "so is a URL that has gone" eval '[ "$(problem_of 1)" = "HTTP 404" ]'
expect_soon "so is Slurm" eval '[ "$(problem_of 2)" = "slurm is down" ]'
expect_same "the agents found before stay" "$(sources)" "file-sd=2 http-sd=2 slurm=2 dns=1 dns=0"
expect_same "each problem is logged once" "$(times_said 'slurm is down')" 1
rm "$tap_scratch/sd/two.json"
expect_soon "a file that is removed takes its agents with it" eval '[ "$(sources)" = "file-sd=1 http-sd=2 slurm=2 dns=1 dns=0" ]'
stop_agent
tap_done
