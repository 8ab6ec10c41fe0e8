#!/usr/bin/env bash
# `make demo` and `make dist` work wherever the tree lies and whoever runs them: in a folder with a space and an apostrophe in its name,
# through a symbolic link, below /tmp, and for a user who is not root, with a umask of 077. Also the scripts that depend on the place.
#
# The trees have the objects that are built here, but for a few, so that each compiles and links something.
. "$(dirname "$0")/tap.sh"
unset MAKEFLAGS MAKELEVEL MFLAGS

settings=(CC="${CC:-cc}" BUILD=build)
! grep -q -- ' -Werror ' "$BUILD/flags" || settings+=(DEVELOPER=1)
place=$(mktemp -d /tmp/ringside-clones.XXXXXX)
trap 'rm -rf "$tap_scratch" "$place"' EXIT
chmod 755 "$place"
copied=$(date +%s)
copy() { # folder
	local file
	mkdir -p "$1/build"
	if [ -e .git ]; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . \( -path ./build -o -path "./build-*" -o -path ./npm/node_modules \) -prune -o -type f -print0
	fi | tar --null --ignore-failed-read -T - -c 2>/dev/null | tar -x -C "$1"
	for file in npm/node_modules/uplot/{LICENSE,package.json,dist/uPlot.iife.min.js,dist/uPlot.min.css}; do
		install -D -m 644 "$file" "$1/$file"
	done
	cksum <npm/package-lock.json >"$1/npm/node_modules/.installed-build"
	for file in "$BUILD"/*; do
		case ${file##*/} in asan | tsan | clang | libfuzzer | mutants | demo* | dist | test-bin | test_* | arm64 | *.log) ;;
		*) cp -r "$file" "$1/build/" ;;
		esac
	done
	rm -rf "$1/build/tests/dist" "$1"/build/{ringside,src/cmds/main.o,src/doctor/hang.o,plugin/src/plugin/ring.o}
	# Nothing is older than what it is made of.
	find "$1" -exec touch -h -d "@$copied" {} +
}
in_place() { # folder target... ; the log becomes $log
	make -C "$1" "${settings[@]}" "${@:2}" >"$log" 2>&1 || { tail -n 60 "$log"; return 1; }
}

copy "$place/it's a b/tree"
ln -s "it's a b/tree" "$place/link"
copy "$place/tree"
(umask 077 && copy "$place/user")
chown -R 65534:65534 "$place/user" 2>/dev/null

log=$tap_scratch/spaced.log
demo=$(as_written '^make demo$')
expect_ok "make demo in a folder with a space in its name" in_place "$place/it's a b/tree" "${demo#make }"
expect_same "it compiled there" "$(grep -c '  CC     build/src/cmds/main.o' "$log")" 1
expect_ok "the tool is the same as here, byte by byte" cmp "$BUILD/ringside" "$place/it's a b/tree/build/ringside"
expect_ok "and diagnosed the stuck send" grep -q '^error .*rank 247 ' "$log"
expect_ok "make demo through a symbolic link" in_place "$place/link" demo
expect_same "compiles nothing again" "$(grep -c '^  CC ' "$log")" 0
expect_ok "scripts of make check in that folder" in_place "$place/it's a b/tree" check-scripts SCRIPTS='tests/install.t tests/cli/run.t'
expect_ok "run in that folder" grep -q '^tests/cli/run.t .* ok$' "$log"
dist=$(as_written '^make dist$')
expect_ok "make dist there" env PACK_QUICKLY=1 make -s -C "$place/it's a b/tree" "${settings[@]}" "${dist#make }"
expect_ok "makes packages" test "$(find "$place/it's a b/tree/build/dist" -type f | wc -l)" -gt 10

log=$tap_scratch/tmp.log
expect_ok "scripts/mutants in a tree below /tmp" in_place "$place/tree" check-scripts SCRIPTS=tests/mutants.t

# The commands of the README and of the guides for a build from source, as written.
typed() { # pattern
	(cd "$place/tree" && MAKEFLAGS="${settings[*]// /\\ }" HOME=$place/home && export MAKEFLAGS HOME && eval "$(as_written "$1")") >"$tap_scratch/typed" 2>&1 || { tail -n 60 "$tap_scratch/typed"; return 1; }
}
mkdir "$place/home"
expect_ok "install-deps" typed '^scripts/install-deps'
expect_ok "install-npm" typed '^scripts/install-npm'
expect_ok "make plugin" typed '^make plugin$'
expect_ok "make" typed '^make$'
expect_ok "make dist-image" typed '^make dist-image$'
expect_ok "make install below the home folder" typed '^make install prefix='
expect_ok "installs the tool there" "$place/home/ringside/bin/ringside" version
slurm_install=$(as_written '^make install slurmdir=')
read -ra slurm_install <<<"${slurm_install/=FOLDER/=/FOLDER}"
expect_ok "make install for Slurm" env -C "$place/tree" DESTDIR="$place/slurm" "${slurm_install[@]}" "${settings[@]}"
[ ! -e "$BUILD/ringside_spank.so" ] || expect_ok "installs its plugin there" test -s "$place/slurm/FOLDER/ringside_spank.so"
cat >"$tap_scratch/as_root" <<'END'
mount -t tmpfs none /usr/local && cp -a /etc "$1/etc" && mount --bind "$1/etc" /etc || exit 77
sudo() { "$@"; }
cd "$1/tree" && eval "$2 && $3" || exit
grep -q /usr/local/lib/libnccl-profiler-ringside.so <<<"$(ldconfig -p)" && /usr/local/bin/ringside self-check --agent 127.0.0.1:1
END
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
	MAKEFLAGS="${settings[*]// /\\ }" unshare --mount --propagation private bash "$tap_scratch/as_root" "$place" "$(as_written '^sudo make install$')" \
		"$(as_written '^sudo ldconfig$')" >"$tap_scratch/said" 2>&1
	expect_ok "sudo make install && sudo ldconfig: the loader finds the plugin" grep -q '^ok  *plugin  */usr/local/' "$tap_scratch/said"
	sed 's/^/# /' "$tap_scratch/said" | tail -n 5
else
	tap_line ok "sudo make install # SKIP only root can install for a while" ""
fi

# What is installed already is not asked for, and nothing is written outside of the tree but what jobs record.
log=$tap_scratch/user.log
as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all)
if [ "$(id -u)" -eq 0 ] && "${as_user[@]}" true 2>/dev/null; then
	as_them() { (umask 077 && env -u TMPDIR HOME=/nonexistent PATH=/usr/local/bin:/usr/bin:/bin "${as_user[@]}" make -C "$place/user" "${settings[@]}" "$@" >"$log" 2>&1) ||
		{ tail -n 60 "$log"; return 1; }; }
	expect_ok "make demo without root, with umask 077" as_them demo
	expect_same "installs nothing" "$(grep -c '^install-deps' "$log")" 0
	expect_ok "scripts of make check without root" as_them check-scripts SCRIPTS='tests/install.t tests/cli/run.t'
else
	tap_line ok "make demo without root # SKIP only root can become another user" ""
fi
tap_done
