#!/usr/bin/env bash
# The facts of the hosts reach the verdict of a hub: an Xid that names the process of the rank that hangs.
. "$(dirname "$0")/agent.sh"
[ -x "$BUILD/ringside-fetch" ] || tap_skip_all "ringside-fetch was not built (no libcurl)"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

start_agent --hang 3s
start_sim --nodes 1 --gpus 2 -w loop -f never-arrives:rank=1,at=500ms
pid_of_rank() {
	RINGSIDE_SHM=$shm "$BUILD/ringside" ls --json 2>/dev/null | python3 -c '
import json, sys
print(*(process["pid"] for process in json.load(sys.stdin)["processes"] if process["rank"] == 1))' >"$tap_scratch/pid" && [ "$(wc -w <"$tap_scratch/pid")" = 1 ]
}
expect_soon "a rank will hang" pid_of_rank
python3 tests/agent/facts_proxy.py "${url#http://}" "$tap_scratch/pid" >"$tap_scratch/proxy" &
started+=($!)
until_ok test -s "$tap_scratch/proxy"
log=$tap_scratch/hub.log
: >"$log"
"$BUILD/ringside" hub --listen 127.0.0.1:0 --agents "$(cat "$tap_scratch/proxy")" --interval 1s --refresh 1s --hang 3s --timeout 20s 2>"$log" &
agent_pid=$!
started+=("$agent_pid")
until_ok eval 'is_listening || ! is_running'
url=$(sed -n 's|.*listening on \(http://[^,]*\).*|\1|p' "$log")
has_xid() {
	fetch /api/v1/jobs | python3 -c '
import json, sys
verdicts = [job["verdict"] for job in json.load(sys.stdin)["jobs"] if job["verdict"]]
lines = [line for verdict in verdicts if verdict["class"] == "never_issued" for line in verdict["evidence"]]
sys.exit(not any(line.startswith("Xid 31 on a GPU that it uses (0000:3b:00) at ") for line in lines))'
}
expect_soon "the hub's verdict on the rank has the Xid of its host" has_xid
stop_sim TERM
tap_done
