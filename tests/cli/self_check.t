#!/usr/bin/env bash
# `ringside self-check`: images by golden output, this machine by its lines.
. "$(dirname "$0")/cli.sh"
unset NCCL_CONF_FILE RINGSIDE_DISABLE RINGSIDE_MODE RINGSIDE_DIR LD_LIBRARY_PATH
export HOME=$tap_scratch/home
mkdir "$HOME"
plugin=libnccl-profiler-ringside.so
version=$("$ringside" version | cut -d' ' -f2)
tidy() {
	sed -e "s|$tap_scratch|TMP|g" -e "s|$BUILD|BUILD|g" -e "s|$PWD|HERE|g" -e "s|\bringside $version\b|ringside VERSION|g" -e "s|version $version\b|version VERSION|g"
}

# ---- a tree that is not running ----
image() { # name: a fresh one with the plugin
	root=$tap_scratch/$1
	mkdir -p "$root/etc" "$root/usr/lib/x86_64-linux-gnu"
	cp "$BUILD/$plugin" "$root/usr/lib/x86_64-linux-gnu/"
}
image empty
rm "$root/usr/lib/x86_64-linux-gnu/$plugin"
expect_output "an image without the plugin" self-check-empty "$ringside" self-check --root "$root"

image ready
python=$root/usr/local/lib/python3.12/dist-packages
mkdir -p "$python/nvidia/nccl/lib" "$python/nvidia_nccl_cu12-2.27.3.dist-info" "$root/usr/lib64"
: >"$python/nvidia/nccl/lib/libnccl.so.2"
: >"$root/usr/lib64/libnccl.so.2.30.7"
ln -s libnccl.so.2.30.7 "$root/usr/lib64/libnccl.so.2"
printf '# site\nNCCL_DEBUG=WARN\nNCCL_PROFILER_PLUGIN=%s\nRINGSIDE_MODE=trace\n' "$plugin" >"$root/etc/nccl.conf"
expect_output "an image that is ready" self-check-ready "$ringside" self-check --root "$root"
expect_same "the environment of this shell does not count for an image" \
	"$(NCCL_PROFILER_PLUGIN=other RINGSIDE_DISABLE=1 "$ringside" self-check --root "$root")" "$("$ringside" self-check --root "$root")"

image wrong
printf 'export NCCL_PROFILER_PLUGIN=ringside\nNCCL_PROFILER_PLUGIN = ringside\nRINGSIDE_MODE="trace"\nRINGSIDE_MDOE=trace\n' >"$root/etc/nccl.conf"
: >"$root/usr/lib/libnccl.so.2.21.5"
ln -s libnccl.so.2.21.5 "$root/usr/lib/libnccl.so.2"
expect_output "lines that NCCL reads otherwise, and an old NCCL" self-check-wrong "$ringside" self-check --root "$root"

image names
printf 'NCCL_PROFILER_PLUGIN=ringside\nRINGSIDE_DISABLE=1\n' >"$root/etc/nccl.conf"
: >"$root/usr/lib/libnccl.so.2.25.1"
ln -s libnccl.so.2.25.1 "$root/usr/lib/libnccl.so.2"
expect_output "a name that this NCCL does not know, and switched off" self-check-names "$ringside" self-check --root "$root"
sed -n 's/^| \[`\(RINGSIDE_[A-Z_]*\)`\].*/\1=x/p' docs/SETTINGS.md >"$tap_scratch/list"
settings=$(wc -l <"$tap_scratch/list")
image all
cp "$tap_scratch/list" "$root/etc/nccl.conf"
expect_same "it knows all $settings settings of the manual" "$("$ringside" self-check --root "$root" | grep 'nccl.conf  ' | tidy)" \
	"ok       nccl.conf    TMP/all/etc/nccl.conf has $settings settings for the recorder"
root=$tap_scratch/names
"$ringside" self-check --json --root "$root" >"$tap_scratch/json"
expect_same "the same as JSON" \
	"$(json_says '($_->{is_ready} ? 1 : 0) . " $_->{nccl}[0]{version} $_->{nccl}[0]{interface} " . join ",", map { $_->{state} } @{$_->{checks}}' "$tap_scratch/json")" \
	"0 2.25.1 2 ok,note,problem,ok,ok,ok"

# ---- this machine ----
line() { # name [variable=value...]: its lines, with paths shortened
	local name=$1
	shift
	env "$@" "$ringside" self-check --agent "${agent:-127.0.0.1:1}" | grep -A 1 -E "^(ok|note|problem) +$name" | tidy
}
expect_same "the plugin is loaded as NCCL does" "$(line plugin | head -n 1)" \
	"ok       plugin       BUILD/$plugin, version VERSION; loads, NCCL's profiler interface 1 to 7"
expect_same "a setting that the loader cannot follow is a problem" "$(line setting NCCL_PROFILER_PLUGIN=ringside | head -n 1)" \
	"problem  setting      NCCL_PROFILER_PLUGIN=ringside (environment), but the loader does not find it: jobs run unrecorded"
env NCCL_PROFILER_PLUGIN=ringside "$ringside" self-check >/dev/null
expect_same "and the exit code is 1" $? 1
expect_same "with the directory it is found" \
	"$(line setting NCCL_PROFILER_PLUGIN=ringside LD_LIBRARY_PATH="$BUILD" | head -n 1)" \
	"ok       setting      NCCL_PROFILER_PLUGIN=ringside (environment) loads BUILD/$plugin"
echo "NCCL_PROFILER_PLUGIN=$BUILD/$plugin" >"$HOME/.nccl.conf"
expect_same "the user's file counts" "$(line setting | head -n 1)" \
	"ok       setting      NCCL_PROFILER_PLUGIN=BUILD/$plugin (TMP/home/.nccl.conf) loads BUILD/$plugin"
expect_same "the environment wins over it" "$(line setting NCCL_PROFILER_PLUGIN=other | head -n 1)" \
	"note     setting      NCCL_PROFILER_PLUGIN=other (environment) is another plugin, and NCCL loads one only"
rm "$HOME/.nccl.conf"
cp "$BUILD/$plugin" "$tap_scratch/damaged.so"
printf 'x' | dd of="$tap_scratch/damaged.so" conv=notrunc 2>/dev/null
mkdir "$tap_scratch/bin"
cp "$ringside" "$tap_scratch/bin/"
cp "$tap_scratch/damaged.so" "$tap_scratch/bin/$plugin"
expect_same "a damaged plugin is a problem" "$("$tap_scratch/bin/ringside" self-check | grep plugin | head -n 1 | tidy)" \
	"problem  plugin       TMP/bin/$plugin cannot be loaded: TMP/bin/$plugin: invalid ELF header"
printf 'RINGSIDE_MODE=trace\nRINGSIDE_DIR=/dev/null/x\n' >"$tap_scratch/conf"
expect_same "traces that cannot be written are a problem" "$(line traces NCCL_CONF_FILE="$tap_scratch/conf" | head -n 1)" \
	"problem  traces       mode trace (TMP/conf), but /dev/null/x: Not a directory"
expect_same "a missing place for regions, too" "$(line memory RINGSIDE_SHM=/nowhere | head -n 1)" \
	"problem  memory       /nowhere: No such file or directory"
if unshare -Urm true 2>/dev/null; then
	small() { # size
		# shellcheck disable=SC2016
		unshare -Urm sh -c 'mount -t tmpfs -o size=$1 none /dev/shm && "$2" self-check --agent 127.0.0.1:1 | grep " memory "' sh "$1" "$ringside"
	}
	# The build may be in /dev/shm itself, where the mount would hide it.
	case $ringside in /dev/shm/*) ;; *)
		expect_same "64 MiB of shared memory are a note" "$(small 64m)" \
			"note     memory       /dev/shm has 64 MiB free of 64 MiB: recordings of 8 processes will be smaller than usual"
		expect_same "8 MiB are a problem" "$(small 8m)" \
			"problem  memory       /dev/shm has 8 MiB free of 8 MiB: too little for recordings"
		expect_same "1 GiB is enough" "$(small 1g)" "ok       memory       /dev/shm has 1 GiB free of 1 GiB" ;;
	esac
fi
expect_same "no agent is a note" "$(line agent | head -n 1)" \
	"note     agent        nothing answers on 127.0.0.1:1: Connection refused"
if [ -x "$BUILD/ringside-agent" ]; then
	"$ringside" agent --listen 127.0.0.1:0 >/dev/null 2>"$tap_scratch/log" &
	agent_pid=$!
	until_ok grep -q 'listening on' "$tap_scratch/log"
	agent=$(sed -n 's|.*listening on http://\([0-9.:]*\).*|\1|p' "$tap_scratch/log")
	expect_same "an agent that answers" "$(line agent | head -n 1)" \
		"ok       agent        $agent answers, version VERSION"
	kill -STOP "$agent_pid"
	expect_same "an agent that does not answer" "$(line agent | head -n 1)" \
		"note     agent        $agent accepts connections, but gave no answer (waited up to 5 s)"
	kill -KILL "$agent_pid"
fi
expect_refusal "an argument" 2 "unexpected argument 'x'" "$ringside" self-check x
expect_refusal "a root that is not there" 3 "cannot read '/nowhere'" "$ringside" self-check --root /nowhere
tap_done
