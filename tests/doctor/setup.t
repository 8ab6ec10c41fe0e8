#!/usr/bin/env bash
# `ringside doctor --log`: real logs, clean and broken ones, as text and as JSON; exit codes.
. "$(dirname "$0")/../tap.sh"
doctor() { "$BUILD/ringside" doctor "$@"; }
rules() { # the rules of findings, in order
	doctor --json "$@" 2>/dev/null | grep -o '"rule":"[^"]*"' | sed 's/.*:"//; s/"//' | paste -sd ' '
}
real=(tests/nccllog/info-4ranks-296*.dbg)

# A clean log of two nodes, in the formats of NCCL 2.28: eight GPUs, eight cards.
clean=$tap_scratch/clean.log
for rank in {0..15}; do
	local_rank=$((rank % 8)) node=$((rank / 8))
	head="node$node:$((1000 + rank)):$((1000 + rank)) [$local_rank] NCCL INFO"
	init="ncclCommInitRank comm 0x55be$rank rank $rank nranks 16 cudaDev $local_rank nvmlDev $local_rank busId ${local_rank}000 commId 0x8cda - Init"
	echo "$head NCCL version 2.28.9+cuda12.8"
	echo "$head NET/IB : Using$(for i in {0..7}; do echo -n " [$i]mlx5_$i:1/IB"; done) [RO]; OOB eth0:10.0.0.1<0>"
	echo "$head $init START"
	echo "$head Channel 00/0 : ${rank}[$local_rank] -> $(((rank + 8) % 16))[$local_rank] [send] via NET/IB/$local_rank/GDRDMA"
	echo "$head Channel 01/0 : ${rank}[$local_rank] -> $((node * 8 + (rank + 1) % 8))[$(((rank + 1) % 8))] via P2P/CUMEM/read"
	echo "$head 16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer"
	echo "$head $init COMPLETE"
done >"$clean"

expect_ok "a clean log is fine" doctor --log "$clean"
expect_same "without findings" "$(rules --log "$clean")" ""
expect_ok "a real log has only notes" doctor --log "${real[@]}"
expect_same "these notes" "$(rules --log "${real[@]}")" "ib-disabled profiler-plugin"
expect_same "logs of two jobs are not taken for one: one asked for a plugin, the other did not find the default one" \
	"$(rules --log tests/nccllog/*.dbg)" "ib-disabled profiler-plugin virtual-topology"
expect_same "a directory means all files in it" "$(rules --log tests/nccllog)" "$(rules --log tests/nccllog/*.dbg)"

doctor --all --log tests/nccllog/trace-2ranks-*.dbg >"$tap_scratch/all"
expect_same "--all shows what NCCL detected" "$(grep -c -e 'NCCL 2.28.9, built for CUDA 13.0, driver 13000 (2 processes)' \
	-e 'NET/Socket (16 channels of ranks)' -e 'AllReduce 1048576 bytes: RING SIMPLE (3 calls)' "$tap_scratch/all")" 3
expect_same "the same as JSON" "$(doctor --all --json --log tests/nccllog/trace-2ranks-*.dbg |
	python3 -c 'import json, sys; n = json.load(sys.stdin)["nccl"]; print(len(n["links"]), n["links"][0]["transport"], n["links"][0]["channels"], n["choices"][1]["algorithm"], n["unknown"])')" \
	"8 NET [0, 1] RING []"

# Rank 11 hangs before the init, all others wait.
grep -v -e 'Init COMPLETE' -e ':1011:' "$clean" >"$tap_scratch/hang.log"
expect_same "a missing rank is a problem" "$(doctor --log "$tap_scratch/hang.log" >"$tap_scratch/said" 2>&1; echo $?)" 1
expect_same "and named" "$(grep -c 'rank 11 never reached the init of a communicator of 16 ranks' "$tap_scratch/said")" 1
expect_same "with the line" "$(grep -c "$tap_scratch/hang.log:[0-9]*:" "$tap_scratch/said")" 1
expect_same "and its runbook" "$(grep -c 'ringside help init-incomplete' "$tap_scratch/said")" 1

# One node without its network cards.
sed -e '/^node1/s/via NET\/IB\/[0-9]*\/GDRDMA/via NET\/Socket\/0/' -e '/^node1.*NET\/IB : Using/s/NET.*/NET\/IB : No device found./' \
	"$clean" >"$tap_scratch/socket.log"
expect_same "a node that fell back to sockets" "$(rules --log "$tap_scratch/socket.log")" "net-socket-fallback"
sed 's/NET\/IB\/[0-9]/NET\/IB\/0/' "$clean" >"$tap_scratch/one.log"
expect_same "one of eight cards" "$(rules --log "$tap_scratch/one.log")" "hcas-unused"
sed 's/\/GDRDMA//' "$clean" >"$tap_scratch/gdr.log"
expect_same "no GPUDirect RDMA" "$(rules --log "$tap_scratch/gdr.log")" "gdr-off"
sed '/^node1:1015.*version/s/2.28.9/2.27.5/' "$clean" >"$tap_scratch/version.log"
expect_same "another release on one rank" "$(rules --log "$tap_scratch/version.log")" "version-mismatch"
{
	cat "$clean"
	echo "node0:1003:1003 [3] NCCL INFO NCCL_ALGO set by environment to Ring"
} >"$tap_scratch/algo.log"
expect_same "one rank with another setting" "$(rules --log "$tap_scratch/algo.log" | tr ' ' '\n' | sort | paste -sd ' ')" "algorithm-forced environment-differs"
expect_same "without a recording ranks are not counted" "$(doctor --json --log "$tap_scratch/algo.log" |
	python3 -c 'import json, sys; a = json.load(sys.stdin)["looked_at"]; print(a["job"], a["ranks"], a["operations"], a["last_operation_seconds"])')" \
	"None None None None"
expect_same "that rank is named" "$(doctor --json --log "$tap_scratch/algo.log" | grep -o '"rank":3[,}]' | sort -u | wc -l)" 1

# Only a recording, without a log.
mkdir "$tap_scratch/shm"
NCCL_P2P_DISABLE=1 RINGSIDE_SHM=$tap_scratch/shm RINGSIDE_MODE=trace RINGSIDE_DIR=$tap_scratch/traces \
	PLUGIN=$BUILD/libnccl-profiler-ringside.so "$BUILD/tests/process/process_job" ops=10 >"$tap_scratch/job" 2>&1
expect_same "a recorded variable is checked" "$(rules "$tap_scratch/traces" | grep -o p2p-disabled)" p2p-disabled
echo hello >"$tap_scratch/hello.log"
expect_complaint "a log of something else is not healthy" "hello.log: no lines of NCCL found; .*NCCL_DEBUG=INFO" \
	doctor --log "$tap_scratch/hello.log"
expect_complaint "nor are two such logs" "hello.log and the other logs: no lines of NCCL found" doctor --log "$tap_scratch/hello.log" "$tap_scratch/hello.log"
expect_ok "next to an NCCL log it is ignored" doctor --log "$clean" "$tap_scratch/hello.log"
expect_complaint "a file that does not exist" "No such file" doctor --log "$tap_scratch/nothing.log"
tap_done
