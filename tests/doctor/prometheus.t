#!/usr/bin/env bash
# The doctor through a real Prometheus: two agents, each with the regions of its own node, and a job under the real plugin for each
# fault, all at once. One agent is scraped twice. The verdicts must be right, and the same as those from the regions themselves. At
# the end, the other agent is killed.
. "$(dirname "$0")/../tap.sh"
. tests/deploy/story.sh

story_needs
[ -x "$BUILD/ringside-fetch" ] || tap_skip_all "ringside-fetch was not built: run scripts/install-deps build"
trap story_end EXIT
read -r agent0 agent1 prometheus <<<"$(story_ports 3)"
regions=$tap_scratch/regions
mkdir -p "$regions"/node000{0,1}
cat >"$tap_scratch/prometheus.yml" <<END
global: {scrape_interval: 2s, scrape_timeout: 2s} # a busy machine is no dead agent
scrape_configs:
  - job_name: ringside
    static_configs:
      - targets: [127.0.0.1:$agent0]
        labels: {node: node0}
      # A node in two partitions, listed once for each: everything about it is there twice.
      - targets: [127.0.0.1:$agent0]
        labels: {node: node0, partition: debug}
      - targets: [127.0.0.1:$agent1]
        labels: {node: node1}
    metric_relabel_configs: # one machine plays both
      - source_labels: [host, node]
        regex: .+;(.+)
        target_label: host
END
for node in 0 1; do
	agent=agent$node
	story_start "$agent" "$BUILD/ringside-agent" --listen "127.0.0.1:${!agent}" --directory "$regions/node000$node" --interval 1s
done
agent1_pid=${story_pids[1]}
story_start prometheus prometheus --config.file="$tap_scratch/prometheus.yml" --storage.tsdb.path="$tap_scratch/data" \
	--web.listen-address="127.0.0.1:$prometheus" --log.level=warn

unset RANK WORLD_SIZE LOCAL_RANK SLURM_JOB_ID SLURM_JOBID SLURM_PROCID TORCHELASTIC_RUN_ID
play() { # job option...
	local job=$1
	shift
	story_start "$job" env RINGSIDE_JOB="$job" "$BUILD/ringside" sim --kernel --plugin "$BUILD/libnccl-profiler-ringside.so" --seconds 600s \
		-m flight --node-regions "$regions" --nodes 2 --gpus 2 --rate 2 "$@"
}
play missing -f never-arrives:rank=1,at=4s
play sending -f stuck-send:rank=1,at=4s
play count -f mismatch:rank=1,what=count,at=4s
play function -f mismatch:rank=2,what=function,at=4s
play root -f mismatch:rank=3,what=root # the weights, at the very beginning
play datatype -f mismatch:rank=2,what=datatype,at=4s
play killed -f kill:rank=3,at=4s
play stopped -f stop:rank=2,at=4s
play circle -w tp-pp --pp 1 -f deadlock:rank=0,peer=1,at=4s
play order -w fsdp -f mismatch:rank=1,what=order,at=4s
play starting -f gpu-stuck:rank=2,at=4s
play launching -f gpu-stuck:rank=1,what=not-launched,at=4s
play unseen -f never-arrives:rank=3,at=4s
play late --nvlink 4 --network 2 -f slow-rank:rank=2,factor=2
play link --gpus 4 --rate 1 -w fsdp --sizes 16MiB -f slow-link:from=3,to=4,factor=32
# Repeatedly: on a busy machine the first attempt may be over before it is scraped.
network=()
for at in 25 105 185 265 345; do
	network+=(-f "degraded-network:factor=2,at=${at}s,until=$((at + 40))s")
done
play network -w tp-pp --pp 1 --nvlink 4 --network 1 "${network[@]}"
play healthy --jitter 10
node tests/doctor/prometheus_cases.mjs "http://127.0.0.1:$prometheus" "$BUILD/ringside" "$regions" "$agent1_pid" "127.0.0.1:$agent1"
