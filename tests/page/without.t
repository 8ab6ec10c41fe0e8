#!/usr/bin/env bash
# The page can be built without the chart library; when the library is added or a part of the page changes, make
# embeds it again with a new etag.
. "$(dirname "$0")/../tap.sh"

tree=$tap_scratch/tree
mkdir -p "$tree/src/common" "$tree/src/output"
cp -r Makefile scripts "$tree/"
cp -r src/output/palette.css src/output/base.css src/output/page src/output/live_page.c src/output/live_page.h "$tree/src/output/"
cp src/common/attributes.h "$tree/src/common/"

object=build/src/output/live_page.o
build() { env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -C "$tree" BUILD=build CC="${CC:-cc}" "$object"; }
is_rebuilt() { build | grep "live_page.o" >/dev/null; }
is_kept() { ! is_rebuilt; }
has() { grep -a -F -- "$1" "$tree/$object" >/dev/null; }
has_not() { ! has "$1"; }
etag() { grep -a -o -m 1 '"[0-9a-f]\{16\}"' "$tree/$object" | head -n 1; }
differs() { [ -n "$1" ] && [ "$1" != "$(etag)" ]; }

expect_ok "it compiles without npm" build
expect_ok "and contains the page" has "Skip to the communicators"
expect_ok "nothing is rebuilt without a change" is_kept
before=$(etag)

mkdir -p "$tree/npm/node_modules/uplot/dist"
echo "the licence" >"$tree/npm/node_modules/uplot/LICENSE"
echo "var charts = 1;" >"$tree/npm/node_modules/uplot/dist/uPlot.iife.min.js"
echo ".chart{}" >"$tree/npm/node_modules/uplot/dist/uPlot.min.css"
touch -d 1985-10-26 "$tree"/npm/node_modules/uplot/LICENSE "$tree"/npm/node_modules/uplot/dist/*
expect_ok "a new library is embedded, even if its files are old" is_rebuilt
expect_ok "completely" has "var charts = 1;"
expect_ok "with its license" has "the licence"
expect_ok "with a new etag" differs "$before"
expect_ok "nothing is rebuilt without a change afterwards" is_kept
before=$(etag)
echo "/* changed */" >>"$tree/src/output/page/live_keys.js"
expect_ok "a changed part of the page is embedded" is_rebuilt
expect_ok "with its new contents" has "/* changed */"
expect_ok "with a new etag again" differs "$before"
rm -r "$tree/npm"
expect_ok "a removed library is no longer embedded" is_rebuilt
expect_ok "its code is gone" has_not "var charts = 1;"
tap_done
