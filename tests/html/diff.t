#!/usr/bin/env bash
# The page of `ringside diff`, which has no scripts: layout on phone and desktop, light and dark; same content as the text.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
job() { # name option...
	local name=$1
	shift
	"$BUILD/ringside" sim --offline --kernel --nodes 2 --gpus 4 -w fsdp --seconds 10s "$@" -o "$tap_scratch/$name" >/dev/null
}
compare() { # name a b
	"$BUILD/ringside" diff "$tap_scratch/$2" "$tap_scratch/$3" --html -o "$tap_scratch/$1.html"
	"$BUILD/ringside" diff "$tap_scratch/$2" "$tap_scratch/$3" --json >"$tap_scratch/$1.json"
	COLUMNS=400 "$BUILD/ringside" diff "$tap_scratch/$2" "$tap_scratch/$3" >"$tap_scratch/$1.txt"
	[ -s "$tap_scratch/$1.html" ] || { echo "Bail out! ringside diff wrote no page"; exit 1; }
}
job before
job after --seed 2 -f degraded-network:factor=1.2
job again --seed 3 --channels 2
"$BUILD/ringside" sim --offline --kernel --nodes 1 --gpus 8 -w loop --seconds 2s -o "$tap_scratch/loop" >/dev/null
hostile='<img src=x onerror=alert(1)>&amp;".txt'
cp tests/foreign/data/nccl-tests-all-reduce.txt "$tap_scratch/$hostile"
compare slower before after
compare other before again
compare expected "$hostile" loop 2>/dev/null
html_run diff.mjs "$tap_scratch"
