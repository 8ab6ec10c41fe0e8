#!/usr/bin/env bash
# The dashboards are up to date and match Grafana's types, and their queries use existing series.
. "$(dirname "$0")/../tap.sh"

command -v node >/dev/null || tap_skip_all "node is not installed"
for package in @grafana/schema @prometheus-io/lezer-promql typescript; do
	[ -d "npm/node_modules/$package" ] || tap_skip_all "npm/node_modules/$package is not installed: run scripts/install-npm check"
done
dashboards=deploy/grafana/dashboards

expect_ok "dashboards can be generated" node deploy/grafana/make-dashboards.mjs "$tap_scratch/made"
expect_ok "$dashboards is up to date (else run node deploy/grafana/make-dashboards.mjs)" diff -r "$tap_scratch/made" "$dashboards"

# Two with mistakes among them: compiling takes seconds.
sed 's/"drawStyle": "line"/"drawStyle": "lines"/' "$dashboards/ringside-job.json" >"$tap_scratch/setting.json"
sed 's/"gridPos"/"gridPlace"/' "$dashboards/ringside-job.json" >"$tap_scratch/field.json"
mkdir "$tap_scratch/types"
said=$(node tests/deploy/dashboard_types.mjs "$tap_scratch/types" "$dashboards"/*.json "$tap_scratch"/{setting,field}.json 2>&1)
matches() { # dashboard
	! grep -F -- "$1" <<<"$said"
}
expect_same "Grafana's types accept them" "$(grep -vF -e "$tap_scratch/setting.json" -e "$tap_scratch/field.json" <<<"$said" | grep -v '^ ')" ""
expect_complaint "an unknown setting is detected" 'drawStyle|"lines"' matches "$tap_scratch/setting.json"
expect_complaint "a misspelled field is detected" 'gridPlace' matches "$tap_scratch/field.json"

expect_same "uids equal the file names and do not depend on titles" \
	"$(for file in "$dashboards"/*.json; do sed -n '2s/.*"uid": "\(.*\)".*/\1.json/p' "$file"; done)" "$(cd "$dashboards" && ls -- *.json)"
expect_same "no placeholders" "$(grep -nE '__inputs|DS_|your_|example\.com' "$dashboards"/*.json)" ""
expect_same "every panel uses the selected data source" \
	"$(grep -h -A2 '"datasource": {' "$dashboards"/*.json | sed -n 's/.*"uid": //p' | sort -u)" '"${datasource}"'
expect_same "selectors allow multiple values and All" "$(grep -nE '\{[^}]*[a-z]=\\"\$' "$dashboards"/*.json)" ""
expect_ok "the queries are valid PromQL over existing series" node tests/deploy/dashboard_queries.mjs
tap_done
