#!/usr/bin/env bash
# Real Prometheus and node-exporter, two agents, a job of sixteen ranks on two nodes with the real plugin, and four small jobs with
# other faults. The rules detect the faults, and every panel has data.
#
#	seconds   the job "train": tensor groups on NVLink, data groups over the network
#	 0 -  8   is healthy
#	 8 - 18   rank 5 computes more slowly
#	18 - 26   is healthy
#	26 - 38   the network has 13% less bandwidth
#	38 - 42   is healthy
#	42 -      rank 11 does not arrive
. "$(dirname "$0")/../tap.sh"
. tests/deploy/story.sh

story_needs
trap story_end EXIT
read -r agent0 agent1 exporter0 exporter1 prometheus <<<"$(story_ports 5)"
shm=$tap_scratch/shm
mkdir -p "$shm" "$tap_scratch"/{node0,node1,text0,text1}
story_rules "$tap_scratch/rules"
cat >"$tap_scratch/prometheus.yml" <<END
global:
  scrape_interval: 1s
  scrape_timeout: 1s
  evaluation_interval: 1s
rule_files: [$tap_scratch/rules/*.yml]
scrape_configs:
  - job_name: ringside
    static_configs:
      - targets: [127.0.0.1:$agent0]
        labels: {node: node0}
      - targets: [127.0.0.1:$agent1]
        labels: {node: node1}
      # A node in two partitions, listed once for each: it must count once.
      - targets: [127.0.0.1:$agent1]
        labels: {node: node1, partition: debug}
    metric_relabel_configs: # one host simulates both
      - source_labels: [host, node]
        regex: .+;(.+)
        target_label: host
  # The same through textfiles, as jobs with other names.
  - job_name: node
    static_configs:
      - targets: [127.0.0.1:$exporter0]
        labels: {node: node0}
      - targets: [127.0.0.1:$exporter1]
        labels: {node: node1}
    metric_relabel_configs:
      - source_labels: [host, node]
        regex: .+;(.+)
        target_label: host
      - source_labels: [nccl_job]
        regex: (.+)
        replacement: \${1}-by-file
        target_label: nccl_job
END

for node in 0 1; do
	agent=agent$node
	exporter=exporter$node
	story_start "$agent" "$BUILD/ringside-agent" --listen "127.0.0.1:${!agent}" --directory "$tap_scratch/node$node" \
		--textfile "$tap_scratch/text$node" --interval 1s --hang 10s
	story_start "$exporter" prometheus-node-exporter --web.listen-address="127.0.0.1:${!exporter}" --collector.disable-defaults \
		--collector.textfile --collector.textfile.directory="$tap_scratch/text$node"
done
story_start prometheus prometheus --config.file="$tap_scratch/prometheus.yml" --storage.tsdb.path="$tap_scratch/data" \
	--web.listen-address="127.0.0.1:$prometheus" --enable-feature=native-histograms --log.level=warn
# Start the jobs after all of these are up: their first seconds are checked, too.
are_up() {
	curl -sf "http://127.0.0.1:$prometheus/api/v1/query?query=up==1" | grep -o '"__name__":"up"' | grep -c . | grep -qx 5
}
until_ok are_up

export RINGSIDE_SHM=$shm
unset RANK WORLD_SIZE LOCAL_RANK SLURM_JOB_ID SLURM_JOBID SLURM_PROCID TORCHELASTIC_RUN_ID
play() { # job option...
	local job=$1
	shift
	story_start "$job" env RINGSIDE_JOB="$job" SLURM_JOB_USER=ada SLURM_JOB_ACCOUNT=vision RINGSIDE_LABELS=team=vit "$BUILD/ringside" sim --kernel --plugin "$BUILD/libnccl-profiler-ringside.so" --seconds 900s \
		-m trace -o "$tap_scratch/traces/$job" "$@"
}
# The first job and the pipelines also write the metrics of NCCL Inspector.
inspect() { # job option...
	NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_PROM_DUMP=1 NCCL_INSPECTOR_DUMP_DIR=$tap_scratch/text0 \
		NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=1000000 play "$@"
}
inspect train --nodes 2 --gpus 8 -w tp-pp --pp 1 --nvlink 4 --network 1 -f slow-rank:rank=5,factor=2,at=8s,until=18s \
	-f degraded-network:factor=1.15,at=26s,until=38s -f never-arrives:rank=11,at=42s
inspect pipeline --nodes 1 --gpus 2 -w tp-pp --tp 1 --pp 2 --rate 2 -f never-arrives:rank=0,comm=pp,at=10s
inspect killed --nodes 2 --gpus 1 -w tp-pp --tp 1 --pp 2 --rate 2 -f kill:rank=1,at=10s
play stuck --nodes 2 --gpus 1 --rate 2 -f stuck-send:rank=1,at=10s
play mismatch --nodes 2 --gpus 1 --rate 2 -f mismatch:rank=1,what=function,at=10s
are_linked() {
	story_link_regions "$shm" "$tap_scratch/node"
	regions=("$tap_scratch"/node?/*.region)
	[ "${#regions[@]}" -ge 24 ]
}
until_ok are_linked
node tests/deploy/prometheus_story.mjs "http://127.0.0.1:$prometheus" "$tap_scratch" "$BUILD/ringside"
