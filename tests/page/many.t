#!/usr/bin/env bash
# A hundred communicators of eight ranks: search, order, and no request for all histories.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run many.mjs "$tap_scratch/scenes"
