#!/usr/bin/env bash
. "$(dirname "$0")/cli.sh"
make_samples

expect_output "nothing is missing" verify-traces "$ringside" verify "$tap_scratch/traces"
expect_output "operations were lost" verify-lossy "$ringside" verify "$tap_scratch/lossy"
expect_output "a trace that was not closed" verify-open "$ringside" verify "$tap_scratch/open"
expect_output "a region with operations in flight" verify-stuck "$ringside" verify "$tap_scratch/stuck"
expect_output "kernel events were off" verify-ended "$ringside" verify "$tap_scratch/ended"
expect_output "--strict: remarks are trouble" verify-strict "$ringside" verify --strict "$tap_scratch/traces"
cp "$tap_scratch"/traces/r0-* "$tap_scratch/damaged.ringside"
printf XXXX | dd of="$tap_scratch/damaged.ringside" bs=1 seek=700 conv=notrunc status=none
expect_output "a damaged block" verify-damaged "$ringside" verify "$tap_scratch/damaged.ringside"
expect_output "nothing there" verify-nowhere "$ringside" verify "$tap_scratch/nowhere" @999999999
alone "nothing recorded" verify-nothing env RINGSIDE_SHM="$tap_scratch/none" "$ringside" verify

# A file truncated anywhere is readable up to that point, and verify reports it.
whole=$(stat -c %s "$tap_scratch"/traces/r0-*)
wrong=""
for ((at = 0; at < whole; at += 37)); do
	head -c "$at" "$tap_scratch"/traces/r0-* >"$tap_scratch/cut.ringside"
	"$ringside" verify "$tap_scratch/cut.ringside" >"$tap_scratch/out" 2>"$tap_scratch/err"
	case $? in
	1) grep -q '^trouble: ' "$tap_scratch/out" && [ ! -s "$tap_scratch/err" ] || wrong="$wrong $at" ;;
	# Without a complete header there is nothing to verify.
	3) [ ! -s "$tap_scratch/out" ] && [ "$(wc -l <"$tap_scratch/err")" -eq 1 ] && [ "$at" -lt 64 ] || wrong="$wrong $at" ;;
	*) wrong="$wrong $at" ;;
	esac
done
expect_same "a file truncated anywhere is trouble" "$wrong" ""

# Without its closing record the last counters are older than the last operations: the report reads them, so they are not missing.
"$ringside" sim --offline --kernel -o "$tap_scratch/long" --nodes 1 --gpus 2 -w fsdp --seconds 40s >/dev/null || exit 1
head -c -1 "$tap_scratch"/long/r0-* >"$tap_scratch/cut.ringside"
"$ringside" verify --json "$tap_scratch/cut.ringside" >"$tap_scratch/json"
expect_same "operations after the last counters are not missing" \
	"$(json_says '$_ = $_->{processes}[0]; ($_->{readable} > $_->{issued} ? "more" : "fewer") . ", missing $_->{missing}"' "$tap_scratch/json")" "more, missing 0"
expect_same "the report read as many" "$("$ringside" report --json "$tap_scratch/cut.ringside" | json_says '$_->{completeness}{read}')" \
	"$(json_says '$_->{processes}[0]{readable}' "$tap_scratch/json")"

"$ringside" verify --json "$tap_scratch/lossy" >"$tap_scratch/json"
expect_same "--json: the trouble" "$(json_says '$_->{trouble}' "$tap_scratch/json")" \
	"rank 0 (pid 999999990 on nodea, job 77): 12 operations were lost: more communicators existed than the region has room for"
expect_same "calls that NCCL did not show are missing" "$("$ringside" verify "$tap_scratch/gap" | grep '^trouble')" \
	"trouble: rank 0 (pid 999999990 on nodea, job 77): 3 operations were lost: not reported by NCCL: something else switched profiler events off for a while"
"$ringside" report "$tap_scratch/gap" >"$tap_scratch/report"
expect_ok "the report counts them by reason" grep -q 'not reported by NCCL: 3' "$tap_scratch/report"
expect_same "--json: losses by reason" "$(json_says '$_->{processes}[0]{lost}{no_comm_slot}' "$tap_scratch/json")" 12
"$ringside" verify --json "$tap_scratch/traces" >"$tap_scratch/json"
expect_same "--json: complete" "$(json_says '$_->{is_complete} ? "yes" : "no"' "$tap_scratch/json")" yes
expect_same "--json: the counts" \
	"$(json_says 'join " ", map { @{$_}{qw(issued recorded timed in_flight readable missing)} } @{$_->{processes}}' \
		"$tap_scratch/json")" "5 5 4 0 5 0 5 5 4 0 5 0"

# Each reason for a loss is explained.
missing=
losses=$(sed -n '/^} losses\[\] = {/,/^};/s/.*{ "\([^"]*\)", .*/\1/p' src/common/op.c)
for name in $losses; do
	grep -q "^|[^|]*\`$name\`" docs/BLIND-SPOTS.md || missing="$missing $name"
done
expect_same "docs/BLIND-SPOTS.md explains each reason for a loss" "${losses:+some}$missing" some

# docs/BLIND-SPOTS.md has the list of the program.
expect_same "docs/BLIND-SPOTS.md matches the program" \
	"$(grep -E '^\| 2\.' docs/BLIND-SPOTS.md)" \
	"$("$ringside" verify --blind-spots --json |
		json_says 'join "\n", map { "| $_->{nccl} | `$_->{name}` | $_->{sentence} |" } @{$_->{blind_spots}}')"
expect_output "the list as text" verify-blind "$ringside" verify --blind-spots
# docs/SETTINGS.md has the recorder's default kernel events.
documented=$(sed -n '/^### Why not by default/,/^`ringside verify` prints/p' docs/SETTINGS.md |
	sed -n 's/^| \(2\.[^|]*[^ |]\) *| \([^|;]*[^ |;]\) *[|;].*/\1: \2/p')
expect_same "the default of each release is documented" "$documented" \
	"$("$ringside" verify --blind-spots --json | json_says 'join "\n", map { "$_->{nccl}: $_->{default}" } @{$_->{kernel_events}}')"
tap_done
