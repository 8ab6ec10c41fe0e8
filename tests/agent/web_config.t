#!/usr/bin/env bash
# TLS, certificates of clients, passwords; the configuration read anew while it runs.
. "$(dirname "$0")/agent.sh"
command -v openssl >/dev/null || tap_skip_all "there is no openssl"

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
signed() { # name purpose
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
		-keyout "$tap_scratch/$1.key" -out "$tap_scratch/$1.csr" 2>/dev/null
	openssl x509 -req -in "$tap_scratch/$1.csr" -CA "$tap_scratch/ca.crt" -CAkey "$tap_scratch/ca.key" -days 2 \
		-CAcreateserial -extfile <(echo "extendedKeyUsage=$2") -out "$tap_scratch/$1.crt" 2>/dev/null
}
signed client clientAuth
signed stranger serverAuth
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
	expect_code "a certificate that the client does not know" 000 /metrics $(with second)
	expect_code "TLS 1.3" 200 /metrics $(with server) --tlsv1.3
	expect_code "TLS 1.2" 200 /metrics $(with server) --tls-max 1.2
}
s_client() { # option...
	timeout 60 openssl s_client -connect "${url#https://}" "$@" </dev/null 2>&1
}
expect_ok "TLS 1.1 is not enough" grep -qE 'alert|error|no protocols' <(s_client -tls1_1 -cipher ALL@SECLEVEL=0)
expect_same "plain HTTP gets nothing" "$(curl -s --max-time 60 -o /dev/null -w '%{http_code}' "http://${url#https://}/metrics")" 000
expect_code "which harms nobody" 200 /healthz -k

# ---- read anew
tell() { # what the log should say after SIGHUP
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
expect_ok "SIGHUP reads it anew" tell 'read .*web.yml anew'
# shellcheck disable=SC2046
{
	expect_code "the new certificate" 200 /metrics $(with second)
	expect_code "and the old one no more" 000 /metrics $(with server)
	expect_code "the new least version" 000 /metrics $(with second) --tls-max 1.2
}
echo 'tls_server_config: {}' >"$web"
expect_ok "a wrong one is told" tell 'tls_server_config has no cert_file; going on with what was read before'
expect_code "and the old one stays" 200 /metrics --cacert "$tap_scratch/second.crt"
cat >"$web" <<END
tls_server_config:
  cert_file: server.crt
  key_file: second.key
END
expect_ok "a key that does not fit is told" tell 'server.crt with .*second.key: .*; going on'
expect_code "and the old one stays, too" 200 /metrics --cacert "$tap_scratch/second.crt"
rm "$web"
expect_ok "a file that is gone is told" tell 'cannot read .*; going on'

# ---- clients with certificates
cat >"$web" <<END
tls_server_config:
  cert_file: server.crt
  key_file: server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
END
expect_ok "clients are asked for certificates" tell 'read .*web.yml anew'
# shellcheck disable=SC2046
{
	expect_code "who has one" 200 /metrics $(with server) $(as client)
	expect_code "who has none" 000 /metrics $(with server)
	expect_code "one that somebody else signed" 000 /metrics $(with server) $(as second)
	expect_code "one that is for something else" 000 /metrics $(with server) $(as stranger)
	sed -i s/RequireAndVerify.*/VerifyClientCertIfGiven/ "$web"
	expect_ok "only if they have one" tell 'read .*web.yml anew'
	expect_code "who has none may pass then" 200 /metrics $(with server)
	expect_code "who has a wrong one may not" 000 /metrics $(with server) $(as second)
	expect_code "who has a good one may" 200 /metrics $(with server) $(as client)
	sed -i -e s/VerifyClientCertIfGiven/RequireAnyClientCert/ -e /client_ca/d "$web"
	expect_ok "any will do" tell 'read .*web.yml anew'
	expect_code "any does" 200 /metrics $(with server) $(as second)
	expect_code "none does not" 000 /metrics $(with server)
}

# ---- passwords: bcrypt's published vectors, "U*U" and "U*U*"
cat >"$web" <<'END'
basic_auth_users:
  alice: $2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW
http_server_config:
  headers:
    Strict-Transport-Security: max-age=42
END
expect_ok "passwords, and no TLS any more" tell 'read .*web.yml anew'
url=http://${url#https://}
for path in / /metrics /healthz /api/v1/now /nothing; do
	expect_code "no password at $path" 401 "$path"
done
expect_same "which is asked for" "$(header_of WWW-Authenticate /metrics | cut -d, -f1)" 'Basic realm="ringside"'
expect_code "the right password" 200 /metrics -u 'alice:U*U'
expect_soon "a wrong password" answers 401 /metrics -u 'alice:U*U*'
expect_ok "too many wrong passwords" grep -q 429 \
	<(curl -s -u 'alice:U*U**' -w '%{http_code}\n' "$url"/{a,b,c,d,e,f,g,h})
expect_code "the right one passes all the same" 200 /metrics -u 'alice:U*U'
expect_soon "a user who does not exist" answers 401 /metrics -u 'bob:U*U'
expect_code "another scheme" 401 /metrics -H 'Authorization: Bearer x'
expect_code "no base64" 401 /metrics -H 'Authorization: Basic !'
expect_same "the header that was asked for" "$(header_of Strict-Transport-Security /metrics -u 'alice:U*U')" max-age=42
cat >"$web" <<'END'
basic_auth_users:
  alice: $2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK
END
expect_ok "another password" tell 'read .*web.yml anew'
expect_soon "the old one is not remembered" answers 401 /metrics -u 'alice:U*U'
expect_soon "the new one is right" answers 200 /metrics -u 'alice:U*U*'
expect_same "the header is gone" "$(header_of Strict-Transport-Security /metrics -u 'alice:U*U*')" ""
stop_agent
expect_same "it ends well" "$?" 0

start_agent
expect_ok "SIGHUP without a configuration is no harm" tell 'no web configuration to read anew'
expect_code "as can be seen" 200 /metrics
stop_agent
tap_done
