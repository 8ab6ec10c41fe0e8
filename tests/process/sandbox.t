#!/usr/bin/env bash
# A sandbox refuses the plugin's system calls, one kind at a time: the job is unharmed, everything is recorded or counted, and
# a line says what is not recorded. SANDBOX_ERRORS: what the sandbox answers; SANDBOX_EACH: also refuse every single call.
. "$(dirname "$0")/process.sh"

refused=$BUILD/tests/process/process_refused
export RINGSIDE_MODE=full RINGSIDE_BUFFER=1MiB
fresh
timeout -k 5 120 "$refused" list >"$said" 2>"$messages"
code=$?
[ "$code" -ne 4 ] || tap_skip_all "no seccomp filter with a listener here: $(cat "$messages")"
expect_same "the job runs in a sandbox" "$code" 0
read_facts
expect_balance "and is recorded"
made=$(truth made)

documented=$(sed -n '/^## Seccomp/,/^## /p' docs/CONTAINERS.md | sed -n '/^```/,/^```/p' | tr -s ' ' '\n')
tried=
# The calls of the job in this set-up that were not refused before, in $names.
find_names() { # setting...
	fresh
	env "$@" timeout -k 5 120 "$refused" list >"$said" 2>"$messages"
	names=$(grep -v = "$said" | grep -vxF -f <(echo "$tried"))
	tried+=$'\n'$names
	expect_same "all system calls are documented: $*" "$(grep -vxF -f <(echo "$documented") <<<"$names")" ""
}

# What went wrong with the last job, or nothing.
find_fault() { # exit status, "counted" if no line is needed, call
	local all
	[ "$1" -eq 0 ] || echo "exit status $1"
	[ "$(truth issued)" = 300 ] || echo "issued $(truth issued)"
	# libc calls it at the end of a thread, and not if the process ends before.
	[ "$(truth refused)" -gt 0 ] || [ "$3" = madvise ] || echo "nothing was refused"
	[ "$(wc -l <"$messages")" -le 1 ] || cat "$messages"
	grep -v '^ringside: ' "$messages"
	read_facts
	if [ "$(fact processes)" = 1 ]; then
		all=$(($(fact operations) - $(fact recovered) + $(fact lost)))
		[ "$all,$(fact exact)" = 300,1 ] || echo "read and lost: $all, exact=$(fact exact)"
	elif [ ! -s "$messages" ]; then
		echo "nothing is recorded, and no line says so"
	fi
	[ -s "$messages" ] || [ "$(fact lost)" = 0 ] || [ -n "$2" ] || echo "$(fact lost) lost, and no line says so"
}
refuse_all() { # setting...
	local name error wrong fault
	find_names "$@"
	for name in $names; do
		wrong=
		for error in ${SANDBOX_ERRORS:-EPERM ENOSYS}; do
			# libc's threads make some calls at their end, unless the process ends before them.
			for _ in 1 2 3 4 5; do
				in_sandbox "$name" "$error" "$@"
				code=$?
				[ "$(truth refused)" -eq 0 ] || break
			done
			fault=$(find_fault "$code" "" "$name")
			[ -z "$fault" ] || wrong+="$error: $fault"$'\n'
		done
		expect_same "$name is refused" "$wrong" ""
	done
}
# Some file systems have no writes that never block, so stderr is a pipe.
in_sandbox() { # call error setting...
	fresh
	{ env "${@:3}" timeout -k 5 120 "$refused" "$1" "$2" 2>&1 >"$said"; } | cat >"$messages"
	return "${PIPESTATUS[0]}"
}
refuse_all RINGSIDE_MODE=full
refuse_all NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$tap_scratch/inspector"
# No shared memory but the process's own, and a group that has to be looked up.
refuse_all RINGSIDE_SHM="$tap_scratch/none" RINGSIDE_GROUP="$(id -gn)"

# The call in the middle of a file's life fails alone. A failing disk is no reason for a line: its losses are counted.
if [ -n "${SANDBOX_EACH:-}" ]; then
	wrong=
	for ((i = 1; i <= made; i++)); do
		in_sandbox "$i" EPERM
		code=$?
		# The number of calls varies a little with the waiting of threads.
		[ "$(truth refused)" != 0 ] || continue
		fault=$(find_fault "$code" counted "")
		[ -z "$fault" ] || wrong+="call $i: $fault"$'\n'
	done
	expect_same "each of $made calls is refused alone" "$wrong" ""
fi
tap_done
