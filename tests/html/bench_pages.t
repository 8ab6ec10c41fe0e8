#!/usr/bin/env bash
# Pages of benchmarks, which have no scripts: layout on phone and desktop, light and dark; same content as the text.
. "$(dirname "$0")/../tap.sh"
. tests/html/html.sh

html_needs
"$BUILD/ringside" bench crossover --from tests/bench/crossover.json --html "$tap_scratch/crossover.html" >"$tap_scratch/crossover.txt"
"$BUILD/tests/unit/bench" test_profilers_view "$tap_scratch/profilers.html" >/dev/null
cp tests/golden/profilers.txt "$tap_scratch/profilers.txt"
html_run bench_pages.mjs "$tap_scratch"
