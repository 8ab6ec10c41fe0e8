#!/usr/bin/env bash
# The page is readable: light and dark, on a phone, without colours, with any names.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run look.mjs "$tap_scratch/scenes"
