# shellcheck shell=bash
# For tests with real processes: source this instead of tap.sh. A job loads the plugin as NCCL does
# and ends as requested; then its facts are checked.

. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
job=$BUILD/tests/process/process_job
facts=$BUILD/tests/process/process_facts
export PLUGIN=$BUILD/libnccl-profiler-ringside.so
export LC_ALL=C
unset "${!RINGSIDE_@}" "${!SLURM_@}" RANK LOCAL_RANK WORLD_SIZE OMPI_COMM_WORLD_RANK PMI_RANK PMIX_RANK \
	TORCHELASTIC_RUN_ID PBS_JOBID LSB_JOBID JOB_ID
[ -x "$job" ] || tap_skip_all "$job is not built: make tests"

# Regions need a tmpfs with room for a buffer of 128 MiB (a sixteenth of it); a disk also works.
room_kib() { df -kP "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }
process_shm=$tap_scratch
if [ -w /dev/shm ] && [ "$(room_kib /dev/shm)" -ge $((3 * 1024 * 1024)) ]; then
	process_shm=$(mktemp -d /dev/shm/process-test.XXXXXX)
fi
clean_up() {
	local mounted
	for mounted in "$tap_scratch"/mount.*; do
		[ ! -d "$mounted" ] || umount "$mounted" 2>/dev/null
	done
	chmod -R u+rwX "$tap_scratch" 2>/dev/null
	rm -rf "$tap_scratch" "$process_shm"
}
trap clean_up EXIT

# Fresh directories for the next job.
fresh() {
	rm -rf "$process_shm/shm" "$tap_scratch/traces"
	mkdir -p "$process_shm/shm"
	export RINGSIDE_SHM=$process_shm/shm RINGSIDE_DIR=$tap_scratch/traces
}
fresh

# Run a job with these options: its output goes to $said, its messages to $messages.
said=$tap_scratch/said
messages=$tap_scratch/messages
: >"$messages"
# A job that hangs fails.
run_job() { # option...
	timeout -k 5 120 "$job" "$@" >"$said" 2>"$messages"
}
# The same, and then what a reader finds, in $found.
found=$tap_scratch/found
run_and_read() { # option...
	local code
	fresh
	run_job "$@"
	code=$?
	read_facts
	return "$code"
}
read_facts() {
	"$facts" "$RINGSIDE_DIR" "$RINGSIDE_SHM" >"$found" 2>&1
}

# A value found by a reader, or printed by the job.
fact() { sed -n "s/^$1=//p" "$found" | head -n 1; }
truth() { sed -n "s/^$1=//p" "$said" | head -n 1; }

# Facts are as expected: "name=value name>value ..."; issued is the job's own count.
expect_facts() { # sentence wanted...
	local sentence=$1 wrong="" wanted name value got
	shift
	for wanted in "$@"; do
		name=${wanted%%[=>]*}
		value=${wanted#*[=>]}
		[ "$value" != issued ] || value=$(truth issued)
		got=$(fact "$name")
		case $wanted in
		*'>'*) [ "${got:-0}" -gt "$value" ] || wrong+="$name is ${got:-nothing}, wanted more than $value"$'\n' ;;
		*) [ "$got" = "$value" ] || wrong+="$name is ${got:-nothing}, wanted $value"$'\n' ;;
		esac
	done
	if [ -z "$wrong" ]; then
		tap_line ok "$sentence" ""
	else
		tap_line "not ok" "$sentence" "$wrong$(cat "$said" "$messages" "$found")"
	fi
}

# Every issued operation is read once or counted as lost, and the reader's totals agree.
expect_balance() { # sentence
	local all=$(($(fact operations) - $(fact recovered) + $(fact lost)))
	if [ "$all" = "$(truth issued)" ]; then
		expect_facts "$1" exact=1 twice=0 issued=issued missing=0 unread=0
	else
		tap_line "not ok" "$1" "read and lost are $all of $(truth issued)"$'\n'"$(cat "$found")"
	fi
}

expect_skip() { # sentence why
	tap_line ok "$1 # SKIP $2" ""
}

# The one line on stderr.
expect_message() { # sentence pattern
	if [ "$(wc -l <"$messages")" -eq 1 ] && grep -qE -- "$2" "$messages"; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "wanted one line like: $2"$'\n'"$(cat "$messages")"
	fi
}

# A small tmpfs, for root; its path in $mounted.
mount_small() { # size
	mounted=$(mktemp -d "$tap_scratch/mount.XXXXXX")
	mount -t tmpfs -o "size=$1" none "$mounted" 2>/dev/null
}
