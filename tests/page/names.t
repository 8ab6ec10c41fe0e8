#!/usr/bin/env bash
# Names that contain code stay text everywhere on the page.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run names.mjs "$tap_scratch/scenes"
