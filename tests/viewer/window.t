#!/usr/bin/env bash
# ringside trace: filters and time windows, usage errors, and no partial files.
. "$(dirname "$0")/viewer.sh"
make_job job --nodes 2 --gpus 2 -w tp-pp --seconds 2s
job=$tap_scratch/job
out=$tap_scratch/out.json
all=$(summary operations "$job" -o "$out")

shown() { # option...: how many operations
	summary operations "$job" -o "$out" "$@"
}
# Its operations as "rank comm number".
listed() {
	grep '"cat":"operation"' "$out" |
		sed -E 's/.*"pid":([0-9]+),.*"communicator":"([^"]*)".*"number":([0-9]+),.*/\1 \2 \3/' | sort -u
}

expect_same "without filters: all operations" "$all" "$("$ringside" dump "$job" | wc -l)"
shown --rank 1,3 >/dev/null
expect_same "some ranks" "$(listed | cut -d' ' -f1 | sort -u | tr '\n' ' ')" "2 4 "
expect_same "no other ranks" "$(grep -c '"process_name"' "$out")" 2
shown --comm world >/dev/null
expect_same "one communicator" "$(listed | cut -d' ' -f2 | sort -u)" world
hash=$("$ringside" dump "$job" | sed -nE 's/.*"comm_hash":"(0x[0-9a-f]+)","comm_name":"tp-0","comm_rank":0,.*/\1/p' | sort -u | head -n 1)
shown --comm "$hash" >/dev/null
expect_same "one communicator by its hash" "$(listed | cut -d' ' -f1 | sort -u | wc -l)" 2

expect_same "two halves have all operations; those running at the boundary twice" \
	"$(($(shown --until 1s) + $(shown --since 1s) >= all && $(shown --until 1s) < all))" 1
expect_same "--window alone shows the end" "$(($(shown --window 500ms) < all / 2))" 1
expect_same "--since and --window" "$(($(shown --since 500ms --window 100ms) < all / 8))" 1
expect_same "--until and --window" "$(($(shown --until -1s --window 100ms) < all / 8))" 1
expect_same "around an operation: it is shown, with few others" \
	"$(($(shown --around "$hash:50" --window 50ms) < all / 4)) $(listed | grep -c ' 50$')" "1 2"
shown --around 3:pp-1:5 --window 10ms >/dev/null
expect_same "around an operation of a rank" "$(listed | grep -c '^4 pp-1 5$')" 1
shown --around 3:100 --window 10ms >/dev/null
expect_same "by rank alone if it is unambiguous" "$(listed | grep -c '^4 tp-1 100$')" 1
shown --around world:2 >/dev/null
expect_same "around an operation of all ranks" "$(listed | grep -c 'world 2$')" 4

refused() { # sentence code pattern option...
	local sentence=$1 code=$2 pattern=$3 got
	shift 3
	rm -f "$out"
	"$ringside" trace "$@" >/dev/null 2>"$tap_scratch/err"
	got=$?
	if [ "$got" -eq "$code" ] && [ "$(wc -l <"$tap_scratch/err")" -eq 1 ] && grep -qE -- "$pattern" "$tap_scratch/err" &&
		[ ! -e "$out" ]; then
		tap_line ok "$sentence" ""
	else
		tap_line "not ok" "$sentence" "exit $got, wanted $code and: $pattern"$'\n'"$(cat "$tap_scratch/err")"
	fi
}
refused "no file" 2 "no output file: use -o FILE" "$job"
refused "a file that does not say its format" 2 "end it in .json or .pftrace" "$job" -o "$tap_scratch/x"
refused "an unknown format" 2 "neither json nor perfetto" "$job" -o "$out" --format svg
refused "no duration" 2 "is not a duration like 2s" "$job" -o "$out" --window fast
refused "no time" 2 "is not a time like 30s" "$job" -o "$out" --since noonish
refused "no ranks" 2 "is not a list of ranks" "$job" -o "$out" --rank 5-3
refused "too many limits" 2 "cannot be combined" "$job" -o "$out" --since 1s --until 2s --window 1s
refused "limits beside an operation" 2 "cannot be combined with" "$job" -o "$out" --around world:1 --since 1s
refused "the summary and the file on one output" 2 "cannot both use standard output" "$job" -o - --format json --json
refused "an operation that nobody knows" 3 "is not an operation of this recording" "$job" -o "$out" --around nobody:5
refused "an operation that is not there" 3 "no such operation is recorded" "$job" -o "$out" --around world:99999
refused "an operation of several communicators" 3 "2 communicators have it \(0x[0-9a-f]+, 0x" "$job" -o "$out" --around 1:5
refused "ranks that are not there" 3 "no rank '77' here; available: 0-3" "$job" -o "$out" --rank 77
refused "a file that cannot be written" 3 "cannot write .*: No space left" "$job" -o /dev/full --format json
refused "a missing path" 3 "nowhere" "$tap_scratch/nowhere" -o "$out"

# An interrupted run leaves no file. The signal is sent once it is writing.
make_job large --nodes 8 --gpus 8 -w fsdp --seconds 20s
# Retries if it finished before the signal.
interrupted() { # signal
	local pid code
	for _ in {1..20}; do
		rm -rf "$tap_scratch/end"
		mkdir "$tap_scratch/end"
		# A shell without job control makes background processes ignore SIGINT.
		perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$ringside" trace "$tap_scratch/large" -o "$tap_scratch/end/x.json" 2>/dev/null &
		pid=$!
		until is_writing $pid "$tap_scratch/end" || ! kill -0 $pid 2>/dev/null; do :; done
		kill -s "$1" $pid 2>/dev/null
		{ wait $pid; } 2>/dev/null
		code=$?
		[ $code -eq 0 ] || break
	done
	echo "$code, left: $(ls -A "$tap_scratch/end")"
}
for signal in INT TERM HUP; do
	expect_same "SIG$signal leaves no partial file" "$(interrupted $signal)" "$((128 + $(kill -l $signal))), left: "
done
tap_done
