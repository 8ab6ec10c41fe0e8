#!/usr/bin/env bash
# Output files are complete or absent, whatever happens.
. "$(dirname "$0")/export.sh"
out=$tap_scratch/written
mkdir "$out"
simulate "$tap_scratch/small" --nodes 1 --gpus 2 -w fsdp --seconds 1s
simulate "$tap_scratch/large" --nodes 4 --gpus 2 -w tp-pp --seconds 500s
listing() { (cd "$out" && find . -mindepth 1 | LC_ALL=C sort); }

expect_refusal "an output file is required" 2 "no output file: use -o FILE" "$ringside" export "$tap_scratch/small"
expect_refusal "a file name without a known suffix" 2 "unknown format of 'x': name it .parquet" \
	"$ringside" export "$tap_scratch/small" -o x
expect_refusal "an unknown format" 2 "--format xls is not one of parquet, csv, jsonl" \
	"$ringside" export "$tap_scratch/small" -f xls -o x
expect_refusal "standard output is no directory" 2 "standard output is not a directory" \
	"$ringside" export "$tap_scratch/small" --partition -o -
expect_refusal "an invalid number of rows" 2 "--rows 0 is not a number from 1 on" \
	"$ringside" export "$tap_scratch/small" --rows 0 -o x
expect_refusal "a missing path" 3 "nowhere" \
	"$ringside" export "$tap_scratch/nowhere" -o "$out/x.csv"
expect_refusal "a missing directory" 3 "cannot write $out/no/x.csv: No such file or directory" \
	"$ringside" export "$tap_scratch/small" -o "$out/no/x.csv"
expect_refusal "a file where a directory should be" 3 "cannot write .*/small.*: Not a directory" \
	"$ringside" export "$tap_scratch/small" -o "$(find "$tap_scratch/small" -type f | head -n 1)/"
expect_same "no files are left" "$(listing)" ""

# Existing files are replaced atomically, if permitted.
echo old >"$out/x.csv"
chmod 640 "$out/x.csv"
ln -s x.csv "$out/link.csv"
"$ringside" export "$tap_scratch/small" -o "$out/link.csv" >/dev/null
expect_same "a link is followed" "$(readlink "$out/link.csv") $(head -c 4 "$out/x.csv")" "x.csv job,"
expect_same "a file keeps its permissions" "$(stat -c %a "$out/x.csv")" 640
if [ "$(id -u)" -ne 0 ]; then
	chmod 400 "$out/x.csv"
	expect_refusal "a read-only file" 3 "Permission denied" \
		"$ringside" export "$tap_scratch/small" -o "$out/x.csv"
else
	tap_line ok "a read-only file # SKIP root may write everything" ""
fi
mkdir -m 777 "$out/open"
ln -s ../x.csv "$out/open/link.csv"
expect_refusal "a link that others could replace" 2 "cannot write .*link.csv: it is a symbolic link in a place" \
	"$ringside" export "$tap_scratch/small" -o "$out/open/link.csv"
expect_refusal "a device" 2 "cannot write /dev/zero: it is a device" "$ringside" export "$tap_scratch/small" -f csv -o /dev/zero
expect_ok "/dev/null" "$ringside" export "$tap_scratch/small" -f csv -o /dev/null
mkfifo "$out/pipe"
cat "$out/pipe" >"$out/from_pipe" &
"$ringside" export "$tap_scratch/small" -f csv -o "$out/pipe" >/dev/null
wait "$!"
expect_same "one's own pipe" "$(head -c 4 "$out/from_pipe")" "job,"
rm -rf "${out:?}"/*

# No space: a full device, a file size limit.
expect_refusal "a full device" 3 "cannot write /dev/full: No space left on device" \
	"$ringside" export "$tap_scratch/small" -f parquet -o /dev/full
expect_refusal "a full device as standard output" 3 "cannot write the output: No space left on device" \
	sh -c '"$0" export "$1" -f csv -o - >/dev/full' "$ringside" "$tap_scratch/small"
echo old >"$out/x.parquet"
expect_refusal "a file size limit" 3 "cannot write .*x.parquet: File too large" \
	bash -c 'ulimit -f 64; exec "$0" export "$1" -o "$2"' "$ringside" "$tap_scratch/large" "$out/x.parquet"
expect_same "the old file is kept" "$(cat "$out/x.parquet") $(listing)" "old ./x.parquet"
rm "$out/x.parquet"
expect_refusal "a file size limit in a directory" 3 "cannot write .*rank=0/part-0.jsonl: File too large" \
	bash -c 'ulimit -f 64; exec "$0" export "$1" -f jsonl -o "$2"' "$ringside" "$tap_scratch/large" "$out/lake/"
expect_same "the directory is removed" "$(listing)" ""
"$ringside" export "$tap_scratch/small" -f csv -o - 2>"$tap_scratch/err" | true
expect_same "a closed pipe is no error" "$(cat "$tap_scratch/err")" ""

# Signals while the file is written. Retries if the export was faster.
interrupted() { # signal path...
	local signal=$1 try pid
	shift
	for try in 1 2 3 4 5 6 7 8 9 10; do
		"$ringside" export "$tap_scratch/large" -f jsonl "$@" >/dev/null 2>"$tap_scratch/err" &
		pid=$!
		while kill -0 "$pid" 2>/dev/null && ! is_writing "$pid" "$out"; do :; done
		kill -s "$signal" "$pid" 2>/dev/null
		wait "$pid"
		if [ $? -eq $((128 + $(kill -l "$signal"))) ]; then
			echo "ended by $signal, left: $(listing | tr '\n' ' ')$(cat "$tap_scratch/err")"
			return
		fi
		find "$out" -mindepth 1 ! -name mine -delete
	done
	echo "was faster than $signal $try times"
}
for signal in TERM HUP; do
	expect_same "$signal leaves no partial file" "$(interrupted "$signal" -o "$out/x.jsonl")" "ended by $signal, left: "
	expect_same "$signal leaves no partial directory" "$(interrupted "$signal" -o "$out/lake/")" "ended by $signal, left: "
done
mkdir "$out/lake"
echo mine >"$out/lake/mine"
out=$out/lake
expect_same "an existing directory is unchanged" \
	"$(interrupted TERM --force -o "$out") $(cat "$out/mine")" "ended by TERM, left: ./mine  mine"
mkdir "$tap_scratch/int"
# Shells make background processes ignore SIGINT; perl does not.
expect_same "^C leaves no partial file" "$(perl -e '
	my ($out, @command) = @ARGV;
	for my $try (1 .. 10) {
		my $pid = fork;
		if ($pid == 0) { $SIG{INT} = "DEFAULT"; open STDOUT, ">", "/dev/null"; exec @command }
		1 while !(() = glob("$out/.ringside-*")) && !grep({ (readlink($_) // "") =~ m{^\Q$out\E/} } glob("/proc/$pid/fd/*"))
			&& kill(0, $pid) && waitpid($pid, 1) == 0;
		kill "INT", $pid;
		waitpid $pid, 0;
		if ($? == 2) { print "ended by INT, left: ", join(" ", glob("$out/* $out/.ringside*")); exit }
		unlink glob "$out/*";
	}' "$tap_scratch/int" "$ringside" export "$tap_scratch/large" -o "$tap_scratch/int/x.jsonl")" "ended by INT, left: "
tap_done
