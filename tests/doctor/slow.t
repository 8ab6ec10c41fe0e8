#!/usr/bin/env bash
# The cause of slowness is found: compared with the other ranks, the job's own past, a baseline, a peak.
. "$(dirname "$0")/slowness.sh"

# ---- baselines of good runs ----------------------------------------------------------------------
size=(--nodes 4 --gpus 4 --seconds 15s)
for workload in ddp fsdp tp-pp moe; do
	simulate "good-$workload" "${size[@]}" -w "$workload" --seed 11
	expect_ok "a baseline of $workload is saved" save "good-$workload"
	simulate same "${size[@]}" -w "$workload" --seed 12 --jitter 5
	expect_same "$workload like the good run: no verdict" \
		"$(named same --baseline "$tap_scratch/good-$workload.json")" ""
done

# ---- ranks ----------------------------------------------------------------------------------------
for workload in ddp fsdp tp-pp; do
	simulate rank "${size[@]}" -w "$workload" --seed 3 -f slow-rank:rank=5,factor=1.3
	expect_same "$workload: a slow rank" "$(named rank --gpu-hour-price 2)" "slow_rank 5"
	expect_same "$workload: compared with a baseline it is the same" \
		"$(named rank --baseline "$tap_scratch/good-$workload.json")" "slow_rank 5"
done
simulate rank "${size[@]}" -w fsdp --seed 3 -f slow-rank:rank=5,factor=1.3
named rank --gpu-hour-price 2 --baseline "$tap_scratch/good-fsdp.json" >/dev/null
expect_ok "always" grep -q always <(value evidence)
expect_ok "with the iteration time, then and now" grep -q "An iteration takes" <(value evidence)
expect_ok "and the cost" python3 -c "exit(not (0 < $(value gpu_hours) * 1.99 < $(value money)))"
simulate burst "${size[@]}" -w fsdp --seed 3 -f slow-rank:rank=5,factor=1.3,at=4s,until=9s
expect_same "slow for a while" "$(named burst)" "slow_rank 5"
expect_ok "with start and end" grep -q "between 00:00:0. and 00:00:0" <(value evidence)
simulate since "${size[@]}" -w fsdp --seed 3 -f slow-rank:rank=5,factor=1.3,at=8s
expect_same "slow from some time on" "$(named since)" "slow_rank 5"
expect_ok "with the start" grep -q "since 00:00:0" <(value evidence)
half=()
for rank in 8 9 10 11 12 13 14 15; do half+=(-f "slow-rank:rank=$rank,factor=1.15,at=4.66s"); done
"$ringside" sim --offline -o "$tap_scratch/half" --nodes 2 --gpus 8 -w ddp --seed 2246 --jitter 5 --rate 15 --seconds 13.33s "${half[@]}" >/dev/null
expect_same "half of all ranks are on the slow host" "$(named half)" "slow_host @node0001"
simulate experts --nodes 4 --gpus 4 --seconds 60s -w moe --seed 3 -f slow-rank:rank=5,factor=1.3
expect_same "a straggler in a group of experts, which is late as a whole" "$(named experts)" "slow_rank 5"
host=()
for rank in 4 5 6 7; do host+=(-f "slow-rank:rank=$rank,factor=1.3"); done
simulate host "${size[@]}" -w fsdp --seed 3 "${host[@]}"
expect_same "all ranks of a host" "$(named host)" "slow_host @node0001"

# ---- links ----------------------------------------------------------------------------------------
simulate link "${size[@]}" -w fsdp --seed 3 -f slow-link:from=3,to=4
expect_same "a slow link: both its ends" "$(named link)" "slow_link 3>4"
expect_ok "with a caveat about channels" grep -q "RINGSIDE_MODE=full" <(value missing)
expect_same "slower transfers are explained by it" \
	"$(found link --baseline "$tap_scratch/good-fsdp.json")" "slow_link 3>4"
expect_ok "and part of its evidence" grep -q "This explains AllGather" <(value evidence)
simulate link "${size[@]}" -w fsdp --seed 3 -m full --seconds 5s -f slow-link:from=3,to=4
expect_same "full mode shows its receiver" "$(named link)" "slow_link 3>4"
expect_same "and its channels" "$(value channels)" "0,4"
simulate link "${size[@]}" -w moe --seed 3 -f slow-link:from=3,to=4
expect_same "a link of Sends" "$(named link)" "slow_link 3>4"
simulate link --nodes 4 --gpus 4 --seconds 60s -w moe --seed 31 -f slow-link:from=3,to=4
expect_same "its whole group is late elsewhere and is not blamed" "$(found link)" "slow_link 3>4"
simulate link "${size[@]}" -w tp-pp --seed 3 -f slow-link:from=3,to=7
expect_same "a link of a pipeline; the receiver is not blamed" "$(named link)" "slow_link 3>7"

simulate ways --nodes 4 --gpus 8 --seconds 30s -w loop --seed 5168 -f slow-link:from=7,to=8 -f slow-link:from=8,to=17
expect_same "links to a rank and from it: the rank, not two links" "$(found ways)" "slow_rank 8"
expect_ok "not as certain: its port may be slow" python3 -c "exit(not $(value confidence) <= 0.9)"
simulate link "${size[@]}" -w fsdp --seed 3 -f slow-link:from=3,to=4
expect_same "a link: not as certain, for either end may be slow" "$(found link) $(value confidence)" "slow_link 3>4 0.9"
expect_ok "and both ends are to be checked" grep -q "Check rank 4 on node0001 as well" <(value advice)

# A sender has several peers, and the totals do not show which of them is slow.
"$ringside" sim --offline -o "$tap_scratch/starved" --nodes 24 --gpus 4 -w loop --seed 1002 --jitter 2 --rate 20 --seconds 10s \
	-f starved:rank=45,factor=10,at=3.89s >/dev/null
expect_same "what it sends and what is sent to it: the rank, not two links" "$(named starved)" "slow_rank 45"
expect_ok "its port may be slow" python3 -c "exit(not $(value confidence) <= 0.85)"
"$ringside" sim --offline -o "$tap_scratch/three" --nodes 3 --gpus 1 -w moe --seed 2046 --jitter 10 --seconds 60s \
	-f starved:rank=0,factor=10,at=28.86s >/dev/null
expect_same "two of three senders: the rank, not the network" "$(named three)" "slow_rank 0"
expect_ok "is not certain" python3 -c "exit(not $(value confidence) <= 0.85)"
"$ringside" sim --offline -o "$tap_scratch/mild" --nodes 6 --gpus 1 -w fsdp --seed 1030 --jitter 0 --rate 7.5 --seconds 26.67s \
	-f slow-link:from=2,to=3,factor=1.15,at=11.37s >/dev/null
expect_same "only one sender is slower than before: its link, not its node" "$(named mild)" "slow_link 2>3"
expect_ok "either end may be slow" python3 -c "exit(not $(value confidence) <= 0.9)"

# ---- nobody ---------------------------------------------------------------------------------------
simulate cap "${size[@]}" -w fsdp --seed 3 --seconds 40s -f power-cap:factor=1.4,at=20s
expect_same "a power cap of all ranks: the job is slower, and nobody is accused" "$(named cap) $(value rank) $(value host)" "below_expected None None"
expect_ok "with what it costs" python3 -c "exit(not 20 < $(value cost_percent) < 35)"
expect_ok "and not because of communication" grep -q "iterations take .*% longer than before; time in communication did not grow" <(value title)
expect_ok "since then" grep -q "since 00:00:[12]" <(value evidence)
"$ringside" sim --offline -o "$tap_scratch/tree" --nodes 32 --gpus 1 -w loop --seed 3664 --jitter 2 --rate 20 --seconds 10s \
	-f slow-link:from=27,to=28,factor=3,at=4.46s >/dev/null
found tree >/dev/null
expect_ok "nobody says so of a link that was not found" grep -vq "did not grow" <(value title)
simulate calm "${size[@]}" -w fsdp --seed 3 --seconds 40s
expect_same "iterations that stay as long are not mentioned" "$(found calm)" ""

# ---- networks -------------------------------------------------------------------------------------
for workload in ddp fsdp moe; do
	simulate network "${size[@]}" -w "$workload" --seed 3 -f degraded-network:factor=2,at=7s
	expect_same "$workload: the network became slow" "$(found network)" "slow_network"
	expect_ok "$workload: with the start" grep -q "since 00:00:0" <(value evidence)
	simulate network "${size[@]}" -w "$workload" --seed 3 -f degraded-network:factor=2,at=3s,until=11s
	expect_same "$workload: the network was slow for a while" "$(found network)" "slow_network"
	expect_ok "$workload: with start and end" grep -q "between 00:00:0. and 00:00:1" <(value evidence)
done
# Of slowness that is over counts what the job lost altogether.
simulate network "${size[@]}" -w fsdp --seed 3 -f degraded-network:factor=2,at=3s,until=11s
expect_same "over, and it cost much: a warning" "$(named network)" "slow_network"
simulate network --nodes 4 --gpus 4 --seconds 120s -w fsdp --seed 3 -f degraded-network:factor=2,at=3s,until=11s
expect_same "the same in a longer job: a note" "$(found network) $(value severity)" "slow_network note"
simulate nvlink --nodes 3 --gpus 8 -w fsdp --seed 1036 --seconds 26.67s --rate 7.5 -f slow-nvlink:factor=8,at=8.08s,until=18.16s
expect_same "NVLink that was slow for a third of the time" "$(named nvlink)" "slow_nvlink"
simulate takes --nodes 4 -w fsdp --sizes 1GiB --network 12 --seed 86 -f slow-receiver:rank=16,factor=4,at=20s
expect_same "a slow receiver is no NVLink" "$(named takes)" "slow_link 15>16"
expect_ok "the receiver rather than the link" grep -q "the receiver is slow rather than the link" <(value evidence)
expect_ok "not as certain" python3 -c "exit(not $(value confidence) <= 0.85)"
simulate takes --nodes 4 -w fsdp --sizes 1GiB --network 12 --seed 87 -f slow-nvlink:node=2,factor=16,at=20s
expect_same "all receivers of a node: its NVLink" "$(named takes)" "slow_nvlink @node0002"
for workload in ddp fsdp tp-pp moe; do
	simulate network "${size[@]}" -w "$workload" --seed 3 -f degraded-network:factor=1.6
	expect_same "$workload: slow from the beginning is not visible in its own past" "$(named network)" ""
	expect_same "$workload: but compared with a baseline" \
		"$(found network --baseline "$tap_scratch/good-$workload.json")" "slow_network"
done

# ---- a part of the network, or less of it -----------------------------------------------------------
simulate good-loop --nodes 4 --gpus 4 --seconds 15s -w loop --seed 11
expect_ok "a baseline of the benchmark is saved" save good-loop
simulate channels --nodes 4 --gpus 4 --seconds 15s -w loop --seed 12 --channels 1
expect_same "fewer channels than in the baseline: neither the network nor NVLink" \
	"$(found channels --baseline "$tap_scratch/good-loop.json")" "slow_algorithm"
expect_ok "as the title says" grep -q "^NCCL uses 1 instead of 8 channels" <(value title)
uplink=()
for rank in 24 25 26 27 28 29 30 31; do uplink+=(-f "slow-link:from=$rank,to=$(((rank % 8 + 1) % 8)),factor=4,at=18s"); done
simulate uplink --nodes 4 --gpus 8 --seconds 60s -w fsdp --seed 1384 "${uplink[@]}"
expect_same "all ports of a node: not NVLink" "$(found uplink)" "slow_network @node0003"
expect_ok "the node is named" grep -q "sends from node0003 are slower" <(value title)
expect_ok "not as certain" python3 -c "exit(not $(value confidence) <= 0.9)"
rail=()
for node in 0 1 2 3; do rail+=(-f "slow-link:from=$((node * 8 + 2)),to=$(((node * 8 + 11) % 32)),factor=4,at=18s"); done
simulate rail --nodes 4 --gpus 8 --seconds 60s -w fsdp --seed 1385 "${rail[@]}"
expect_same "one port of every node: not NVLink" "$(found rail)" "slow_network"
expect_ok "the rail is named" grep -q "GPU 2 of all nodes (one rail)" <(value title)
simulate rail --nodes 8 --gpus 8 -w moe --seed 1664 --jitter 5 --seconds 20s -f slow-rail:rail=6,factor=8,at=9s
expect_same "the same by Sends and Recvs: not each rank of it, nor its peers" "$(named rail)" "slow_network"
expect_ok "but the rail" grep -q "GPU 6 of several nodes (one rail)" <(value title)
simulate rail --nodes 8 --gpus 8 -w tp-pp --seed 2502 --jitter 1 --seconds 60s -f slow-rail:rail=1,factor=4,at=21s
expect_same "and by pipelines, whose stages all have it in common" "$(named rail)" "slow_network"
simulate uplink --nodes 2 --gpus 8 -w moe --seed 7506 --jitter 2 --rate 3 --seconds 19.8s -f slow-uplink:node=0,what=receiving,factor=4,at=9s
expect_same "all that one of two nodes sends to the other is slow" "$(named uplink)" "slow_network @node0001"
expect_ok "which may be either" grep -q "transfers of node0001 and node0000" <(value title)
simulate few --nodes 2 --gpus 1 -w fsdp --seed 4 --seconds 40s -f degraded-network:factor=3,at=20s
expect_same "the network of two ranks" "$(found few)" "slow_network"
expect_ok "looks like a port or a process of one of them: less confident" python3 -c "exit(not $(value confidence) <= 0.8)"
expect_ok "as a caveat says" grep -q "the port or the CPU of one of them" <(value missing)

# ---- what it costs --------------------------------------------------------------------------------
simulate hidden "${size[@]}" -w fsdp --seed 3 -f degraded-network:factor=2,at=7s
expect_same "slower transfers that hide behind compute: no warning" "$(named hidden)" ""
expect_same "but a note" "$(value class) $(value severity)" "slow_network note"
expect_ok "whose title says so" grep -q "(costs less than 1% of the job's time)" <(value title)
simulate exposed --nodes 4 --gpus 4 -w loop --seconds 40s --seed 3 -f degraded-network:factor=4,at=20s
expect_same "the same in a job that waits for them" "$(named exposed)" "slow_network"
expect_ok "the cost is what iterations take longer" python3 - "$tap_scratch/exposed" "$ringside" "$(value cost_percent)" <<'PYTHON'
import json, subprocess, sys
def pace(*more):
    text = subprocess.check_output([sys.argv[2], "sim", "--offline", "--json", "--nodes", "4", "--gpus", "4", "-w", "loop",
        "--seconds", "20s", "--seed", "3", "-o", sys.argv[1] + "-pace", *more])
    job = json.loads(text)
    subprocess.run(["rm", "-r", sys.argv[1] + "-pace"])
    return job["duration_ns"] / job["iterations"]
cost = 100 * (1 - pace() / pace("-f", "degraded-network:factor=4"))
print("# costs %.1f%%, reported %s%%" % (cost, sys.argv[3]))
sys.exit(abs(cost - float(sys.argv[3])) > 2)
PYTHON

# ---- within nodes ---------------------------------------------------------------------------------
for workload in fsdp tp-pp; do
	simulate nvlink "${size[@]}" -w "$workload" --seed 3 -f slow-nvlink:factor=4
	expect_same "$workload: NVLink is slow, in all nodes" \
		"$(found nvlink --baseline "$tap_scratch/good-$workload.json")" "slow_nvlink"
	simulate nvlink "${size[@]}" -w "$workload" --seed 3 -f slow-nvlink:node=2,factor=4,at=7s
	expect_same "$workload: NVLink became slow in one node" "$(found nvlink)" "slow_nvlink @node0002"
done

for workload in ddp moe; do
	simulate nvlink "${size[@]}" -w "$workload" --seed 3 -f slow-nvlink:factor=4,at=7s
	expect_same "$workload: NVLink became slow, without a communicator within nodes" "$(found nvlink)" "slow_nvlink"
done
expect_ok "transfers are not on the network longer than before" grep -q "so the network is not the cause" <(value evidence)
simulate nvlink "${size[@]}" -w ddp --seed 3 -f slow-nvlink:node=3,factor=4,at=7s
expect_same "ddp: NVLink became slow in one node" "$(found nvlink)" "slow_nvlink @node0003"
expect_ok "without a communicator within nodes, a process short of CPU looks the same" python3 -c "exit(not $(value confidence) <= 0.9)"
simulate nvlink --nodes 8 --gpus 8 --seconds 40s -w ddp --seed 1 -f slow-nvlink:factor=4,at=20s
expect_same "ddp by a tree: NVLink became slow" "$(found nvlink)" "slow_nvlink"
# Half of NVLink's bandwidth is about that of the network, with four GPUs: both limit equally.
simulate nvlink "${size[@]}" -w fsdp --seed 3 -f slow-nvlink:factor=2,at=7s
expect_same "fsdp: NVLink became about as slow as the network" "$(found nvlink)" "slow_nvlink"
simulate nvlink "${size[@]}" -w fsdp --seed 3 -f degraded-network:factor=1.2,at=7s
expect_same "fsdp: the network became a little slower" "$(found nvlink)" "slow_network"
expect_ok "which looks like NVLink that became as slow as the network: low confidence" python3 -c "exit(not $(value confidence) < 0.8)"
expect_ok "and the title says so" grep -q "or NVLink" <(value title)
expect_ok "with a caveat" grep -q "NVLink slowed to about" <(value missing)
expect_ok "and NVLink is not ruled out" test -z "$(value evidence | grep "NVLink is not the cause")"
simulate network "${size[@]}" -w fsdp --seed 3 -f degraded-network:factor=1.5,at=7s
expect_same "fsdp: the network became clearly slower" "$(found network)" "slow_network"
expect_ok "and NVLink is ruled out" grep -q "NVLink is not the cause" <(value evidence)
simulate nvlink "${size[@]}" -w fsdp --seed 3 -f slow-link:from=1,to=2,factor=2,at=7s
expect_same "fsdp: one link within a node, which some rings use: not the network" "$(found nvlink)" "slow_nvlink"
for factor in 1.2 8; do
	simulate network --nodes 8 --gpus 8 --seconds 40s -w ddp --seed 1 -f "degraded-network:factor=$factor,at=20s"
	expect_same "ddp by a tree: the network became $factor times slower" "$(found network)" "slow_network"
done

# ---- too little data ------------------------------------------------------------------------------
simulate short "${size[@]}" -w fsdp --seed 3 -f slow-rank:rank=5,factor=1.3 --seconds 1s
expect_same "after one second no rank is named" "$(named short)" ""
expect_same "and a note says that speed was not judged" "$(value rule)" speed
expect_ok "with the number of collectives, and how many are needed" \
	grep -Eq "^not judged: speed \([0-9]+ collectives of world could be compared, 128 needed\)$" <(value title)

# ---- 13% slower than yesterday: why? --------------------------------------------------------------
simulate today "${size[@]}" -w fsdp --seed 4 -f degraded-network:factor=1.15
expect_same "13% less network bandwidth" "$(found today --baseline "$tap_scratch/good-fsdp.json")" "slow_network"
simulate today "${size[@]}" -w fsdp --seed 4 -f slow-rank:rank=9,factor=1.13
expect_same "a rank that computes 13% slower" \
	"$(named today --baseline "$tap_scratch/good-fsdp.json")" "slow_rank 9"

# ---- two jobs in one recording --------------------------------------------------------------------
mkdir "$tap_scratch/both"
simulate both/ill "${size[@]}" -w fsdp --seed 3 -f degraded-network:factor=1.6
simulate both/well "${size[@]}" -w fsdp --seed 5
expect_same "one of two jobs is slow" "$(named both --baseline "$tap_scratch/good-fsdp.json")" "slow_network"
expect_same "the right one" "$(value job)" "sim-3"

# ---- compared with data sheets --------------------------------------------------------------------
simulate peak "${size[@]}" -w fsdp --seed 3
expect_same "as fast as its links: no verdict" "$(named peak --peak nvlink=360,net=48)" ""
expect_same "links with twice the bandwidth" "$(named peak --peak net=100)" "below_expected"
simulate loop --nodes 1 --gpus 8 -w loop --seconds 3s
expect_same "compared with nccl-tests: small messages are slower, large ones are not" \
	"$(found loop --expected tests/foreign/data/nccl-tests-all-reduce.txt)" "slow_size"
expect_ok "as the title says" grep -q "larger ones are not" <(value title)
named peak --peak net=100 >/dev/null
expect_same "the reference is the peak" "$(value rule)" peak
tap_done
