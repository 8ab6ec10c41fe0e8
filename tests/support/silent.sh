# shellcheck shell=bash
# shellcheck disable=SC2154
# For tests with a file system that does not answer (silent_files.c): it is mounted where only the test sees it.

# Call it first: runs the test again, in a mount namespace of its own.
silent_enter() { # the test's arguments
	local user=()
	[ -n "$SILENT_INSIDE" ] && return
	[ "$(id -u)" = 0 ] || user=(--user --map-root-user)
	unshare "${user[@]}" --mount --propagation private true 2>/dev/null ||
		{ echo "1..0 # SKIP no permission for a mount namespace" && exit; }
	SILENT_INSIDE=yes exec unshare "${user[@]}" --mount --propagation private "$0" "$@"
}

# Mounts it at this directory. Skips the test if that is impossible.
silent_begin() { # directory [name]
	silent_fuse=/dev/fuse
	[ -w "$silent_fuse" ] || { silent_fuse=$tap_scratch/fuse && mknod "$silent_fuse" c 10 229 2>/dev/null; }
	[ -x "$tap_scratch/silent_files" ] ||
		"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -o "$tap_scratch/silent_files" tests/cli/silent_files.c || exit 1
	mkdir -p "$1"
	: >"$tap_scratch/served"
	"$tap_scratch/silent_files" "$silent_fuse" "$@" >"$tap_scratch/served" 2>&1 &
	silent_server=$!
	until_ok test -s "$tap_scratch/served"
	grep -q ready "$tap_scratch/served" || tap_skip_all "no permission to mount a FUSE file system"
}
silent_end() { # directory
	{ kill -9 "$silent_server" && wait "$silent_server"; } 2>/dev/null
	umount -l "$1"
}
