#!/usr/bin/env bash
# The examples in the README, the documents and the man pages are what the tool prints now.
. "$(dirname "$0")/tap.sh"

command -v python3 >/dev/null || tap_skip_all "python3 is not installed"
expect_ok "examples are real output (if not: run scripts/make-examples)" scripts/make-examples --check --build "$BUILD"

page() { # name lines...
	printf '%s\n' "${@:2}" | sample "$1"
}
expect_ok "the README has examples" grep -q '^<!-- example' README.md
file=$(page wrong.md '<!-- example: ringside model allreduce 8G --ranks 8 --hardware h100-ib -->' '```' 'nothing like it' '```')
expect_complaint "a wrong example is found" "nothing like it" scripts/make-examples --check --build "$BUILD" "$file"
expect_ok "it is replaced" scripts/make-examples --build "$BUILD" "$file"
expect_ok "by what the tool prints" grep -q '^AllReduce of 8 GiB over 8 ranks' "$file"
expect_ok "and is right then" scripts/make-examples --check --build "$BUILD" "$file"
file=$(page cut.md '<!-- example first=1: ringside help -->' '```' '```')
scripts/make-examples --build "$BUILD" "$file" 2>/dev/null
expect_same "an example can be cut" "$(sed -n 3,5p "$file")" $'$ ringside help\nusage: ringside COMMAND [OPTION...] [ARGUMENT...]\n...'
file=$(page manual.1 '.\" example first=1: ringside help' .nf .fi)
scripts/make-examples --build "$BUILD" "$file" 2>/dev/null
expect_same "man pages have examples, too" "$(sed -n 3,4p "$file")" $'$ ringside help\nusage: ringside COMMAND [OPTION...] [ARGUMENT...]'
file=$(page shell.md '<!-- example: rm -r traces -->' '```' '```')
expect_complaint "nothing but ringside is run" "only ringside can be run" scripts/make-examples --build "$BUILD" "$file"
file=$(page bare.md '<!-- example: ringside help -->' 'no block')
expect_complaint "a comment without a block is found" "no block" scripts/make-examples --build "$BUILD" "$file"
tap_done
