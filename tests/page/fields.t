#!/usr/bin/env bash
# The answers of the JSON API are what docs/LIVE-PAGE.md says, key for key, as another reader of JSON sees them.
. "$(dirname "$0")/../tap.sh"
. tests/page/page.sh

command -v node >/dev/null || tap_skip_all "node is not here"
page_scenes "$tap_scratch/scenes"
page_run fields.mjs "$tap_scratch/scenes" docs/LIVE-PAGE.md
