# shellcheck shell=bash
# For tests of `ringside export`: source this. Readers come from npm: npm/node_modules.

. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"

# `make check` installs them; node may be missing here.
has_readers() {
	missing_readers="no node here"
	command -v node >/dev/null || return 1
	missing_readers="npm/node_modules lacks the readers: scripts/install-npm check"
	(cd npm && node -e 'for (const name of ["@duckdb/node-api", "hyparquet", "hyparquet-compressors", "parquet-wasm",
		"apache-arrow"]) require.resolve(name)' 2>/dev/null)
}
need_readers() {
	has_readers || tap_skip_all "$missing_readers"
}

# Builds a program of this directory.
build_tool() { # name source...
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -O1 -o "$tap_scratch/$1" "tests/export/$1.c" "${@:2}" \
		"$BUILD/libringside.a" -lzstd -lz -lm || exit 1
}

# Rows of a query, one per line, cells separated by |.
query() { # sql
	node tests/export/query.mjs "$1"
}

simulate() { # directory option...
	local directory=$1
	shift
	"$ringside" sim --offline --kernel -o "$directory" "$@" >/dev/null || exit 1
}
