# shellcheck shell=bash
# For tests with a real Prometheus: source this after tests/tap.sh. Everything is below $tap_scratch, and story_end ends all processes.
# shellcheck disable=SC2154

story_pids=()

story_needs() {
	local tool
	for tool in prometheus promtool prometheus-node-exporter node curl; do
		command -v "$tool" >/dev/null || tap_skip_all "$tool is not installed: run scripts/install-deps check"
	done
	[ -x "$BUILD/ringside-agent" ] || tap_skip_all "the agent was not built: run scripts/install-deps build"
}

story_end() {
	local pid
	for pid in "${story_pids[@]}"; do
		kill "$pid" 2>/dev/null
	done
	for pid in "${story_pids[@]}"; do
		wait "$pid" 2>/dev/null
	done
	rm -rf "$tap_scratch"
}

# Runs a program in the background with its output in a file.
story_start() { # name command...
	local name=$1
	shift
	"$@" >"$tap_scratch/$name.log" 2>&1 &
	story_pids+=($!)
}

# Free ports outside the ephemeral range, so that the system does not assign them to others before they are used.
story_ports() { # how many
	node -e '
const net = require("net");
const servers = Array.from({ length: Number(process.argv[1]) }, () => net.createServer());
const listen = (server) => server.listen(10000 + Math.floor(Math.random() * 22000), "127.0.0.1");
let open = servers.length;
servers.forEach((server) => {
	server.on("error", () => listen(server)).on("listening", () => {
		if (--open === 0) {
			console.log(servers.map((each) => each.address().port).join(" "));
			servers.forEach((each) => each.close());
		}
	});
	listen(server);
});' "$1"
}

# The rules with hours and minutes scaled to seconds, so that a minute covers half a day. Rules about hangs are not changed. Where a window
# becomes shorter, an alert still has to last for longer than that: ranks that wait for a straggler are late themselves for as long as the
# window goes back. promtool tests the unmodified rules (rules.t).
story_rules() { # directory
	mkdir -p "$1"
	cp deploy/prometheus/rules/ringside-{hang,links}.rules.yml "$1"
	sed -e 's/interval: 15s/interval: 1s/; s/for: 2m/for: 4s/' deploy/prometheus/rules/ringside-culprit.rules.yml \
		>"$1/ringside-culprit.rules.yml"
	sed -e 's/interval: 15s/interval: 1s/; s/\[1m\]/[4s]/; s/for: 2m/for: 6s/' \
		deploy/prometheus/rules/ringside-waiting.rules.yml >"$1/ringside-waiting.rules.yml"
	sed -e 's/interval: 30s/interval: 1s/; s/interval: 2m/interval: 1s/; s/\[2m\]/[6s]/' \
		-e 's/\[6h\] offset 15m/[60s] offset 8s/; s/>= 20/>= 10/; s/for: 5m/for: 3s/' \
		deploy/prometheus/rules/ringside-bandwidth.rules.yml >"$1/ringside-bandwidth.rules.yml"
	sed -e 's/interval: 30s/interval: 1s/; s/for: [15]m/for: 3s/' \
		deploy/prometheus/rules/ringside-recorder.rules.yml >"$1/ringside-recorder.rules.yml"
}

# Two nodes on one host: each agent gets a directory with links to the regions of its own ranks. Ranks are the numbers in the largest
# communicator, so they are known when all of a job agree how many they are.
story_link_regions() { # regions-directory node-directory-prefix
	"$BUILD/ringside" ls --json "$1" 2>/dev/null | node -e '
const { linkSync, mkdirSync } = require("fs");
const { basename } = require("path");
let text = "";
process.stdin.on("data", (part) => { text += part; }).on("end", () => {
	const all = text ? JSON.parse(text).processes : [];
	const isKnown = ({ job, world_size: ranks }) => all.filter((other) => other.job === job && other.world_size === ranks).length === ranks;
	for (const { rank, world_size: ranks, region } of all.filter(isKnown)) {
		const node = process.argv[1] + (rank < ranks / 2 ? 0 : 1);
		mkdirSync(node, { recursive: true });
		try { linkSync(region, `${node}/${basename(region)}`); } catch (error) { if (error.code !== "EEXIST") throw error; }
	}
});' "$2"
}
