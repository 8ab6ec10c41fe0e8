#!/usr/bin/env bash
# Without the charts' library the tool is built all the same and says what is missing; once it is there, or a part of
# the page has changed, make embeds it anew.
. "$(dirname "$0")/../tap.sh"

tree=$tap_scratch/tree
mkdir -p "$tree/src/common" "$tree/src/output"
cp -r Makefile scripts "$tree/"
cp -r src/output/palette.css src/output/base.css src/output/html src/output/html_assets.c src/output/html_assets.h "$tree/src/output/"
cp src/common/attributes.h "$tree/src/common/"

object=build/src/output/html_assets.o
build() { env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -C "$tree" BUILD=build CC="${CC:-cc}" "$object"; }
is_rebuilt() { build | grep "html_assets.o" >/dev/null; }
is_kept() { ! is_rebuilt; }
has() { grep -a -F -- "$1" "$tree/$object" >/dev/null; }
has_not() { ! has "$1"; }

expect_ok "it compiles without npm" build
expect_ok "and has the page" has "Skip to the answer"
cp "$tree/$object" "$tap_scratch/without.o"
expect_ok "nothing changed, nothing is built" is_kept

mkdir -p "$tree/npm/node_modules/uplot/dist"
echo "the licence" >"$tree/npm/node_modules/uplot/LICENSE"
echo "var charts = 1;" >"$tree/npm/node_modules/uplot/dist/uPlot.iife.min.js"
echo ".chart{}" >"$tree/npm/node_modules/uplot/dist/uPlot.min.css"
touch -d 1985-10-26 "$tree"/npm/node_modules/uplot/LICENSE "$tree"/npm/node_modules/uplot/dist/*
expect_ok "when the library comes it is embedded, old as its files may be" is_rebuilt
expect_ok "all of it" has "var charts = 1;"
expect_ok "nothing changed, nothing is built again" is_kept
echo "/* changed */" >>"$tree/src/output/html/report.css"
expect_ok "a changed part of the page is embedded" is_rebuilt
expect_ok "as it is now" has "/* changed */"
rm -r "$tree/npm"
expect_ok "when the library goes it is no longer there" is_rebuilt
expect_ok "really" has_not "var charts = 1;"

# The tool, linked once more without it.
if [ -f "$BUILD/ringside" ] && [ -f "$BUILD/libringside.a" ]; then
	mapfile -t objects < <(find "$BUILD/src/cmds" -name '*.o' ! -name 'cli*.o')
	# shellcheck disable=SC2086 # CC may have words
	if ${CC:-cc} -o "$tap_scratch/ringside" "${objects[@]}" "$tap_scratch/without.o" "$BUILD/libagent.a" \
		"$BUILD/libtop.a" "$BUILD/libfetch.a" "$BUILD/libcli.a" "$BUILD/libringside.a" -lzstd -lz -lpthread -ldl -lm; then
		"$BUILD/ringside" sim --offline --kernel --gpus 2 --iterations 3 -o "$tap_scratch/job" >/dev/null
		expect_complaint "report --html says what is missing and what to run, in one line" \
			'^ringside report: --html: .*scripts/install-npm build' \
			"$tap_scratch/ringside" report "$tap_scratch/job" --html "$tap_scratch/page.html"
		complaint=$("$tap_scratch/ringside" report "$tap_scratch/job" --html "$tap_scratch/page.html" 2>&1)
		expect_same "in one line" "$(wc -l <<<"$complaint")" 1
		expect_complaint "and leaves no file" "No such file" ls "$tap_scratch/page.html"
		expect_ok "the report as text is there" "$tap_scratch/ringside" report "$tap_scratch/job"
	else
		tap_line "not ok" "the tool links without the charts" ""
	fi
fi
tap_done
