# shellcheck shell=bash
# For tests of the agent: source this instead of tap.sh. Each test has its own agents, on ports chosen by the
# system, and its own directory for regions.

. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
agent=${AGENT:-$BUILD/ringside-agent}
export LC_ALL=C
unset NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID LISTEN_FDS LISTEN_PID JOURNAL_STREAM RINGSIDE_SHM
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
[ -x "$agent" ] || tap_skip_all "ringside-agent was not built (no libmicrohttpd)"
command -v curl >/dev/null || tap_skip_all "curl is not installed"

shm=$tap_scratch/shm
log=$tap_scratch/agent.log
mkdir -p "$shm"
# A pipe that never delivers anything: readers wait for ever.
mkfifo "$tap_scratch/never"
exec 9<>"$tap_scratch/never"
agent_pid=
before=() # a command that executes the agent
started=()
clean_up() {
	local pid
	for pid in "${started[@]}"; do
		kill -9 "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	rm -rf "$tap_scratch"
}
trap clean_up EXIT

# Succeeds now or soon.
expect_soon() { # sentence command...
	local sentence=$1
	shift
	if until_ok "$@"; then
		tap_line ok "$sentence" ""
	else
		tap_line "not ok" "$sentence" "never: $*"$'\n'"$(tail -n 20 "$log" 2>/dev/null)"
	fi
}

is_listening() { grep -q '^ringside-[a-z]*: listening on\|^<6>listening on' "$log"; }
is_running() { kill -0 "$agent_pid" 2>/dev/null; }

# Starts an agent on a port chosen by the system; sets its pid, log and address.
start_agent() { # option...
	start_agent_at --listen 127.0.0.1:0 "$@"
}
start_agent_at() { # option...
	: >"$log"
	"${before[@]}" "$agent" --directory "$shm" "$@" 2>"$log" &
	agent_pid=$!
	started+=("$agent_pid")
	until_ok eval 'is_listening || ! is_running'
	url=$(sed -n 's|.*listening on \(https*://[^,]*\).*|\1|p' "$log" | head -n 1)
}
stop_agent() {
	kill -TERM "$agent_pid"
	wait "$agent_pid"
}

fetch() { # path curl-option...
	local path=$1
	shift
	curl -sS --max-time 60 "$@" "$url$path"
}
# The status code of an answer.
code_of() { # path curl-option...
	fetch "$@" -o /dev/null -w '%{http_code}' 2>/dev/null
}
answers() { # code path curl-option...
	local wanted=$1
	shift
	[ "$(code_of "$@")" = "$wanted" ]
}
expect_code() { # sentence code path curl-option...
	local sentence=$1 wanted=$2
	shift 2
	expect_same "$sentence" "$(code_of "$@")" "$wanted"
}
# A header of an answer; how often a pattern is in the log.
header_of() { # name path curl-option...
	local name=$1
	shift
	fetch "$@" -D - -o /dev/null | tr -d '\r' | sed -n "s/^$name: //Ip"
}
times_said() { # pattern
	grep -cE -- "$1" "$log"
}
shows() { # pattern: /metrics has such a line
	grep -qE -- "$1" <<<"$(fetch /metrics)"
}
says() { # pattern
	grep -qE -- "$1" "$log"
}

# A rejected command line prints exactly one line.
expect_refusal() { # sentence code pattern command...
	local sentence=$1 code=$2 pattern=$3 got
	shift 3
	timeout 60 "$@" >"$tap_scratch/out" 2>"$tap_scratch/err"
	got=$?
	if [ "$got" -ne "$code" ] || ! grep -qE -- "$pattern" "$tap_scratch/err" ||
		[ "$(wc -l <"$tap_scratch/err")" -ne 1 ]; then
		tap_line "not ok" "$sentence" "exit $got, wanted $code and one line like: $pattern
$(cat "$tap_scratch/err")"
	else
		tap_line ok "$sentence" ""
	fi
}

# A simulated job that runs until it is stopped, and then ends cleanly.
start_sim() { # option...
	[ -x "$BUILD/ringside" ] || tap_skip_all "ringside is not built"
	RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB "$BUILD/ringside" sim --kernel --seconds 600s "$@" >"$tap_scratch/sim" 2>&1 &
	sim_pid=$!
	started+=("$sim_pid")
}
stop_sim() { # signal
	kill "-$1" "$sim_pid"
	wait "$sim_pid" 2>/dev/null
}

# A job with one process that loads the plugin and follows its options; it runs until it is killed.
start_job() { # option...
	[ -x "$BUILD/tests/process/process_job" ] || tap_skip_all "process_job is not built: make tests"
	PLUGIN=$BUILD/libnccl-profiler-ringside.so RINGSIDE_SHM=$shm RINGSIDE_DIR=$tap_scratch/traces \
		RINGSIDE_BUFFER=4MiB \
		"$BUILD/tests/process/process_job" end=hold "$@" >"$tap_scratch/job" 2>&1 <&9 &
	job_pid=$!
	started+=("$job_pid")
	# Suppress the shell's message about its end.
	disown "$job_pid"
}
