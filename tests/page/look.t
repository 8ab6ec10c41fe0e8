#!/usr/bin/env bash
# The page can be read: light and dark, on a phone, without colours, whatever the names.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run look.mjs "$tap_scratch/scenes"
