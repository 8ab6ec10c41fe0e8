#!/usr/bin/env bash
# Two builds from the source tarball, in different folders and without a network, give the same artefacts byte by byte.
. "$(dirname "$0")/../dist/dist.sh"

pack_once source
offline=()
unshare --net true 2>/dev/null && offline=(unshare --net)
for folder in here a/rather/different/place; do
	mkdir -p "$tap_scratch/$folder"
	tar -xzf "$dist/ringside-$VERSION.tar.gz" -C "$tap_scratch/$folder"
	expect_ok "it builds and packs in $folder" "${offline[@]}" make -s -C "$tap_scratch/$folder/ringside-$VERSION" -j"$(nproc)" CC="${CC:-cc}" BUILD=build dist
done
first=$tap_scratch/here/ringside-$VERSION/build/dist
second=$tap_scratch/a/rather/different/place/ringside-$VERSION/build/dist
expect_ok "more than ten artefacts were made" test "$(find "$first" -type f | wc -l)" -gt 10
for file in "$first"/*; do
	expect_ok "$(basename "$file") has the same bytes in both" cmp "$file" "$second/$(basename "$file")"
done
expect_ok "the source tarball made from the source tarball is the same" cmp "$first/ringside-$VERSION.tar.gz" "$dist/ringside-$VERSION.tar.gz"
tap_done
