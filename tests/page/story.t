#!/usr/bin/env bash
# What the page says of a node: all well, a hang, a straggler, nothing there, nothing known yet.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run story.mjs "$tap_scratch/scenes"
