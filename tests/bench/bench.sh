# shellcheck shell=bash
# For tests of `ringside bench` on a host without a GPU: source this instead of tap.sh. CUDA and NCCL are
# those of tests/fake_gpu; docs/HACKING.md lists their settings.

. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
# shellcheck disable=SC2034
ringside=$BUILD/ringside
fake=$BUILD/tests/fake_gpu
for variable in $(compgen -e); do
	case $variable in
	FAKE_* | NCCL_* | RINGSIDE_* | OMPI_* | PMI_* | PMIX_* | MPI_* | SLURM_* | CUDA_* | RANK | WORLD_SIZE | \
		LOCAL_RANK | LOCAL_WORLD_SIZE | MASTER_ADDR | MASTER_PORT) unset "$variable" ;;
	esac
done
export LC_ALL=C RINGSIDE_CUDA=$fake/libcuda.so.1 RINGSIDE_NCCL=$fake/libnccl.so.2
export RINGSIDE_SHM=$tap_scratch/shm TMPDIR=$tap_scratch/tmp BENCH_TEST_MARK=$tap_scratch
mkdir "$RINGSIDE_SHM" "$TMPDIR"
command -v python3 >/dev/null || tap_skip_all "no python3"

# Runs it; its output is in out and err, its exit code in $code.
bench() { # argument...
	timeout 300 "$ringside" bench "$@" >"$tap_scratch/out" 2>"$tap_scratch/err"
	code=$?
}
# The same with --json, for value.
bench_json() { # argument...
	bench --json "$@"
	mv "$tap_scratch/out" "$tap_scratch/run.json"
}

# Runs a command with a short time limit, so that a hang is reported soon, and increases it until the expected message appears:
# on a busy host other steps can exceed the limit as well, and are reported instead.
until_reported() { # pattern option-with-seconds command...
	local pattern=$1 option=$2 seconds
	shift 2
	for seconds in 1 5 25; do
		"$@" "$option" $seconds
		! grep -qsE -- "$pattern" "$tap_scratch/err" "$tap_scratch/err.0" || break
	done
}

# Evaluates a Python expression over the output of bench_json: run, cells (its results), members.
value() { # expression [file]
	python3 tests/bench/value.py "$1" "${2:-$tap_scratch/run.json}" 2>&1
}

said() {
	cat "$tap_scratch/out" "$tap_scratch/err"
}

# Expects this exit code, one matching line on stderr, and nothing left behind.
expect_trouble() { # sentence code pattern
	local lines
	lines=$(wc -l <"$tap_scratch/err")
	if [ "$code" -eq "$2" ] && [ "$lines" -eq 1 ] && grep -qE -- "$3" "$tap_scratch/err" && [ ! -s "$tap_scratch/out" ]; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "exit $code, wanted $2 and one line like: $3"$'\n'"$(said)"
	fi
	expect_nothing_left "$1: nothing is left behind"
}

# Checks for processes and files. What a rank leaves is removed after a short delay.
left_running() {
	env -u BENCH_TEST_MARK grep -lsz "^BENCH_TEST_MARK=$tap_scratch\$" /proc/[0-9]*/environ
}
# Whether this many ranks have opened NCCL.
are_inside() { # ranks
	local maps
	mapfile -t maps < <(left_running | sed 's/environ$/maps/')
	[ ${#maps[@]} -gt 0 ] && [ "$(grep -lsF "$RINGSIDE_NCCL" "${maps[@]}" | wc -l)" -ge "$1" ]
}
nothing_runs() {
	left=$(left_running)
	[ -z "$left" ]
}
expect_nothing_left() { # sentence
	local left
	until_ok nothing_runs
	expect_same "$1" "$left$(find "$TMPDIR" -mindepth 1)" ""
}
