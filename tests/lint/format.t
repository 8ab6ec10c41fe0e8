#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "all C files are laid out as clang-format 14 wants it" scripts/check-format

bad=$(sample bad.c <<'C'
int  f( int x ){return x;}
C
)
expect_complaint "a badly laid out file is found" "make format" scripts/check-format "$bad"
expect_ok "it can be mended" scripts/check-format --fix "$bad"
expect_ok "and is then good" scripts/check-format "$bad"
tap_done
