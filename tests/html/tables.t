#!/usr/bin/env bash
# Tables of the page: correct numbers; sorted, filtered and saved by keyboard.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
"$BUILD/ringside" sim --offline --kernel --nodes 8 --gpus 8 -w tp-pp --iterations 4 -o "$tap_scratch/job" >/dev/null
html_page "$tap_scratch/job"
html_run tables.mjs "$tap_scratch/job"
