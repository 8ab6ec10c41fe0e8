#!/usr/bin/env bash
# What `make install` installs where, and that the installed tool finds the installed plugin.
. "$(dirname "$0")/tap.sh"

root=$tap_scratch/root
# Without building: other tests use the build.
install=(make -s BUILD="$BUILD" DESTDIR="$root" install-built)
expect_ok "make install succeeds" "${install[@]}" prefix=/opt/ringside
for file in bin/ringside bin/ringside-sim bin/ringside-bench lib/libnccl-profiler-ringside.so lib/libringside-count.so share/doc/ringside/LICENSE \
	share/bash-completion/completions/ringside share/zsh/site-functions/_ringside share/fish/vendor_completions.d/ringside.fish \
	share/doc/ringside/runbooks/NcclStraggler.md share/doc/ringside/deploy/grafana/dashboards/ringside-job.json; do
	expect_ok "$file is installed" test -s "$root/opt/ringside/$file"
done
expect_ok "the installed tool finds the installed simulator" \
	grep -q never-arrives <("$root/opt/ringside/bin/ringside" sim --list)
expect_ok "and the installed benchmark" grep -q "ringside model" <("$root/opt/ringside/bin/ringside" model --help)
mkdir "$tap_scratch/alone"
cp "$root/opt/ringside/bin/ringside" "$tap_scratch/alone/"
for page in hang-network HangNetwork.md p2p-disabled; do
	expect_same "the program alone shows the runbook $page" "$("$tap_scratch/alone/ringside" help "$page" | cut -c 1-2 | head -n 1)" "# "
done
expect_complaint "a tool without its programs reports what is missing" "no ringside-sim beside .*apt install \./ringside-sim_\*\.deb" \
	"$tap_scratch/alone/ringside" sim
if [ -x "$BUILD/ringside-agent" ]; then
	expect_ok "the installed tool finds the installed agent" \
		grep -q "unexpected argument 'x'" <("$root/opt/ringside/bin/ringside" agent x 2>&1)
	expect_ok "the agent's unit starts the installed one" \
		grep -qx 'ExecStart=/opt/ringside/bin/ringside-agent $ARGS' \
		"$root/opt/ringside/lib/systemd/system/ringside-agent.service"
	expect_ok "so does the hub's" \
		grep -qx 'ExecStart=/opt/ringside/bin/ringside-agent hub $ARGS' \
		"$root/opt/ringside/lib/systemd/system/ringside-hub.service"
	if command -v systemd-analyze >/dev/null; then
		for unit in ringside-agent ringside-hub; do
			sed "s|=/opt|=$root/opt|" "$root/opt/ringside/lib/systemd/system/$unit.service" >"$tap_scratch/$unit.service"
			expect_same "and systemd accepts $unit" \
				"$(systemd-analyze verify --man=no "$tap_scratch/$unit.service" 2>&1 | grep -F "$unit")" ""
		done
	fi
fi
[ ! -e "$BUILD/ringside_spank.so" ] || expect_ok "Slurm's plugin is installed" test -s "$root/opt/ringside/lib/slurm/ringside_spank.so"
if [ -x "$BUILD/ringside-top" ]; then
	expect_ok "ringside finds the installed ringside-top" \
		grep -q "unexpected argument 'x'" <("$root/opt/ringside/bin/ringside" top x 2>&1)
fi
if [ -x "$BUILD/ringside-fetch" ]; then
	# Nothing listens on port 1. Resolving a hostname could take long.
	expect_same "the installed doctor finds the installed ringside-fetch" \
		"$("$root/opt/ringside/bin/ringside" doctor --timeout 60s --agents 127.0.0.1:1 2>&1 | grep -c 'refused')" 1
fi
"$root/opt/ringside/bin/ringside" sim --offline --kernel --nodes 2 --gpus 2 --workload fsdp --fault never-arrives:rank=1 --at 1s \
	-o "$tap_scratch/hung" >/dev/null 2>&1
page=$("$root/opt/ringside/bin/ringside" doctor --hang 2s "$tap_scratch/hung" | sed -n 's/^runbook *ringside help //p')
expect_ok "the doctor prints the command that shows its runbook" grep -q '^# ' <("$root/opt/ringside/bin/ringside" help "$page")
expect_ok "pages of rules are installed" test -s "$root/opt/ringside/share/doc/ringside/setup/p2p-disabled.md"
expect_same "nothing is installed elsewhere" "$(ls "$root") $(ls "$root/opt")" "opt ringside"
expect_ok "the installed tool runs" "$root/opt/ringside/bin/ringside" version
expect_ok "and finds the installed plugin" \
	sh -c "cd / && '$root/opt/ringside/bin/ringside' env | grep -qF '$root/opt/ringside/lib'"
expect_ok "libdir can be elsewhere" \
	"${install[@]}" prefix=/usr libdir=/usr/lib/somewhere
expect_ok "and the plugin is there" test -s "$root/usr/lib/somewhere/libnccl-profiler-ringside.so"

# However BUILD is spelled, what is in the tree is the same for make.
ln -s "$PWD" "$tap_scratch/tree"
for build in "$PWD/build" "$PWD//build" "$PWD/./build/" "$tap_scratch/tree/build"; do
	words=${build/"$tap_scratch"/LINK}
	expect_same "an exported BUILD of ${words/"$PWD"/TREE}" "$(env -u MAKEFLAGS BUILD="$build" make -n dist-wheel 2>/dev/null |
		grep -o 'packaging/dist/pack wheel [^ ]*')" "packaging/dist/pack wheel build"
done
tap_done
