// Compares a timeline with its recording, and checks that it is valid for viewers.
//
//	node check.mjs FILE.json[.gz] DUMP         DUMP: output of `ringside dump` of the same recording
//	node check.mjs FILE.pftrace[.gz] DUMP [OTHER]
//
// Prints errors, one per line, and the number of events of each kind; exit code 1 if there are errors. DUMP may be "-":
// no comparison. OTHER: the same recording as JSON, which must have the same events.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { digest, judge, readJson, readPerfetto } from './timeline.mjs';

const [path, dump, other] = process.argv.slice(2);
const schema = fileURLToPath(new URL('.', import.meta.url));
const { about, events, tracks } = path.includes('.json') ? readJson(path) : readPerfetto(path, schema);
const wrong = judge(events);
const slices = events.filter((event) => event.kind === 'slice' || event.kind === 'open');
const operations = events.filter((event) => event.category === 'operation');

// Processes and tracks must have names.
const names = new Map();
for (const event of events)
	if (event.kind === 'fact' && event.name.endsWith('_name'))
		names.set(`${event.name}:${event.process}:${event.track}`, event.args.name);
for (const event of tracks ? [] : slices) {
	if (!names.has(`thread_name:${event.process}:${event.track}`)) wrong.push(`track ${event.process}:${event.track} has no name`);
	if (!names.has(`process_name:${event.process}:0`)) wrong.push(`process ${event.process} has no name`);
}

// Slices have the durations of their operations.
const lastOf = new Map();
for (const event of slices) {
	const key = `${event.process}:${event.track}`;
	if (event.category === 'operation') lastOf.set(key, event);
	if (event.category === 'operation' && event.args.placed === 'timed' &&
		event.end - event.at !== BigInt(event.args.duration_ns))
		wrong.push(`${event.name} ${event.args.number} is ${event.end - event.at} long, took ${event.args.duration_ns}`);
	if (event.category === 'waiting') {
		const outer = lastOf.get(key);
		if (!outer || outer.at !== event.at || event.end > outer.end || event.end - event.at !== BigInt(outer.args.wait_ns))
			wrong.push(`waiting at ${event.at} on ${key} does not fit its operation`);
	}
}

// Compares every operation with the dump.
const identity = (rank, hash, one) => [rank, hash, one.number, one.sequence ?? 0, one.function, one.bytes ?? '?', one.count,
	one.state, one.time_source, one.duration_ns ?? '-', one.signature].join(' ');
if (dump !== '-') {
	const wanted = new Map();
	for (const line of readFileSync(dump, 'utf8').split('\n')) {
		if (line === '') continue;
		const one = JSON.parse(line);
		if (one.record !== 'operation') continue;
		const key = identity(one.rank, one.comm_hash, one);
		wanted.set(key, (wanted.get(key) ?? 0) + 1);
	}
	for (const event of operations) {
		const key = identity(event.process - 1, event.args.comm_hash, event.args);
		if (!wanted.get(key)) wrong.push(`not in the dump: ${key}`);
		else wanted.set(key, wanted.get(key) - 1);
	}
	for (const [key, count] of wanted) if (count > 0) wrong.push(`not in the timeline: ${key}`);
}

if (other) {
	const mine = digest({ events }), theirs = digest(readJson(other));
	const inMine = new Set(mine), inTheirs = new Set(theirs);
	for (const line of mine) if (!inTheirs.has(line)) wrong.push(`only in ${path}: ${line}`);
	for (const line of theirs) if (!inMine.has(line)) wrong.push(`only in ${other}: ${line}`);
	if (mine.length !== theirs.length) wrong.push(`${mine.length} events, and ${theirs.length}`);
}

const counts = { operations: operations.length };
for (const event of events) {
	if (event.kind === 'fact') continue;
	const kind = `${event.kind} ${event.category ?? ''}`.trim();
	counts[kind] = (counts[kind] ?? 0) + 1;
}
if (BigInt(about.operations) !== BigInt(operations.length)) wrong.push(`says ${about.operations} operations`);
for (const line of wrong.slice(0, 20)) console.log(line);
if (wrong.length > 20) console.log(`and ${wrong.length - 20} more`);
console.log(JSON.stringify(counts));
process.exit(wrong.length > 0 ? 1 : 0);
