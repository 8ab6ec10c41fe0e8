#!/usr/bin/env bash
# Full, broken and stuck disks, kills, forks, unloading: the job continues, and the counts are exact.
. "$(dirname "$0")/inspector.sh"
reader=(python3 "$PWD/tests/inspector/inspector_lines.py")
steady=(nodes=2 ahead=32)
ulimit -c 0

# However a process ends.
for end in finalize exit; do
	inspect ops=4000 "${steady[@]}" threads=2 comms=2 end=$end
	expect_account "D2, D3: $end: everything is in the log"
	expect_same "all of it" "$(lines)" 16000
done

# A machine that is so busy that threads start late: nothing is lost because of that.
if [ -z "${SANITIZED:-}" ]; then
	"${CC:-cc}" -shared -fPIC -D_GNU_SOURCE -x c -o "$tap_scratch/lib/late.so" - <<-'END' || exit 1
		#include <dlfcn.h>
		#include <pthread.h>
		#include <stdlib.h>
		#include <unistd.h>
		struct start { void *(*run)(void *); void *argument; };
		static void *begin_late(void *made)
		{
			struct start start = *(struct start *)made;
			free(made);
			usleep(400000);
			return start.run(start.argument);
		}
		int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument)
		{
			int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
			struct start *made = malloc(sizeof(*made));
			*made = (struct start){ run, argument };
			return create(thread, how, begin_late, made);
		}
	END
	between=$tap_scratch/lib/late.so
	inspect ops=1000 "${steady[@]}"
	between=
	expect_account "threads that start late: everything is in the log, and the summary is printed"
else
	expect_skip "threads that start late: everything is in the log, and the summary is printed" "a sanitizer has its own threads"
fi

NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=0 inspect ops=8000 pace=20000 "${steady[@]}" end=kill 2>/dev/null
expect_ok "kill -9: the log has only whole lines" "${reader[@]}" shape "$(log)"
expect_same "nearly all of them" "$(($(lines) > 2000 && $(lines) <= 8000))" 1
expect_facts "and the region has everything" operations=issued exact=1 lost=0

# A burst through a small ring.
RINGSIDE_BUFFER=64KiB inspect ops=100000
expect_account "D1: a burst through a ring of 256 slots: seen + counted == issued"
echo "# $(lines) lines of $(truth issued), $(reported lost) lost, $(reported 'without a time') without a time"

# The disk.
inspect ops=20000 "${steady[@]}" disk=full disk_room=300000
expect_account "a full disk: losses are counted"
expect_ok "and the log ends with a whole line" "${reader[@]}" shape "$(log)"
expect_same "as many as fit" "$(($(lines) > 500 && $(lines) < 1000))" 1
inspect ops=20000 "${steady[@]}" disk=broken disk_room=300000
expect_account "a broken disk"
inspect ops=5000 "${steady[@]}" disk_slices=1000
expect_same "short and interrupted writes lose nothing" "$(lines) $(reported lost)" "5000 0"
RINGSIDE_BUFFER=1MiB inspect ops=30000 disk=frozen
expect_account "a frozen disk: nothing blocks, losses are counted"
RINGSIDE_BUFFER=1MiB inspect ops=30000 disk=stuck end=exit
expect_same "the disk never answers: the job ends" $? 0
expect_same "and all is counted" "$(reported operations) $(lines) $(reported lost)" \
	"$(truth issued) 0 $(fact lost_not_in_inspector_file)"
RINGSIDE_MODE=trace RINGSIDE_BUFFER=1MiB inspect ops=30000 disk=stuck disk_room=20000 end=exit
expect_same "both files on it: the job ends" $? 0
expect_balance "and the recording adds up"

# Invalid directories.
fresh_files
NCCL_INSPECTOR_DUMP_DIR=/dev/null/x run_on_gpu ops=1000 "${steady[@]}"
read_facts
expect_same "no directory: one line, the job continues, all is counted" \
	"$(grep -c 'cannot write files' "$messages") $(reported lost) $(fact lost_not_in_inspector_file)" "1 1000 1000"
fresh_files
NCCL_INSPECTOR_DUMP_DIR=$files/a/b/c run_on_gpu ops=100 "${steady[@]}"
expect_same "missing directories are created" "$(find "$files" -name '*.log' | wc -l)" 1
if mount_small 256k; then
	fresh_files
	NCCL_INSPECTOR_DUMP_DIR=$mounted run_on_gpu ops=20000 "${steady[@]}"
	read_facts
	files=$mounted
	expect_account "a real disk is full: losses are counted"
	files=$tap_scratch/files
else
	expect_skip "a real disk is full: losses are counted" "cannot mount"
fi

# Loading and unloading, and very many communicators.
fresh_files
"$BUILD/tests/process/process_churn" reload 300 >"$said" 2>"$messages"
read_facts
expect_account "D7, D25: 300 loads and unloads: one log, not truncated"
expect_same "one file" "$(find "$files" -type f | wc -l)" 1
fresh_files
"$BUILD/tests/process/process_churn" comms 2000 >"$said" 2>"$messages"
read_facts
expect_account "2,000 communicators: every operation"
expect_same "none of them lost with its communicator" "$(reported lost)" 0

# Forked children. (That they do not touch the region is tested elsewhere; here a thread of the parent writes.)
fresh_files
"$BUILD/tests/process/process_fork" >"$tap_scratch/fork" 2>"$messages"
expect_same "forked children write nothing: one file, one summary" \
	"$(find "$files" -type f | wc -l) $(grep -c 'operations,' "$messages")" "1 1"
expect_same "and every line is the parent's" "$(lines) $(reported lost)" "$(reported lines) 0"
expect_ok "and whole" "${reader[@]}" shape "$(log)"
tap_done
