// Reads timelines of both formats and checks them like a viewer.
//
// Both readers return a list of events { kind, process, track, at, ... } in file order; `at` is nanoseconds after the start
// of the timeline (BigInt).
import { readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { gunzipSync } from 'node:zlib';

export function readText(path) {
	const bytes = readFileSync(path);
	return path.endsWith('.gz') ? gunzipSync(bytes).toString() : bytes.toString();
}

// "12.345" microseconds to 12345n nanoseconds, exactly.
function nanoseconds(text, where) {
	const match = /^(\d+)\.(\d{3})$/.exec(text);
	if (!match) throw new Error(`${where}: ${text} is not microseconds with three decimals`);
	return BigInt(match[1] + match[2]);
}

// JSON.parse would round, so times are taken from the text, one event per line.
function jsonEvent(line, number) {
	const event = JSON.parse(line);
	const time = (key) => {
		const match = new RegExp(`"${key}":([^,}]+)`).exec(line);
		return match ? nanoseconds(match[1], `line ${number}`) : null;
	};
	if (!('ph' in event) || !('ts' in event)) throw new Error(`line ${number}: no ph or ts`);
	const common = {
		process: event.pid, track: event.tid, at: time('ts'), name: event.name,
		category: event.cat, args: event.args ?? {},
	};
	const kinds = { X: 'slice', B: 'open', i: 'instant', C: 'value', s: 'tail', f: 'head', M: 'fact' };
	const kind = kinds[event.ph];
	if (!kind) throw new Error(`line ${number}: phase ${event.ph}`);
	if (kind === 'slice') common.end = common.at + time('dur');
	if (kind === 'tail' || kind === 'head') common.arrow = BigInt(event.id);
	if (kind === 'head' && event.bp !== 'e') throw new Error(`line ${number}: a head without bp e`);
	return { kind, ...common };
}

export function readJson(path) {
	const text = readText(path);
	const whole = JSON.parse(text);
	const lines = text.split('\n').slice(1, -2);
	if (lines.length !== whole.traceEvents.length)
		throw new Error(`${lines.length} lines, ${whole.traceEvents.length} events`);
	if (whole.displayTimeUnit !== 'ns') throw new Error('displayTimeUnit is not ns');
	return {
		about: whole.otherData,
		events: lines.map((line, i) => jsonEvent(line.replace(/,$/, ''), i + 2)),
	};
}

// protoc's text: "name: value", "name {", "}". All fields become arrays.
function parseText(text) {
	const root = {};
	const stack = [root];
	for (const raw of text.split('\n')) {
		const line = raw.trim();
		const top = stack[stack.length - 1];
		if (line === '') continue;
		if (line === '}') {
			stack.pop();
		} else if (line.endsWith(' {')) {
			const inner = {};
			(top[line.slice(0, -2)] ??= []).push(inner);
			stack.push(inner);
		} else {
			const colon = line.indexOf(': ');
			const key = line.slice(0, colon), value = line.slice(colon + 2);
			// A number instead of a name: the schema does not have the field.
			if (/^\d+$/.test(key)) throw new Error(`field ${key} is not in the schema`);
			(top[key] ??= []).push(value.startsWith('"') ? unquote(value) : value);
		}
	}
	return root;
}

// protoc escapes bytes in octal.
function unquote(text) {
	const bytes = [];
	const plain = { n: 10, r: 13, t: 9, '"': 34, "'": 39, '\\': 92 };
	for (let i = 1; i < text.length - 1; i++) {
		if (text[i] !== '\\') {
			bytes.push(text.charCodeAt(i));
		} else if (/[0-7]/.test(text[i + 1])) {
			bytes.push(parseInt(text.slice(i + 1, i + 4), 8));
			i += 3;
		} else {
			bytes.push(plain[text[++i]]);
		}
	}
	return Buffer.from(bytes).toString();
}

export function decode(path, schema) {
	const bytes = readFileSync(path);
	const run = spawnSync('protoc', ['--decode=ringside.Trace', `--proto_path=${schema}`, 'perfetto.proto'], {
		input: path.endsWith('.gz') ? gunzipSync(bytes) : bytes, maxBuffer: 1 << 30,
	});
	if (run.status !== 0) throw new Error(`protoc: ${run.stderr}`);
	return parseText(run.stdout.toString());
}

function annotation(one, names, texts) {
	const name = one.name ? one.name[0] : names.get(one.name_iid[0]);
	if (name === undefined) throw new Error('an argument without a name');
	if (one.string_value) return [name, one.string_value[0]];
	if (one.string_value_iid) return [name, texts.get(one.string_value_iid[0])];
	if (one.uint_value) return [name, Number(one.uint_value[0])];
	if (one.int_value) return [name, Number(one.int_value[0])];
	if (one.double_value) return [name, Number(one.double_value[0])];
	throw new Error(`argument ${name} has no value`);
}

class Reader {
	names = new Map();
	categories = new Map();
	argNames = new Map();
	texts = new Map();
	tracks = new Map();
	open = new Map();
	events = [];
	raw = [];
	flows = new Map();
	start = 0n;
	about = {};

	intern(data) {
		for (const one of data.event_names ?? []) this.names.set(one.iid[0], one.name[0]);
		for (const one of data.event_categories ?? []) this.categories.set(one.iid[0], one.name[0]);
		for (const one of data.debug_annotation_names ?? []) this.argNames.set(one.iid[0], one.name[0]);
		for (const one of data.debug_annotation_string_values ?? []) this.texts.set(one.iid[0], one.str[0]);
	}

	descriptor(one) {
		const uuid = BigInt(one.uuid[0]);
		if (this.tracks.has(uuid)) throw new Error(`track ${uuid} is made known twice`);
		const parent = one.parent_uuid ? BigInt(one.parent_uuid[0]) : null;
		if (parent !== null && !this.tracks.has(parent)) throw new Error(`track ${uuid} has no parent`);
		this.tracks.set(uuid, { name: one.name?.[0] ?? one.process?.[0].process_name[0], counter: !!one.counter });
	}

	event(packet, one) {
		const uuid = BigInt(one.track_uuid[0]);
		if (!this.tracks.has(uuid)) throw new Error(`an event on track ${uuid}, which nobody made known`);
		const event = {
			process: Number(uuid >> 32n), track: Number(uuid & 0xffffffffn),
			at: BigInt(packet.timestamp[0]) - this.start,
			args: Object.fromEntries((one.debug_annotations ?? []).map((a) => annotation(a, this.argNames, this.texts))),
		};
		if (one.name_iid || one.name) event.name = one.name?.[0] ?? this.names.get(one.name_iid[0]);
		if (one.category_iids) event.category = this.categories.get(one.category_iids[0]);
		this[one.type[0]](uuid, event, one);
	}

	// Viewers match an end with the innermost open slice in order of time; check that this is the one of the file.
	check() {
		const sorted = this.raw.slice().sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
		const stacks = new Map();
		for (const { at, uuid, slice } of sorted) {
			if (!stacks.has(uuid)) stacks.set(uuid, []);
			const stack = stacks.get(uuid);
			if (slice) {
				stack.push(slice);
			} else {
				const ended = stack.pop();
				if (ended?.end !== at) throw new Error(`an end at ${at} on ${uuid} hits ${ended?.name}`);
			}
		}
	}

	TYPE_SLICE_BEGIN(uuid, event, one) {
		if (event.name === undefined || event.category === undefined) throw new Error('a slice without a name');
		event.kind = 'open';
		this.events.push(event);
		this.raw.push({ at: event.at, uuid, slice: event });
		if (!this.open.has(uuid)) this.open.set(uuid, []);
		this.open.get(uuid).push(event);
		// Both ends are flow_ids; the slice that starts first is the tail.
		for (const id of one.flow_ids ?? []) {
			if (!this.flows.has(id)) this.flows.set(id, []);
			this.flows.get(id).push(event);
		}
	}

	TYPE_SLICE_END(uuid, event) {
		// In the file, an end closes the last open slice.
		const slice = this.open.get(uuid)?.pop();
		if (!slice) throw new Error(`an end without a begin on track ${uuid}`);
		slice.kind = 'slice';
		slice.end = event.at;
		this.raw.push({ at: event.at, uuid });
	}

	TYPE_INSTANT(uuid, event) {
		if (event.category === 'about') this.about = event.args;
		else this.events.push({ ...event, kind: 'instant' });
	}

	TYPE_COUNTER(uuid, event, one) {
		if (!this.tracks.get(uuid).counter) throw new Error(`a value on track ${uuid}, which is no counter`);
		this.events.push({ ...event, kind: 'value', value: Number(one.double_counter_value[0]) });
	}

	read(packet) {
		if (packet.trusted_packet_sequence_id?.[0] !== '1') throw new Error('a packet of no sequence');
		if (packet.interned_data) this.intern(packet.interned_data[0]);
		if (packet.clock_snapshot) this.start = BigInt(packet.timestamp[0]);
		if (packet.track_descriptor) this.descriptor(packet.track_descriptor[0]);
		if (packet.track_event) this.event(packet, packet.track_event[0]);
	}
}

export function readPerfetto(path, schema) {
	const trace = decode(path, schema);
	const reader = new Reader();
	const flags = trace.packet.map((packet) => packet.sequence_flags?.[0]);
	if (flags[0] !== '1' || flags.slice(1).some((flag) => flag !== '2')) throw new Error('sequence flags');
	for (const packet of trace.packet) reader.read(packet);
	reader.check();
	for (const [id, slices] of reader.flows) {
		if (slices.length !== 2) throw new Error(`arrow ${id} has ${slices.length} ends`);
		const [tail, head] = slices[0].at <= slices[1].at ? slices : [slices[1], slices[0]];
		reader.events.push({ kind: 'tail', process: tail.process, track: tail.track, at: tail.at, arrow: BigInt(id) });
		reader.events.push({ kind: 'head', process: head.process, track: head.track, at: head.at, arrow: BigInt(id) });
	}
	return { about: reader.about, events: reader.events, tracks: reader.tracks };
}

// Like a viewer: by time, and in file order for equal times. Slices must be disjoint or nested, arrows must have an open
// slice. Returns errors.
export function judge(events) {
	const wrong = [];
	const tracks = new Map();
	const tails = new Map(), heads = new Map();
	const key = (event) => `${event.process}:${event.track}`;
	const say = (event, what) => wrong.push(`${event.name ?? 'arrow'} at ${event.at} on ${key(event)}: ${what}`);

	for (const event of events.slice().sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))) {
		if (event.kind === 'fact' || event.kind === 'value') continue;
		if (event.at < 0n) say(event, 'before the begin');
		if (event.kind === 'instant') continue;
		if (event.track < 1 || event.process < 1) say(event, 'tracks and processes count from 1');
		if (!tracks.has(key(event))) tracks.set(key(event), []);
		const stack = tracks.get(key(event));
		while (stack.length > 0 && stack.at(-1).kind === 'slice' && stack.at(-1).end <= event.at &&
			!(event.kind !== 'slice' && event.kind !== 'open' && stack.at(-1).at === event.at))
			stack.pop();
		if (event.kind === 'slice' || event.kind === 'open') {
			if (event.kind === 'slice' && event.end < event.at) say(event, 'ends before it begins');
			const outer = stack.at(-1);
			if (outer?.kind === 'slice' && (event.kind === 'open' || event.end > outer.end))
				say(event, `overlaps ${outer.name} ${outer.at}-${outer.end}`);
			if (stack.length > 500) say(event, 'too deep for a viewer');
			stack.push(event);
		} else {
			const ends = event.kind === 'tail' ? tails : heads;
			if (stack.length === 0) say(event, `no slice is open where the ${event.kind} is`);
			if (ends.has(event.arrow)) say(event, `a second ${event.kind} of arrow ${event.arrow}`);
			if (event.kind === 'head' && !tails.has(event.arrow)) say(event, 'a head before its tail');
			ends.set(event.arrow, event);
		}
	}
	for (const [arrow, tail] of tails) if (!heads.has(arrow)) say(tail, `arrow ${arrow} has no head`);
	return wrong;
}

// The content that two timelines of the same recording share, as sorted lines. Without the direction of arrows, which
// Perfetto derives from the slices.
export function digest({ events }) {
	const lines = [];
	const arrows = new Map();
	for (const event of events) {
		const where = `${event.process}:${event.track} ${event.at}`;
		if (event.kind === 'slice' || event.kind === 'open' || event.kind === 'instant')
			lines.push(`${event.kind} ${where} ${event.end ?? ''} ${event.category} ${event.name} ${JSON.stringify(event.args)}`);
		else if (event.kind === 'value')
			lines.push(`value ${event.process} ${event.at} ${event.value ?? Object.values(event.args)[0]}`);
		else if (event.kind === 'tail' || event.kind === 'head')
			arrows.set(event.arrow, [...(arrows.get(event.arrow) ?? []), `${event.process}:${event.track}`]);
	}
	for (const [arrow, ends] of arrows) lines.push(`arrow ${arrow} ${ends.sort().join(' ')}`);
	return lines.sort();
}
