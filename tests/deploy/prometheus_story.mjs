// Checks what Prometheus knows about the jobs of prometheus.t: node prometheus_story.mjs URL SCRATCH RINGSIDE. Prints TAP.
import { execFileSync } from 'node:child_process';
import { dashboards, queriesOf, rules, withoutVariables } from './promql.mjs';

const [url, scratch, ringside] = process.argv.slice(2);
const DEADLINE_S = 600; // give up after this time
const began = Date.now() / 1000;

let count = 0;
let failed = 0;
// The jobs run in real time. If an agent does not answer within a second, or this program does not run for half a second, the
// machine is too busy and durations mean nothing: checks that depend on them are skipped. Hang checks only depend on recent
// samples: see lateness().
const TURN_S = 0.5;
const OLD_S = 8;
let busy = '';
let late = '';
function expectInTime(sentence, isTrue, ...said) {
	if (busy && !isTrue)
		console.log(`ok ${++count} - ${sentence} # SKIP the machine is too busy: ${busy}`);
	else
		expect(sentence, isTrue, ...said);
}
function expectFresh(sentence, isTrue, ...said) {
	if (late && !isTrue)
		console.log(`ok ${++count} - ${sentence} # SKIP the machine is too busy: ${late}`);
	else
		expect(sentence, isTrue, ...said);
}
let turn = performance.now() / 1000;
let longest = 0;
setInterval(() => {
	const next = performance.now() / 1000;
	longest = Math.max(longest, next - turn - 0.1);
	turn = next;
}, 100).unref();
function expect(sentence, isTrue, ...said) {
	console.log(`${isTrue ? 'ok' : 'not ok'} ${++count} - ${sentence}`);
	if (!isTrue) {
		failed++;
		said.flat().forEach((line) => console.log(`#   ${typeof line === 'string' ? line : JSON.stringify(line)}`));
	}
}
const expectSame = (sentence, got, wanted, judge = expect) =>
	judge(sentence, JSON.stringify(got) === JSON.stringify(wanted), `wanted: ${JSON.stringify(wanted)}`, `got:    ${JSON.stringify(got)}`);

// --- Queries.

async function api(path, parameters) {
	const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`);
	const answer = await response.json();
	if (answer.status !== 'success')
		throw new Error(`${path} ${JSON.stringify(parameters)}: ${answer.error}`);
	return answer.data;
}
const now = async (query) => (await api('query', { query })).result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
// [{ metric, values: [[time, number], ...] }] over the whole run; histograms count as numbers.
async function history(query, step = 1) {
	const { result } = await api('query_range', { query, start: began - 5, end: Date.now() / 1000, step });
	return result.map(({ metric, values = [], histograms = [] }) =>
		({ metric, values: [...values.map(([time, text]) => [time, Number(text)]), ...histograms.map(([time]) => [time, 1])] }));
}
const hasData = (series) => series.some(({ values }) => values.some(([, number]) => !Number.isNaN(number)));
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

async function until(isSo) {
	for (;;) {
		try {
			if (await isSo())
				return true;
		} catch (error) {
			if (!(error instanceof TypeError)) // not up yet
				throw error;
		}
		if (Date.now() / 1000 > began + DEADLINE_S)
			return false;
		await sleep(0.5);
	}
}

// --- The faults. Times are read from the series of the job: a busy machine delays it.

const firing = (job, more = '') => `ALERTS{alertstate="firing", nccl_job="${job}"${more}}`;
const values = (series, label) => [...new Set(series.map(({ metric }) => metric[label]))].sort();

async function named(job, alert, label) {
	return values(await history(firing(job, `, alertname="${alert}"`)), label);
}

async function tellTrain() {
	expectSame('a slow rank: only the straggler is named', await named('train', 'NcclStraggler', 'global_rank'), ['5'], expectInTime);
	expectSame('a network with 13% less bandwidth is reported', await named('train', 'NcclNetworkDegraded', 'nccl_job'), ['train'], expectInTime);
	expectSame('and not attributed to NVLink', await named('train', 'NcclNvlinkDegraded', 'host'), [], expectInTime);

	const slow = await history('quantile by (kind) (0.2, comm:nccl_slowdown:ratio{nccl_job="train"})');
	const most = (kind) => Math.max(...slow.filter(({ metric }) => metric.kind === kind).flatMap(({ values: all }) => all.map(([, n]) => n)));
	console.log(`# slowdown at most: net-only ${most('net-only').toFixed(3)}, nvlink-only ${most('nvlink-only').toFixed(3)}`);

	expectSame('a hang: only the missing rank is named', await named('train', 'NcclHangRankMissing', 'global_rank'), ['11'],
		expectFresh);
	expectSame('its agent names it, too', await named('train', 'NcclHangCulprit', 'global_rank'), ['11'], expectFresh);
	expectSame('with its host', await named('train', 'NcclHangRankMissing', 'host'), ['node1'], expectFresh);
	const [finished] = await history('sum(nccl_operations_finished_total{nccl_job="train", job="ringside"})');
	const still = finished.values.find(([, number]) => number === finished.values.at(-1)[1])[0];
	const [alert] = await history(firing('train', ', alertname="NcclHangRankMissing"'));
	const after = alert ? alert.values[0][0] - still : Infinity;
	expectInTime('within 30 s of the last operation that finished', after <= 30, `it took ${after} s`);
	console.log(`# the hang was reported ${after.toFixed(0)} s after the last operation finished`);
	expectSame('no other alerts for the job', values(await history(firing('train')), 'alertname').filter((name) => !name.startsWith('NcclSlow')),
		['NcclHangCulprit', 'NcclHangRankMissing', 'NcclNetworkDegraded', 'NcclStraggler'], expectInTime);
}

async function tellOthers() {
	expectSame('stuck sends: all ranks have arrived', await named('stuck', 'NcclHangAllArrived', 'comm_name'), ['world']);
	expectSame('different calls: a mismatch', await named('mismatch', 'NcclMismatch', 'nccl_job'), ['mismatch']);
	expectSame('a Recv without its Send: the peer is named', await named('pipeline', 'NcclHangRankMissing', 'global_rank'), ['0']);
	expectSame('a killed process is named', await named('killed', 'NcclHangProcessGone', 'global_rank'), ['1']);
	expectSame('through textfiles the same rank is named', await named('train-by-file', 'NcclHangRankMissing', 'global_rank'), ['11'], expectFresh);
	// Not through textfiles, which have the same job again under another name.
	expectSame('ranks of a node that is scraped twice count once', (await now(
		'count by (nccl_job) (group by (nccl_job, host, pid, global_rank) (nccl_process_info{nccl_job="train"}))')).map(({ value }) => value), [16]);
	expect('nobody waits more than all of the time', !hasData(await history('job:nccl_wait:gpus{nccl_job="train"} > 15')));
	const owners = await now('group by (user, account, label_team) (nccl_job_info{nccl_job="train"})');
	expectSame('the owner and labels of a job are known', owners.map(({ metric }) => Object.values(metric).sort()), [['ada', 'vision', 'vit']]);
	expectSame('no textfile was rejected', values(await history('node_textfile_scrape_error > 0'), 'instance'), []);
}

// --- Every panel and every rule.

const MAY_BE_EMPTY = /annotation (Job ends|Agent restarts)/;

async function showPanels() {
	const range = `${Math.ceil(Date.now() / 1000 - began)}s`;
	for (const dashboard of dashboards()) {
		const empty = [];
		for (const { where, expr } of queriesOf(dashboard)) {
			if (!MAY_BE_EMPTY.test(where) && !hasData(await history(withoutVariables(expr, { window: '5s', range }), 2)))
				empty.push(where);
		}
		expect(`${dashboard.name}: every panel and variable has data`, empty.length === 0, empty);
	}
}

// Rules for faults that do not occur in these jobs, or only on a slow machine; rules.t covers them.
const NOT_HERE = ['NcclNvlinkDegraded', 'NcclRecordingLosses', 'RingsideFilesRefused', 'job:nccl_hang:threshold_seconds',
	'member:nccl_missing:replays', 'member:nccl_old:replays'];
// Agents judge slowness by themselves, if there is enough to judge. One that begins to listen after the first scrape was down until the next.
const PERHAPS = ['RingsideAgentDown', 'NcclHangUnexplained', 'NcclRanksUnseen', 'NcclSlowRank', 'NcclSlowLink',
	'NcclSlowNvlink', 'NcclSlowNetwork', 'culprit:nccl_slow:ratio'];

async function showRules() {
	const empty = new Set();
	for (const { name, expr, isAlert } of rules(`${scratch}/rules`)) {
		if (!hasData(await history(isAlert ? expr : name)))
			empty.add(name);
	}
	expectSame('every rule had results, except those for faults that did not occur',
		[...empty].filter((name) => !PERHAPS.includes(name)).sort(), NOT_HERE.sort(), expectInTime);
	const { groups } = await api('rules', {});
	const broken = groups.flatMap((group) => group.rules).filter(({ health }) => health !== 'ok');
	expect('Prometheus could evaluate all of them', broken.length === 0, broken.map(({ name, lastError }) => `${name}: ${lastError}`));
}

// --- The same figures as in the report.

function sizeText(least) {
	if (least < 256)
		return least === 0 ? '0' : '1B';
	const power = Math.floor(Math.log2(least));
	return `${2 ** (power % 10)}${['B', 'KiB', 'MiB', 'GiB'][Math.floor(power / 10)]}`;
}

async function compareWithReport() {
	const report = JSON.parse(execFileSync(ringside, ['report', `${scratch}/traces/train`, '--by', 'comm,function,size', '--json'],
		{ encoding: 'utf8', maxBuffer: 1 << 26 }));
	const wanted = {};
	for (const row of report.custom[0].rows) {
		const comm = report.communicators[row.comm_index].hash.replace(/^0x/, '');
		const sums = wanted[`${comm} ${row.function} ${sizeText(row.size_least)}`] ??= [0, 0, 0];
		const finished = row.calls - row.in_flight; // all of one size
		[finished, row.bytes / row.calls * finished, row.sum_ns].forEach((number, i) => { sums[i] += number; });
	}
	const got = {};
	for (const [index, metric] of ['nccl_operations_total', 'nccl_operation_bytes_total', 'nccl_operation_seconds_total'].entries()) {
		// The last that is known: a scrape that came too late leaves a gap.
		const last = `max by (comm, rank, function, size) (last_over_time(${metric}{nccl_job="train", job="ringside"}[5m]))`;
		for (const { metric: labels, value } of await now(`sum by (comm, function, size) (${last})`)) {
			const sums = got[`${labels.comm} ${labels.function} ${labels.size}`] ??= [0, 0, 0];
			sums[index] = index === 2 ? Math.round(value * 1e9) : value;
		}
	}
	const sorted = (object) => Object.keys(object).sort();
	expectSame('samples and report have the same communicators, functions and sizes', sorted(got), sorted(wanted));
	for (const [index, what] of ['operations', 'bytes'].entries())
		expectSame(`the same ${what}`, sorted(got).map((key) => got[key][index]), sorted(got).map((key) => wanted[key]?.[index]));
	const off = sorted(got).filter((key) => Math.abs(got[key][2] - wanted[key]?.[2]) > 1000);
	expect('the same time, to the microsecond', off.length === 0, off.map((key) => `${key}: ${got[key][2]} ns, report ${wanted[key]?.[2]} ns`));
	const operations = Object.values(got).reduce((sum, [n]) => sum + n, 0);
	expect('and there is enough data', operations > 10000, `${operations} operations`);
}

// --- The expected alerts, and whether the machine was fast enough.

const TOLD = [['train', 'NcclHangRankMissing'], ['train', 'NcclHangCulprit'], ['train-by-file', 'NcclHangRankMissing'], ['stuck', 'NcclHangAllArrived'],
	['mismatch', 'NcclMismatch'], ['pipeline', 'NcclHangRankMissing'], ['killed', 'NcclHangProcessGone']];

// At any time: an agent forgets ended processes after five minutes.
async function isAllTold() {
	const told = (await now('count_over_time(ALERTS{alertstate="firing"}[1h])')).map(({ metric }) => `${metric.nccl_job} ${metric.alertname}`);
	return TOLD.every((pair) => told.includes(pair.join(' ')));
}

// A rank with outdated samples looks as if it had not arrived.
async function lateness() {
	const times = ['timestamp(up)', 'node_textfile_mtime_seconds{file=~".*/ringside-[^/]*"}'];
	const old = await Promise.all(times.map((time) => history(`time() - ${time} > ${OLD_S}`)));
	return old.some(hasData) ? `samples were older than ${OLD_S} s` : '';
}

async function business() {
	if ((await history('up{job="ringside"} == 0')).some(({ values: all }) => all.some(([time]) => time > began + 5)))
		return 'an agent did not answer within a second';
	return longest > TURN_S ? `nothing ran for ${longest.toFixed(1)} s` : late;
}

const isTold = await until(isAllTold);
late = await lateness();
busy = await business();
console.log(`# the machine: ${busy || 'is fast enough'}; the longest pause was ${longest.toFixed(2)} s`);
expect('the hang of the job was reported', isTold, await now('ALERTS'));
await sleep(6); // one more evaluation: nothing changes
if (isTold)
	await tellTrain();
await tellOthers();
await showPanels();
await showRules();
await compareWithReport();
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
