# shellcheck shell=bash
# For tests of packages and tarballs: they pack what is built and do not build.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"

VERSION=$(sed -n 's/^VERSION := //p' Makefile)
dist=$BUILD/dist

# Packs one kind into $dist, unless it is there and nothing was built since; other tests may need it, too.
pack_once() { # kind
	local stamp=$dist/.$1 log
	mkdir -p "$dist"
	exec 9>"$stamp.lock"
	flock 9
	if [ ! -e "$stamp" ] || [ -n "$(find "$BUILD/ringside" "$BUILD/ringside-agent" "$BUILD/floor/ringside" "$BUILD/libnccl-profiler-ringside.so" \
		packaging Makefile scripts man docs deploy -newer "$stamp" -print -quit 2>/dev/null)" ]; then
		if ! log=$(packaging/dist/pack "$1" "$BUILD" "$VERSION" "$dist" 2>&1); then
			case $log in
			*"there is no "*": install "* | *"make floor"*) tap_skip_all "${log##*$'\n'}" ;;
			esac
			tap_line "not ok" "packing $1" "$log"
			tap_done
		fi
		touch "$stamp"
	fi
	exec 9>&-
}

# A part of a test that cannot run here.
tap_note_skip() { # why
	tap_count=$((tap_count + 1))
	echo "ok $tap_count # skip $1"
}
