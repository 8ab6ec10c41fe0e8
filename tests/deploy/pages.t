#!/usr/bin/env bash
# One hanging job is one page: a real Alertmanager with our configuration gets the alerts of several jobs.
. "$(dirname "$0")/../tap.sh"
. tests/deploy/story.sh

for tool in amtool prometheus-alertmanager node curl; do
	command -v "$tool" >/dev/null || tap_skip_all "$tool is not installed: run scripts/install-deps check"
done
trap story_end EXIT
config=$tap_scratch/alertmanager.yml
read -r manager receiver <<<"$(story_ports 2)"
sed "s/127.0.0.1:9095/127.0.0.1:$receiver/; s/group_wait: .*/group_wait: 1s/" deploy/prometheus/alertmanager.yml >"$config"
expect_ok "the configuration is valid" amtool check-config deploy/prometheus/alertmanager.yml

# One line per message: receiver, job, alerts.
pages=$tap_scratch/pages
cat >"$tap_scratch/receiver.mjs" <<'END'
import { createServer } from 'node:http';
import { appendFileSync } from 'node:fs';
const [port, file] = process.argv.slice(2);
createServer((request, response) => {
	let text = '';
	request.on('data', (part) => { text += part; }).on('end', () => {
		const { groupLabels, alerts } = JSON.parse(text);
		const names = [...new Set(alerts.map(({ labels }) => labels.alertname))].sort();
		appendFileSync(file, `${request.url} ${groupLabels.nccl_job ?? groupLabels.instance} ${names.join(' ')}\n`);
		response.end();
	});
}).listen(Number(port), '127.0.0.1', () => console.log('ready'));
END
: >"$pages"
story_start receiver node "$tap_scratch/receiver.mjs" "$receiver" "$pages"
until_ok grep -q ready "$tap_scratch/receiver.log"
story_start manager prometheus-alertmanager --config.file="$config" --storage.path="$tap_scratch/data" --cluster.listen-address= \
	--web.listen-address="127.0.0.1:$manager"

alerts() { # "name severity job rank" lines
	local name severity job rank comma='['
	while read -r name severity job rank; do
		printf '%s{"labels":{"alertname":"%s","severity":"%s","nccl_job":"%s","global_rank":"%s"}}' \
			"$comma" "$name" "$severity" "$job" "$rank"
		comma=,
	done
	printf ']'
}
# A hang of five minutes: agents name two ranks, the rules name one, and all warnings are still active. Another job has hung for less time.
body=$(alerts <<'END'
NcclHangRankMissing critical train 5
NcclHangCulprit critical train 5
NcclHangCulprit critical train 6
NcclHangAllArrived critical train -
NcclHangRankMissing warning train 5
NcclHangCulprit warning train 5
NcclHangCulprit warning train 6
NcclHangAllArrived warning train -
NcclStraggler warning train 5
NcclHangCulprit warning young 1
NcclHangUnexplained warning young -
NcclHangUnexplained critical old -
NcclHangCulprit warning old 1
NcclStraggler warning slow 3
NcclSlowRank warning slow 3
NcclStraggler warning slow 4
NcclSlowLink warning train 5
NcclSlowLink warning link 7
NcclNetworkDegraded warning link -
END
)
tell_manager() {
	curl -sf -o "$tap_scratch/answer" -H 'Content-Type: application/json' -d "$body" "http://127.0.0.1:$manager/api/v2/alerts"
}
is_up() { curl -sf "http://127.0.0.1:$manager/-/ready" || ! kill -0 "${story_pids[1]}" 2>/dev/null; }
until_ok is_up
# Send them once: a second time could cause another page.
expect_ok "it accepts the alerts" tell_manager
expect_same "without errors" "$(cat "$tap_scratch/answer" "$tap_scratch/manager.log" | grep -E 'error|err=')" ""
# Groups are sent one after the other: wait for all five.
are_told() { [ "$(cut -d ' ' -f 2 "$pages" | sort -u | wc -l)" -ge 5 ]; }
until_ok are_told
expect_same "a hang is one page that names the ranks; related alerts are suppressed" "$(grep ' train ' "$pages")" \
	"/pager train NcclHangCulprit NcclHangRankMissing"
expect_same "before it is critical it is one message" "$(grep ' young ' "$pages")" "/chat young NcclHangCulprit"
expect_same "a warning never suppresses a page" "$(grep ' old ' "$pages")" "/pager old NcclHangUnexplained"
expect_same "a slow job is reported" "$(grep ' slow ' "$pages")" "/chat slow NcclSlowRank NcclStraggler"
expect_same "what an agent names is not reported again" "$(grep ' link ' "$pages")" "/chat link NcclSlowLink"
tap_done
