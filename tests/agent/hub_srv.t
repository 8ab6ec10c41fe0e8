#!/usr/bin/env bash
# A hub finds agents through SRV records: a real name server, in a network of its own, where the system asks it.
if [ "${RINGSIDE_TEST_INSIDE:-}" != 1 ] && unshare -rmn true 2>/dev/null; then
	RINGSIDE_TEST_INSIDE=1 exec unshare -rmn "$0"
fi
. "$(dirname "$0")/agent.sh"
[ "${RINGSIDE_TEST_INSIDE:-}" = 1 ] || tap_skip_all "no namespaces here"
[ -x "$BUILD/ringside-fetch" ] || tap_skip_all "ringside-fetch was not built (no libcurl)"
[ -x "$BUILD/ringside" ] || tap_skip_all "ringside is not built"
for tool in python3 ip; do
	command -v "$tool" >/dev/null || tap_skip_all "there is no $tool"
done

# Not 127.0.0.x: there agents answer only to local names.
{
	ip link set lo up
	ip address add 10.77.0.1/32 dev lo
	ip address add 10.77.0.2/32 dev lo
} || tap_skip_all "cannot set up a network"
echo 'nameserver 127.0.0.1' >"$tap_scratch/resolv.conf"
echo 'hosts: files dns' >"$tap_scratch/nsswitch.conf"
for file in resolv.conf nsswitch.conf; do
	[ ! -e "/etc/$file" ] || mount --bind "$tap_scratch/$file" "/etc/$file" || tap_skip_all "cannot replace /etc/$file"
done
log=$tap_scratch/agent-1.log
start_agent_at --listen 10.77.0.1:9801
log=$tap_scratch/agent-2.log
start_agent_at --listen 10.77.0.2:9802

# SRV records of the names in the file, A records of the hosts; nothing else exists.
python3 -u - "$tap_scratch/records" >"$tap_scratch/ready" 2>"$tap_scratch/dns.log" <<'END' &
import socket, struct, sys
HOSTS = {"node1.cluster.test": "10.77.0.1", "node2.cluster.test": "10.77.0.2"}

def name(text):
    return b"".join(bytes([len(part)]) + part.encode() for part in text.split(".")) + b"\0"

def answer(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    kind, = struct.unpack("!H", query[at + 1:at + 3])
    asked, records = ".".join(labels), []
    for line in open(sys.argv[1], encoding="ascii"):
        service, port, target = line.split()
        if kind == 33 and service == asked:
            records.append(struct.pack("!HHH", 1, 1, int(port)) + name(target))
    if kind == 1 and asked in HOSTS:
        records.append(socket.inet_aton(HOSTS[asked]))
    exists = records or asked in HOSTS
    head = query[:2] + struct.pack("!HHHHH", 0x8580 | (0 if exists else 3), 1, len(records), 0, 0)
    return head + query[12:at + 5] + b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 1, len(data)) + data for data in records)

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready")
while True:
    query, client = server.recvfrom(4096)
    server.sendto(answer(query), client)
END
started+=($!)
until_ok test -s "$tap_scratch/ready"
echo '_ringside._tcp.cluster.test 9801 node1.cluster.test' >"$tap_scratch/records"

log=$tap_scratch/hub.log
: >"$log"
"$agent" hub --listen 127.0.0.1:0 --interval 1s --refresh 1s --timeout 5s --check 0s --dns _ringside._tcp.cluster.test 2>"$log" &
agent_pid=$!
started+=("$agent_pid")
until_ok eval 'is_listening || ! is_running'
url=$(sed -n 's|.*listening on \(http://[^,]*\).*|\1|p' "$log")
answering() { shows "^ringside_hub_agents\\{state=\"answering\"\\} $1\$"; }
expect_soon "the agent of an SRV record answers, at its own port" answering 1
echo '_ringside._tcp.cluster.test 9802 node2.cluster.test' >>"$tap_scratch/records"
expect_soon "one that is added is found" answering 2
echo '_ringside._tcp.cluster.test 9802 node2.cluster.test' >"$tap_scratch/records"
expect_soon "one that is removed goes" answering 1
expect_same "the source has no problem" \
	"$(fetch /api/v1/jobs | perl -MJSON::PP -0777 -ne 'my $s = decode_json($_)->{sources}[0]; print "$s->{kind} $s->{agents} ", $s->{problem} // "none"')" "dns 1 none"
stop_agent
tap_done
