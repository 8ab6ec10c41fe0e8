#!/usr/bin/env bash
# How programs and plugins are protected against their own mistakes. Needs them built.
. "$(dirname "$0")/../tap.sh"

CC=${CC:-cc}
count=0
for built in "$BUILD"/ringside "$BUILD"/ringside-{agent,bench,fetch,sim,top} "$BUILD"/lib*.so; do
	[ -e "$built" ] || continue
	count=$((count + 1))
	expect_ok "$(basename "$built") is hardened" scripts/check-hardening "$built"
done
expect_ok "there were at least six" test "$count" -ge 6

# A program with everything, but for what is given.
program() { # name flags...
	local name=$1
	shift
	$CC -x c - -o "$tap_scratch/$name" -O2 -fPIE -pie -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 \
		-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack "$@" <<'END'
#include <stdio.h>
#include <string.h>
int main(int count, char **words)
{
	char text[32];

	strcpy(text, words[count - 1]);
	return puts(text);
}
END
	echo "$tap_scratch/$name"
}
complaint() { # what pattern name flags...
	local what=$1 pattern=$2
	shift 2
	expect_complaint "$what is found" "$pattern" scripts/check-hardening "$(program "$@")"
}
expect_ok "a program with everything is fine" scripts/check-hardening "$(program good)"
complaint "a fixed address" "fixed address" fixed -no-pie
complaint "writable tables" "-Wl,-z,relro" norelro -Wl,-z,norelro
complaint "late binding" "resolves symbols lazily" lazy -Wl,-z,lazy
complaint "an executable stack" "executable stack" stack -Wl,-z,execstack
complaint "a search path" "library search path" path -Wl,-rpath,/opt
complaint "a missing stack protector" "no stack protector" unprotected -fno-stack-protector
complaint "a missing fortification" "no checked functions" unchecked -U_FORTIFY_SOURCE
tap_done
