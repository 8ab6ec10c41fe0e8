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

refused "base knows nobody" "base must not include op/op_layout.h" \
	src/base/x.c '#include "common/op_layout.h"'
refused "capture takes the writing side of region only" "capture must not include region/region_open.h" \
	src/capture/x.c '#include "format/region_read.h"'
refused "thinking knows no encoders" "timeline must not include view/json.h" \
	src/timeline/x.h '#include "output/json.h"'
refused "programs stay out of the job" "a program includes capture" \
	programs/cli/x.c '#include "plugin/recorder.h"'
refused "an include names its room" 'write "common/op_layout.h"' src/op/x.c '#include "op_layout.h"'
refused "a new room needs a rule" "a room without a rule" src/cellar/x.c '#include "common/text.h"'
taken "capture may create a region" src/capture/x.c '#include "format/region_create.h"'
taken "a room may include itself" src/view/x.c '#include "output/json.h"'
taken "a program may use the thinking" programs/cli/x.c '#include "timeline/joins.h"'
tap_done
