#!/usr/bin/env bash
# NCCL's RAS next to real hung jobs: it adds to verdicts, is never believed blindly, and cannot be used against us.
. "$(dirname "$0")/doctor.sh"
export LC_ALL=C
unset NCCL_RAS_ADDR
tool=$BUILD/ringside
[ -x "$tool" ] || tap_skip_all "the tool is not built"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

work=$tap_scratch
data=tests/gpu/ras
commands=$work/commands
: >"$commands"
ras() { # kind [answer]: sets port
	rm -f "$work/port"
	python3 tests/doctor/ras_servers.py "$1" "${2:-}" "$commands" >"$work/port" &
	started+=("$!")
	until_ok test -s "$work/port"
	port=$(cat "$work/port")
}
# Its verdicts in one line each, without line breaks in the evidence.
doctor() { # option...
	"$tool" doctor --json --hang 5s "$@" 2>/dev/null | python3 -c '
import json, sys
for verdict in json.load(sys.stdin)["verdicts"]:
    print(verdict["class"], verdict["rule"] or "-", verdict["rank"], verdict["confidence"], verdict["title"], "|", " ".join(verdict["evidence"]))'
}
first() { # option...
	doctor "$@" | sed -n 1p
}
bare() { # name: the snapshots alone
	mkdir -p "$work/$1"
	tar xf "$data/$1.tar" -C "$work/$1"
	rm -r "$work/$1/ringside-bundle/ras"
}
for name in skip kill stop torch; do
	bare "$name"
done

# ---- bundles: both formats ------------------------------------------------------------------------
said=$(first "$data/skip.tar")
expect_ok "a skipped call: RAS agrees" grep -q "never_issued.*NCCL's RAS: it has launched 10 AllReduce on this communicator, others 11" <<<"$said"
said=$(first "$data/torch.tar")
expect_ok "the same of PyTorch" grep -q "never_issued - 2 .*NCCL's RAS: it has launched 10 AllReduce" <<<"$said"
said=$(first "$data/kill.tar")
expect_ok "a killed rank: JSON of 2.28.9 lacks a comma, and is read" grep -q "process_dead.*has not answered for a minute or more.*asynchronous error: 0, 2" <<<"$said"
said=$(first "$data/stop.tar")
expect_ok "a stopped rank is not called dead, whatever RAS calls it" grep -q "process_stopped.*has not answered for a minute or more" <<<"$said"
for name in skip kill stop; do
	cp "$data/$name.tar" "$work/$name.tar"
	tar --delete -f "$work/$name.tar" ringside-bundle/ras/status.json
	expect_ok "$name: the text says the same" grep -q "NCCL's RAS: " <<<"$(first "$work/$name.tar")"
done

# ---- live: releases as their sources have them ------------------------------------------------------
without=$(first "$work/skip")
expect_same "without RAS there is no word of it" "$(grep -c RAS <<<"$without")" 0
for release in 2.24 2.26 2.28 2.29 2.30 2.31 2.32; do
	ras "$release" "$data/2.28.9-skip"
	expect_ok "asked as $release" grep -q "NCCL's RAS: it has launched 10 AllReduce" <<<"$(first --ras "127.0.0.1:$port" "$work/skip")"
done
ras shy "$data/2.28.9-skip"
expect_ok "a stopped process accepts connections: another one is asked" grep -q "NCCL's RAS: it has launched" <<<"$(first --ras "127.0.0.1:$port" "$work/skip")"
ras 2.31 "$data/2.28.9-calm"
expect_same "RAS saying OK does not make a hang smaller" "$(first --ras "127.0.0.1:$port" "$work/kill")" "$(first "$work/kill")"
ras 2.30 "$data/2.30.7-kill"
said=$(doctor --ras "127.0.0.1:$port" "$work/skip")
expect_same "the answer of another job adds nothing" "$(head -n 1 <<<"$said")" "$without"
expect_ok "which is reported" grep -q "blind ras .*answers for another job" <<<"$said"
sed '0,/"async_error": 0/s//"async_error": 3/' "$data/2.28.9-skip.json" >"$work/error.json"
ras 2.28 "$work/error"
said=$("$tool" doctor --json --hang 60m --ras "127.0.0.1:$port" "$work/skip" 2>/dev/null)
expect_ok "without a hang an error is a finding of its own" grep -q "NCCL has an asynchronous error on rank 0: internal error" <<<"$said"

# ---- hostile ones ---------------------------------------------------------------------------------------
for kind in garbage nested cut http closes flood silent slow; do
	ras "$kind"
	said=$(doctor --ras "127.0.0.1:$port" "$work/skip")
	expect_same "$kind: the verdict is that without RAS" "$(head -n 1 <<<"$said")" "$without"
	expect_ok "$kind: and that RAS cannot be used is reported" grep -q "blind NCCL's RAS" <<<"$said"
done
expect_ok "nobody listens: reported" grep -q "blind NCCL's RAS .*cannot connect" <<<"$(doctor --ras 127.0.0.1:1 "$work/skip")"

expect_same "nothing was ever sent but questions" "$(sort -u "$commands")" "client protocol 2
set format json
timeout 5
verbose status"
tap_done
