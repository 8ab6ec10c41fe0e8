#!/usr/bin/env bash
# Names that want to be code stay text, in every corner of the page.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run names.mjs "$tap_scratch/scenes"
