// The doctor's verdicts through Prometheus on the jobs of prometheus.t: node prometheus_cases.mjs URL RINGSIDE REGIONS PID INSTANCE, the
// last two of the agent that is killed at the end. Prints TAP. Jobs run in real time on a machine that may be busy, so each answer is
// waited for; wrong verdicts are checked for in all of them.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const [url, ringside, regions, agentPid, agentName] = process.argv.slice(2);
const DEADLINE_S = 400;
const began = Date.now();
const run = promisify(execFile);

let count = 0;
let failed = 0;
function expect(sentence, isTrue, ...said) {
	console.log(`${isTrue ? 'ok' : 'not ok'} ${++count} - ${sentence}`);
	if (!isTrue) {
		failed++;
		said.flat().forEach((line) => console.log(`#   ${typeof line === 'string' ? line : JSON.stringify(line)}`));
	}
}
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

// The verdicts on a job; null if there is no answer yet.
async function look(job, ...source) {
	const accept = (error) => {
		if (error.code !== 1 || !error.stdout)
			return null;
		return error;
	};
	const answer = await run(ringside, ['doctor', '--json', '--hang', '5s', '--job', job, ...source]).catch(accept);
	if (!answer)
		return null;
	return JSON.parse(answer.stdout).verdicts.filter(({ severity }) => severity !== 'note');
}
const through = (job, window = 20, past = 20) => look(job, '--prometheus', url, '--window', `${window}s`, '--past', `${past}s`);
const direct = (job) => look(job, regions);

// Class and culprit: a deadlock has no rank that started it.
function named(verdict) {
	if (!verdict)
		return 'nothing';
	const who = [verdict.class];
	if (verdict.class !== 'deadlock' && verdict.rank !== null)
		who.push(`rank ${verdict.rank}`);
	if (verdict.peer !== null && ['network_stuck', 'slow_link'].includes(verdict.class))
		who.push(`to ${verdict.peer}`);
	return who.join(' ');
}

async function until(isSo) {
	for (;;) {
		if (await isSo())
			return true;
		if (Date.now() > began + DEADLINE_S * 1000)
			return false;
		await sleep(1);
	}
}

async function expectVerdict(job, wanted, { rule = null, live = wanted, window, past } = {}) {
	let verdicts = null;
	await until(async () => {
		verdicts = await through(job, window, past);
		return verdicts && verdicts.length === 1 && named(verdicts[0]) === wanted;
	});
	expect(`${job}: ${wanted}, and nothing else`, verdicts?.length === 1 && named(verdicts[0]) === wanted,
		(verdicts ?? ['no answer']).map((verdict) => verdict.title ?? verdict));
	if (rule)
		expect(`${job}: they differ in the ${rule}`, verdicts?.[0]?.rule === rule, verdicts?.[0]?.title ?? 'nothing');
	if (live) {
		let first;
		await until(async () => {
			[first] = (await direct(job)) ?? [];
			return named(first) === live;
		});
		expect(`${job}: the same as from the regions themselves`, named(first) === live, first?.title ?? 'nothing');
	}
	return verdicts?.[0];
}

async function tellStanding() {
	const missing = await expectVerdict('missing', 'never_issued rank 1');
	expect('the culprit, its host, and the number of waiting ranks', missing?.host === 'node0' && missing?.pid > 0 && missing?.victims === 3
		&& missing?.communicator === 'world' && missing?.operation?.function === 'AllReduce', missing ?? 'nothing');
	const sending = await expectVerdict('sending', 'network_stuck rank 1 to 2');
	expect('both ends of the link, and its channels', sending?.host === 'node0' && sending?.peer_host === 'node1' && sending?.channels,
		sending ?? 'nothing');
	const half = await expectVerdict('count', 'mismatch rank 1', { rule: 'count' });
	expect('both sides of what differs', /6553600/.test(half?.evidence.join()) && /3276800/.test(half?.evidence.join()),
		half?.evidence ?? 'nothing');
	await expectVerdict('function', 'mismatch rank 2', { rule: 'function' });
	await expectVerdict('root', 'mismatch rank 3', { rule: 'root' });
	await expectVerdict('datatype', 'mismatch rank 2', { rule: 'datatype' });
	await expectVerdict('killed', 'process_dead rank 3');
	await expectVerdict('stopped', 'process_stopped rank 2');
	await expectVerdict('circle', 'deadlock');
	// Only one earlier call is known: a different order is not visible.
	await expectVerdict('order', 'mismatch rank 1', { rule: 'function' });
	await expectVerdict('starting', 'gpu_not_reached rank 2');
	await expectVerdict('launching', 'not_launched rank 1');
	await expectVerdict('unseen', 'never_issued rank 3');
}

// A region has no past: only Prometheus knows the earlier network speed. It becomes slow after 25 s, so that half a minute before
// differs from then on, for as long; and again every 80 s.
// Seventeen jobs share this machine: occasional operations of a second or two make other things look slow, too.
async function tellSlow() {
	const late = await expectVerdict('late', 'slow_rank rank 2', { live: null });
	expect('late: nobody waits longer than the time that passes', late?.percent > 0 && late?.percent <= 100, late?.percent ?? 'nothing');
	await expectVerdict('link', 'slow_link rank 3 to 4', { live: null });
}
await Promise.all([
	tellStanding(),
	tellSlow(),
	expectVerdict('network', 'slow_network', { live: null, window: 10, past: 30 }),
]);

// --- Healthy jobs: on a busy machine, ranks are late occasionally.
let hangs = 0;
const isWell = await until(async () => {
	const verdicts = await through('healthy');
	hangs += (verdicts ?? []).filter(({ class: is }) => !is.startsWith('slow_')).length;
	return verdicts?.length === 0;
});
expect('healthy: no verdict', isWell);
expect('healthy: and no hang at any time', hangs === 0);

// --- All jobs at once name each cause once.
const ALL = 'circle count datatype function killed launching missing order root sending starting stopped unseen';
let standing = [];
const areAllTold = await until(async () => {
	const { stdout } = await run(ringside, ['doctor', '--json', '--hang', '5s', '--prometheus', `${url}/`]).catch((error) => error);
	standing = JSON.parse(stdout).verdicts.filter(({ severity }) => severity === 'error');
	return standing.map(({ job }) => job).sort().join(' ') === ALL;
});
expect('all jobs in one query', areAllTold, standing.map(({ job, title }) => `${job}: ${title}`));

// --- An agent dies: its ranks are no longer visible.
process.kill(Number(agentPid), 'SIGKILL');
let last = null;
const isTold = await until(async () => {
	last = await through('unseen');
	return last?.[0]?.class === 'agent_dead';
});
expect('unseen: a dead agent is reported', isTold, last ?? 'no answer');
expect('with its name and ranks', last?.[0]?.evidence.some((line) => line.includes(agentName) && line.includes('2-3')),
	last?.[0]?.evidence ?? 'nothing');

console.log(`# ${((Date.now() - began) / 1000).toFixed(0)} s`);
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
