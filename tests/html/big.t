#!/usr/bin/env bash
# The page of a job with thousands of ranks has a few megabytes, and the browser opens it.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
"$BUILD/ringside" sim --offline --kernel --nodes 520 --gpus 8 -w loop --sizes 1MiB --iterations 30 -o "$tap_scratch/job" >/dev/null
"$BUILD/ringside" report "$tap_scratch/job" --html "$tap_scratch/job.html" >/dev/null
rm -rf "$tap_scratch/job"
html_run big.mjs "$tap_scratch/job.html"
