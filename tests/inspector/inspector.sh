# shellcheck shell=bash
# For tests of the plugin as a replacement for NCCL Inspector: source this. Jobs have Inspector's variables, a fake
# GPU, and a directory for files.

. "$(dirname "${BASH_SOURCE[0]}")/../process/process.sh"
unset "${!NCCL_INSPECTOR_@}"
export NCCL_INSPECTOR_ENABLE=1
# These jobs show no launches to put CUDA events around, and calls without a duration have no line and are in no metric.
export RINGSIDE_TIMES=kernel
# shellcheck disable=SC2034 # for the tests
tool=$BUILD/ringside uuid=abababab-abab-abab-abab-ababababab
[ -e "$BUILD/tests/fake_cuda_plugin.so" ] || tap_skip_all "$BUILD/tests/fake_cuda_plugin.so is not built: make tests"
mkdir -p "$tap_scratch/lib"
cp "$BUILD/tests/fake_cuda_plugin.so" "$tap_scratch/lib/libcuda.so.1"

# A fresh directory for the next job's files.
files=$tap_scratch/files
fresh_files() {
	fresh
	rm -rf "$files"
	mkdir -p "$files"
	export NCCL_INSPECTOR_DUMP_DIR=$files
}

# Run a job on a GPU with these options; $between is a command to run it with.
between=
run_on_gpu() { # option...
	LD_LIBRARY_PATH=$tap_scratch/lib LD_PRELOAD="libcuda.so.1 $between" "$job" "$@" >"$said" 2>"$messages"
}

# The same in a fresh directory, and what a reader finds.
inspect() { # option...
	local code
	fresh_files
	run_on_gpu "$@"
	code=$?
	read_facts
	return "$code"
}

log() { find "$files" -name '*.log'; }
lines() { cat "$files"/*.log 2>/dev/null | wc -l; }

# A number from the final summary on stderr: "12 lines", "3 without a time", "0 lost".
reported() { # words
	grep 'operations' "$messages" | grep -oE "[0-9]+ $1" | head -n 1 | grep -oE '^[0-9]+' || echo 0
}

# Every issued operation is a line, or omitted for a reported reason, or counted as lost.
expect_account() { # sentence
	local all=0 number
	for number in $(grep 'operations,' "$messages" | sed 's/.*operations,//' | grep -oE '[0-9]+ ' || true); do
		all=$((all + number))
	done
	if [ "$all" = "$(truth issued)" ] && [ "$(reported operations)" = "$(truth issued)" ] &&
		[ "$(reported lines)" = "$(lines)" ] && [ "$(reported lost)" = "$(fact lost_not_in_inspector_file)" ]; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "issued $(truth issued), reported $all, lines $(lines), counted as lost $(
			fact lost_not_in_inspector_file)"$'\n'"$(cat "$messages")"
	fi
}
