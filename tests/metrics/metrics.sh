# shellcheck shell=bash
# For tests of metrics: source this instead of tap.sh. Programs are built against $BUILD/libringside.a.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
# shellcheck disable=SC2034
ringside=$BUILD/ringside
export LC_ALL=C.UTF-8

build_tool() { # name: tests/metrics/NAME.c becomes $tap_scratch/NAME
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -DRINGSIDE_VERSION='"0"' -Isrc -I. -O2 -o "$tap_scratch/$1" \
		"tests/metrics/$1.c" "$BUILD/libringside.a" -lzstd -lz -lpthread -ldl -lm || exit 1
}

# The first Python that has the Prometheus client; Debian's, if another one comes first.
python=
for candidate in python3 /usr/bin/python3; do
	if "$candidate" -c 'import prometheus_client.openmetrics.parser' 2>/dev/null; then
		python=$candidate
		break
	fi
done

needs_readers() {
	[ -n "$python" ] || tap_skip_all "python3-prometheus-client is not installed"
	command -v promtool >/dev/null || tap_skip_all "promtool is not installed"
	command -v protoc >/dev/null || tap_skip_all "protoc is not installed"
}

# promtool prints neither errors nor advice.
expect_lint() { # sentence file
	local said
	if said=$(promtool check metrics <"$2" 2>&1) && [ -z "$said" ]; then
		tap_line ok "$1" ""
	else
		tap_line "not ok" "$1" "$said"
	fi
}

check() { # command...
	"$python" tests/metrics/metrics_check.py "$@"
}
