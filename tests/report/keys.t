#!/usr/bin/env bash
# docs/JSON.md documents every key of the JSON and every column of the CSV.
. "$(dirname "$0")/report.sh"

simulate job --nodes 4 --gpus 2 -w fsdp -f degraded-network:factor=1.5 --at 6s --seconds 12s
simulate hung --nodes 2 --gpus 4 -w moe -f stuck-send:rank=3 --at 1s
make_samples

# All keys of a document, except those that are data.
keys() { # file
	json_says '
		my %keys;
		my @open = ($_);
		while (@open) {
			my $value = shift @open;
			if (ref $value eq "ARRAY") {
				push @open, @$value;
			} elsif (ref $value eq "HASH") {
				for my $key (keys %$value) {
					$keys{$key} = 1;
					push @open, $value->{$key} if $key ne "lost" && $key ne "sources";
				}
			}
		}
		join "\n", sort keys %keys' "$1"
}
undocumented() { # document... ; keys on standard input
	while IFS= read -r key; do
		cat "$@" | grep -F -- "\`$key\`" >/dev/null || echo "$key"
	done
}

for job in job hung stuck lossy; do
	"$ringside" report --json --by tag,host "$tap_scratch/$job" >"$tap_scratch/report.json" 2>/dev/null
	keys "$tap_scratch/report.json" >"$tap_scratch/keys"
	expect_ok "the report of $job has keys" grep -qx completeness "$tap_scratch/keys"
	expect_same "all of them are documented" "$(undocumented docs/JSON.md <"$tap_scratch/keys")" ""
done
"$ringside" diff --json "$tap_scratch/job" "$tap_scratch/job" >"$tap_scratch/diff.json"
expect_same "all keys of diff --json are documented" \
	"$(keys "$tap_scratch/diff.json" | undocumented docs/JSON.md)" ""
expect_same "the check finds an undocumented key" "$(echo no_such_key | undocumented docs/JSON.md)" no_such_key
for table in size rank windows iterations; do
	expect_same "all columns of --csv --table $table are documented" \
		"$("$ringside" report --csv --table "$table" "$tap_scratch/job" | head -n 1 | tr -d '\r' | tr ',' '\n' |
			undocumented docs/JSON.md)" ""
done
tap_done
