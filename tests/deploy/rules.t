#!/usr/bin/env bash
# The alert rules fire when they should, and only then: scenarios for promtool.
. "$(dirname "$0")/../tap.sh"

for tool in promtool python3; do
	command -v "$tool" >/dev/null || tap_skip_all "$tool is not installed: run scripts/install-deps check"
done

expect_ok "the rules are valid" promtool check rules deploy/prometheus/rules/*.yml

python3 tests/deploy/rule_stories.py "$tap_scratch" >"$tap_scratch/list" || exit 1
# Several at a time, in few processes that seldom collect garbage. Results are read in order below.
sed 's/ .*/.yml/' "$tap_scratch/list" | (cd "$tap_scratch" && GOMAXPROCS=1 GOGC=2000 xargs -P "$(nproc)" -n 9 sh -c 'promtool test rules "$@" >"said.$1" 2>&1' sh)
answer() { # name
	cat "$tap_scratch"/said.* | awk -v wanted="$1.yml" '/^Unit Testing: / { is_it = $3 == wanted } is_it' >"$tap_scratch/answer"
	cat "$tap_scratch/answer"
	grep -q '^  SUCCESS$' "$tap_scratch/answer" && ! grep -q FAILED "$tap_scratch/answer"
}
while read -r name sentence; do
	expect_ok "$sentence" answer "$name"
done <"$tap_scratch/list"
expect_ok "there are scenarios" test -s "$tap_scratch/list"

# The scenarios can fail.
sed 's/"comm": *"aa"/"comm": "ab"/; s/global_rank=\\"2\\"/global_rank=\\"3\\"/' "$tap_scratch/rank_missing.yml" >"$tap_scratch/wrong.yml"
expect_complaint "a wrong rank is detected" 'FAILED' promtool test rules "$tap_scratch/wrong.yml"

# Each alert has a runbook, each runbook an alert, and the rule links to it.
mapfile -t alerts < <(sed -n 's/^ *- alert: //p' deploy/prometheus/rules/*.yml | sort -u)
expect_same "every alert has a runbook and vice versa" "$(printf '%s.md\n' "${alerts[@]}")" "$(cd docs/runbooks && ls -I 'Hang*')"
expect_same "alerts link to their runbooks" \
	"$(awk '/- alert:/ { alert = $3 } match($0, /}\/[A-Za-z]+\.md/) { print alert, substr($0, RSTART + 2, RLENGTH - 2) }' \
		deploy/prometheus/rules/*.yml | sort -u)" \
	"$(for alert in "${alerts[@]}"; do echo "$alert $alert.md"; done)"
for alert in "${alerts[@]}"; do
	grep -q "(runbooks/$alert.md)" docs/PROMETHEUS.md || missing+=" $alert"
done
expect_same "docs/PROMETHEUS.md lists all alerts" "${missing:-}" ""
expect_same "each alert has a scenario that checks its text" \
	"$(cat "$tap_scratch"/*.yml | grep -o '"alertname": "[A-Za-z]*", "exp_alerts"' | cut -d '"' -f 4 | sort -u)" "$(printf '%s\n' "${alerts[@]}")"
expect_same "no expression is a YAML alias: Prometheus would read its name as a metric" \
	"$(grep -nE '^ *expr: *[*&]' deploy/prometheus/rules/*.yml)" ""

# As it is delivered: runbooks of an agent that is up; else no link.
cat >"$tap_scratch/links.yml" <<END
rule_files: [$PWD/deploy/prometheus/rules/ringside-links.rules.yml]
tests:
  - interval: 15s
    input_series:
      - { series: 'up{job="ringside", instance="n1:9749"}', values: '0x10 _x10' }
      - { series: 'up{job="ringside", instance="n2:9749"}', values: '1x10 0x10' }
    promql_expr_test:
      - expr: ringside:links:info
        eval_time: 60s
        exp_samples: [{ labels: 'ringside:links:info{agent_scheme="http", runbooks="http://n2:9749/runbooks"}', value: 1 }]
      - expr: ringside:links:info
        eval_time: 240s
        exp_samples: [{ labels: 'ringside:links:info{agent_scheme="http"}', value: 1 }]
END
expect_ok "runbooks are those of an agent unless another address is set" promtool test rules "$tap_scratch/links.yml"

for config in deploy/prometheus/prometheus*.yml; do
	# Debian's Prometheus is built without Kubernetes: check everything except that part.
	sed '/kubernetes_sd_configs:/,/label:/c\    static_configs: [{targets: ["127.0.0.1:9749"]}]' "$config" >"$tap_scratch/config"
	expect_ok "$(basename "$config") is valid" promtool check config --syntax-only "$tap_scratch/config"
done

# Nodes of Slurm become targets.
mkdir "$tap_scratch/bin"
cat >"$tap_scratch/bin/sinfo" <<'END'
#!/bin/sh
printf 'gpu-1 train\ngpu-2 train\ngpu-2 debug\ngpu-1 train\n'
END
chmod +x "$tap_scratch/bin/sinfo"
expect_ok "slurm-targets writes a file" env PATH="$tap_scratch/bin:$PATH" deploy/prometheus/slurm-targets "$tap_scratch/slurm.json"
expect_same "each node once, with all its partitions" \
	"$(python3 -c 'import json, sys
for group in json.load(open(sys.argv[1])): print(group["targets"], group["labels"])' "$tap_scratch/slurm.json")" \
	"['gpu-1:9749'] {'partitions': 'train'}
['gpu-2:9749'] {'partitions': 'debug,train'}"
expect_same "and leaves no temporary files" "$(cd "$tap_scratch" && ls -d slurm*)" slurm.json
tap_done
