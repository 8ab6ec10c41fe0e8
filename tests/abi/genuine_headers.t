#!/usr/bin/env bash
# Compares src/plugin with NCCL's own headers, if NCCL_HOME points to a tree that has them: NCCL's
# sources, or the nccl/ folder of one of its example plugins. No copy of them is kept here.
#
#	NCCL_HOME=/path/to/nccl tests/abi/genuine_headers.t
. "$(dirname "$0")/../tap.sh"

CC=${CC:-cc}
flags=(-std=gnu11 -D_GNU_SOURCE -Isrc -I.)

# The pairs of a list of genuine_fields.h, as "ours theirs" lines.
pairs() { # list
	printf '#include "tests/abi/genuine_fields.h"\n#define F(o, t) [o t]\n%s(F)\n' "$1" |
		$CC "${flags[@]}" -E -P -x c - | grep -oE '\[[^]]*\]' | tr -d '[]'
}

# The fields of a descriptor that ABI_AT pins: its own, and those of the named structs that are its parts.
pinned_fields() { # version
	cat src/plugin/abi_common.h src/plugin/abi_v?.h | awk -v descr="abi_descr_v$1" '
		$0 == "struct " descr " {" { is_inside = 1 }
		$0 == "};" { is_inside = 0 }
		is_inside && $1 == "struct" && $3 ~ /;$/ { parts[substr($3, 1, length($3) - 1)] = $2 }
		/^ABI_AT\(struct / {
			split($0, word, /[ ,]+/)
			pins[word[2]] = pins[word[2]] " " word[3]
		}
		END {
			count = split(pins[descr], fields, " ")
			for (i = 1; i <= count; i++)
				print fields[i]
			for (part in parts) {
				count = split(pins[parts[part]], fields, " ")
				for (i = 1; i <= count; i++)
					print part "." fields[i]
			}
		}'
}

# Exactly the fields that our headers pin by ABI_AT are compared, so none can be forgotten here.
for version in 1 2 3 4 5 6 7; do
	pinned=$(pinned_fields "$version" | sort)
	expect_same "the comparison of version $version covers every pinned field" \
		"$(pairs FIELDS_$version | awk '$1 != "type" { print $1 }' | sort)" "$pinned"
done
expect_same "the comparison covers every number" "$(pairs NUMBERS | awk '{ print $1 }' | sort)" \
	"$(grep -oE '^	ABI_[A-Z0-9_]+ =' src/plugin/abi_common.h | tr -d '\t =' | sort)"

if [ -z "${NCCL_HOME:-}" ]; then
	tap_line ok "compare with NCCL's headers # SKIP NCCL_HOME is not set" ""
	tap_done
fi

# A file that includes NCCL's headers through their entry point, and replaces what they expect from elsewhere.
prelude() { # entry-header
	local dir
	dir=$(dirname "$1")
	echo '#include <stdbool.h>'
	echo '#include <stddef.h>'
	echo '#include <stdint.h>'
	echo '#include <sys/types.h>'
	echo 'typedef pid_t ncclPid_t;'
	[ ! -e "$dir/err.h" ] || echo "#include \"$dir/err.h\""
	grep -rqs '} *ncclResult_t;' "$dir" || echo 'typedef int ncclResult_t;'
	grep -rqs 'ncclDebugLogger_t)(' "$dir" ||
		echo 'typedef void (*ncclDebugLogger_t)(int, unsigned long, const char *, int, const char *, ...);'
	echo "#include \"$1\""
}

# NCCL's headers include <cstdint> and its own os.h: empty files suffice.
mkdir -p "$tap_scratch/stand-ins"
touch "$tap_scratch/stand-ins/cstdint" "$tap_scratch/stand-ins/os.h"
flags+=(-idirafter "$tap_scratch/stand-ins")

versions_in() { # prelude-file
	$CC "${flags[@]}" -E -P "$1" | grep -oE 'ncclProfilerEventDescr_v[0-9]+_t *;' |
		grep -oE '[0-9]+' | sort -nu
}

compare() { # entry-header version
	local text
	prelude "$1" >"$tap_scratch/genuine.h"
	text=$($CC "${flags[@]}" -E -P "$tap_scratch/genuine.h") || return
	pairs NUMBERS | while read -r ours theirs; do
		! grep -qw "$theirs" <<<"$text" || echo "NUMBER($ours, $theirs)"
	done >"$tap_scratch/genuine_numbers.h"
	$CC "${flags[@]}" -I"$tap_scratch" -DVERSION="$2" -w -fsyntax-only \
		-include "$tap_scratch/genuine.h" tests/abi/genuine_compare.c
}

mapfile -t entries < <(find -L "$NCCL_HOME" -maxdepth 5 \
	\( -name nccl_profiler.h -o -path '*/nccl/profiler.h' \) 2>/dev/null | sort)
if [ ${#entries[@]} -eq 0 ]; then
	tap_line ok "compare with NCCL's headers # SKIP no profiler headers below NCCL_HOME" ""
fi

for entry in "${entries[@]}"; do
	name=${entry#"$NCCL_HOME"/}
	prelude "$entry" >"$tap_scratch/genuine.h"
	mapfile -t versions < <(versions_in "$tap_scratch/genuine.h")
	if [ ${#versions[@]} -eq 0 ]; then
		tap_line "not ok" "$name declares an interface" "no descriptor was found in it"
	fi
	for version in "${versions[@]}"; do
		if [ "$version" -gt 7 ]; then
			echo "# $name has version $version, which src/plugin does not know: see docs/HACKING.md"
		else
			expect_ok "version $version matches $name" compare "$entry" "$version"
		fi
	done
done

# The comparison can fail: move one field in a copy.
if [ ${#entries[@]} -gt 0 ]; then
	cp -rL "$(dirname "${entries[0]}")" "$tap_scratch/moved"
	chmod -R u+w "$tap_scratch/moved"
	grep -rl 'int nSteps;' "$tap_scratch/moved" |
		xargs sed -i -e 's/int nSteps;/int TURNED;/' -e 's/int chunkSize;/int nSteps;/' \
			-e 's/int TURNED;/int chunkSize;/'
	expect_complaint "a field that moved is found" "proxy_op.steps is not where NCCL has proxyOp.nSteps" \
		compare "$tap_scratch/moved/$(basename "${entries[0]}")" "${versions[0]:-1}"
fi
tap_done
