#!/usr/bin/env bash
# NCCL's userTag from the call to metrics and JSON: one tag of a communicator is a label, several are not.
. "$(dirname "$0")/agent.sh"

info_has() { # pattern
	shows "^nccl_communicator_info\\{.*comm_name=\"$1\".*$2"
}
json_has() { # name tag
	[ "$(fetch /api/v1/now | python3 -c '
import json, sys
print({comm["name"]: comm["user_tag"] for comm in json.load(sys.stdin)["communicators"]}.get(sys.argv[1]))' "$1")" = "$2" ]
}
start_agent --lag 5s
start_sim --release 2.31 --nodes 1 --gpus 2 -w loop --tag world=7
expect_soon "a tag that all operations have is a label of the communicator" info_has world 'user_tag="7"'
expect_soon "and in the data of the page" json_has world 7
stop_sim TERM
start_sim --release 2.31 --nodes 1 --gpus 2 -w loop --seed 2
expect_soon "a job without tags" shows '^nccl_communicator_info\{nccl_job="sim-2"'
expect_same "has no such label" "$(fetch /metrics | grep -c 'nccl_communicator_info{nccl_job="sim-2".*user_tag')" 0
stop_sim TERM
stop_agent
"$BUILD/ringside" sim --offline --release 2.31 --gpus 2 -w loop --tag world=7 --seconds 1s -o "$tap_scratch/traces" >/dev/null
expect_ok "report has it, too" grep -qE '^ *7 ' <("$BUILD/ringside" report --by tag "$tap_scratch/traces")
expect_refusal "releases before have none" 2 'this release has no tags' "$BUILD/ringside" sim --tag world=7
expect_refusal "a communicator that does not exist" 2 'expected world, tp, pp, dp or ep' "$BUILD/ringside" sim --release 2.31 --tag all=7
tap_done
