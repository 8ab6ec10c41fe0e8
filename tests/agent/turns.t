#!/usr/bin/env bash
# Between two rounds of serving the agent makes at most one response body, whatever clients
# ask for at the same time.
. "$(dirname "$0")/agent.sh"
! ldd "$agent" | grep -q libasan || tap_skip_all "nothing can be preloaded before AddressSanitizer"

# Writes a line per round in which bodies were made: how many. The agent's loop waits for 32 events at a time, libmicrohttpd for
# another number.
"${CC:-cc}" -shared -fPIC -D_GNU_SOURCE -x c -o "$tap_scratch/shim.so" - -ldl <<'END' || exit 1
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
static unsigned int bodies;
void *MHD_create_response_from_buffer_with_free_callback_cls(size_t size, const void *bytes, void (*done)(void *), void *context)
{
	void *(*real)(size_t, const void *, void (*)(void *), void *) = dlsym(RTLD_NEXT, __func__);

	if (done != free) /* libmicrohttpd 1.0 makes short texts with it, too */
		bodies++;
	return real(size, bytes, done, context);
}
int epoll_wait(int epoll, struct epoll_event *events, int count, int ms)
{
	int (*real)(int, struct epoll_event *, int, int) = dlsym(RTLD_NEXT, __func__);
	FILE *file;

	if (count == 32 && bodies > 0) {
		file = fopen(getenv("TURNS"), "ae");
		fprintf(file, "%u\n", bodies);
		fclose(file);
		bodies = 0;
	}
	return real(epoll, events, count, ms);
}
END
turns=$tap_scratch/turns
: >"$turns"

# All requests are there before the agent runs again, which also has a scan due then. Prints the answers' codes.
cat >"$tap_scratch/ask.py" <<'END'
import os, signal, socket, sys, time
pid, port = int(sys.argv[1]), int(sys.argv[2])
kinds = ["text/plain", "application/openmetrics-text",
         "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"]
asked = [("/metrics", "Accept: %s\r\n" % kind) for kind in kinds] + [("/api/v1/now", ""), ("/api/v1/summary", ""),
         ("/api/v1/history?after=0", ""), ("/api/v1/snapshot", ""), ("/healthz", "")]
asked += [(path, more + "Accept-Encoding: gzip\r\n") for path, more in asked]
os.kill(pid, signal.SIGSTOP)
clients = []
for path, more in asked:
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n" % (path, more)).encode())
    clients.append(client)
# Longer than between two scans.
time.sleep(2.5)
os.kill(pid, signal.SIGCONT)
codes = []
for client in clients:
    got = b""
    while True:
        more = client.recv(65536)
        if not more:
            break
        got += more
    codes.append(got.split()[1].decode() if got else "none")
print(" ".join(sorted(set(codes))))
END

before=(env "LD_PRELOAD=$tap_scratch/shim.so" "TURNS=$turns")
start_agent --keep 5m
start_sim --nodes 1 --gpus 4 -w ddp --rate 50
expect_soon "the job is shown" shows '^ringside_agent_processes\{state="alive"\} 4$'
: >"$turns"
expect_same "all are answered" "$(python3 "$tap_scratch/ask.py" "$agent_pid" "${url##*:}")" 200
# Some may still be there from the scan before.
expect_ok "most had to be made" test "$(awk '{ n += $1 } END { print n + 0 }' "$turns")" -ge 10
expect_same "one at a time" "$(sort -u "$turns" | tr '\n' ' ')" "1 "
stop_sim TERM
stop_agent
tap_done
