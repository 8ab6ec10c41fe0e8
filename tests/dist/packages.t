#!/usr/bin/env bash
# The deb and rpm packages in a clean root: nothing there but essential packages and what the packages say they depend on. They are
# installed, a simulated job is recorded and diagnosed by what they installed, they are removed, and nothing is left.
. "$(dirname "$0")/dist.sh"
[ "$(id -u)" = 0 ] || tap_skip_all "only root can change the root"
command -v dpkg-query >/dev/null || tap_skip_all "the dependencies are copied from an installed Debian"
pack_once deb
mapfile -t debs < <(find "$dist" -name "*_${VERSION}_*.deb" ! -name 'ringside-slurm_*')
expect_same "there are five packages, without that for Slurm" "${#debs[@]}" 5

# Names of packages, with everything they depend on, from what is installed here. Ubuntu has some under another name, which
# provides the usual one (libcurl4t64).
declare -A wanted=() provider=() depends=()
while IFS='|' read -r name provides needs; do
	depends[$name]=$needs
	for provided in $name ${provides//,/ }; do # "mta, awk (= 1.3)": the words of versions name nothing
		provider[$provided]=$name
	done
done < <(dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Provides}|${Pre-Depends}, ${Depends}\n' | sed -n 's/^ii *|//p')
want() { # "libc6 (>= 2.34), libcurl3-gnutls | libcurl4"
	local name
	while read -r name _; do
		name=${name:+${provider[${name%%:*}]:-}}
		if [ -z "$name" ] || [ -n "${wanted[$name]:-}" ]; then
			continue
		fi
		wanted[$name]=1
		want "${depends[$name]}"
	done <<<"${1//[,|]/$'\n'}"
}
want "dash, coreutils, libc-bin"
[ -z "${provider[apt]:-}" ] || want "apt, dpkg, sed, grep, tar, diffutils"
for deb in "${debs[@]}"; do
	want "$(dpkg-deb -f "$deb" Depends)"
done
# Ubuntu 22.04 has libc6 2.35, libgnutls30 3.7.3, libzstd1 1.4.8.
expect_same "they depend on what old and new releases have" "$(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Package Depends | xargs; done | LC_ALL=C sort)" \
	"Package: nccl-profiler-ringside Depends: libc6 (>= 2.28)
Package: ringside Depends: libc6 (>= 2.28), libcurl4
Package: ringside-agent Depends: libc6 (>= 2.28), libgnutls30 (>= 3.6.5)
Package: ringside-bench Depends: libc6 (>= 2.28)
Package: ringside-sim Depends: libc6 (>= 2.28), nccl-profiler-ringside (= $VERSION)"

# A root of these packages: their files, and their entries in dpkg's list.
root=$tap_scratch/root
mkdir -p "$root"/{dev/shm,proc,tmp,etc,var/lib/dpkg/{info,updates,triggers},var/log} "$root"/usr/{bin,sbin,lib,lib64}
: >"$root/dev/null"
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done
dpkg-query -L "${!wanted[@]}" | grep -vE '^/(usr/share/(doc|man|locale|info|lintian)|etc)/|^package diverts' |
	sed -E 's#^/(bin|sbin|lib|lib64)/#/usr/\1/#' | sort -u | while read -r file; do
	[ -d "$file" ] && [ ! -L "$file" ] || [ ! -e "$file" ] || echo ".$file"
done | tar -C / --no-recursion -T - -c | tar -C "$root" -x
dpkg-query -s "${!wanted[@]}" >"$root/var/lib/dpkg/status"
for name in "${!wanted[@]}"; do
	for list in /var/lib/dpkg/info/"$name".list /var/lib/dpkg/info/"$name":*.list; do
		[ ! -e "$list" ] || cp "$list" "$root/var/lib/dpkg/info/"
	done
done
cp /var/lib/dpkg/info/format "$root/var/lib/dpkg/info/" 2>/dev/null
everything() { (cd "$root" && find . \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache \) -prune -o -path ./var/log -prune -o -path ./tmp -prune -o -path ./etc/ld.so.cache -prune -o -print | sort); }
everything >"$tap_scratch/before"

inside() { # command... ; with the kernel's folders, which vanish afterwards
	unshare --mount --propagation private sh -c 'mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev/shm" &&
		mount --bind /dev/null "$1/dev/null" && root=$1 && shift && exec chroot "$root" "$@"' sh "$root" "$@"
}
dpkg_there() { dpkg --root="$root" --no-triggers "$@"; }

# By the command of the README, if apt is here: it finds everything they need.
mkdir "$root/debs"
cp "${debs[@]}" "$root/debs/"
if [ -n "${wanted[apt]:-}" ]; then
	mkdir -p "$root"/{var/lib/apt/lists/partial,var/cache/apt/archives/partial,etc/apt/apt.conf.d,etc/apt/preferences.d}
	printf 'root:x:0:0::/:/bin/sh\n_apt:x:42:65534::/:/bin/false\n' >"$root/etc/passwd"
	everything >"$tap_scratch/before"
	expect_ok "apt installs the packages of the README where only their dependencies are" \
		inside /bin/sh -c "cd /debs && $(as_written '^apt install ./nccl')"
else
	tap_note_skip "there is no apt: dpkg installs the packages"
fi
expect_ok "all are installed" dpkg_there -i "${debs[@]}"
expect_same "the plugin is found beside the tool" "$(inside /usr/bin/ringside env | grep -c 'NCCL_PROFILER_PLUGIN=')" 1
inside /bin/sh -c '/usr/bin/ringside sim --nodes 1 --gpus 2 --workload ddp --iterations 5 -o /tmp/job' >"$tap_scratch/sim.log" 2>&1
expect_same "a simulated job is recorded by the installed plugin" "$?" 0
expect_ok "and read" grep -q 'recording complete' <(inside /usr/bin/ringside report /tmp/job)
expect_ok "the doctor finds no hang" grep -q '^no hang' <(inside /usr/bin/ringside doctor /tmp/job)
inside /usr/bin/ringside report --html /tmp/job.html /tmp/job >/dev/null 2>&1
expect_ok "the page has its charts" grep -q uPlot "$root/tmp/job.html"
for program in agent bench top; do
	expect_ok "ringside $program starts" inside /usr/bin/ringside "$program" --help
done
# Nothing listens on port 1.
expect_ok "the tool finds ringside-fetch" grep -q refused <(inside /usr/bin/ringside doctor --timeout 60s --agents 127.0.0.1:1 2>&1)

expect_ok "they are removed" dpkg_there -r nccl-profiler-ringside ringside ringside-agent ringside-bench ringside-sim
expect_same "their settings stay" "$(cd "$root" && find etc/default -type f | sort | tr '\n' ' ')" "etc/default/ringside-agent etc/default/ringside-hub "
expect_ok "they are purged" dpkg_there -P ringside-agent
everything >"$tap_scratch/after"
expect_same "nothing is left" "$(diff "$tap_scratch/before" "$tap_scratch/after")" ""

# rpm: the same root; what its packages require is looked at, because Debian has no packages of these names.
if ! command -v rpm >/dev/null || ! command -v rpmbuild >/dev/null; then
	tap_note_skip "there is no rpm: its packages were not installed"
	tap_done
fi
pack_once rpm
mapfile -t rpms < <(find "$dist" -name "*-$VERSION-1.*.rpm" ! -name '*.src.rpm')
expect_same "there are five of rpm" "${#rpms[@]}" 5
expect_same "they require glibc up to 2.28, the TLS libraries, and a shell" \
	"$(rpm -qp --requires "${rpms[@]}" | grep -vE '^(rpmlib|config)\(|^/bin/sh$|^rtld\(GNU_HASH\)$|^ld-linux-[^(]*\(|^lib(c|m|pthread|dl|resolv)\.so\.[0-9]\((GLIBC_2\.([0-9]|1[0-9]|2[0-8])(\.[0-9]+)?)?\)' |
		sed 's/(64bit)//' | sort -u | tr '\n' ' ')" \
	"libcurl.so.4() libgnutls.so.30() libgnutls.so.30(GNUTLS_3_4) libgnutls.so.30(GNUTLS_3_6_3) nccl-profiler-ringside = $VERSION "
rpm_there() { rpm --root "$root" --dbpath /var/lib/dpkg/rpm "$@"; }
expect_ok "they are installed" rpm_there -i --nodeps --ignorearch --ignoreos "${rpms[@]}"
expect_ok "the tool runs" inside /usr/bin/ringside version
expect_ok "and reads the job" grep -q 'recording complete' <(inside /usr/bin/ringside report /tmp/job)
expect_ok "the agent starts" inside /usr/bin/ringside agent --help
expect_ok "they are removed" rpm_there -e --nodeps nccl-profiler-ringside ringside ringside-agent ringside-bench ringside-sim
everything >"$tap_scratch/after"
# On their systems the folders belong to others.
is_file() { while read -r file; do [ -d "$root/$file" ] || echo "$file"; done; }
expect_same "no file of these is left, too" "$(diff <(is_file <"$tap_scratch/before") <(is_file <"$tap_scratch/after"))" ""
tap_done
