#!/usr/bin/env bash
# The charts are drawn and react to mouse and keyboard.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
html_job "$tap_scratch/job"
html_page "$tap_scratch/job"
html_run charts.mjs "$tap_scratch/job"
