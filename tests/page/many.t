#!/usr/bin/env bash
# A hundred communicators of eight ranks: found, ordered, and not all asked for.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh
. tests/page/page.sh

html_needs
page_scenes "$tap_scratch/scenes"
page_run many.mjs "$tap_scratch/scenes"
