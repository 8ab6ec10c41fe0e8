#!/usr/bin/env bash
# A simulated cluster for two hours, in which everything breaks (SOAK_SECONDS: for how long instead).
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || tap_skip_all "there is no python3"
for program in ringside ringside-agent ringside-fetch libnccl-profiler-ringside.so tests/stepped_clock_plugin.so; do
	[ -e "$BUILD/$program" ] || tap_skip_all "$program is not built"
done
unset MAKEFLAGS MFLAGS
options=()
# The agent of an older release takes its turn, and one under AddressSanitizer.
tree=$tap_scratch/old
mkdir -p "$tree"
if git archive 7586bbfa^ 2>/dev/null | tar -x -C "$tree" 2>/dev/null &&
	make -s -C "$tree" -j"$(nproc)" BUILD=build CC="${CC:-cc}" build/ringside-agent >/dev/null 2>&1; then
	options+=(--old "$tree/build")
fi
[ -x "$BUILD/asan/ringside-agent" ] && options+=(--asan "$BUILD/asan")
python3 tests/long/soak.py --seconds "${SOAK_SECONDS:-7200}" "${options[@]}"
code=$?
rm -rf "$tap_scratch"
exit $code
