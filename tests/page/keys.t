#!/usr/bin/env bash
# Everything works without a mouse.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run keys.mjs "$tap_scratch/scenes"
