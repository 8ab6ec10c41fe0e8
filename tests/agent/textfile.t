#!/usr/bin/env bash
# Files for node-exporter's textfile collector, read by the real one.
. "$(dirname "$0")/agent.sh"

text=$tap_scratch/text
mkdir "$text"
files() { find "$text" -name 'ringside-*' | wc -l; }
has_files() { [ "$(files)" = "$1" ]; }
: >"$text/ringside-GPU-old-17-99.prom"
: >"$text/ringside-gpu0-17-99.prom.new"
: >"$text/somebody.prom"
: >"$text/ringside-notes.prom"
start_agent --textfile "$text" --interval 1s --keep 3s
expect_same "leftovers are gone, others' files are not" "$(cd "$text" && echo *)" "ringside-notes.prom somebody.prom"
rm "$text/ringside-notes.prom"

start_job ops=100000 comms=2 pace=1000
expect_soon "a file for a process" has_files 1
first=$job_pid
start_job ops=100000 comms=2 pace=1000 channels=4
second=$job_pid
expect_soon "one for each" has_files 2
name=$(basename "$(find "$text" -name "ringside-*-$first-*.prom")")
expect_ok "named after GPU, pid and start" grep -qE "^ringside-gpu[0-9]*-$first-[0-9]+\.prom$" <<<"$name"
expect_same "for everybody to read" "$(stat -c %a "$text/$name")" 644
expect_soon "with what the process did" grep -q '^nccl_operations_finished_total{' "$text/$name"
expect_same "and nothing of the agent itself" "$(grep -c '^ringside_\|^process_' "$text/$name")" 0
expect_same "without timestamps" "$(grep -v '^#' "$text/$name" | grep -cE '} [0-9.e+-]+ [0-9]')" 0
expect_same "the same words of help in each" \
	"$(cat "$text"/ringside-*.prom | grep '^# HELP' | sort -u | awk '{ print $3 }' | uniq -d)" ""
inode=$(stat -c %i "$text/$name")
is_another_file() { [ "$(stat -c %i "$text/$name")" != "$inode" ]; }
expect_soon "they are written anew, beside and renamed" is_another_file

exporter=$(command -v prometheus-node-exporter)
if [ -n "$exporter" ]; then
	# It takes no port of the system's choice: try a few.
	for ((port = 10000 + $$ % 20000, tries = 0; tries < 20; tries++, port += 7)); do
		"$exporter" --collector.disable-defaults --collector.textfile --collector.textfile.directory="$text" \
			--web.listen-address="127.0.0.1:$port" 2>"$tap_scratch/exporter.log" &
		exporter_pid=$!
		started+=("$exporter_pid")
		until_ok eval "curl -s 127.0.0.1:$port/metrics | grep -F '$text' || ! kill -0 $exporter_pid"
		kill -0 "$exporter_pid" 2>/dev/null && break
	done
	shown=$tap_scratch/shown
	curl -sS "127.0.0.1:$port/metrics" >"$shown"
	expect_same "node-exporter has no complaint" "$(sed -n 's/^node_textfile_scrape_error //p' "$shown")" 0
	expect_same "it shows both files" "$(grep -c '^node_textfile_mtime_seconds{file=".*/ringside-' "$shown")" 2
	# The jobs go on: there may be one more of them before the files are looked at.
	shows_all() {
		curl -sS "127.0.0.1:$port/metrics" >"$shown"
		[ "$(grep -c '^nccl_operations_issued_total{' "$shown")" = "$(cat "$text"/ringside-*.prom | grep -c '^nccl_operations_issued_total{')" ]
	}
	expect_soon "and every series of them" shows_all
	kill "$exporter_pid"
else
	tap_line ok "node-exporter reads them # SKIP there is none" ""
fi

kill -9 "$first"
expect_soon "the file of a process that is forgotten goes" has_files 1
kill -9 "$second"
expect_soon "the last one, too" has_files 0

start_job ops=100000 comms=1 pace=1000
expect_soon "a process comes again" has_files 1
if [ "$(id -u)" != 0 ]; then
	chmod 500 "$text"
	expect_soon "a directory that takes no more is told once" says 'cannot write files in .*: Permission denied'
	chmod 700 "$text"
	expect_soon "and that it does again" says 'can write files in .* again'
fi
stop_agent
expect_same "it ends well" "$?" 0
expect_same "and leaves nothing of its own" "$(cd "$text" && echo *)" somebody.prom
tap_done
