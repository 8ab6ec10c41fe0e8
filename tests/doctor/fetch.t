#!/usr/bin/env bash
# ringside-fetch: what it fetches, and malicious servers.
. "$(dirname "$0")/doctor.sh"
[ -x "$fetch" ] || tap_skip_all "there is no ringside-fetch: it was built without libcurl"
command -v python3 >/dev/null || tap_skip_all "there is no python3"
# shellcheck disable=SC2119
start_servers

# Frames as lines "ID STATUS LENGTH TEXT", sorted; long ones without their text.
frames() {
	python3 -c '
import sys
data = sys.stdin.buffer.read()
rows = []
while data:
    head, _, data = data.partition(b"\n")
    number, status, length = head.split(b" ")
    body, data = data[:int(length)], data[int(length):]
    if len(body) != int(length):
        rows.append((int(number), "cut"))
        continue
    text = body.decode("latin-1").replace("\n", " ") if len(body) < 200 else "..."
    rows.append((int(number), "%d %s %d %s" % (int(number), status.decode(), len(body), text)))
for _, row in sorted(rows):
    print(row.rstrip())
'
}
ask() { # options... ; requests on standard input
	timeout 300 "$fetch" --timeout 60000 "$@" 2>"$tap_scratch/err" | frames
}

got=$(ask <<-REQUESTS
	0 http://$(address_of good)/a?b=c
	1 http://$(address_of packed)/
	2 http://$(address_of missing)/
	3 http://$(address_of redirect)/
	4 http://localhost:$(port_of refused)/
	5 http://no-such-host.invalid/
REQUESTS
)
expect_same "plain and compressed answers, and errors" "$got" "0 200 7 /a?b=c
1 200 9000 ...
2 404 12 no such page
3 302 0
4 0 34 cannot connect: Connection refused
5 0 25 its name does not resolve"
expect_same "a redirect is not followed" "$(grep -c root: <<<"$got")" 0

# All of them at once, with a good one after them in the queue. The endless ones continue for ten minutes.
for seconds in 4 30; do
	began=$SECONDS
	got=$(ask --timeout ${seconds}000 <<-REQUESTS
		0 http://$(address_of silent)/
		1 http://$(address_of drip)/
		2 http://$(address_of drip_head)/
		3 http://$(address_of good)/last
	REQUESTS
	)
	# A good one that was late: the machine is busy.
	[ "$(sed -n 4p <<<"$got")" = "3 0 $((29 + (seconds > 9))) no complete answer within $seconds s" ] || break
done
never="0 $((29 + (seconds > 9))) no complete answer within $seconds s"
expect_same "each request gets its frame" "$(cut -d ' ' -f 1 <<<"$got" | tr '\n' ' ')" "0 1 2 3 "
expect_same "a server that does not answer" "$(sed -n 1p <<<"$got")" "0 $never"
expect_same "a server that answers byte by byte" "$(sed -n 2p <<<"$got")" "1 $never"
expect_same "a server that sends its headers byte by byte" "$(sed -n 3p <<<"$got")" "2 $never"
expect_same "the good server is not held up" "$(sed -n 4p <<<"$got")" "3 200 6 /last"
expect_ok "no request takes longer than its time limit" test $((SECONDS - began)) -le 120
got=$(ask --limit 16MiB <<-REQUESTS
	0 http://$(address_of garbage)/
	1 http://$(address_of huge)/
	2 http://$(address_of endless)/
	3 http://$(address_of bomb)/
	4 http://$(address_of headers)/
	5 http://$(address_of half)/
	6 http://$(address_of closes)/
	7 http://$(address_of good)/last
REQUESTS
)
expect_same "each of these gets its frame" "$(cut -d ' ' -f 1 <<<"$got" | tr '\n' ' ')" "0 1 2 3 4 5 6 7 "
expect_ok "an answer that is not HTTP" grep -q "^0 0 .*HTTP" <<<"$got"
expect_same "a gigabyte" "$(sed -n 2p <<<"$got")" "1 0 33 the answer exceeds the size limit"
expect_same "a gigabyte without a Content-Length" "$(sed -n 3p <<<"$got")" "2 0 33 the answer exceeds the size limit"
expect_same "a decompression bomb" "$(sed -n 4p <<<"$got")" "3 0 33 the answer exceeds the size limit"
expect_ok "endless headers" grep -q "^4 0 " <<<"$got"
expect_same "an answer that ends early" "$(sed -n 6p <<<"$got")" \
	"5 0 52 it closed the connection in the middle of the answer"
expect_same "no answer at all" "$(sed -n 7p <<<"$got")" "6 0 42 it closed the connection without an answer"
expect_same "the good server after them" "$(sed -n 8p <<<"$got")" "7 200 6 /last"

# Busy servers that say when to retry.
got=$(ask <<-REQUESTS
	0 http://$(address_of soon)/
	1 http://$(address_of later)/?after=1000
	2 http://$(address_of later)/?after=0
	3 http://$(address_of later)/?after=-1
	4 http://$(address_of good)/
REQUESTS
)
expect_same "a busy server is asked again when it says, but not if that is too late or not a time" "$got" "0 200 7 at last
1 503 4 busy
2 503 4 busy
3 503 4 busy
4 200 2 /"
expect_same "each retry is sent once" "$(wc -l <"$tap_scratch/asked/soon") $(wc -l <"$tap_scratch/asked/later")" "3 3"
for seconds in 5 30; do
	got=$(echo "0 http://$(address_of later)/?after=1" | ask --timeout ${seconds}000)
	# The time may be over while it is asked.
	[ "$got" = "0 0 $((29 + (seconds > 9))) no complete answer within $seconds s" ] || break
done
expect_same "within the time limit, however long it is busy" "$got" "0 503 4 busy"

got=$(for i in $(seq 0 99); do echo "$i http://$(address_of good)/$i"; done | ask --parallel 7)
expect_same "a hundred requests, seven at a time" "$(grep -c '^[0-9]* 200 ' <<<"$got")" 100
got=$(for i in $(seq 0 9); do echo "$i http://$(address_of packed)/"; done | ask --total 50000 --parallel 1)
expect_same "all answers together are bounded" "$(grep -c ' 200 9000' <<<"$got") $(grep -c 'all answers together' <<<"$got")" "5 5"

echo 'basic me:secret' >"$tap_scratch/basic"
echo 'bearer token.of.mine' >"$tap_scratch/bearer"
chmod 644 "$tap_scratch/basic"
expect_refusal "a credentials file that everybody can read" 2 "chmod 600" "$fetch" --auth "$tap_scratch/basic"
chmod 600 "$tap_scratch/basic" "$tap_scratch/bearer"
expect_same "a password from a file" \
	"$(echo "0 http://$(address_of good)/" | ask --auth "$tap_scratch/basic")" \
	"0 200 35 / Authorization: Basic bWU6c2VjcmV0"
expect_same "a token from a file" \
	"$(echo "0 http://$(address_of good)/" | ask --auth "$tap_scratch/bearer")" \
	"0 200 37 / Authorization: Bearer token.of.mine"

expect_same "a proxy from the environment is not used" \
	"$(echo "0 http://$(address_of good)/" | http_proxy=http://$(address_of missing) ALL_PROXY=http://$(address_of missing) \
		ask --auth "$tap_scratch/bearer")" \
	"0 200 37 / Authorization: Bearer token.of.mine"

for bad in 'file:///etc/passwd' 'ftp://127.0.0.1/' 'gopher://127.0.0.1/' 'http://me:secret@127.0.0.1/' ''; do
	expect_refusal "refused: '$bad'" 2 "line 1 of the requests" "$fetch" <<<"0 $bad"
done
expect_refusal "an invalid credentials file" 2 "no line" "$fetch" --auth /dev/null
expect_refusal "no such credentials file" 2 "No such file" "$fetch" --auth "$tap_scratch/nothing"
expect_refusal "an invalid number" 2 "invalid number" "$fetch" --parallel 0
expect_refusal "an unexpected argument" 2 "unexpected argument" "$fetch" x
expect_same "nothing to do" "$("$fetch" </dev/null; echo $?)" 0

# Readers that are slow or go away.
"$fetch" <<<"0 http://$(address_of good)/" 2>/dev/null | true
expect_same "no crash if the reader goes away" "$((PIPESTATUS[0] < 2))" 1
got=$(for i in $(seq 0 19); do echo "$i http://$(address_of packed)/"; done | "$fetch" --parallel 20 --timeout 60000 |
	{ sleep 1; frames; })
expect_same "a slow reader gets everything" "$(grep -c ' 200 9000' <<<"$got")" 20

if command -v openssl >/dev/null && [ -x "$BUILD/ringside-agent" ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
		-addext subjectAltName=DNS:localhost -keyout "$tap_scratch/key" -out "$tap_scratch/crt" 2>/dev/null
	printf 'tls_server_config:\n  cert_file: crt\n  key_file: key\n' >"$tap_scratch/web.yml"
	"$BUILD/ringside-agent" --listen 127.0.0.1:0 --directory "$RINGSIDE_SHM" \
		--web-config "$tap_scratch/web.yml" 2>"$tap_scratch/agent.log" &
	started+=($!)
	until_ok grep -q 'listening on https' "$tap_scratch/agent.log"
	port=$(sed -n 's|.*listening on https://127.0.0.1:\([0-9]*\).*|\1|p' "$tap_scratch/agent.log")
	expect_same "TLS with a trusted certificate" \
		"$(echo "0 https://localhost:$port/healthz" | ask --cacert "$tap_scratch/crt" | cut -d ' ' -f 1,2)" "0 200"
	expect_ok "TLS with an untrusted certificate" grep -q '^0 0 .*certificate' \
		<(echo "0 https://localhost:$port/healthz" | ask)
	expect_same "--insecure accepts it" \
		"$(echo "0 https://localhost:$port/healthz" | ask --insecure | cut -d ' ' -f 1,2)" "0 200"
fi
if [ -x "$BUILD/ringside-agent" ]; then
	"$BUILD/ringside-agent" --listen "unix:$tap_scratch/agent.sock" --directory "$RINGSIDE_SHM" 2>"$tap_scratch/unix.log" &
	started+=($!)
	until_ok test -S "$tap_scratch/agent.sock"
	expect_same "through a Unix socket" \
		"$(echo "0 http://localhost/healthz $tap_scratch/agent.sock" | ask | cut -d ' ' -f 1,2)" "0 200"
	diagnose --agents "unix:$tap_scratch/agent.sock"
	expect_same "the doctor, too: an agent that has nothing" \
		"$? $(json_says '"$_->{answer} $_->{looked_at}{sources} $_->{looked_at}{sources_silent}"' "$tap_scratch/doctor.json")" \
		"3 could_not_tell 1 0"
fi
tap_done
