#!/usr/bin/env bash
# What the page shows of a node: healthy, a hang, a straggler, no job, no data yet.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run story.mjs "$tap_scratch/scenes"
