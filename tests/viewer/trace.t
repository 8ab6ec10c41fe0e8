#!/usr/bin/env bash
# ringside trace: the timeline holds what was recorded, operation by operation; viewers would take it
# (slices nest, arrows have both ends); both formats hold the same; nothing half stays behind.
. "$(dirname "$0")/viewer.sh"
command -v node >/dev/null || tap_skip_all "no node here"
check=tests/viewer/check.mjs
has_protoc=$(command -v protoc || true)

# Both formats of one recording, with all that was recorded.
expect_timeline() { # sentence name option...
	local sentence=$1 name=$2 json=$tap_scratch/$2.json perfetto=$tap_scratch/$2.pftrace
	shift 2
	expect_ok "$sentence: JSON is written" trace "$json" "$tap_scratch/$name" "$@"
	expect_ok "$sentence: it holds every operation and nests" node $check "$json" "$tap_scratch/$name.dump"
	if [ -z "$has_protoc" ]; then
		tap_line ok "$sentence: Perfetto's format holds the same # SKIP no protoc here" ""
		return
	fi
	expect_ok "$sentence: Perfetto's format is written" trace "$perfetto" "$tap_scratch/$name" "$@"
	expect_ok "$sentence: Perfetto's format holds the same" node $check "$perfetto" \
		"$tap_scratch/$name.dump" "$json"
}

make_job clean --nodes 2 --gpus 2 -w fsdp --seconds 1s --clock-shift 1s
make_job transfers --nodes 2 --gpus 2 -w moe --seconds 500ms
make_job pipeline --nodes 2 --gpus 2 -w tp-pp --seconds 500ms --release 2.26 --no-kernel
make_job hang --nodes 2 --gpus 2 -w fsdp --seconds 2s -f stuck-send:rank=3 --at 300ms
make_job killed --nodes 2 --gpus 2 -w ddp --seconds 2s -f kill:rank=1 --at 300ms
make_job full --nodes 2 --gpus 2 -w ddp --seconds 300ms -m full
expect_timeline "a job" clean
expect_timeline "Send and Recv" transfers
expect_timeline "a release that shows little, with calls" pipeline --calls
expect_timeline "a job that hangs" hang
expect_timeline "a rank that was killed" killed
expect_timeline "channels and transfers" full

events() { # file pattern: how many events
	grep -cE -- "$2" "$tap_scratch/$1.json"
}
expect_same "what hangs is open" "$(events hang '"ph":"B".*\(in flight\).*"cat":"operation"' | sed 's/^[1-9][0-9]*/some/')" some
expect_same "a moment says since when, on each rank" "$(events hang '"name":"[A-Za-z]+ #[0-9]+ in flight for')" 4
expect_same "nothing is open in a job that ended" "$(events clean '"ph":"B"')" 0
expect_same "arrows lead from Send to Recv" "$(events transfers '"ph":"s"' | sed 's/^[1-9][0-9]*/some/')" some
expect_same "there is a bandwidth" "$(events clean '"ph":"C".*"busbw"' | sed 's/^[1-9][0-9]*/some/')" some
expect_same "calls stand on a track of their own" "$(events pipeline '"thread_name".*"calls"')" 4
expect_same "details can be left out" \
	"$(summary details "$tap_scratch/full" -o "$tap_scratch/x.json" --no-details)" 0

# What a ring no longer has is missing, and said; the rest adds up.
RINGSIDE_BUFFER=64KiB "$ringside" sim --kernel --gpus 2 -w loop --sizes 1KiB --rate 2000 --seconds 1s -m flight >/dev/null
recorded=$("$ringside" ls --json "$RINGSIDE_SHM" |
	perl -MJSON::PP -MList::Util=sum -e 'local $/; print sum map { $_->{recorded} } @{decode_json(<STDIN>)->{processes}}')
missing=$(summary missing "$RINGSIDE_SHM" -o "$tap_scratch/ring.json")
shown=$(summary operations "$RINGSIDE_SHM" -o "$tap_scratch/ring.json")
expect_same "shown and missing are all that was recorded" "$((missing > 0)) $((missing + shown))" "1 $recorded"
expect_same "each rank says where some are missing" "$(events ring 'operations missing before this')" 2

# Ranks stand on one time although their clocks are up to a second apart.
expect_same "the ends of a collective lie within 20 us" "$(node -e '
	const { traceEvents } = JSON.parse(require("fs").readFileSync(process.argv[1]));
	const ends = new Map();
	for (const e of traceEvents)
		if (e.cat === "operation") ends.set(e.args.match, [...(ends.get(e.args.match) ?? []), e.ts + e.dur]);
	console.log([...ends.values()].filter((l) => Math.max(...l) - Math.min(...l) > 20).length, ends.size > 20);
' "$tap_scratch/clean.json")" "0 true"
expect_same "and how well is said" \
	"$(grep -cE '"alignment":"aligned by collectives, within [0-9.]+ us"' "$tap_scratch/clean.json")" 1

# Compression changes nothing.
trace "$tap_scratch/clean.json.gz" "$tap_scratch/clean"
expect_ok "gzip by suffix" cmp <(gzip -dc "$tap_scratch/clean.json.gz") "$tap_scratch/clean.json"
trace - "$tap_scratch/clean" --format json --gzip >"$tap_scratch/stdout"
expect_ok "gzip by option, to standard output" cmp <(gzip -dc "$tap_scratch/stdout") "$tap_scratch/clean.json"

# The checks can fail.
broken() { # sentence pattern event...
	local sentence=$1 pattern=$2 file=$tap_scratch/broken.json
	shift 2
	{
		echo '{"displayTimeUnit":"ns","otherData":{"operations":0},"traceEvents":['
		printf '%s,\n' '{"ph":"M","pid":1,"tid":0,"ts":0.000,"name":"process_name","args":{"name":"x"}}' \
			'{"ph":"M","pid":1,"tid":1,"ts":0.000,"name":"thread_name","args":{"name":"x"}}' "$@" | sed '$s/,$//'
		echo ']}'
	} >"$file"
	expect_complaint "the check finds $sentence" "$pattern" node $check "$file" -
}
slice() { # start duration
	echo '{"ph":"X","pid":1,"tid":1,"ts":'"$1"',"dur":'"$2"',"name":"x","cat":"x","args":{}}'
}
broken "slices that overlap" overlaps "$(slice 1.000 2.000)" "$(slice 2.000 2.000)"
broken "times that were rounded" "three decimals" "$(slice 1.5 2.000)"
broken "an arrow without a head" "has no head" "$(slice 1.000 2.000)" \
	'{"ph":"s","pid":1,"tid":1,"ts":1.000,"name":"arrow","cat":"arrow","id":"0x1"}'
broken "an arrow on nothing" "no slice is open" \
	'{"ph":"s","pid":1,"tid":1,"ts":1.000,"name":"arrow","cat":"arrow","id":"0x1"}'
head -n 5 "$tap_scratch/clean.dump" >"$tap_scratch/short.dump"
expect_complaint "the check finds operations too many" "not in the dump" node $check "$tap_scratch/clean.json" \
	"$tap_scratch/short.dump"
cat "$tap_scratch/clean.dump" "$tap_scratch/short.dump" >"$tap_scratch/long.dump"
expect_complaint "the check finds operations too few" "not in the timeline" node $check "$tap_scratch/clean.json" \
	"$tap_scratch/long.dump"
if [ -n "$has_protoc" ]; then
	head -c 100000 "$tap_scratch/clean.pftrace" >"$tap_scratch/cut.pftrace"
	expect_complaint "the check finds a cut" "parse|not in the timeline" node $check "$tap_scratch/cut.pftrace" \
		"$tap_scratch/clean.dump"
fi
tap_done
