#!/usr/bin/env bash
# Follows a recipe of docs/HACKING.md to the letter: applies its change to a copy of the tree, builds the tool there, and
# checks the result.
. "$(dirname "$0")/tap.sh"

tree=$tap_scratch/tree
mkdir -p "$tree/build"
cp -a Makefile scripts src "$tree/"
mkdir "$tree/npm"
[ ! -e npm/node_modules ] || ln -s "$PWD/npm/node_modules" "$tree/npm/node_modules"
# Reuse existing objects. They record the paths they were built with, so BUILD must be the same, relative or not.
cp -a "$BUILD"/src "$BUILD"/*.a "$BUILD"/flags "$BUILD"/*_parts "$tree/build/"
find "$tree/build" -name '*.d' -exec sed -i "s|$BUILD/|build/|g" {} +

sed -n '/^## A new column of export/,/^## /{/^```diff/,/^```$/{/^```/d;p}}' docs/HACKING.md >"$tap_scratch/recipe.diff"
expect_ok "the recipe contains a patch" test -s "$tap_scratch/recipe.diff"
expect_ok "it can be applied" patch -d "$tree" -p1 -s -i "$tap_scratch/recipe.diff"
expect_same "in two files" "$(grep -c '^+++ ' "$tap_scratch/recipe.diff")" 2
# With the flags of the existing build, otherwise everything would be rebuilt.
compiler=$(sed 's/ -std=.*//' "$BUILD/flags")
grep -q -e -Werror "$BUILD/flags" && developer=1 || developer=
expect_ok "the tool builds with it" env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -C "$tree" BUILD=build CC="$compiler" \
	DEVELOPER="$developer" build/ringside
"$BUILD/ringside" sim --offline --gpus 2 --iterations 2 -o "$tap_scratch/job" >/dev/null
"$tree/build/ringside" export --format csv -o - "$tap_scratch/job" | tr -d '\r' >"$tap_scratch/all.csv"
expect_ok "the column is there" grep -q ',sequence_again$' <(head -n 1 "$tap_scratch/all.csv")
expect_ok "it has rows" test "$(wc -l <"$tap_scratch/all.csv")" -gt 10
expect_same "with values" "$(awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	NR > 1 && ($at["sequence"] == "" || $at["sequence"] != $NF)' "$tap_scratch/all.csv")" ""
tap_done
