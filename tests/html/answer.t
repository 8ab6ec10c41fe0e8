#!/usr/bin/env bash
# The summary of the page matches the JSON; the page makes no requests.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
html_job "$tap_scratch/job"
html_page "$tap_scratch/job"
"$BUILD/ringside" sim --offline --kernel --nodes 2 --gpus 2 -w ddp -f stuck-send:rank=1 --at 1s --seconds 40s -o "$tap_scratch/stuck" >/dev/null
html_page "$tap_scratch/stuck"
html_run answer.mjs "$tap_scratch/job" "$tap_scratch/stuck"
