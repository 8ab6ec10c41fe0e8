#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "each room includes only what it may" scripts/check-layers

refused() { # sentence pattern file line
	rm -rf "$tap_scratch/tree"
	sample "tree/$3" <<<"$4" >/dev/null
	expect_complaint "$1" "$2" scripts/check-layers "$tap_scratch/tree"
}
taken() { # sentence file line
	rm -rf "$tap_scratch/tree"
	sample "tree/$2" <<<"$3" >/dev/null
	expect_ok "$1" scripts/check-layers "$tap_scratch/tree"
}

refused "common includes no other room" "common must not include format/tar.h" \
	src/common/x.c '#include "format/tar.h"'
refused "the plugin uses only the writing side of the region" "plugin must not include format/region_read.h" \
	src/plugin/x.c '#include "format/region_read.h"'
refused "analysis includes no encoders" "analysis must not include output/json.h" \
	src/analysis/x.h '#include "output/json.h"'
refused "commands stay out of the job" "cmds must not include plugin/recorder.h" \
	src/cmds/x.c '#include "plugin/recorder.h"'
refused "an include must name its room" 'write "common/op_layout.h"' src/common/x.c '#include "op_layout.h"'
refused "a new room needs a rule" "has no rule" src/cellar/x.c '#include "common/text.h"'
taken "the plugin may create a region" src/plugin/x.c '#include "format/region_create.h"'
taken "a room may include itself" src/output/x.c '#include "output/json.h"'
taken "a command may use the thinking" src/cmds/x.c '#include "analysis/job.h"'
tap_done
