#!/usr/bin/env bash
# Paths, status codes and headers.
. "$(dirname "$0")/agent.sh"

start_agent --listen '[::1]:0' --listen "unix:$tap_scratch/agent.sock" --host node7

expect_code "/metrics" 200 /metrics
expect_same "/metrics is text" "$(header_of Content-Type /metrics | cut -d';' -f1)" text/plain
expect_ok "and has the build info" grep -q '^ringside_build_info{' <(fetch /metrics)
expect_same "OpenMetrics on request" \
	"$(fetch /metrics -H 'Accept: application/openmetrics-text; version=1.0.0' | tail -n 1)" "# EOF"
expect_same "with its content type" \
	"$(header_of Content-Type /metrics -H 'Accept: application/openmetrics-text; version=1.0.0' | cut -d';' -f1)" \
	application/openmetrics-text
expect_same "gzip if accepted" "$(header_of Content-Encoding /metrics -H 'Accept-Encoding: br, gzip')" gzip
expect_ok "and it can be unpacked" grep -q '^ringside_build_info{' \
	<(fetch /metrics -H 'Accept-Encoding: gzip' | gzip -dc)
expect_same "no gzip if not accepted" "$(header_of Content-Encoding /metrics -H 'Accept-Encoding: gzip;q=0')" ""
expect_same "/healthz is JSON" \
	"$(fetch /healthz | perl -MJSON::PP -e 'local $/; my $h = decode_json(<>); print "$h->{status} $h->{host} $h->{processes}"')" \
	"ok node7 0"
for path in /api/v1/now /api/v1/summary /api/v1/history '/api/v1/history?after=1700000000000000000'; do
	expect_ok "$path is JSON" perl -MJSON::PP -e 'decode_json(shift)' "$(fetch "$path")"
done
expect_code "a time that is not a number" 400 '/api/v1/history?after=x'
expect_code "a negative time" 400 '/api/v1/history?after=-1'
expect_code "the page" 200 /
expect_same "the page is HTML" "$(header_of Content-Type / | cut -d';' -f1)" text/html
etag=$(header_of ETag /)
expect_code "the page again, unchanged" 304 / -H "If-None-Match: $etag"
expect_same "without a body" "$(fetch / -H "If-None-Match: $etag" | wc -c)" 0
expect_code "the page, changed" 200 / -H 'If-None-Match: "other"'
for path in /nothing /metrics/ //metrics /metrics%00 /../etc/passwd /%2e%2e/etc/passwd '/api/v1/' /METRICS; do
	expect_code "nothing at $path" 404 "$path" --path-as-is
done

expect_same "HEAD has no body" "$(fetch /metrics -I | tail -c 4 | od -An -c | tr -d ' \n')" '\r\n\r\n'
expect_same "and the length" "$(header_of Content-Length /healthz -I | grep -c '^[1-9]')" 1
for method in POST PUT DELETE OPTIONS PATCH TRACE FOO; do
	expect_code "$method is not allowed" 405 /metrics -X "$method"
done
expect_same "with the allowed methods" "$(header_of Allow /metrics -X POST)" "GET, HEAD"
expect_code "a request body is rejected" 413 /metrics -X GET -d x
expect_code "so is a chunked body" 413 /metrics -X GET -H 'Transfer-Encoding: chunked' -d x

for path in /metrics / /nothing /healthz /api/v1/now; do
	expect_same "headers of $path" \
		"$(header_of 'X-Content-Type-Options' "$path") $(header_of Referrer-Policy "$path") $(
			header_of Access-Control-Allow-Origin "$path" -H 'Origin: http://evil.example')" \
		"nosniff no-referrer "
	expect_ok "policy of $path" grep -q "frame-ancestors 'none'" <(header_of Content-Security-Policy "$path")
done

# DNS rebinding: a browser connects to loopback with another host name.
expect_code "another host name" 403 /metrics -H 'Host: evil.example'
expect_code "another host name with our port" 403 / -H "Host: evil.example:${url##*:}"
expect_code "localhost" 200 /metrics -H 'Host: localhost:1'
expect_code "the name of this host" 200 /metrics -H 'Host: NODE7'
expect_code "HTTP/1.0 without a name" 200 /metrics --http1.0 -H 'Host:'
expect_code "HTTP/1.1 without a name" 400 /metrics -H 'Host:'

first=$url
url=$(sed -n 's|.*listening on \(http://\[::1\][^,]*\)|\1|p' "$log")
expect_code "IPv6" 200 /metrics -g
expect_code "IPv6, another host name" 403 /metrics -g -H 'Host: evil.example'
url=http://anything
expect_code "a Unix socket, with any name" 200 /metrics --unix-socket "$tap_scratch/agent.sock"
expect_same "only its owner and group may use it" "$(stat -c %a "$tap_scratch/agent.sock")" 660
url=$first
expect_same "the log has only the addresses" "$(wc -l <"$log")" 3

# Pipelined requests are all answered.
answers_of() { # how many answers a raw text gets
	exec 3<>"/dev/tcp/127.0.0.1/${url##*:}"
	printf '%b' "$1" >&3
	timeout 60 cat <&3 | grep -ac '^HTTP/1.1 '
	exec 3<&-
}
expect_same "five requests at once" "$(answers_of "$(
	for _ in 1 2 3 4; do printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'; done
	printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n'
)")" 5

expect_same "runbooks are served as the program has them" "$(fetch /runbooks/NcclHangRankMissing.md)" "$(cat docs/runbooks/NcclHangRankMissing.md)"
expect_same "as text" "$(header_of Content-Type /runbooks/HangNetwork.md)" "text/plain; charset=utf-8"
while read -r alert; do
	answers 200 "/runbooks/$alert.md" || missing+=" $alert"
done < <(sed -n 's/^ *- alert: //p' deploy/prometheus/rules/*.yml | sort -u)
expect_same "each alert has one" "${missing:-}" ""
expect_code "other files are not" 404 /runbooks/../web.yml --path-as-is
expect_code "nor is the directory" 404 /runbooks/

stop_agent
expect_same "it exits with 0" "$?" 0
expect_ok "and removes its socket" test ! -e "$tap_scratch/agent.sock"

tap_done
