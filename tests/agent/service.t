#!/usr/bin/env bash
# As a systemd service: notifications, socket activation, dropped privileges.
. "$(dirname "$0")/agent.sh"
command -v python3 >/dev/null || tap_skip_all "python3 is not installed"

# Listens as systemd does and writes down the messages.
heard=$tap_scratch/heard
cat >"$tap_scratch/listen.py" <<'END'
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1].replace("@", "\0"))
print("listening", flush=True)
while True:
    print(listener.recv(4096).decode(), flush=True)
END
listen_as() { # name
	: >"$heard"
	python3 "$tap_scratch/listen.py" "$1" >"$heard" &
	listener_pid=$!
	started+=("$listener_pid")
	until_ok grep -q listening "$heard"
}
hears() { grep -qE -- "$1" "$heard"; }

listen_as "$tap_scratch/notify"
before=(env "NOTIFY_SOCKET=$tap_scratch/notify" WATCHDOG_USEC=200000)
start_agent
expect_soon "it notifies when it is ready" hears '^READY=1$'
expect_soon "it sends watchdog messages" eval '[ "$(grep -c ^WATCHDOG=1 "$heard")" -ge 3 ]'
start_job ops=100000 comms=1 pace=100
expect_soon "it sends its status" hears '^STATUS=1 processes, 0 notices$'
stop_agent
expect_same "it exits with 0" "$?" 0
expect_soon "it notifies when it stops" hears '^STOPPING=1$'
kill "$listener_pid" "$job_pid"

listen_as "@ringside-test-$$"
before=(env "NOTIFY_SOCKET=@ringside-test-$$" WATCHDOG_USEC=200000 WATCHDOG_PID=1)
start_agent
expect_soon "an abstract socket name works" hears '^READY=1$'
kill -INT "$agent_pid"
wait "$agent_pid"
expect_same "SIGINT stops it, too" "$?" 0
expect_same "the watchdog of another process is ignored" "$(grep -c WATCHDOG "$heard")" 0
kill "$listener_pid"

# Socket activation.
cat >"$tap_scratch/activate.py" <<'END'
import os, socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], sys.argv[1:])
END
before=(python3 "$tap_scratch/activate.py")
start_agent_at
expect_code "a passed socket is used" 200 /healthz
stop_agent
before=(env LISTEN_FDS=1 LISTEN_PID=1)
start_agent
expect_code "a socket for another process is ignored" 200 /healthz
stop_agent
before=()
expect_refusal "an invalid descriptor" 3 "descriptor 3 is not a listening socket" \
	bash -c 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$0"' "$agent"
expect_refusal "too many sockets" 3 "at most 8 sockets are supported" \
	bash -c 'LISTEN_FDS=9 LISTEN_PID=$$ exec "$0"' "$agent"

# Lines for the journal have priorities.
: >"$log"
before=(env "JOURNAL_STREAM=$(stat -c '%d:%i' "$log")")
start_agent
expect_ok "lines for the journal begin with their priority" says '^<6>listening on http://'
stop_agent
before=()

status_of() { sed -n "s/^$1:\t//p" "/proc/$agent_pid/status"; }
start_agent
expect_same "no privileges can be gained" "$(status_of NoNewPrivs)" 1
expect_same "system calls are restricted" "$(status_of Seccomp)" 2
if [ "$(id -u)" = 0 ]; then
	expect_same "root keeps two capabilities: reading files and inspecting processes" "$(status_of CapEff)" 0000000000080004
	expect_same "and cannot pass any on" "$(status_of CapBnd) $(status_of CapInh)" "0000000000000000 0000000000000000"
	stop_agent
	rm -rf "$shm" && mkdir "$shm"
	chmod 755 "$tap_scratch" "$shm"
	start_job ops=100000 comms=1 pace=100
	start_agent --user nobody --listen "unix:$tap_scratch/group.sock" --group nogroup
	expect_same "it switched to another user" "$(status_of Uid | cut -f1-4 | tr '\t' ' ')" "$(printf '%s ' "$(id -u nobody)"{,,,} | sed 's/ $//')"
	expect_same "without the groups of root" "$(status_of Groups | tr -d ' ')" "$(getent group nogroup | cut -d: -f3)"
	expect_same "with the two capabilities" "$(status_of CapEff)" 0000000000080004
	expect_same "the group owns the socket" "$(stat -c %G "$tap_scratch/group.sock")" nogroup
	expect_soon "it sees processes of root" shows '^nccl_process_info{.*alive'
	kill "$job_pid"
	cp "$agent" "$tap_scratch/agent"
	if command -v setpriv >/dev/null; then
		expect_refusal "a normal user cannot become root" 3 "cannot switch user: .*requires root" \
			setpriv --reuid nobody --clear-groups "$tap_scratch/agent" -l 127.0.0.1:0 --user root
	fi
else
	expect_refusal "a normal user cannot become root" 3 "cannot switch user: .*requires root" \
		"$agent" -l 127.0.0.1:0 --user root
fi
stop_agent
expect_same "it exits with 0" "$?" 0

# Through `ringside agent`.
expect_ok "ringside agent executes the agent" grep -q "unexpected argument 'x'" <("$BUILD/ringside" agent x 2>&1)
cp "$BUILD/ringside" "$tap_scratch/ringside"
rm -f "$tap_scratch/ringside-agent"
expect_refusal "or reports that there is none" 3 "no ringside-agent beside .*apt install \./ringside-agent_\*\.deb.*wheel does not have it.*scripts/install-deps build" "$tap_scratch/ringside" agent
expect_ok "its help works without the agent" grep -q -- '--web-config' <("$tap_scratch/ringside" help agent)
tap_done
