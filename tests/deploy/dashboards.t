#!/usr/bin/env bash
# The dashboards are up to date, Grafana's own types accept them, and their queries ask for what exists.
. "$(dirname "$0")/../tap.sh"

command -v node >/dev/null || tap_skip_all "node is not here"
for package in @grafana/schema @prometheus-io/lezer-promql typescript; do
	[ -d "npm/node_modules/$package" ] || tap_skip_all "npm/node_modules/$package is not here: run scripts/install-npm check"
done
dashboards=deploy/grafana/dashboards

expect_ok "dashboards can be made" node deploy/grafana/make-dashboards.mjs "$tap_scratch/made"
expect_ok "what lies in $dashboards is what is made: node deploy/grafana/make-dashboards.mjs" diff -r "$tap_scratch/made" "$dashboards"

types() { # dashboard...
	rm -rf "$tap_scratch/types"
	mkdir "$tap_scratch/types"
	node tests/deploy/dashboard_types.mjs "$tap_scratch/types" "$@"
}
expect_ok "Grafana's types accept them" types "$dashboards"/*.json
sed 's/"drawStyle": "line"/"drawStyle": "lines"/' "$dashboards/ringside-job.json" >"$tap_scratch/wrong.json"
expect_complaint "a setting that no panel has is found" 'drawStyle|"lines"' types "$tap_scratch/wrong.json"
sed 's/"gridPos"/"gridPlace"/' "$dashboards/ringside-job.json" >"$tap_scratch/wrong.json"
expect_complaint "a misspelt field is found" 'gridPlace' types "$tap_scratch/wrong.json"

expect_same "uids are the files' names: they stay when a title changes" \
	"$(for file in "$dashboards"/*.json; do sed -n '2s/.*"uid": "\(.*\)".*/\1.json/p' "$file"; done)" "$(cd "$dashboards" && ls -- *.json)"
expect_same "nothing has to be filled in" "$(grep -nE '__inputs|DS_|your_|example\.com' "$dashboards"/*.json)" ""
expect_same "every data source is the one that is chosen" \
	"$(grep -h -A2 '"datasource": {' "$dashboards"/*.json | sed -n 's/.*"uid": //p' | sort -u)" '"${datasource}"'
expect_same "selections allow several and all" "$(grep -nE '\{[^}]*[a-z]=\\"\$' "$dashboards"/*.json)" ""
expect_ok "the queries are PromQL over series that exist" node tests/deploy/dashboard_queries.mjs
tap_done
