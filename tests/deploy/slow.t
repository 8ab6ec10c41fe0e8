#!/usr/bin/env bash
# Alerts about slowness, live: a real Prometheus scrapes three agents, each with a job that has a slow rank, a slow link or a slow
# NVLink. Agents judge every 10 s and report what two judgements in a row found; the rules pass it on.
. "$(dirname "$0")/../tap.sh"
. tests/deploy/story.sh

story_needs
trap story_end EXIT
read -r rank link nvlink prometheus <<<"$(story_ports 4)"
story_rules "$tap_scratch/rules"
sed -i 's/for: [34]s/for: 1s/' "$tap_scratch"/rules/*.yml
cat >"$tap_scratch/prometheus.yml" <<END
global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }
rule_files: [$tap_scratch/rules/*.yml]
scrape_configs:
  - job_name: ringside
    static_configs: [{ targets: [127.0.0.1:$rank, 127.0.0.1:$link, 127.0.0.1:$nvlink] }]
END
unset RANK WORLD_SIZE LOCAL_RANK SLURM_JOB_ID SLURM_JOBID SLURM_PROCID TORCHELASTIC_RUN_ID
play() { # job option...
	local job=$1
	shift
	mkdir "$tap_scratch/$job"
	story_start "$job-agent" "$BUILD/ringside-agent" --listen "127.0.0.1:${!job}" --directory "$tap_scratch/$job"
	story_start "$job" env RINGSIDE_JOB="$job" RINGSIDE_SHM="$tap_scratch/$job" RINGSIDE_BUFFER=2MiB "$BUILD/ringside" sim --kernel --seconds 600s "$@"
}
story_start prometheus prometheus --config.file="$tap_scratch/prometheus.yml" --storage.tsdb.path="$tap_scratch/data" \
	--web.listen-address="127.0.0.1:$prometheus" --log.level=warn
play rank --nodes 2 --gpus 2 -w fsdp -f slow-rank:rank=2,factor=2
play link --nodes 4 --gpus 1 -w ddp --network 2 -f slow-link:from=1,to=2,factor=8
play nvlink --nodes 1 --gpus 4 -w ddp --nvlink 2 -f slow-nvlink:factor=3,at=5s

# The labels of an alert that fires, in this order.
firing() { # alert label...
	curl -sf -G "http://127.0.0.1:$prometheus/api/v1/query" --data-urlencode "query=ALERTS{alertstate=\"firing\", alertname=\"$1\"}" |
		perl -MJSON::PP -e 'my ($alert, @labels) = @ARGV;
			print join(" ", map { $_ // "none" } @{$_->{metric}}{@labels}), "\n" for @{decode_json(join "", <STDIN>)->{data}{result}}' "$@"
}
fires() { # wanted alert label...
	local wanted=$1
	shift
	firing "$@" | grep -qxF "$wanted"
}
expect_ok "a slow rank is an alert, by name" until_ok fires "rank 2" NcclSlowRank nccl_job global_rank
expect_ok "a slow link is one, with both ends" until_ok fires "link 1 2" NcclSlowLink nccl_job global_rank peer_global_rank
expect_ok "a slow NVLink is one" until_ok fires "nvlink" NcclSlowNvlink nccl_job
firing NcclSlowRank nccl_job global_rank class | sed 's/^/# /'
# The annotation as a notification has it.
annotation() { # alert name
	curl -sf "http://127.0.0.1:$prometheus/api/v1/alerts" | perl -MJSON::PP -e 'my ($alert, $name) = @ARGV;
		print map { "$_->{annotations}{$name}\n" } grep { $_->{labels}{alertname} eq $alert } @{decode_json(join "", <STDIN>)->{data}{alerts}}' "$@"
}
# While a scrape fails, its agent has no links.
has_runbook() { [ "$(curl -sf "$(annotation NcclSlowLink runbook_url | head -n 1)")" = "$(cat docs/runbooks/NcclSlowLink.md)" ]; }
has_node() { [ "$(annotation NcclSlowLink node_url | head -n 1)" = "http://127.0.0.1:$link/" ]; }
expect_ok "its runbook can be opened" until_ok has_runbook
expect_ok "the link to its node is the agent's page" until_ok has_node
tap_done
