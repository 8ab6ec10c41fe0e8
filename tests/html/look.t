#!/usr/bin/env bash
# The page is readable on a phone, in light and dark, without colors, and printed.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
html_job "$tap_scratch/job"
html_page "$tap_scratch/job"
html_run look.mjs "$tap_scratch/job"
