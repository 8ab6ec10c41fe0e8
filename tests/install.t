#!/usr/bin/env bash
# What `make install` puts where, and that the installed tool finds the installed plugin.
. "$(dirname "$0")/tap.sh"

root=$tap_scratch/root
# Without building: other tests use what is built.
install=(make -s BUILD="$BUILD" DESTDIR="$root" install-built)
expect_ok "make install succeeds" "${install[@]}" prefix=/opt/ringside
for file in bin/ringside lib/libnccl-profiler-ringside.so share/doc/ringside/LICENSE; do
	expect_ok "$file is installed" test -s "$root/opt/ringside/$file"
done
expect_same "nothing is installed elsewhere" "$(ls "$root") $(ls "$root/opt")" "opt ringside"
expect_ok "the installed tool runs" "$root/opt/ringside/bin/ringside" version
expect_ok "and finds the installed plugin" \
	sh -c "cd / && '$root/opt/ringside/bin/ringside' env | grep -qF '$root/opt/ringside/lib'"
expect_ok "libdir can be elsewhere" \
	"${install[@]}" prefix=/usr libdir=/usr/lib/somewhere
expect_ok "and the plugin is there" test -s "$root/usr/lib/somewhere/libnccl-profiler-ringside.so"
tap_done
