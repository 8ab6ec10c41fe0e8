#!/usr/bin/env bash
. "$(dirname "$0")/cli.sh"
make_samples

expect_output "operations and details of traces" dump-traces "$ringside" dump --details "$tap_scratch/traces"
expect_output "ring and live operations of a region" dump-stuck "$ringside" dump "$tap_scratch/stuck"
expect_output "a truncated file is read up to the end" dump-open "$ringside" dump "$tap_scratch/open"
expect_output "a path that is not there" dump-nowhere "$ringside" dump "$tap_scratch/nowhere"
alone "no recorded process: an error with advice" dump-nothing env RINGSIDE_SHM="$tap_scratch/none" "$ringside" dump
"$ringside" dump --details "$tap_scratch/traces" "$tap_scratch/stuck" >"$tap_scratch/lines"
expect_same "each line is a JSON object" "$(perl -MJSON::PP -ne '$n += ref(decode_json($_)) eq "HASH"; END { print $n }' \
	"$tap_scratch/lines")" "$(wc -l <"$tap_scratch/lines")"

# The tables of docs/JSON.md list the fields of the output in the same order.
documented() { # section
	awk -v want="$1" '/^#+ / { on = $2 == want } on && /^\| `/ { gsub(/[|`]/, " "); print $1 }' docs/JSON.md
}
keys() { # of objects with this record, in order of appearance, nested ones with a dot
	perl -ne 'BEGIN { $want = shift } next unless /^\{"record":"$want"/;
		@path = ();
		while (/"((?:[^"\\]|\\.)*)"(:\{?)?|(\})/g) {
			if (defined $3) { pop @path; next }
			next unless defined $2;
			$key = join ".", @path, $1;
			print "$key\n" unless $seen{$key}++;
			push @path, $1 if $2 eq ":{";
		}' "$1" "$tap_scratch/lines"
}
expect_same "docs/JSON.md has every field of an operation" "$(documented Operations)" "$(keys operation)"
# Kinds of details have different fields; the sample has a transfer.
expect_same "docs/JSON.md has every field of a transfer" \
	"$(documented Details | grep -xF "$(keys detail)")" "$(keys detail)"
source_flags=$(sed -n '/^static const char \*const flags\[32\]/,/^}/s/[^"]*"\([a-z_]*\)"[^"]*/\1\n/gp' src/common/op.c | grep . | sort)
expect_same "docs/JSON.md has every flag" "$(documented Flags | grep -v '^wait' | sort)" "$source_flags"
tap_done
