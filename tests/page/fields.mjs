import { readFileSync } from 'node:fs';

const [scenes, document] = process.argv.slice(2);
const names = ['quiet', 'straggler', 'hang', 'empty', 'fresh', 'hostile', 'many', 'crowd', 'wide'];
const read = (name) => JSON.parse(readFileSync(`${scenes}/${name}.json`, 'utf8'));
let tests = 0, failed = 0;

function expect(sentence, holds, found) {
	console.log(`${holds ? 'ok' : 'not ok'} ${++tests} - ${sentence}`);
	failed += !holds;
	if (!holds)
		console.log(`# ${JSON.stringify(found)}`);
}

/* Keys described in a section of the document: those in the first column of its tables. */
function described(heading) {
	const text = readFileSync(document, 'utf8');
	const section = text.slice(text.indexOf(`\n${heading}\n`) + heading.length + 2).split(/\n#/)[0];

	return new Set([...section.matchAll(/^\| (`[^|]+) \|/gm)].flatMap((row) => [...row[1].matchAll(/`([a-z_]+)`/g)].map((key) => key[1])));
}

function compare(heading, objects) {
	const found = new Set(objects.flatMap((one) => Object.keys(one))), documented = described(heading);

	const undocumented = [...found].filter((key) => !documented.has(key)), missing = [...documented].filter((key) => !found.has(key));

	expect(`${heading}: every key is documented`, found.size > 0 && undocumented.length === 0, undocumented);
	expect(`${heading}: every documented key exists`, missing.length === 0, missing);
}

const all = names.map((name) => ({ name, now: read(`${name}.now`), history: read(`${name}.history`) }));
const nows = all.map(({ now }) => now);
const comms = nows.flatMap((now) => now.communicators);
const members = comms.flatMap((comm) => comm.members);
const oldest = members.flatMap((member) => member.oldest || []);

compare('### /api/v1/now', nows);
compare('#### limits', nows.map((now) => now.limits));
compare('#### notices', nows.flatMap((now) => now.notices));
compare('#### jobs', nows.flatMap((now) => now.jobs));
compare('#### processes', nows.flatMap((now) => now.processes));
compare('#### communicators', comms);
compare('#### members', members);
compare('#### oldest', oldest);
compare('#### waits', oldest.flatMap((one) => one.waits));

const summaries = names.map((name) => read(`${name}.summary`));

compare('### /api/v1/summary', [...summaries, ...summaries.flatMap((one) => one.jobs)]);

/* One table for all levels: ranks have the keys of communicators, and `rank`. */
const pasts = all.flatMap(({ history }) => history.communicators);

compare('### /api/v1/history', [...all.map(({ history }) => history), ...pasts.map(({ key, members: unused, ...rest }) => rest),
	...pasts.flatMap((one) => one.members)]);

const arrays = ['operations_per_s', 'busbw', 'algbw', 'busy', 'wait'];

for (const { name, now, history } of all) {
	const keys = now.communicators.map((comm) => comm.key);

	expect(`${name}: keys are unique and the same in both answers`, new Set(keys).size === keys.length &&
		JSON.stringify(keys) === JSON.stringify(history.communicators.map((comm) => comm.key)), keys);
	expect(`${name}: arrays have the length of their times`, history.communicators.every((comm) => [comm, ...comm.members].every((one) =>
		arrays.every((field) => one[field].length === one.time_ms.length))));
	expect(`${name}: indices are valid`, now.communicators.every((comm) => now.jobs[comm.job_index] &&
		comm.members.every((member) => now.processes[member.process_index])) && now.processes.every((process) => now.jobs[process.job_index]));
	expect(`${name}: the last point of the history equals the current value`, now.communicators.every((comm, i) => {
		const past = history.communicators[i], last = past.time_ms.length - 1;

		return last < 0 || past.busbw[last] === null ? comm.busbw === null : Math.abs(comm.busbw / past.busbw[last] - 1) < 1e-3;
	}));
}

const hostile = all.find(({ name }) => name === 'hostile').now;

expect('code in names is not changed, other directions and invalid bytes are replaced',
	hostile.communicators.some((comm) => comm.name === '</script><img src=x onerror=alert(1)>&amp;?gnp?'),
	hostile.communicators.map((comm) => comm.name));
expect('hashes have all digits', comms.every((comm) => comm.hash === null || /^0x[0-9a-f]{16}$/.test(comm.hash)));

console.log(`1..${tests}`);
process.exit(failed ? 1 : 0);
