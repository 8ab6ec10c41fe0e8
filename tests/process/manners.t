#!/usr/bin/env bash
# What the plugin must not disturb in a job: errno, signal masks, threads, open files, the log. And whatever another process of
# the user writes into the region, the job goes on.
. "$(dirname "$0")/process.sh"

# Pass on the results of a program that prints TAP.
expect_all() { # sentence program...
	local sentence=$1 line
	shift
	while read -r line; do
		case $line in
		ok*) tap_line ok "$sentence: ${line#*- }" "" ;;
		not*) tap_line "not ok" "$sentence: ${line#*- }" "" ;;
		'#'*) echo "$line" ;;
		esac
	done < <("$@")
}
manners=$BUILD/tests/process/process_manners
mkdir -p "$RINGSIDE_DIR"
RINGSIDE_MODE=flight expect_all flight "$manners" on
RINGSIDE_MODE=trace expect_all trace "$manners" on

for switch in RINGSIDE_DISABLE=1 RINGSIDE_MODE=off; do
	fresh
	expect_all "$switch" env "$switch" "$manners" off
	expect_same "$switch: no file anywhere" "$(find "$RINGSIDE_SHM" "$RINGSIDE_DIR" -type f 2>/dev/null)" ""
done

# Words all over the region, and every fourth in its header, until the job has ended. What is recorded then means nothing.
overwrite='
	use Fcntl;
	my ($job, $word, $path, $written) = @ARGV;
	my $size = -s $path;
	sysopen(my $region, $path, O_RDWR) or die "$path: $!";
	srand(1);
	for (my $count = 0; kill 0, $job; $count++) {
		sysseek($region, 8 * int(rand(($count % 4 ? $size : 8192) / 8)), 0);
		syswrite($region, $word eq "random" ? pack("VV", rand(2**32), rand(2**32)) : chr($word) x 8);
		$written++;
	}
	exit !$written;'
for mode in flight trace; do
	for word in random 255 0; do
		fresh
		RINGSIDE_MODE=$mode RINGSIDE_BUFFER=4MiB timeout -k 5 120 "$job" ops=20000 comms=2 threads=2 nodes=2 p2p=1 pace=20000 \
			>"$said" 2>"$messages" &
		job_pid=$!
		until_ok eval '[ -n "$(find "$RINGSIDE_SHM" -name "*.region" -size +4000k)" ]'
		perl -e "$overwrite" "$job_pid" "$word" "$(find "$RINGSIDE_SHM" -name '*.region')" &
		writer_pid=$!
		wait "$job_pid"
		expect_same "$mode: the region is overwritten with $word, and the job runs to its end" "$?,$(truth issued)" 0,80000
		wait "$writer_pid"
		expect_same "$mode: it was overwritten with $word meanwhile" "$?" 0
	done
done
tap_done
