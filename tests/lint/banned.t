#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "nothing banned is used" scripts/check-banned

refused() { # sentence pattern line [file]
	rm -rf "$tap_scratch/tree"
	sample "tree/${4:-src/common/x.c}" <<<"$3" >/dev/null
	expect_complaint "$1" "$2" scripts/check-banned "$tap_scratch/tree"
}
taken() { # sentence line [file]
	rm -rf "$tap_scratch/tree"
	sample "tree/${3:-src/common/x.c}" <<<"$2" >/dev/null
	expect_ok "$1" scripts/check-banned "$tap_scratch/tree"
}

refused "strcpy is found" "text_copy" "	strcpy(to, from);"
refused "sprintf is found" "text_format" "	sprintf(to, \"%d\", x);"
refused "alloca is found" "bounded array" "	p = alloca(n);"
refused "atoi is found" "text_number" "	n = atoi(s);"
refused "printing in src is found" "prints nothing" "	printf(\"hello\");"
refused "an atomic outside its home is found" "one home" "	__atomic_load_n(p, 0);" src/common/x.c
refused "a line comment is found" "comments are" "int x; // why"
# The mark is put together here so that this file does not carry it.
refused "a mark for later is found" "do it" "/* TO""DO later */"
taken "snprintf is fine" "	snprintf(to, size, \"%d\", x);"
taken "a word in a comment is fine" "/* better than strcpy(to, from) */"
taken "a word in a string is fine" "const char *s = \"strcpy( //\";"
taken "an atomic at home is fine" "	__atomic_load_n(p, 0);" src/common/order.h
taken "programs may print" "	printf(\"hello\");" src/cmds/x.c
tap_done
