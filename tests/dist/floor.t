#!/usr/bin/env bash
# The programs of the binary tarball and the wheel run with any glibc from 2.28: judged by the versions of the symbols they need, and
# by running them here. With OLD_GLIBC=FOLDER, the files of an old libc6 package, also by running them with that.
. "$(dirname "$0")/../tap.sh"

read -ra compiler <<<"${CC:-cc}"
floor=$BUILD/floor
[ -x "$floor/ringside" ] || tap_skip_all "the programs for old systems are not built: make floor"
for program in ringside ringside-{agent,bench,fetch,sim,top}; do
	[ -x "$BUILD/$program" ] || continue
	expect_ok "$program asks for nothing newer than glibc 2.28" scripts/check-glibc-floor "$floor/$program"
	expect_ok "and is hardened" scripts/check-hardening "$floor/$program"
	case $program in
	ringside-agent) others=libgnutls.so.30 ;;
	ringside-fetch) others=libcurl.so.4 ;;
	*) others= ;;
	esac
	expect_same "apart from libc it needs ${others:-nothing}" \
		"$(readelf -dW "$floor/$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
			grep -vE '^(lib(c|m)\.so\.6|libpthread\.so\.0|lib(dl|resolv)\.so\.2|ld-linux-.*)$')" "$others"
	expect_ok "and runs here" "$floor/$program" --help
done

# A constructor runs although the old way of starting a program is used, stat() works, and what libc 2.28 lacks is there.
cat >"$tap_scratch/start.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static int constructed;
__attribute__((constructor)) static void construct(void)
{
	constructed++;
}
__attribute__((destructor)) static void destruct(void)
{
	puts("destructed");
}
int main(int count, char **words)
{
	struct stat st, same;

	printf("constructed %d\n", constructed);
	if (count < 2 || stat(words[1], &st) || lstat(words[1], &same) || fstat(0, &same) || !stat("/nowhere", &st))
		return 1;
	printf("%lld bytes, %d\n", (long long)st.st_size, gettid() == getpid());
	return strtol("7", NULL, 10) != 7;
}
END
start=$tap_scratch/start
expect_ok "a program with a constructor is linked" "${compiler[@]}" -D_GNU_SOURCE -fPIE -pie "$tap_scratch/start.c" -o "$start" -L"$floor/stubs" \
	-static-libgcc -Wl,--wrap=__libc_start_main "$BUILD/packaging/floor/floor.o" \
	-Wl,--no-as-needed -lpthread -ldl -lresolv
expect_ok "and stays below the floor" scripts/check-glibc-floor "$start"
wanted=$'constructed 1\n5 bytes, 1\ndestructed'
printf 12345 >"$tap_scratch/five"
expect_same "its constructor ran once, and its calls work" "$("$start" "$tap_scratch/five" </dev/null)" "$wanted"
expect_complaint "what 2.28 lacks does not link unnoticed" "undefined reference to .pidfd_open" \
	"${compiler[@]}" -x c - -o "$tap_scratch/new" -L"$floor/stubs" -static-libgcc <<<'int pidfd_open(int, int); int main(void) { return pidfd_open(1, 0); }'

# The other machine, where a compiler for it is installed.
cross=aarch64-linux-gnu
if [ "$(uname -m)" = x86_64 ] && command -v $cross-gcc >/dev/null; then
	mkdir "$tap_scratch/cross"
	expect_ok "the libraries to link with are made for aarch64" packaging/floor/make-stubs $cross-gcc "$tap_scratch/cross"
	expect_ok "a program for it is linked" $cross-gcc -D_GNU_SOURCE -Isrc -fPIE -pie "$tap_scratch/start.c" packaging/floor/floor.c -o "$start-cross" \
		-L"$tap_scratch/cross" -static-libgcc -Wl,--wrap=__libc_start_main -Wl,--no-as-needed -lpthread -ldl -lresolv
	expect_ok "and stays below the floor" env OBJDUMP=$cross-objdump scripts/check-glibc-floor "$start-cross"
	if command -v qemu-aarch64 >/dev/null; then
		expect_same "it runs, too" "$(qemu-aarch64 -L /usr/$cross "$start-cross" "$tap_scratch/five" </dev/null)" "$wanted"
	fi
else
	echo "# not linked for aarch64: there is no $cross-gcc"
fi

# For example: curl -O .../libc6_2.31-13+deb11u11_amd64.deb; dpkg-deb -x libc6_*.deb old; OLD_GLIBC=old
loader=$(find "${OLD_GLIBC:-/nonexistent}" -name 'ld-linux-*.so.*' -path '*/lib/*' 2>/dev/null | head -n 1)
if [ -n "$loader" ]; then
	old=("$loader" --library-path "$(dirname "$loader")")
	expect_same "with the libc of OLD_GLIBC, too" "$("${old[@]}" "$start" "$tap_scratch/five" </dev/null)" "$wanted"
	for program in ringside ringside-{bench,sim,top}; do
		[ ! -x "$floor/$program" ] || expect_ok "$program runs with it" "${old[@]}" "$floor/$program" --help
	done
	mkdir "$tap_scratch/rec"
	expect_ok "a simulated job is recorded with it" env RINGSIDE_SHM="$tap_scratch/rec" "${old[@]}" "$floor/ringside-sim" \
		--plugin "$BUILD/libnccl-profiler-ringside.so" --nodes 1 --gpus 2 --iterations 3 -o "$tap_scratch/rec"
	expect_ok "and reported" grep -q "recording complete" <("${old[@]}" "$floor/ringside" report "$tap_scratch/rec")
else
	echo "# not run with an old glibc: OLD_GLIBC names none"
fi
tap_done
