#!/usr/bin/env bash
# The doctor says which series of Prometheus it cannot use.
. "$(dirname "$0")/../tap.sh"
[ -x "$BUILD/ringside-fetch" ] || tap_skip_all "ringside-fetch was not built: run scripts/install-deps build"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

cat >"$tap_scratch/server.py" <<'SERVER'
"""Answers every query with the series of the first argument."""
import http.server
import json
import sys

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = json.dumps({"status": "success", "data": {"resultType": "vector", "result": json.loads(sys.argv[1])}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    do_POST = do_GET
    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(server.server_address[1], flush=True)
server.serve_forever()
SERVER
notes() { # series option...
	local port server
	python3 "$tap_scratch/server.py" "$1" >"$tap_scratch/port" &
	server=$!
	until_ok test -s "$tap_scratch/port"
	port=$(cat "$tap_scratch/port")
	"$BUILD/ringside" doctor --json --prometheus "http://127.0.0.1:$port" "${@:2}" 2>&1 | tee "$tap_scratch/said" |
		sed -nE 's/.*"title": *"[0-9]+ (series[^"]*)".*/\1/p'
	kill "$server"
	wait "$server" 2>/dev/null
	rm "$tap_scratch/port"
}
expect_same "series without our labels are counted" "$(notes '[{"metric":{"somebody":"else"},"value":[1,"1"]}]' )" \
	"series of Prometheus cannot be used"
said() { # without the port
	sed -E 's|127.0.0.1:[0-9]+|HOST|' "$tap_scratch/said"
}
notes '[]' >/dev/null
expect_same "without any, it is not this host that has no recordings" "$(said)" \
	"ringside doctor: http://HOST: no series of Ringside's agents; check that agents run, and that this Prometheus scrapes them"
notes '[]' --job llm-7 >/dev/null
expect_same "without any of a job" "$(said)" \
	"ringside doctor: http://HOST: no series of job llm-7; check that agents run, and that this Prometheus scrapes them"
tap_done
