#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

command -v clang-format-14 >/dev/null || clang-format --version 2>/dev/null | grep -q 'version 14\.' ||
	tap_skip_all "clang-format 14 is not installed, and not in this system's packages: Debian 12 and Ubuntu 24.04 have it"

expect_ok "all C files are formatted by clang-format 14" scripts/check-format

bad=$(sample bad.c <<'C'
int  f( int x ){return x;}
C
)
expect_complaint "a badly formatted file is found" "make format" scripts/check-format "$bad"
expect_ok "it can be fixed" scripts/check-format --fix "$bad"
expect_ok "and is then good" scripts/check-format "$bad"
tap_done
