#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "every header compiles alone" scripts/check-headers

sample src/common/needy.h <<<"static inline uint64_t twice(uint64_t x) { return 2 * x; }" >/dev/null
expect_complaint "a header that needs another before it is found" "needy.h:[0-9:]+ error" \
	scripts/check-headers "$tap_scratch"
tap_done
