#!/usr/bin/env bash
# The answers of the JSON API match docs/JSON.md, key by key, read by another JSON parser.
. "$(dirname "$0")/../tap.sh"
. tests/page/page.sh

command -v node >/dev/null || tap_skip_all "node is not installed"
page_scenes "$tap_scratch/scenes"
page_run fields.mjs "$tap_scratch/scenes" docs/JSON.md
