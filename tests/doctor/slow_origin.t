#!/usr/bin/env bash
# Lateness is followed to its origin through Sends, Recvs and communicators: the slow rank or host is named, and
# none of the ranks that wait for it.
. "$(dirname "$0")/slowness.sh"

slow() { # name workload nodes seed rank factor
	simulate "$1" --nodes "$3" --gpus 8 -w "$2" --seed "$4" --seconds 60s -f "slow-rank:rank=$5,factor=$6,at=20s"
}

# ---- experts: the whole group arrives late at the collectives of all ranks --------------------------
slow moe moe 1 111 4 1.15
expect_same "experts on one node" "$(named moe)" "slow_rank 4"
slow moe moe 4 416 3 1.6
expect_same "experts on two nodes: not the hosts of the group" "$(named moe)" "slow_rank 3"
expect_ok "by its time outside of communication" grep -q "outside of communication" <(value evidence)
simulate moe --nodes 4 --gpus 8 -w moe --seed 2650 --jitter 2 --seconds 29.71s --noise evaluation:every=8s,for=2s \
	-f slow-rank:rank=23,factor=3,at=11.05s,until=21.63s
expect_same "where evaluations hide the iterations, its cost is not that of single exchanges" "$(named moe)" "slow_rank 23"
slow moe moe 8 830 53 3
expect_same "eight nodes" "$(named moe)" "slow_rank 53"
slow moe moe 4 417 7 1.3
expect_same "a rank whose AllGather has no GPU times" "$(named moe)" "slow_rank 7"
simulate moe --nodes 16 --gpus 1 -w moe --seed 1194 --jitter 5 --seconds 60s -f slow-rank:rank=2,factor=1.6,at=27.71s
expect_same "experts of two ranks: not the other one" "$(named moe)" "slow_rank 2"

# ---- pipelines: other stages and pipelines wait ----------------------------------------------------
slow pipeline tp-pp 16 1611 16 1.15
expect_same "a rank of a pipeline: no other stage is named" "$(named pipeline)" "slow_rank 16"
slow pipeline tp-pp 16 1630 21 3
expect_same "three times slower" "$(named pipeline)" "slow_rank 21"
slow pipeline tp-pp 2 1268 1 3
expect_same "two stages" "$(named pipeline)" "slow_rank 1"
host=()
for rank in 16 17 18 19; do host+=(-f "slow-rank:rank=$rank,factor=1.3,at=20s"); done
simulate pipeline --nodes 8 --gpus 4 -w tp-pp --seed 7 --seconds 60s "${host[@]}"
expect_same "a whole host, of several pipelines" "$(named pipeline)" "slow_host @node0004"
host=()
for rank in 4 5 6 7; do host+=(-f "slow-rank:rank=$rank,factor=1.6"); done
simulate pipeline --nodes 4 --gpus 4 -w tp-pp --seed 7 --seconds 60s "${host[@]}"
expect_same "a whole stage from the start" "$(named pipeline)" "slow_host @node0001"
expect_ok "may have more work by design: less confident" python3 -c "exit(not $(value confidence) < 0.8)"
expect_ok "as a caveat says" grep -q "with more work would look the same" <(value missing)

# ---- held up inside the node, or by slow transfers -------------------------------------------------
simulate inside --nodes 3 --gpus 8 -w tp-pp --seed 1116 --jitter 2 --rate 3.75 --seconds 53.33s -f slow-link:from=1,to=2,factor=6.4,at=23.17s
expect_same "a slow link inside a node makes its ranks late: none of them is named" "$(named inside)" "slow_nvlink @node0000"
simulate starved --nodes 4 --gpus 2 -w tp-pp --seed 2446 --rate 3.75 --seconds 53.33s --noise checkpoint:every=10s,for=1s \
	-f starved:rank=1,factor=10,at=23.14s
expect_same "a starved rank, and not the one whose only peer it is" "$(named starved)" "slow_rank 1"
simulate starved --nodes 8 --gpus 8 -w tp-pp --seed 4732 --jitter 2 --seconds 60s -f starved:rank=22,factor=10,at=18.44s
expect_same "nor those whose links with it are slow, and others are not" "$(named starved)" "slow_rank 22"

# ---- without GPU times: the network side of Sends shows as much as it can --------------------------
blind() { # name, options of the simulator
	local name=$1

	shift
	"$ringside" sim --offline --times off -o "$tap_scratch/$name" "$@" >/dev/null
}

blind experts --nodes 4 --gpus 4 -w moe --seed 8 --seconds 20s -f slow-rank:rank=5,factor=1.3,at=8s
expect_same "Sends over the network show the rank" "$(named experts)" "slow_rank 5"
expect_ok "with less confidence than GPU times" python3 -c "exit(not $(value confidence) < 0.95)"
expect_ok "as evidence says" grep -q "There are no GPU times" <(value evidence)
blind two --nodes 2 --gpus 1 -w moe --seed 1094 --jitter 5 --rate 6 --seconds 33.33s -f slow-rank:rank=1,factor=1.6,at=13.17s
expect_same "two ranks that exchange data are no pipeline" "$(named two)" "slow_rank 1"
blind stages --nodes 4 --gpus 4 -w tp-pp --seed 8 --seconds 20s -f slow-rank:rank=5,factor=1.3,at=8s
expect_same "ranks that wait for each other inside a node look alike" "$(named stages)" "slow_host @node0001"
expect_ok "as the title says" grep -q "one or all ranks" <(value title)
expect_ok "and a caveat" grep -q "inside the node have no GPU times" <(value missing)
expect_ok "at low confidence" python3 -c "exit(not $(value confidence) < 0.7)"
blind blind --nodes 16 --gpus 8 -w tp-pp --seed 1260 --seconds 60s -f slow-rank:rank=38,factor=1.6,at=18s
expect_same "of several pipelines" "$(named blind)" "slow_host @node0004"
blind apart --nodes 3 --gpus 4 -w tp-pp --seed 2030 --jitter 2 --seconds 60s -f slow-rank:rank=9,factor=1.3,at=26.39s
expect_same "each rank of a node is late in another communicator: the node" "$(named apart)" "slow_host @node0002"
expect_ok "as one or all of its ranks" grep -q "one or all ranks" <(value title)
expect_ok "with less confidence" python3 -c "exit(not $(value confidence) < 0.7)"
blind stages --nodes 2 --gpus 8 -w tp-pp --seed 2710 --jitter 5 --seconds 60s
expect_same "stages that differ by design: nobody is named" "$(named stages)" ""

# Experts that get more tokens for a while are no stragglers.
simulate uneven --nodes 16 --gpus 4 -w moe --seed 3902 --jitter 1 --seconds 28.94s --noise loss:percent=1,for=5ms \
	--noise experts:percent=60 --noise tail:percent=1,for=20ms
expect_same "uneven experts: no host is named" "$(named uneven)" ""
blind uneven --nodes 8 --gpus 8 -w moe --seed 3252 --jitter 10 --release 2.27 --noise experts:percent=60 --rate 2 --seconds 10s
expect_same "nor a rank" "$(named uneven)" ""
simulate tokens --nodes 8 --gpus 2 -w moe --seed 5640 --jitter 2 --noise experts:percent=60 --seconds 60s
expect_same "an expert with more tokens all the time exchanges more, and is no straggler" "$(named tokens)" ""
blind tokens --nodes 8 --gpus 8 -w moe --seed 7588 --jitter 2 --noise thermal:percent=2,every=5s --noise experts:percent=20 \
	--noise loader:every=10s,for=300ms --seconds 20s
expect_same "nor without GPU times" "$(named tokens)" ""

# ---- and nobody in healthy jobs --------------------------------------------------------------------
for workload in moe tp-pp; do
	simulate healthy --nodes 8 --gpus 8 -w "$workload" --seed 21 --seconds 60s --jitter 10
	expect_same "$workload: healthy, with much variation" "$(named healthy)" ""
done
tap_done
