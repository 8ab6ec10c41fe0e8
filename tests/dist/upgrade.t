#!/usr/bin/env bash
# Upgrading while jobs run: regions written by older plugins, as they wrote them. tests/long/upgrade.t has old and new
# programs running together, in both directions.
. "$(dirname "$0")/../tap.sh"
ringside=$BUILD/ringside
export LC_ALL=C

field() { # expression file
	python3 -c 'import json, sys; of = json.load(open(sys.argv[2])); print(eval(sys.argv[1]))' "$1" "$2"
}
for minor in 0 1 2 3; do
	# 1.3 is that of 0.2.0.
	[ $minor = 3 ] && version=0.2.0 || version=0.1.0
	region=$tap_scratch/1.$minor.region
	gunzip <"tests/golden/region-1.$minor.gz" >"$region"
	expect_same "region 1.$minor says its version" "$(od -An -tu2 -j 8 -N 4 "$region" | tr -s ' ')" " 1 $minor"
	"$ringside" verify --json "$region" >"$tap_scratch/verify"
	expect_same "of 20 operations nothing is missing" "$? $(field '[of["is_complete"]] + [of["processes"][0][key] for key in ("rank", "issued", "recorded", "readable", "missing", "mode")]' \
		"$tap_scratch/verify")" "0 [True, 3, 20, 20, 20, 0, 'flight']"
	expect_same "all can be read" "$("$ringside" dump "$region" | grep -c '"record":"operation"')" 20
	"$ringside" ls --json "$region" >"$tap_scratch/ls"
	expect_same "the process has its names" "$(field '[of["processes"][0][key] for key in ("job", "rank", "host", "interface", "version")]' "$tap_scratch/ls")" \
		"['old', 3, 'node1', 5, '$version']"
	expect_ok "it can be reported" "$ringside" report "$region"
	expect_complaint "the doctor does not take a killed process of an old recorder for healthy" 'could not tell|not judged' \
		"$ringside" doctor "$region"
done
tap_done
