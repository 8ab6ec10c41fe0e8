#!/usr/bin/env bash
# Names that look like code stay text.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
if ! "$BUILD/tests/unit/output" test_html_report "$tap_scratch/hostile.html"; then
	echo "Bail out! test_html_report wrote no page"
	exit 1
fi
html_run hostile.mjs "$tap_scratch/hostile.html"
