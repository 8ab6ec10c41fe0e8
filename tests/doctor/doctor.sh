# shellcheck shell=bash
# For tests of the doctor: source this instead of tap.sh. start_servers starts servers, which are ended at exit.

. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"
# shellcheck disable=SC2034
fetch=$BUILD/ringside-fetch
unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY NO_COLOR
export RINGSIDE_SHM=$tap_scratch/shm
mkdir -p "$RINGSIDE_SHM" "$tap_scratch/asked"
started=()
clean_up() {
	local pid
	exec 8>&- 2>/dev/null
	for pid in "${started[@]}"; do
		kill -9 "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	rm -rf "$tap_scratch"
}
trap clean_up EXIT

# See hostile_servers.py; PATH=FILE is what the good server answers for PATH.
start_servers() { # [PATH=FILE...]
	mkfifo "$tap_scratch/servers.in"
	python3 tests/doctor/hostile_servers.py "$tap_scratch/asked" "$@" \
		<"$tap_scratch/servers.in" >"$tap_scratch/servers" 2>"$tap_scratch/servers.err" &
	started+=($!)
	exec 8>"$tap_scratch/servers.in"
	until_ok grep -q ready "$tap_scratch/servers" || tap_skip_all "no servers: $(cat "$tap_scratch/servers.err")"
}
port_of() { # server
	sed -n "s/^$1 //p" "$tap_scratch/servers"
}
address_of() { # server
	echo "127.0.0.1:$(port_of "$1")"
}

# A finished job with traces.
simulate() { # name option...
	local name=$1
	shift
	"$ringside" sim --offline --kernel --seed 7 -o "$tap_scratch/$name" "$@" >/dev/null 2>"$tap_scratch/sim.err" ||
		{ cat "$tap_scratch/sim.err"; exit 1; }
}

# The doctor's JSON, and one value from it.
diagnose() { # option... ; into $tap_scratch/doctor.json; returns the exit code
	"$ringside" doctor --json "$@" >"$tap_scratch/doctor.json" 2>"$tap_scratch/doctor.err"
}
