#!/usr/bin/env bash
# The answer of NCCL's RAS goes into a bundle, if it really is NCCL's RAS that answers.
. "$(dirname "$0")/doctor.sh"
export LC_ALL=C
unset NCCL_RAS_ADDR
tool=$BUILD/ringside
[ -x "$tool" ] || tap_skip_all "the tool is not built"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

work=$tap_scratch
export RINGSIDE_SHM=$work/shm
mkdir -p "$RINGSIDE_SHM"
file_of() { # archive name
	tar xOf "$1" "ringside-bundle/$2"
}
has() { # archive name pattern
	grep -qE -- "$3" <<<"$(file_of "$1" "$2")"
}
bundle() { # option...
	"$tool" bundle "$@"
}
ras() { # kind: sets port
	python3 tests/doctor/ras_servers.py "$1" tests/gpu/ras/2.28.9-skip "$work/commands" >"$tap_scratch/port.$1" &
	started+=("$!")
	until_ok test -s "$tap_scratch/port.$1"
	port=$(cat "$tap_scratch/port.$1")
}
ras good
expect_ok "NCCL's RAS answers" bundle --ras "127.0.0.1:$port" -o "$work/ras.tar"
expect_same "its text is in the bundle, without control bytes" "$(file_of "$work/ras.tar" ras/status.txt | tail -n 1)" "  1 process MISSING?[31m"
expect_ok "and its JSON" has "$work/ras.tar" ras/status.json '"nccl_version": "2.28.9"'
export NCCL_RAS_ADDR=127.0.0.1:$port
bundle -o "$work/named.tar" >/dev/null
unset NCCL_RAS_ADDR
expect_ok "NCCL_RAS_ADDR has its address" has "$work/named.tar" ras/status.txt '^NCCL version 2.28.9'
ras old
bundle --ras "127.0.0.1:$port" -o "$work/old.tar" >/dev/null
expect_ok "an older release returns text" has "$work/old.tar" ras/status.txt '^Job summary'
expect_ok "and README says that there is no JSON" has "$work/old.tar" README.txt 'this NCCL release provides text only'
: >"$work/commands"
ras 2.31
bundle --ras "127.0.0.1:$port" -o "$work/plain.tar" >/dev/null
expect_same "diagnostics work in every rank of the job: only on request" "$(grep -c diagnostics "$work/commands")" 0
bundle --ras "127.0.0.1:$port" --ras-diagnostics -o "$work/diagnostics.tar" >/dev/null
expect_ok "then they are in the bundle" has "$work/diagnostics.tar" ras/diagnostics.txt 'NVLink: inactive'
file_of "$work/diagnostics.tar" ras/diagnostics.txt >"$work/diagnostics.log"
expect_ok "and the doctor reads them as a log" grep -q 'NVLinks are inactive' <<<"$("$tool" doctor --log "$work/diagnostics.log")"
ras 2.30
bundle --ras "127.0.0.1:$port" --ras-diagnostics -o "$work/earlier.tar" >/dev/null
expect_ok "a release that has none says so at once" has "$work/earlier.tar" README.txt 'rejects the request: ERROR: Unknown command diagnostics'
ras http
bundle --ras "127.0.0.1:$port" -o "$work/http.tar" >/dev/null
expect_ok "another service is reported as such" has "$work/http.tar" README.txt 'not NCCL.s RAS; the peer says: HTTP/1.1 400'
ras closes
bundle --ras "127.0.0.1:$port" -o "$work/closes.tar" >/dev/null
expect_ok "a server that closes at once" has "$work/closes.tar" README.txt 'connection was closed without an answer|reset by peer|Broken pipe'
ras flood
bundle --ras "127.0.0.1:$port" -o "$work/flood.tar" >/dev/null
expect_same "8 MiB of an endless answer are kept" "$(file_of "$work/flood.tar" ras/status.txt | wc -c)" 8388608
expect_ok "which is reported" has "$work/flood.tar" README.txt 'truncated: too long'
bundle --ras 127.0.0.1:1 -o "$work/nobody.tar" >/dev/null
expect_ok "no server is not a failure" has "$work/nobody.tar" README.txt 'cannot connect to 127.0.0.1:1: Connection refused'

bundle --ras nowhere -o "$work/wrong.tar" >/dev/null
expect_ok "an invalid address is reported" has "$work/wrong.tar" README.txt "'nowhere' is not HOST:PORT"
ras slow
bundle --ras "127.0.0.1:$port" -o "$work/slow.tar" >/dev/null
expect_ok "a server that never finishes is abandoned after some seconds" has "$work/slow.tar" README.txt 'timed out|no complete answer within'
tap_done
