#!/usr/bin/env bash
# Without the chart library the tool builds and --html says what is missing; make embeds the library and changed parts of
# the page again.
. "$(dirname "$0")/../tap.sh"

tree=$tap_scratch/tree
mkdir -p "$tree"
cp -r Makefile scripts src "$tree/"

object=build/src/output/html_report.o
build() { env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -C "$tree" BUILD=build CC="${CC:-cc}" "$object"; }
is_rebuilt() { build | grep "html_report.o" >/dev/null; }
is_kept() { ! is_rebuilt; }
has() { grep -a -F -- "$1" "$tree/$object" >/dev/null; }
has_not() { ! has "$1"; }

expect_ok "compiles without npm" build
expect_ok "contains the page" has "Skip to the summary"
cp "$tree/$object" "$tap_scratch/without.o"
expect_ok "no change, no rebuild" is_kept

mkdir -p "$tree/npm/node_modules/uplot/dist"
echo "the licence" >"$tree/npm/node_modules/uplot/LICENSE"
echo "var charts = 1;" >"$tree/npm/node_modules/uplot/dist/uPlot.iife.min.js"
echo ".chart{}" >"$tree/npm/node_modules/uplot/dist/uPlot.min.css"
touch -d 1985-10-26 "$tree"/npm/node_modules/uplot/LICENSE "$tree"/npm/node_modules/uplot/dist/*
expect_ok "a new library is embedded, whatever its time stamps" is_rebuilt
expect_ok "with its script" has "var charts = 1;"
expect_ok "no change, no rebuild again" is_kept
echo "/* changed */" >>"$tree/src/output/html/report.css"
expect_ok "a changed part of the page causes a rebuild" is_rebuilt
expect_ok "with the new content" has "/* changed */"
rm -r "$tree/npm"
expect_ok "removing the library causes a rebuild" is_rebuilt
expect_ok "without the library" has_not "var charts = 1;"

# Link the tool without the library.
if [ -f "$BUILD/ringside" ] && [ -f "$BUILD/libringside.a" ]; then
	mapfile -t objects < <(find "$BUILD/src/cmds" -name '*.o' ! -name 'cli*.o')
	# shellcheck disable=SC2086 # CC may have words
	if ${CC:-cc} -o "$tap_scratch/ringside" "${objects[@]}" "$tap_scratch/without.o" "$BUILD/libagent.a" \
		"$BUILD/libtop.a" "$BUILD/libfetch.a" "$BUILD/libcli.a" "$BUILD/libringside.a" -lzstd -lz -lpthread -ldl -lm; then
		"$BUILD/ringside" sim --offline --kernel --gpus 2 --iterations 3 -o "$tap_scratch/job" >/dev/null
		expect_complaint "report --html says what is missing and what to run" \
			'^ringside report: --html: .*scripts/install-npm build' \
			"$tap_scratch/ringside" report "$tap_scratch/job" --html "$tap_scratch/page.html"
		complaint=$("$tap_scratch/ringside" report "$tap_scratch/job" --html "$tap_scratch/page.html" 2>&1)
		expect_same "in one line" "$(wc -l <<<"$complaint")" 1
		expect_complaint "no file is left" "No such file" ls "$tap_scratch/page.html"
		expect_ok "the text report still works" "$tap_scratch/ringside" report "$tap_scratch/job"
	else
		tap_line "not ok" "the tool links without the chart library" ""
	fi
fi
tap_done
