#!/usr/bin/env bash
# The OCI image: packed twice, the same bytes; what is in it; and, where container runtimes work, the agent in a container that
# follows jobs in others, without and with the host's pids.
. "$(dirname "$0")/../agent/agent.sh"

command -v dpkg-query >/dev/null || tap_skip_all "licences and versions of libraries come from dpkg"
[ -x "$BUILD/copy-plugin" ] || tap_skip_all "copy-plugin is not built: make dist-image"
export SOURCE_DATE_EPOCH=1700000000
pack() { MAINTAINER="Somebody <somebody@example.org>" packaging/dist/pack image "$BUILD" 1.2.3 "$1"; }
expect_ok "the image is packed" pack "$tap_scratch/one"
image=$(echo "$tap_scratch"/one/ringside-agent-1.2.3-*.oci.tar)
expect_ok "again" eval '(umask 077 && TZ=Asia/Tokyo pack "$tap_scratch/two")'
expect_ok "with the same bytes" diff -r "$tap_scratch/one" "$tap_scratch/two"

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
expect_same "so is who published it" "$(field "$config" config Labels org.opencontainers.image.vendor)" "Somebody <somebody@example.org>"
tar --no-same-owner -xf "$layer" -C "$tap_scratch/root"
expect_same "it has these programs only" "$(cd "$tap_scratch/root/usr/bin" && echo *)" "copy-plugin ringside ringside-agent ringside-fetch"
expect_same "nothing in it can gain rights" "$(find "$tap_scratch/root" -perm /6000)" ""
expect_same "nothing is newer than the commit" "$(find "$tap_scratch/root" -mindepth 1 -newermt "@$SOURCE_DATE_EPOCH" | head -n 3)" ""
missing() { # libraries that a program needs; the plugin needs those of its job
	find "$tap_scratch/root" -type f \( -path '*/bin/*' -o -name '*.so*' ! -path '*/ringside/*' \) -exec readelf -d {} + 2>/dev/null |
		sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u | while read -r name; do
		[ -n "$(find "$tap_scratch/root" -name "$name")" ] || echo "$name"
	done
}
expect_same "no library is missing" "$(missing)" ""
# The list of parts: in the image and beside it.
sbom=${image%.oci.tar}.spdx.json
expect_ok "the list of parts is in it, too" cmp "$sbom" "$tap_scratch/root/usr/share/doc/ringside/sbom.spdx.json"
parts() { # libraries that no package in the list contains, or whose licence is not in the image
	python3 - "$sbom" "$tap_scratch/root" <<'END'
import glob, json, os, sys
document, root = json.load(open(sys.argv[1])), sys.argv[2]
packages = {item["SPDXID"]: item for item in document["packages"]}
owners = {relation["relatedSpdxElement"]: packages[relation["spdxElementId"]] for relation in document["relationships"]
          if relation["relationshipType"] == "CONTAINS" and relation["spdxElementId"] in packages}
listed = {item["fileName"][1:]: owners.get(item["SPDXID"]) for item in document["files"]}
for path in glob.glob(root + "/**", recursive=True):
    if ".so" in path or "/bin/" in path:
        owner = listed.get(path[len(root):])
        if not owner:
            print("not listed:", path)
        elif owner["name"] != "ringside" and not os.path.exists(root + owner["comment"].split()[-1]):
            print("no licence:", path)
for item in packages.values():
    if not item.get("versionInfo") and "not part of this" not in item["comment"]:
        print("no version:", item["name"])
END
}
expect_same "every library is listed, with version and licence" "$(parts 2>&1)" ""

# Podman, in a mount namespace with one cgroup hierarchy, as its runtime wants; without limits that need more rights.
podman_works=
storage=(--root "$tap_scratch/store" --runroot "$tap_scratch/run")
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
expect_ok "an init container copies the plugin" run --user 0 --entrypoint /usr/bin/copy-plugin -v "$tap_scratch/volume:/ringside" "$name" /ringside
expect_ok "which is there" cmp "$tap_scratch/volume/libnccl-profiler-ringside.so" "$tap_scratch/root/usr/lib/ringside/libnccl-profiler-ringside.so"
expect_same "and nothing else" "$(ls "$tap_scratch/volume")" libnccl-profiler-ringside.so
expect_complaint "a directory that is not there is an error" 'copy-plugin: /nowhere: No such file' run --entrypoint /usr/bin/copy-plugin "$name" /nowhere

start_job() { # host-name commands
	PLUGIN=$tap_scratch/volume/libnccl-profiler-ringside.so RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB RINGSIDE_JOB=$1 \
		unshare --mount --pid --ipc --uts --fork --kill-child --mount-proc bash -c "hostname $1; $2"'; exec "$@"' - \
		"$BUILD/tests/process/process_job" end=hold ops=1000 comms=1 >"$tap_scratch/$1" 2>&1 <&9 &
	started+=("$!")
	disown "$!"
	until_ok test -s "$tap_scratch/$1"
}
listens() { # pid: the agent in the container listens, or has ended
	until_ok eval "is_listening || ! kill -0 $1 2>/dev/null"
	url=$(sed -n 's|.*listening on \(https*://[^,]*\).*|\1|p' "$log" | head -n 1)
	is_listening
}

# As in deploy/kubernetes/shared-shm: the host's directory, root with one capability, own pids.
start_job job-pod :
run --user 0 --cap-drop ALL --cap-add DAC_READ_SEARCH --read-only --pidfile "$tap_scratch/podman.pid" \
	-v "$shm:$shm:ro" "$name" --listen 127.0.0.1:0 --directory "$shm" >"$tap_scratch/out" 2>"$log" &
started+=("$!")
if listens "$!"; then
	expect_soon "the agent in the image finds the job of another container" shows '^nccl_process_info\{.*pid="1",host="job-pod"'
else
	tap_line "not ok" "the agent runs in the image as in the cluster" "$(cat "$log")"
fi
[ ! -s "$tap_scratch/podman.pid" ] || kill -TERM "$(cat "$tap_scratch/podman.pid")"

# As in deploy/kubernetes/base: the host's pids and two capabilities find jobs that have a /dev/shm of their own. Podman refuses the
# host's pids to containers without cgroups, so its runtime is asked directly, for what `podman run --pid=host` asks for.
start_job far-pod "mount -t tmpfs -o size=64m none $shm"
far_pid=$(pgrep -P "${started[-1]}")
(cd "$tap_scratch" && crun spec)
python3 - "$tap_scratch/config.json" "$shm" <<'END'
import json, sys
config, shm = json.load(open(sys.argv[1])), sys.argv[2]
rights = ["CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE"]
config["process"] = {"args": ["/usr/bin/ringside-agent", "--listen", "127.0.0.1:0", "--directory", shm], "cwd": "/",
                     "user": {"uid": 0, "gid": 0}, "noNewPrivileges": True,
                     "capabilities": {kind: rights for kind in ("bounding", "effective", "permitted")}}
config["root"] = {"path": "root", "readonly": True}
config["mounts"] = [{"destination": "/proc", "type": "bind", "source": "/proc", "options": ["rbind"]},
                    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                    {"destination": shm, "type": "bind", "source": shm, "options": ["rbind", "ro"]}]
config["linux"] = {"namespaces": [{"type": kind} for kind in ("mount", "ipc", "uts")]}
json.dump(config, open(sys.argv[1], "w"))
END
mkdir -p "$tap_scratch/root$shm"
log=$tap_scratch/crun.log
unshare --mount bash -c 'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"' - \
	crun --root "$tap_scratch/state" --cgroup-manager disabled run --bundle "$tap_scratch" --pid-file "$tap_scratch/pid" agent >"$tap_scratch/out" 2>"$log" &
started+=("$!")
if listens "$!"; then
	expect_soon "with the host's pids it finds the job that has its own /dev/shm" shows "^nccl_process_info\{.*pid=\"1\",host=\"far-pod\".*host_pid=\"$far_pid\""
	expect_soon "and the one in the host's, with its pid here" shows '^nccl_process_info\{.*host="job-pod".*host_pid="[1-9]'
	expect_same "with no other rights" "$(sed -n 's/^CapBnd:\t0*//p' "/proc/$(cat "$tap_scratch/pid")/status")" 80004
else
	tap_line "not ok" "the agent runs in the image with the host's pids" "$(cat "$log")"
fi
[ ! -s "$tap_scratch/pid" ] || kill -TERM "$(cat "$tap_scratch/pid")"
tap_done
