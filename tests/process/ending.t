#!/usr/bin/env bash
# However a process ends, everything it finished before can be read from its trace and its region.
. "$(dirname "$0")/process.sh"

ulimit -c 0
for mode in trace full flight; do
	export RINGSIDE_MODE=$mode
	closed=1
	[ "$mode" != flight ] || closed=0
	for end in finalize exit; do
		run_and_read ops=12000 end=$end
		expect_same "mode $mode, $end: the job ends well" $? 0
		expect_facts "mode $mode, $end: everything is there, and the recording is closed" \
			operations=issued gaps=0 twice=0 exact=1 lost=0 closed=$closed life=ended
	done
	for end in _exit abort kill; do
		run_and_read ops=12000 nodes=2 end=$end 2>/dev/null
		expect_facts "mode $mode, $end: everything is still there" \
			operations=issued gaps=0 twice=0 exact=1 lost=0 closed=0 life=killed done=issued
	done
done

export RINGSIDE_MODE=trace
for end in exit _exit; do
	run_and_read ops=3000 threads=3 comms=2 nodes=2 end=$end
	expect_facts "three threads, six communicators, $end" operations=issued gaps=0 exact=1 lost=0 comms=6
done

# Only the trace, without the region: what was drained, and nothing else is claimed.
run_and_read ops=12000 end=kill 2>/dev/null
rm -r "${RINGSIDE_SHM:?}"/*
read_facts
expect_facts "the trace of a killed process is readable up to its end" processes=1 has_region=0 closed=0 twice=0

if [ -x "$BUILD/ringside" ]; then
	run_and_read ops=5000 end=kill 2>/dev/null
	expect_ok "ringside verify finds a killed process complete" "$BUILD/ringside" verify "$RINGSIDE_DIR"
	expect_same "ringside dump prints every operation" \
		"$("$BUILD/ringside" dump "$RINGSIDE_DIR" | wc -l)" "$(truth issued)"
fi
tap_done
