#!/usr/bin/env bash
# ringside trace: the timeline has every recorded operation and is valid for viewers (slices nest, arrows have both ends);
# both formats have the same content.
. "$(dirname "$0")/viewer.sh"
command -v node >/dev/null || tap_skip_all "node is not installed"
check=tests/viewer/check.mjs
has_protoc=$(command -v protoc || true)

# Checks both formats of a recording.
expect_timeline() { # sentence name option...
	local sentence=$1 name=$2 json=$tap_scratch/$2.json perfetto=$tap_scratch/$2.pftrace
	shift 2
	expect_ok "$sentence: JSON is written" trace "$json" "$tap_scratch/$name" "$@"
	expect_ok "$sentence: it has every operation, and slices nest" node $check "$json" "$tap_scratch/$name.dump"
	if [ -z "$has_protoc" ]; then
		tap_line ok "$sentence: Perfetto's format has the same content # SKIP protoc is not installed" ""
		return
	fi
	expect_ok "$sentence: Perfetto's format is written" trace "$perfetto" "$tap_scratch/$name" "$@"
	expect_ok "$sentence: Perfetto's format has the same content" node $check "$perfetto" \
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
expect_timeline "an old release, with calls" pipeline --calls
expect_timeline "a hung job" hang
expect_timeline "a killed rank" killed
expect_timeline "channels and transfers" full

events() { # file pattern: how many events
	grep -cE -- "$2" "$tap_scratch/$1.json"
}
expect_same "operations in flight are open slices" "$(events hang '"ph":"B".*\(in flight\).*"cat":"operation"' | sed 's/^[1-9][0-9]*/some/')" some
expect_same "an instant on each rank has the time in flight" "$(events hang '"name":"[A-Za-z]+ #[0-9]+ in flight for')" 4
expect_same "no open slices in a finished job" "$(events clean '"ph":"B"')" 0
expect_same "arrows from Send to Recv" "$(events transfers '"ph":"s"' | sed 's/^[1-9][0-9]*/some/')" some
expect_same "a counter of bandwidth" "$(events clean '"ph":"C".*"busbw"' | sed 's/^[1-9][0-9]*/some/')" some
expect_same "calls have a track of their own" "$(events pipeline '"thread_name".*"calls"')" 4
expect_same "details can be omitted" \
	"$(summary details "$tap_scratch/full" -o "$tap_scratch/x.json" --no-details)" 0

# Overwritten operations are reported as missing.
RINGSIDE_BUFFER=64KiB "$ringside" sim --kernel --gpus 2 -w loop --sizes 1KiB --rate 2000 --seconds 1s -m flight >/dev/null
recorded=$("$ringside" ls --json "$RINGSIDE_SHM" |
	perl -MJSON::PP -MList::Util=sum -e 'local $/; print sum map { $_->{recorded} } @{decode_json(<STDIN>)->{processes}}')
missing=$(summary missing "$RINGSIDE_SHM" -o "$tap_scratch/ring.json")
shown=$(summary operations "$RINGSIDE_SHM" -o "$tap_scratch/ring.json")
expect_same "shown and missing operations add up to the recorded ones" "$((missing > 0)) $((missing + shown))" "1 $recorded"
expect_same "an instant on each rank marks the missing ones" "$(events ring 'operations missing before this')" 2

# Ranks are aligned although their clocks differ by up to a second.
expect_same "the ends of a collective lie within 20 us" "$(node -e '
	const { traceEvents } = JSON.parse(require("fs").readFileSync(process.argv[1]));
	const ends = new Map();
	for (const e of traceEvents)
		if (e.cat === "operation") ends.set(e.args.match, [...(ends.get(e.args.match) ?? []), e.ts + e.dur]);
	console.log([...ends.values()].filter((l) => Math.max(...l) - Math.min(...l) > 20).length, ends.size > 20);
' "$tap_scratch/clean.json")" "0 true"
expect_same "the alignment error is in the file" \
	"$(grep -cE '"alignment":"aligned by collectives, within [0-9.]+ us"' "$tap_scratch/clean.json")" 1

# Compressed output.
trace "$tap_scratch/clean.json.gz" "$tap_scratch/clean"
expect_ok "gzip by suffix" cmp <(gzip -dc "$tap_scratch/clean.json.gz") "$tap_scratch/clean.json"
trace - "$tap_scratch/clean" --format json --gzip >"$tap_scratch/stdout"
expect_ok "gzip by option, to standard output" cmp <(gzip -dc "$tap_scratch/stdout") "$tap_scratch/clean.json"

# The check finds errors.
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
broken "rounded times" "three decimals" "$(slice 1.5 2.000)"
broken "an arrow without a head" "has no head" "$(slice 1.000 2.000)" \
	'{"ph":"s","pid":1,"tid":1,"ts":1.000,"name":"arrow","cat":"arrow","id":"0x1"}'
broken "an arrow without a slice" "no slice is open" \
	'{"ph":"s","pid":1,"tid":1,"ts":1.000,"name":"arrow","cat":"arrow","id":"0x1"}'
head -n 5 "$tap_scratch/clean.dump" >"$tap_scratch/short.dump"
expect_complaint "the check finds extra operations" "not in the dump" node $check "$tap_scratch/clean.json" \
	"$tap_scratch/short.dump"
cat "$tap_scratch/clean.dump" "$tap_scratch/short.dump" >"$tap_scratch/long.dump"
expect_complaint "the check finds missing operations" "not in the timeline" node $check "$tap_scratch/clean.json" \
	"$tap_scratch/long.dump"
if [ -n "$has_protoc" ]; then
	head -c 100000 "$tap_scratch/clean.pftrace" >"$tap_scratch/cut.pftrace"
	expect_complaint "the check finds a truncated file" "parse|not in the timeline" node $check "$tap_scratch/cut.pftrace" \
		"$tap_scratch/clean.dump"
fi
tap_done
