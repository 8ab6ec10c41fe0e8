#!/usr/bin/env bash
# The JSON opens in speedscope in headless Chromium: it shows ranks and communicators, and slices have the durations of
# the operations.
. "$(dirname "$0")/viewer.sh"
. tests/html/html.sh
command -v node >/dev/null || tap_skip_all "node is not installed"
[ -n "$CHROMIUM" ] || tap_skip_all "there is no chromium-headless-shell (scripts/install-deps check)"
for package in speedscope playwright-core; do
	[ -d npm/node_modules/$package ] || tap_skip_all "$package is missing: run scripts/install-npm check"
done

make_job job --nodes 1 --gpus 4 -w fsdp --seconds 1s -f slow-rank:rank=2
expect_ok "the timeline is written" trace "$tap_scratch/job.json" "$tap_scratch/job"
if ! node tests/viewer/speedscope.mjs "$tap_scratch/job.json" ${PICTURE:+"$PICTURE"} >"$tap_scratch/seen" 2>"$tap_scratch/err"; then
	tap_line "not ok" "speedscope opens it" "$(tail -n 5 "$tap_scratch/seen" "$tap_scratch/err")"
	tap_done
fi
tap_line ok "speedscope opens it" ""
seen() { # expression over `seen`
	node -e '
		const seen = JSON.parse(require("fs").readFileSync(process.argv[1]));
		const slices = seen.rows.map((row) => /([\d.]+)(ns|\u00b5s|ms|s) \([\d.]+%\)\s+.*?(\w.*?) (\{.*\})$/s.exec(row))
			.filter(Boolean).map(([, total, unit, name, args]) => ({
				ns: total * { ns: 1, "\u00b5s": 1e3, ms: 1e6, s: 1e9 }[unit], name, args: JSON.parse(args) }));
		console.log(eval(process.argv[2]));
	' "$tap_scratch/seen" "$1"
}
expect_same "a profile is a communicator of a rank" "$(seen 'seen.title')" \
	"rank 0 node0000 (pid 1), world, rank 0 of 4 (tid 1) (1/4)"
expect_same "all ranks are shown" \
	"$(seen '[0, 1, 2, 3].filter((r) => seen.rows.some((row) => row.includes(`rank ${r} node0000`))).length')" 4
expect_same "slices are listed" "$(seen 'slices.length > 5')" true
expect_same "waiting is a slice" "$(seen 'slices.some((s) => s.name.includes("waiting") && s.args.waits_for === "rank 2")')" true
expect_same "slices have the durations of the operations" \
	"$(seen 'slices.filter((s) => { const ns = s.args.duration_ns ?? s.args.wait_ns; return Math.abs(s.ns - ns) > ns / 100; }).map((s) => s.name).join()')" ""
tap_done
