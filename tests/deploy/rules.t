#!/usr/bin/env bash
# The alert rules fire when they should and not when something only looks alike: stories told to promtool.
. "$(dirname "$0")/../tap.sh"

for tool in promtool python3; do
	command -v "$tool" >/dev/null || tap_skip_all "$tool is not here: run scripts/install-deps check"
done

expect_ok "the rules are valid" promtool check rules deploy/prometheus/rules/*.yml

python3 tests/deploy/rule_stories.py "$tap_scratch" >"$tap_scratch/list" || exit 1
# Several at a time; the answers are read in order below.
cut -d ' ' -f 1 "$tap_scratch/list" | (cd "$tap_scratch" && xargs -P "$(nproc)" -I '{}' \
	sh -c 'promtool test rules {}.yml >{}.said 2>&1; echo $? >{}.code')
answer() { # name
	cat "$tap_scratch/$1.said"
	return "$(cat "$tap_scratch/$1.code")"
}
while read -r name sentence; do
	expect_ok "$sentence" answer "$name"
done <"$tap_scratch/list"
expect_ok "there are stories" test -s "$tap_scratch/list"

# The stories can fail.
sed 's/"comm": *"aa"/"comm": "ab"/; s/global_rank=\\"2\\"/global_rank=\\"3\\"/' "$tap_scratch/rank_missing.yml" >"$tap_scratch/wrong.yml"
expect_complaint "another rank than the one named is noticed" 'FAILED' promtool test rules "$tap_scratch/wrong.yml"

# Each alert has a page, each page an alert, and the address in the rule is that page.
mapfile -t alerts < <(sed -n 's/^ *- alert: //p' deploy/prometheus/rules/*.yml | sort -u)
expect_same "alerts and pages are the same" "$(printf '%s.md\n' "${alerts[@]}")" "$(cd docs/runbooks && ls -I 'Hang*')"
expect_same "alerts lead to their pages" \
	"$(awk '/- alert:/ { alert = $3 } /runbook_url:/ { print alert, $2 }' deploy/prometheus/rules/*.yml | sort -u)" \
	"$(for alert in "${alerts[@]}"; do echo "$alert file:///usr/share/doc/ringside/runbooks/$alert.md"; done)"
for alert in "${alerts[@]}"; do
	grep -q "(runbooks/$alert.md)" docs/PROMETHEUS.md || missing+=" $alert"
done
expect_same "docs/PROMETHEUS.md lists them" "${missing:-}" ""
expect_same "each is told by a story, with its words" \
	"$(cat "$tap_scratch"/*.yml | grep -o '"alertname": "[A-Za-z]*", "exp_alerts"' | cut -d '"' -f 4 | sort -u)" "$(printf '%s\n' "${alerts[@]}")"
expect_same "an expression is never an alias: Prometheus would read its name as a metric" \
	"$(grep -nE '^ *expr: *[*&]' deploy/prometheus/rules/*.yml)" ""

for config in deploy/prometheus/prometheus*.yml; do
	# Debian's Prometheus is built without Kubernetes: there, all but that part is checked.
	sed '/kubernetes_sd_configs:/,/label:/c\    static_configs: [{targets: ["127.0.0.1:9749"]}]' "$config" >"$tap_scratch/config"
	expect_ok "$(basename "$config") is a configuration" promtool check config --syntax-only "$tap_scratch/config"
done

# Slurm's nodes become targets.
mkdir "$tap_scratch/bin"
cat >"$tap_scratch/bin/sinfo" <<'END'
#!/bin/sh
printf 'gpu-1 train\ngpu-2 train\ngpu-2 debug\ngpu-1 train\n'
END
chmod +x "$tap_scratch/bin/sinfo"
expect_ok "slurm-targets writes a file" env PATH="$tap_scratch/bin:$PATH" deploy/prometheus/slurm-targets "$tap_scratch/slurm.json"
expect_same "with each node and partition once" \
	"$(python3 -c 'import json, sys
for group in json.load(open(sys.argv[1])): print(group["targets"], group["labels"])' "$tap_scratch/slurm.json")" \
	"['gpu-1:9749'] {'partition': 'train'}
['gpu-2:9749'] {'partition': 'debug'}
['gpu-2:9749'] {'partition': 'train'}"
expect_same "and leaves nothing else behind" "$(cd "$tap_scratch" && ls -d slurm*)" slurm.json
tap_done
