#!/usr/bin/env bash
# The OCI image: built twice with buildah, the same bytes; what is in it; and, where Podman runs, the agent in a container that
# follows a job in another one.
. "$(dirname "$0")/../agent/agent.sh"

command -v buildah >/dev/null || tap_skip_all "buildah is not installed"
store=$tap_scratch/store
storage=(--root "$store" --runroot "$tap_scratch/run")
try=$(buildah --storage-driver vfs "${storage[@]}" from scratch 2>&1) || tap_skip_all "buildah does not run here: ${try##*$'\n'}"
export SOURCE_DATE_EPOCH=1700000000
image=$tap_scratch/image.tar
expect_ok "the image is built" packaging/image/build 1.2.3 "$image" "${storage[@]}"
expect_ok "again" packaging/image/build 1.2.3 "$tap_scratch/again.tar" "${storage[@]}"
expect_ok "with the same bytes" cmp "$image" "$tap_scratch/again.tar"

mkdir "$tap_scratch/layout" "$tap_scratch/root"
tar -xf "$image" -C "$tap_scratch/layout"
blob() { echo "$tap_scratch/layout/blobs/sha256/${1#sha256:}"; }
field() { perl -MJSON::PP -e 'local $/; my $at = decode_json(<STDIN>); $at = /^\d+$/ ? $at->[$_] : $at->{$_} for @ARGV; print ref $at ? encode_json($at) : $at' "${@:2}" <"$1"; }
manifest=$(blob "$(field "$tap_scratch/layout/index.json" manifests 0 digest)")
config=$(blob "$(field "$manifest" config digest)")
layer=$(blob "$(field "$manifest" layers 0 digest)")
expect_same "it runs as user 65532 by default" "$(field "$config" config User)" 65532:65532
expect_same "it starts the agent" "$(field "$config" config Entrypoint)" '["/usr/bin/ringside-agent"]'
expect_same "its version is a label" "$(field "$config" config Labels org.opencontainers.image.version)" 1.2.3
tar --no-same-owner -xf "$layer" -C "$tap_scratch/root"
expect_same "it has these programs only" "$(cd "$tap_scratch/root/usr/bin" && echo *)" "cp ringside ringside-agent ringside-fetch"
expect_same "nothing in it can gain rights" "$(find "$tap_scratch/root" -perm /6000)" ""
expect_same "nothing is newer than the commit" "$(find "$tap_scratch/root" -mindepth 1 -newermt "@$SOURCE_DATE_EPOCH" | head -n 3)" ""
missing() { # libraries that a program needs; the plugin needs those of its job
	find "$tap_scratch/root" -type f \( -path '*/bin/*' -o -name '*.so*' ! -path '*/ringside/*' \) -exec readelf -d {} + 2>/dev/null |
		sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u | while read -r name; do
		[ -n "$(find "$tap_scratch/root" -name "$name")" ] || echo "$name"
	done
}
expect_same "no library is missing" "$(missing)" ""
expect_ok "their licences are there" [ "$(find "$tap_scratch/root/usr/share/doc" -name copyright | wc -l)" -ge 3 ]

# Podman, in a mount namespace with one cgroup hierarchy, as its runtime wants; without limits that need more rights.
podman_works=
podman() {
	unshare --mount bash -c 'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"' - \
		podman --storage-driver vfs "${storage[@]}" --cgroup-manager cgroupfs "$@"
}
run() {
	podman run --rm --network host --cgroups=disabled --log-driver none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "$@"
}
if command -v podman >/dev/null && podman load --input "$image" >/dev/null 2>&1; then
	name=localhost/ringside-agent:1.2.3
	run "$name" --help >"$tap_scratch/said" 2>&1 && podman_works=yes
fi
if [ -z "$podman_works" ]; then
	echo "# Podman does not run here: $(tail -n 1 "$tap_scratch/said" 2>/dev/null)"
	tap_done
	exit
fi
expect_ok "the agent starts in it" grep -q '^Usage: ringside agent\|usage: ringside agent' "$tap_scratch/said"
expect_ok "and the hub" run "$name" hub --help
expect_ok "and the tool" run --entrypoint /usr/bin/ringside "$name" help
mkdir "$tap_scratch/volume"
expect_ok "an init container copies the plugin" run --user 0 --entrypoint /usr/bin/cp -v "$tap_scratch/volume:/ringside" "$name" \
	/usr/lib/ringside/libnccl-profiler-ringside.so /ringside/
expect_ok "which is there" [ -s "$tap_scratch/volume/libnccl-profiler-ringside.so" ]

# As in deploy/kubernetes/shared-shm: the host's directory, root with one capability, own pids. Podman refuses the host's pids to
# containers without cgroups.
PLUGIN=$tap_scratch/volume/libnccl-profiler-ringside.so RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB \
	unshare --mount --pid --ipc --uts --fork --kill-child --mount-proc bash -c 'hostname job-pod; exec "$@"' - \
	"$BUILD/tests/process/process_job" end=hold ops=1000 comms=1 >"$tap_scratch/job" 2>&1 <&9 &
started+=("$!")
disown "$!"
until_ok eval '[ -s "$tap_scratch/job" ]'
run --user 0 --cap-drop ALL --cap-add DAC_READ_SEARCH --read-only --pidfile "$tap_scratch/pid" \
	-v "$shm:$shm:ro" "$name" --listen 127.0.0.1:0 --directory "$shm" >"$tap_scratch/out" 2>"$log" &
runs=$!
started+=("$runs")
until_ok eval 'is_listening || ! kill -0 $runs 2>/dev/null'
url=$(sed -n 's|.*listening on \(https*://[^,]*\).*|\1|p' "$log" | head -n 1)
expect_ok "the agent runs in the image as in the cluster" is_listening
if is_listening; then
	expect_soon "and finds the job of another container" shows '^nccl_process_info\{.*pid="1",host="job-pod"'
fi
[ ! -s "$tap_scratch/pid" ] || kill -TERM "$(cat "$tap_scratch/pid")"
tap_done
