#!/usr/bin/env bash
# Packages for the other machine (arm64 on amd64, and the reverse): built by `make dist ARCH=...` in a Debian of its own, judged by
# lintian and rpmlint, installed there, and run by qemu. CROSS_ROOT=FOLDER keeps that Debian for the next time.
. "$(dirname "$0")/../dist/dist.sh"
[ "$(id -u)" = 0 ] || tap_skip_all "only root can change the root"
command -v mmdebstrap >/dev/null || tap_skip_all "there is no mmdebstrap"
unset "${!RINGSIDE_@}" "${!NCCL_@}" MAKEFLAGS MFLAGS
export LC_ALL=C
case $(uname -m) in
x86_64) arch=arm64 machine=aarch64 ;;
aarch64) arch=amd64 machine=x86_64 ;;
*) tap_skip_all "packages are made for x86-64 and aarch64 only" ;;
esac

# Not in memory, where tests have their files: it has devices.
other=$(mktemp -d /var/tmp/ringside-other.XXXXXX)
trap 'rm -rf --one-file-system "$tap_scratch" "$other"' EXIT
export CROSS_ROOT=${CROSS_ROOT:-$other/root}
root=$CROSS_ROOT
out=$tap_scratch/build/dist
expect_ok "everything is built and packed for $arch" make ARCH="$arch" BUILD="$tap_scratch/build" dist
expect_same "these are the artefacts" "$(cd "$out" && printf '%s ' *)" "$(printf '%s\n' \
	{nccl-profiler-ringside,ringside,ringside-{agent,bench,sim,slurm}}_"${VERSION}_$arch.deb" \
	{nccl-profiler-ringside,ringside,ringside-{agent,bench,sim}}-"$VERSION-1.$machine.rpm" \
	ringside-agent-"$VERSION-$arch".{oci.tar,spdx.json} ringside-"$VERSION-linux-$machine".{spdx.json,tar.gz} \
	ringside-"$VERSION"-{deb-"$arch",rpm-"$machine"}.spdx.json "ringside_nccl-$VERSION-py3-none-manylinux_2_28_$machine.whl" | sort | tr '\n' ' ')"
if command -v lintian >/dev/null; then
	expect_same "lintian is content" "$(lintian --no-cfg --allow-root --tag-display-limit 0 --fail-on error,warning "$out"/*.deb 2>&1)" ""
fi
if command -v rpmlint >/dev/null; then
	expect_ok "rpmlint is content" grep -q ' 0 errors, 0 warnings' <(rpmlint -c packaging/rpm/rpmlint.toml "$out"/*.rpm 2>&1)
fi

# ---- by qemu, in that Debian ----
there() { # command...
	unshare --mount --propagation private sh -c 'mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev/shm" && exec chroot "$@"' sh "$root" "$@"
}
run() { # program...
	there "qemu-$machine" "$@"
}
rm -rf "$root/tmp"/*
cp "$out"/*.deb "$out"/*.rpm "$root/tmp/"
expect_ok "the deb packages find what they depend on" there sh -c 'dpkg --no-triggers -i /tmp/nccl-*.deb /tmp/ringside_*.deb /tmp/ringside-[abs][gei]*.deb'
expect_complaint "that for Slurm waits for Slurm" "depends on slurm-wlm-basic-plugins" there sh -c 'dpkg --no-triggers -i /tmp/ringside-slurm_*.deb'
there dpkg --no-triggers -P ringside-slurm >/dev/null 2>&1
expect_ok "a simulated job is recorded by the plugin" run /usr/bin/ringside-sim --nodes 1 --gpus 2 --workload ddp --iterations 5 -o /tmp/job
expect_ok "nothing is missing in the recording" run /usr/bin/ringside verify /tmp/job
expect_same "this machine reads the same" "$("$BUILD/ringside" dump "$root/tmp/job" | cksum)" "$(run /usr/bin/ringside dump /tmp/job | cksum)"
expect_ok "the doctor finds no hang" grep -q '^no hang' <(run /usr/bin/ringside doctor /tmp/job)
hung=(--offline --kernel --nodes 2 --gpus 4 -w fsdp --channels 4 -f stuck-send:rank=3 --seed 7 --at 2s)
expect_ok "a hung job is simulated" run /usr/bin/ringside-sim "${hung[@]}" -o /tmp/hung
expect_ok "its cause is found" grep -q 'network send stuck: rank 3 -> rank 4' <(run /usr/bin/ringside doctor --hang 5s /tmp/hung)
expect_same "in the same words as here" "$(run /usr/bin/ringside doctor --hang 5s /tmp/hung)" \
	"$(cd "$root" && "$BUILD/ringside" doctor --hang 5s tmp/hung | sed 's|from tmp/hung|from /tmp/hung|')"
for program in agent bench top; do
	expect_ok "ringside-$program starts" run "/usr/bin/ringside-$program" --help
done
expect_ok "they are removed" there dpkg --no-triggers -P nccl-profiler-ringside ringside ringside-agent ringside-bench ringside-sim

expect_ok "the rpm packages are installed" there sh -c 'rpm -i --nodeps --ignorearch --ignoreos --dbpath /tmp/rpmdb /tmp/*.rpm'
expect_ok "their tool reads the job" grep -q 'recording complete' <(run /usr/bin/ringside report /tmp/job)
expect_ok "their agent starts" run /usr/bin/ringside-agent --help
expect_ok "they are removed" there rpm -e --nodeps --dbpath /tmp/rpmdb nccl-profiler-ringside ringside ringside-agent ringside-bench ringside-sim

tar -xzf "$out/ringside-$VERSION-linux-$machine.tar.gz" -C "$root/tmp"
unpacked=tmp/ringside-$VERSION-linux-$machine
for file in "$root/$unpacked"/bin/* "$root/$unpacked"/lib/*.so; do
	expect_ok "$(basename "$file") of the tarball runs with glibc 2.28" scripts/check-glibc-floor "$file"
	expect_ok "and is hardened" scripts/check-hardening "$file"
done
expect_ok "the tarball records a job" run "/$unpacked/bin/ringside-sim" --nodes 1 --gpus 2 --iterations 3 -o /tmp/tarball
expect_ok "and reads it" run "/$unpacked/bin/ringside" verify /tmp/tarball
expect_ok "the wheel is a wheel" python3 -m zipfile -e "$out"/*.whl "$root/tmp/wheel"
chmod +x "$root"/tmp/wheel/ringside/bin/*
expect_ok "it records a job" run /tmp/wheel/ringside/bin/ringside-sim --plugin /tmp/wheel/ringside/lib/libnccl-profiler-ringside.so --nodes 1 --gpus 2 --iterations 3 -o /tmp/wheel/job
expect_ok "and reads it" run /tmp/wheel/ringside/bin/ringside verify /tmp/wheel/job
mkdir "$root/tmp/image" "$root/tmp/layer"
tar -xf "$out/ringside-agent-$VERSION-$arch.oci.tar" -C "$root/tmp/image"
expect_ok "the image says its machine" grep -q "\"architecture\": \"$arch\"" "$root/tmp/image/index.json"
layer=$(find "$root/tmp/image/blobs" -type f -size +1M)
tar --no-same-owner -xzf "$layer" -C "$root/tmp/layer"
for program in ringside-agent ringside ringside-fetch; do
	expect_ok "$program of the image runs with its libraries" run -L /tmp/layer "/tmp/layer/usr/bin/$program" --help
done
tap_done
