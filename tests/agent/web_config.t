#!/usr/bin/env bash
# TLS, client certificates, passwords; reloading the configuration.
. "$(dirname "$0")/agent.sh"
command -v openssl >/dev/null || tap_skip_all "openssl is not installed"

web=$tap_scratch/web.yml
certificate() { # name subject extension...
	local name=$1 subject=$2
	shift 2
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$subject" \
		-keyout "$tap_scratch/$name.key" -out "$tap_scratch/$name.crt" "$@" 2>/dev/null
}
certificate server localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1
certificate second localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1
certificate ca clients
signed() { # name purpose [CA [days]]
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
		-keyout "$tap_scratch/$1.key" -out "$tap_scratch/$1.csr" 2>/dev/null
	openssl x509 -req -in "$tap_scratch/$1.csr" -CA "$tap_scratch/${3:-ca}.crt" -CAkey "$tap_scratch/${3:-ca}.key" -days "${4:-2}" \
		-CAcreateserial -extfile <(echo "extendedKeyUsage=$2") -out "$tap_scratch/$1.crt" 2>/dev/null
}
signed client clientAuth
signed stranger serverAuth
signed expired clientAuth ca -1
certificate impostor clients # a CA of the same name
signed forged clientAuth impostor
with() { echo --cacert "$tap_scratch/$1.crt"; }
as() { echo --cert "$tap_scratch/$1.crt" --key "$tap_scratch/$1.key"; }

# ---- TLS
cat >"$web" <<END
tls_server_config:
  cert_file: server.crt
  key_file: server.key
END
start_agent --web-config "$web"
# shellcheck disable=SC2046
{
	expect_same "the address is https" "${url%%:*}" https
	expect_code "TLS" 200 /metrics $(with server)
	expect_code "an unknown certificate" 000 /metrics $(with second)
	expect_code "TLS 1.3" 200 /metrics $(with server) --tlsv1.3
	expect_code "TLS 1.2" 200 /metrics $(with server) --tls-max 1.2
}
s_client() { # option...
	timeout 60 openssl s_client -connect "${url#https://}" "$@" </dev/null 2>&1
}
for version in 1 1_1; do # 1.0 and 1.1
	expect_ok "-tls$version is rejected" grep -q 'Cipher is (NONE)' <(s_client "-tls$version" -cipher ALL@SECLEVEL=0)
done
expect_same "plain HTTP gets nothing" "$(curl -s --max-time 60 -o /dev/null -w '%{http_code}' "http://${url#https://}/metrics")" 000
expect_code "and does no harm" 200 /healthz -k
# A client that negotiates repeatedly would cost a key exchange each time. It types R and gets no second handshake.
mkfifo "$tap_scratch/typed"
exec 8<>"$tap_scratch/typed"
printf 'R\n' >&8
timeout 60 openssl s_client -connect "${url#https://}" -tls1_2 <&8 >"$tap_scratch/again" 2>&1
expect_same "renegotiation ends the connection" "$? $(tail -n 2 "$tap_scratch/again" | tr '\n' ' ')" "0 RENEGOTIATING closed "
expect_code "and does no harm either" 200 /healthz -k
# A session from before client certificates are required, for later.
request='GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
ask() { # option...
	printf '%b' "$request" | timeout 60 openssl s_client -connect "${url#https://}" -ign_eof "$@" 2>/dev/null | grep -c '^HTTP/1.1 200'
}
expect_same "a session is kept" "$(ask -tls1_2 -sess_out "$tap_scratch/session")" 1

# ---- reload
tell() { # expected log line after SIGHUP
	local before
	before=$(times_said "$1")
	kill -HUP "$agent_pid"
	until_ok eval "[ \"\$(times_said '$1')\" -gt $before ]"
}
cat >"$web" <<END
tls_server_config:
  cert_file: second.crt
  key_file: second.key
  min_version: TLS13
END
expect_ok "SIGHUP reloads it" tell 'reloaded .*web.yml'
# shellcheck disable=SC2046
{
	expect_code "the new certificate" 200 /metrics $(with second)
	expect_code "and no longer the old one" 000 /metrics $(with server)
	expect_code "the new minimum version" 000 /metrics $(with second) --tls-max 1.2
}
echo 'tls_server_config: {}' >"$web"
expect_ok "an invalid configuration is logged" tell 'tls_server_config has no cert_file; keeping the previous configuration'
expect_code "and the old one is kept" 200 /metrics --cacert "$tap_scratch/second.crt"
cat >"$web" <<END
tls_server_config:
  cert_file: server.crt
  key_file: second.key
END
expect_ok "a key that does not match is logged" tell 'server.crt with .*second.key: .*; keeping'
expect_code "and the old one is kept again" 200 /metrics --cacert "$tap_scratch/second.crt"
rm "$web"
expect_ok "a missing file is logged" tell 'cannot read .*; keeping'

# ---- clients with certificates
cat >"$web" <<END
tls_server_config:
  cert_file: server.crt
  key_file: server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
END
expect_ok "client certificates are required" tell 'reloaded .*web.yml'
# shellcheck disable=SC2046
{
	expect_code "a client with a certificate" 200 /metrics $(with server) $(as client)
	expect_code "a client without one" 000 /metrics $(with server)
	expect_code "a certificate signed by someone else" 000 /metrics $(with server) $(as second)
	expect_code "a certificate for another purpose" 000 /metrics $(with server) $(as stranger)
	expect_code "a certificate of another CA with the same name" 000 /metrics $(with server) $(as forged)
	if [ -s "$tap_scratch/expired.crt" ]; then
		expect_code "an expired certificate" 000 /metrics $(with server) $(as expired)
	else
		tap_line ok "an expired certificate # SKIP this openssl makes none" ""
	fi
	expect_same "a session from before without a certificate" "$(ask -tls1_2 -sess_in "$tap_scratch/session")" 0
	expect_same "with TLS 1.2 and one" "$(ask -tls1_2 -cert "$tap_scratch/client.crt" -key "$tap_scratch/client.key")" 1
	expect_same "without one, TLS 1.2" "$(ask -tls1_2)" 0
	expect_same "plain HTTP gets nothing either" "$(curl -s --max-time 60 -o /dev/null -w '%{http_code}' "http://${url#https://}/metrics")" 000
	sed -i s/RequireAndVerify.*/VerifyClientCertIfGiven/ "$web"
	expect_ok "certificates are verified if given" tell 'reloaded .*web.yml'
	expect_code "no certificate is accepted" 200 /metrics $(with server)
	expect_code "a wrong one is not" 000 /metrics $(with server) $(as second)
	expect_code "nor a forged one" 000 /metrics $(with server) $(as forged)
	expect_code "a valid one is" 200 /metrics $(with server) $(as client)
	sed -i -e s/VerifyClientCertIfGiven/RequireAnyClientCert/ -e /client_ca/d "$web"
	expect_ok "any certificate is accepted" tell 'reloaded .*web.yml'
	expect_code "any certificate" 200 /metrics $(with server) $(as second)
	expect_code "none" 000 /metrics $(with server)
}

# ---- passwords: bcrypt's published vectors, "U*U" and "U*U*"
cat >"$web" <<'END'
basic_auth_users:
  alice: $2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW
http_server_config:
  headers:
    Strict-Transport-Security: max-age=42
END
expect_ok "passwords without TLS" tell 'reloaded .*web.yml'
url=http://${url#https://}
for path in / /metrics /healthz /api/v1/now /nothing; do
	expect_code "no password at $path" 401 "$path"
done
expect_same "a password is requested" "$(header_of WWW-Authenticate /metrics | cut -d, -f1)" 'Basic realm="ringside"'
expect_code "the right password" 200 /metrics -u 'alice:U*U'
expect_soon "a wrong password" answers 401 /metrics -u 'alice:U*U*'
expect_same "many wrong passwords" "$(curl -s -u 'alice:U*U**' -w '\n%{http_code}\n' "$url"/{a,b,c,d,e,f,g,h} | grep -E '^[0-9]+$' | sort -u)" 401
expect_code "the right one still works" 200 /metrics -u 'alice:U*U'
expect_soon "a user who does not exist" answers 401 /metrics -u 'bob:U*U'
expect_code "another scheme" 401 /metrics -H 'Authorization: Bearer x'
expect_code "invalid base64" 401 /metrics -H 'Authorization: Basic !'
expect_same "the configured header" "$(header_of Strict-Transport-Security /metrics -u 'alice:U*U')" max-age=42
cat >"$web" <<'END'
basic_auth_users:
  alice: $2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK
END
expect_ok "another password" tell 'reloaded .*web.yml'
expect_soon "the old one is not cached" answers 401 /metrics -u 'alice:U*U'
expect_soon "the new one works" answers 200 /metrics -u 'alice:U*U*'
expect_same "the header is gone" "$(header_of Strict-Transport-Security /metrics -u 'alice:U*U*')" ""
stop_agent
expect_same "it exits with 0" "$?" 0

start_agent
expect_ok "SIGHUP without a configuration is harmless" tell 'no web configuration to reload'
expect_code "the agent still serves requests" 200 /metrics
stop_agent
# ---- guessing: 28 connections from the same address, of which 20 are kept and 8 are new for each password
guess() {
	python3 tests/agent/hostile_clients.py guess 127.0.0.1 "${url##*:}" <"$tap_scratch/guess" >"$tap_scratch/guessed" &
	guess_pid=$!
	started+=("$guess_pid")
	exec 4>"$tap_scratch/guess"
	until_ok grep -q holding "$tap_scratch/guessed"
}
if command -v python3 >/dev/null; then
	for name in alice bob carol dave; do
		# shellcheck disable=SC2016
		echo "  $name: \$2a\$05\$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
	done | sed '1i basic_auth_users:' >"$web"
	mkfifo "$tap_scratch/guess"
	start_agent --web-config "$web"
	guess
	for name in alice bob carol dave; do
		expect_code "the right password gets in while others are guessed: $name" 200 /healthz -u "$name:U*U"
	done
	exec 4>&-
	wait "$guess_pid"
	expect_ok "none of the others did" grep -qE '^guessed [1-9][0-9]* wrong, 0 right' "$tap_scratch/guessed"
	stop_agent
	expect_same "it exits with 0 after guesses" "$?" 0
fi
tap_done
