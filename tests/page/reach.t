#!/usr/bin/env bash
# The agent is unreachable or answers nonsense, and comes back; the page is paused or hidden; its memory does not grow.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run reach.mjs "$tap_scratch/scenes"
