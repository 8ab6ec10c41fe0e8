#!/usr/bin/env bash
# Files for the textfile collector, read by a real node-exporter.
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
expect_same "leftovers are removed, other files are not" "$(cd "$text" && echo *)" "ringside-notes.prom somebody.prom"
rm "$text/ringside-notes.prom"

start_job ops=100000 comms=2 pace=1000
expect_soon "a file for a process" has_files 1
first=$job_pid
start_job ops=100000 comms=2 pace=1000 channels=4
second=$job_pid
expect_soon "one file per process" has_files 2
name=$(basename "$(find "$text" -name "ringside-*-$first-*.prom")")
expect_ok "named after GPU, pid and start" grep -qE "^ringside-gpu[0-9]*-$first-[0-9]+\.prom$" <<<"$name"
expect_same "readable by everyone" "$(stat -c %a "$text/$name")" 644
expect_soon "with the operations of the process" grep -q '^nccl_operations_finished_total{' "$text/$name"
expect_same "without metrics of the agent" "$(grep -c '^ringside_\|^process_' "$text/$name")" 0
expect_same "without timestamps" "$(grep -v '^#' "$text/$name" | grep -cE '} [0-9.e+-]+ [0-9]')" 0
expect_same "with the same HELP in each file" \
	"$(cat "$text"/ringside-*.prom | grep '^# HELP' | sort -u | awk '{ print $3 }' | uniq -d)" ""
inode=$(stat -c %i "$text/$name")
is_another_file() { [ "$(stat -c %i "$text/$name")" != "$inode" ]; }
expect_soon "files are replaced by renaming" is_another_file

exporter=$(command -v prometheus-node-exporter)
if [ -n "$exporter" ]; then
	# It cannot choose a free port: try a few.
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
	expect_same "node-exporter reports no error" "$(sed -n 's/^node_textfile_scrape_error //p' "$shown")" 0
	expect_same "it exports both files" "$(grep -c '^node_textfile_mtime_seconds{file=".*/ringside-' "$shown")" 2
	# The jobs keep running: there may be a new series before the files are read.
	shows_all() {
		curl -sS "127.0.0.1:$port/metrics" >"$shown"
		[ "$(grep -c '^nccl_operations_issued_total{' "$shown")" = "$(cat "$text"/ringside-*.prom | grep -c '^nccl_operations_issued_total{')" ]
	}
	expect_soon "with all their series" shows_all
	kill "$exporter_pid"
else
	tap_line ok "node-exporter reads them # SKIP not installed" ""
fi

kill -9 "$first" "$second"
expect_soon "the files of forgotten processes are removed" has_files 0

start_job ops=100000 comms=1 pace=1000
expect_soon "a new process has a file" has_files 1
if [ "$(id -u)" != 0 ]; then
	chmod 500 "$text"
	expect_soon "a write failure is logged once" says 'cannot write files in .*: Permission denied'
	chmod 700 "$text"
	expect_soon "so is the recovery" says 'writing files in .* works again'
fi
stop_agent
expect_same "it exits with 0" "$?" 0
expect_same "and removes its files" "$(cd "$text" && echo *)" somebody.prom
tap_done
