#!/usr/bin/env bash
# What `ringside run` says if nothing is recorded, and why that is.
. "$(dirname "$0")/doctor.sh"
command -v python3 >/dev/null || tap_skip_all "there is no python3"
fake=$BUILD/tests/fake_gpu/libnvidia-ml.so.1
[ -e "$fake" ] || tap_skip_all "there is no library to load"

# A program that loads this NCCL, and shares memory as its communicators do.
cat >"$tap_scratch/program.py" <<'END'
import ctypes, mmap, os, sys, time
if sys.argv[1] != "none":
    ctypes.CDLL(sys.argv[1])
if "comm" in sys.argv:
    with open("/dev/shm/nccl-ringside-%d" % os.getpid(), "w+b") as file:
        file.truncate(4096)
        shared = mmap.mmap(file.fileno(), 4096)
        os.unlink(file.name)
time.sleep(13)
END
for version in 2.18.5 2.28.9; do
	cp "$fake" "$tap_scratch/libnccl.so.$version"
done
names=()
# The reporters of one launcher say it once, so each has one of its own.
try() { # name command...
	local name=$1
	shift
	names+=("$name")
	(
		"$ringside" run --plugin "$BUILD/libnccl-profiler-ringside.so" -- "$@" >/dev/null 2>"$tap_scratch/$name.err"
		exit
	) &
	started+=($!)
}
program=(python3 "$tap_scratch/program.py")
try old "${program[@]}" "$tap_scratch/libnccl.so.2.18.5"
try unused "${program[@]}" "$tap_scratch/libnccl.so.2.28.9"
try unloaded "${program[@]}" "$tap_scratch/libnccl.so.2.28.9" comm
try static "${program[@]}" none comm
try other env NCCL_PROFILER_PLUGIN=other "${program[@]}" "$tap_scratch/libnccl.so.2.28.9"
try unset env -u NCCL_PROFILER_PLUGIN "${program[@]}" "$tap_scratch/libnccl.so.2.28.9"
try short true
try long sleep 13
try asleep sleep 32
wait
# The report ends after the command.
is_quiet() { ! compgen -G "$RINGSIDE_SHM/.ringside-report-*" >/dev/null; }
expect_ok "no file is left" until_ok is_quiet
said() { # name pattern: how often, while the command runs and at the end
	echo "$(grep -cE "^ringside run: nothing is recorded so far: .*$2" "$tap_scratch/$1.err") $(
		grep -cE "^ringside run: nothing was recorded: .*$2" "$tap_scratch/$1.err") $(wc -l <"$tap_scratch/$1.err")"
}
expect_same "NCCL is too old" "$(said old 'uses NCCL 2\.18\.5, which has no profiler plugins: use NCCL 2\.23 or later')" "1 1 2"
expect_same "NCCL is loaded and not used" "$(said unused 'has loaded NCCL 2\.28\.9, .* no communicator was created')" "0 1 1"
expect_same "communicators did not load the plugin" "$(said unloaded 'communicators of NCCL 2\.28\.9, which did not load')" "1 1 2"
expect_same "NCCL is linked into the program" "$(said static 'linked into the program')" "1 1 2"
expect_same "another plugin is set" "$(said other 'another profiler plugin: NCCL_PROFILER_PLUGIN=other')" "1 1 2"
expect_same "the launcher did not pass the variable on" "$(said unset 'not in its environment')" "1 1 2"
expect_same "a command that was short: not a word" "$(cat "$tap_scratch/short.err")" ""
expect_same "a longer one without NCCL: at the end" "$(said long 'has loaded NCCL$')" "0 1 1"
expect_same "after half a minute, too" "$(said asleep 'has loaded NCCL$')" "1 1 2"
tap_done
