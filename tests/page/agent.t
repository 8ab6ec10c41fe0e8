#!/usr/bin/env bash
# The page served by a real agent: a job runs, then hangs; then the agent ends.
. "$(dirname "$0")/../agent/agent.sh"
. tests/html/html.sh

html_needs
[ -x "$BUILD/ringside" ] || tap_skip_all "ringside is not built"

start_agent --hang 2s --lag 1s
# The job starts once the page is open, however long the browser takes.
run_job() {
	until [ -e "$tap_scratch/open" ]; do
		sleep 0.05
	done
	RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB exec "$BUILD/ringside" sim --kernel --nodes 1 --gpus 4 -w ddp --rate 20 --seconds 600s \
		-f never-arrives:rank=2,at=10s >"$tap_scratch/sim" 2>&1
}
run_job &
sim_pid=$!
started+=("$sim_pid")
node tests/page/agent.mjs "$url" "$agent_pid" "$tap_scratch/open"
code=$?
kill "$sim_pid" 2>/dev/null
wait "$sim_pid" 2>/dev/null
exit "$code"
