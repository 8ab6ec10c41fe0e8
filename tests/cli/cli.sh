# shellcheck shell=bash
# For tests of the commands: source this instead of tap.sh. Expected output is in *.expected next
# to the tests; `REWRITE=1 prove ...` (or running a test with --rewrite) rewrites it, to be reviewed.

rewrite=${REWRITE:-0}
[ "${1:-}" = --rewrite ] && rewrite=1
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
# shellcheck disable=SC2034
ringside=$BUILD/ringside
expected_dir=$PWD/tests/cli
export LC_ALL=C
unset COLUMNS RINGSIDE_SHM NCCL_PROFILER_PLUGIN

# Recordings of ended processes, see samples.c.
make_samples() {
	local tool=$tap_scratch/samples kind
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Isrc -I. -O1 -o "$tool" tests/cli/samples.c \
		"$BUILD/libringside.a" -lm || exit 1
	for kind in traces lossy gap open stuck ended carrier; do
		mkdir -p "$tap_scratch/$kind"
		"$tool" "$kind" "$tap_scratch/$kind" || exit 1
	done
}

# Output and exit code of a command, with temporary paths replaced.
said() { # command...
	local code
	"$@" >"$tap_scratch/said.out" 2>"$tap_scratch/said.err"
	code=$?
	cat "$tap_scratch/said.out"
	sed 's/^/stderr: /' "$tap_scratch/said.err"
	echo "exit $code"
}
tidy() {
	sed -e "s|$tap_scratch|TMP|g" -e "s|$BUILD|BUILD|g" -e "s|$PWD|HERE|g"
}

# Compares the output with the .expected file.
expect_output() { # sentence name command...
	local sentence=$1 file=$expected_dir/$2.expected got
	shift 2
	got=$(said "$@" | tidy)
	if [ "$rewrite" = 1 ]; then
		printf '%s\n' "$got" >"$file"
	fi
	expect_same "$sentence" "$got" "$(cat "$file" 2>/dev/null)"
}

# A command exits with this code and prints one matching line on stderr.
expect_refusal() { # sentence code pattern command...
	local sentence=$1 code=$2 pattern=$3 got
	shift 3
	"$@" >"$tap_scratch/out" 2>"$tap_scratch/err"
	got=$?
	if [ "$got" -ne "$code" ] || ! grep -qE -- "$pattern" "$tap_scratch/err" ||
		[ "$(wc -l <"$tap_scratch/err")" -ne 1 ]; then
		tap_line "not ok" "$sentence" "exit $got, wanted $code and one line like: $pattern
$(cat "$tap_scratch/err")"
	else
		tap_line ok "$sentence" ""
	fi
}

# Without a PATH the commands read every process of the machine, and other tests run at the same time.
# In its own pid namespace a command sees no other processes; skip if that is not allowed.
alone() { # sentence name command...
	local sentence=$1 name=$2
	shift 2
	if unshare -Urpf --mount-proc true 2>/dev/null; then
		expect_output "$sentence" "$name" unshare -Urpf --mount-proc "$@"
	else
		tap_line ok "$sentence # SKIP no pid namespaces here" ""
	fi
}

# JSON::PP comes with perl, as prove does. Prints the value of the expression; $_ is the document.
json_says() { # expression [file]
	perl -MJSON::PP -e '
		my ($expression, $file) = @ARGV;
		local $/;
		open(my $in, "<", $file) or die;
		$_ = JSON::PP->new->utf8->decode(<$in>);
		print eval($expression), "\n";
		die $@ if $@;
	' "$1" "${2:-/dev/stdin}"
}
