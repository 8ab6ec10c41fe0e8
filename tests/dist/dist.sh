# shellcheck shell=bash
# For tests of packages and tarballs: they pack what is built and do not build.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"

VERSION=$(sed -n 's/^VERSION := //p' Makefile)
dist=$BUILD/tests/dist # not those of `make dist`, which are compressed better

# Packs kinds into $dist, side by side, unless they are there and nothing was built or committed since; other tests may need them,
# too. Packed files have the time of the commit.
export PACK_QUICKLY=1
commit=$({ [ -e .git ] && git rev-parse HEAD 2>/dev/null; } || echo none)
pack_once() { # kind...
	local kind log
	mkdir -p "$dist"
	for kind in "$@"; do
		pack_unless_done "$kind" &
	done
	wait
	for kind in "$@"; do
		[ -e "$tap_scratch/failed-$kind" ] || continue
		log=$(cat "$tap_scratch/failed-$kind")
		case $log in
		*"there is no "*": install "* | *"make floor"*) tap_skip_all "${log##*$'\n'}" ;;
		esac
		tap_line "not ok" "packing $kind" "$log"
		tap_done
		exit
	done
}
pack_unless_done() { # kind
	local stamp=$dist/.$1
	exec 9>"$stamp.lock"
	flock 9
	if [ "$(cat "$stamp" 2>/dev/null)" != "$commit" ] || [ -n "$(find "$BUILD/ringside" "$BUILD/ringside-agent" "$BUILD/floor/ringside" "$BUILD/libnccl-profiler-ringside.so" \
		packaging Makefile scripts man docs deploy -newer "$stamp" -print -quit 2>/dev/null)" ]; then
		if packaging/dist/pack "$1" "$BUILD" "$VERSION" "$dist" >"$tap_scratch/pack-$1" 2>&1; then
			echo "$commit" >"$stamp"
		else
			mv "$tap_scratch/pack-$1" "$tap_scratch/failed-$1"
		fi
	fi
}

# A part of a test that cannot run here.
tap_note_skip() { # why
	tap_count=$((tap_count + 1))
	echo "ok $tap_count # skip $1"
}
