#!/usr/bin/env bash
# Tarballs and packages as files: what checkers of others say, that packing again gives the same bytes, the list of parts, and the
# source tarball, which builds without npm and without a network.
. "$(dirname "$0")/dist.sh"

pack_once source binary deb rpm srpm
# Again, as another user elsewhere would, while the first are looked at.
kinds=(source binary deb rpm srpm)
again=$tap_scratch/again
for kind in "${kinds[@]}"; do
	(umask 077 && TZ=Asia/Tokyo packaging/dist/pack "$kind" "$BUILD" "$VERSION" "$again" >"$again.$kind" 2>&1 || echo "failed: $kind" >>"$again.$kind") &
done
source=$dist/ringside-$VERSION.tar.gz
machine=$(uname -m)
binary=$dist/ringside-$VERSION-linux-$machine.tar.gz
expect_ok "there is a source tarball" test -s "$source"
expect_ok "there is a binary tarball" test -s "$binary"

# ---- the source tarball: with the objects that are built, so that only what contains the charts is built again ----
mkdir "$tap_scratch/source"
tar -xzf "$source" -C "$tap_scratch/source"
tree=$tap_scratch/source/ringside-$VERSION
expect_ok "the charts are inside, with their licence" test -s "$tree/npm/node_modules/uplot/LICENSE" -a -s "$tree/npm/node_modules/uplot/dist/uPlot.iife.min.js"
expect_same "and nothing else of npm" "$(ls "$tree/npm/node_modules")" uplot
expect_same "every file of the tree is inside" "$(git ls-files 2>/dev/null | while read -r file; do [ -e "$tree/$file" ] || echo "$file"; done)" ""
expect_ok "npm is not asked for" env PATH=/usr/bin:/bin "$tree/scripts/install-npm" build
mkdir "$tree/build"
cp -r "$BUILD/flags" "$BUILD/runbook_pages" "$BUILD/src" "$tree/build/"
rm "$tree"/build/src/output/{html_report,live_page}.o
offline=()
unshare --net true 2>/dev/null && offline=(unshare --net)
strict=
! grep -q -- ' -Werror ' "$BUILD/flags" || strict=DEVELOPER=1
expect_ok "the tool builds from it, without a network" "${offline[@]}" make -s -C "$tree" CC="${CC:-cc}" BUILD=build $strict build/ringside
"$BUILD/ringside" sim --offline --nodes 1 --gpus 2 --iterations 5 -o "$tap_scratch/job" >/dev/null 2>&1
for tool in "$BUILD" "$tree/build"; do
	"$tool/ringside" report --html "$tap_scratch/page.html" "$tap_scratch/job" >/dev/null 2>&1
	mv "$tap_scratch/page.html" "$tap_scratch/page-$([ "$tool" = "$BUILD" ] && echo here || echo there).html"
done
expect_ok "its reports have charts" grep -q uPlot "$tap_scratch/page-there.html"
expect_ok "and are the same" cmp "$tap_scratch/page-here.html" "$tap_scratch/page-there.html"
expect_ok "the tool is the same, byte by byte, wherever the tree lies" cmp "$BUILD/ringside" "$tree/build/ringside"

# ---- the binary tarball ----
mkdir "$tap_scratch/binary"
tar -xzf "$binary" -C "$tap_scratch/binary"
unpacked=$tap_scratch/binary/ringside-$VERSION-linux-$machine
for file in "$unpacked"/bin/* "$unpacked"/lib/*.so; do
	expect_ok "$(basename "$file") runs with glibc 2.28" scripts/check-glibc-floor "$file"
	expect_ok "and is hardened" scripts/check-hardening "$file"
done
expect_ok "a job is recorded with it" env RINGSIDE_SHM="$tap_scratch" "$unpacked/bin/ringside" sim --nodes 1 --gpus 2 --iterations 3 -o "$tap_scratch/tarball"
expect_ok "and read" grep -q 'recording complete' <("$unpacked/bin/ringside" report "$tap_scratch/tarball")

# ---- list of parts (SPDX) ----
if command -v python3 >/dev/null; then
	parts() {
		python3 - "$1" <<'END'
import json, sys
document = json.load(open(sys.argv[1]))
assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
known = {"SPDXRef-DOCUMENT"} | {item["SPDXID"] for item in document["packages"] + document["files"]}
assert len(known) == 1 + len(document["packages"]) + len(document["files"]), "an identifier twice"
for relation in document["relationships"]:
    assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= known, relation
names = {item["SPDXID"]: item["name"] for item in document["packages"]}
print(*sorted({names[r["relatedSpdxElement"]] for r in document["relationships"]
               if r["relationshipType"] == "STATIC_LINK" or r["relatedSpdxElement"].endswith("uplot")}))
END
	}
	# gcc's own parts have its version in their name.
	expect_same "the document lists what is linked in" "$(parts "$unpacked/sbom.spdx.json" 2>&1 | sed 's/gcc-[0-9]*/gcc/')" \
		"gcc glibc$([ ! -e "$BUILD/ringside-agent" ] || echo " libmicrohttpd libxcrypt") libzstd$([ ! -e "$BUILD/ringside-top" ] || echo " ncurses") uplot zlib"
	for part in $(parts "$unpacked/sbom.spdx.json"); do
		expect_ok "the licence of $part is inside" test -s "$unpacked/licenses/$part.txt"
	done
	expect_ok "sums in the document are those of the files" sh -c "cd '$unpacked' && grep -q \"\$(sha256sum <bin/ringside | cut -d ' ' -f 1)\" sbom.spdx.json"
fi

# ---- what others say ----
if command -v lintian >/dev/null; then
	expect_same "lintian is content" "$(lintian --no-cfg --allow-root --tag-display-limit 0 --fail-on error,warning "$dist"/*_"${VERSION}"_*.deb 2>&1)" ""
else
	tap_note_skip "there is no lintian: it was not asked"
fi
if command -v rpmlint >/dev/null; then
	expect_ok "rpmlint is content" grep -q ' 0 errors, 0 warnings' <(rpmlint -c packaging/rpm/rpmlint.toml "$dist"/*-"${VERSION}"-1.*.rpm 2>&1)
else
	tap_note_skip "there is no rpmlint: it was not asked"
fi
for package in "$dist"/*_"${VERSION}"_*.deb; do
	list=$(dpkg-deb -c "$package")
	expect_same "programs of $(basename "$package") have manual pages" "$(sed -n 's|.* ./usr/bin/\(.\)|\1|p' <<<"$list" | while read -r program; do
		grep -q "/man1/$program.1.gz" <<<"$list" || echo "$program"
	done)" ""
done

# ---- the source package of the plugin for Slurm: built with the Slurm of this machine ----
if [ -e "$BUILD/ringside_spank.so" ]; then
	expect_ok "the plugin for Slurm is built from its source package" rpmbuild --quiet --rebuild --nodeps --define "_topdir $tap_scratch/rpm" \
		"$dist/ringside-slurm-$VERSION-1.src.rpm"
	built=$(find "$tap_scratch/rpm/RPMS" -name '*.rpm' 2>/dev/null)
	release=$(sed -nE 's/^#define SLURM_VERSION_NUMBER 0x(..)(..)..$/\1 \2/p' /usr/include/slurm/slurm_version.h |
		{ read -r year month && printf '%d.%02d' "0x$year" "0x$month"; })
	expect_same "it requires the release of Slurm it was built for" "$(rpm -qp --requires "$built" | grep '^slurm' | sort)" \
		"slurm < $release.99"$'\n'"slurm >= $release"
	expect_same "and has the plugin, its licence and its page" "$(rpm -qpl "$built" | sed 's|.*/||' | grep -v '^ringside-slurm' | sort | tr '\n' ' ')" \
		"LICENSE SLURM.md ringside_spank.so "
	expect_same "the deb depends on the same" "$(dpkg-deb -f "$dist"/ringside-slurm_"$VERSION"_*.deb Depends | grep -o 'slurm.*')" \
		"slurm-wlm-basic-plugins (>= $release), slurm-wlm-basic-plugins (<< $release.99)"
else
	tap_note_skip "there are no headers of Slurm: its plugin was not built from its package"
fi

# ---- the same bytes again ----
wait
expect_same "everything is packed again" "$(grep -h -B9 '^failed: ' "$again".*)" ""
expect_ok "more than ten files were packed" test "$(find "$again" -type f | wc -l)" -gt 10
for file in "$again"/*; do
	expect_ok "$(basename "$file") has the same bytes" cmp "$file" "$dist/$(basename "$file")"
done
tap_done
