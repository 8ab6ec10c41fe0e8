'use strict';
/*
 * The report's page. All its files are one script, in this order:
 *
 *	base.js     making elements, colours, numbers as people read them
 *	answer.js   the answer in words
 *	plot.js     what all charts share: axes, tooltip, keyboard
 *	time.js     bandwidth and waiting over time
 *	heat.js     waiting by rank and time
 *	frame.js    what the three below share
 *	sizes.js, durations.js, iterations.js
 *	tables.js   tables: sort, filter, save
 *	report.js   puts them together
 *
 * Texts of the data only ever become text nodes: names may hold anything.
 */

const data = JSON.parse(document.getElementById('data').textContent);
const report = data.report;

/* Could any calls be compared between ranks? Else nobody knows about waiting. */
const knowsWaiting = report.total.wait_share !== null;

/* Not all calls that are over have a duration. */
const isSampled = data.words.timed !== '';

/* As in the text report: ~ an estimate, > without calls of kinds that were never timed. */
const estimateMark = (row) => (row.timed > 0 && row.not_timed > 0 ? '>' : '') + (row.estimated > 0 ? '~' : '');

const byId = (id) => document.getElementById(id);

/* el('p', { class: 'dim' }, 'text', element, ...). Keys with 'on' are listeners. */
function el(tag, attributes, ...children) {
	const made = document.createElement(tag);

	for (const [key, value] of Object.entries(attributes || {})) {
		if (key.startsWith('on'))
			made.addEventListener(key.slice(2), value);
		else if (value === true)
			made.setAttribute(key, '');
		else if (value !== false && value !== null && value !== undefined)
			made.setAttribute(key, value);
	}
	made.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
	return made;
}

function svg(tag, attributes, ...children) {
	const made = document.createElementNS('http://www.w3.org/2000/svg', tag);

	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	made.append(...children);
	return made;
}

/* ---- colours: those of the style sheet, read again when they change ---- */

const colours = {};
const onColours = []; /* what to draw again then */

function readColours() {
	const style = getComputedStyle(document.documentElement);

	for (const name of ['text', 'dim', 'line', 'line-strong', 'panel', 'accent', 'mark', 'hatch',
		'good', 's0', 's1', 's2', 's3', 's4', 's5', 's6', 's7',
		'heat0', 'heat1', 'heat2', 'heat3', 'heat4'])
		colours[name] = style.getPropertyValue('--' + name).trim();
	colours.font = style.getPropertyValue('font-family') || 'sans-serif';
}

const hexOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

/* So much of one colour on another, opaque: what overlaps does not add up. */
function mixed(colour, ground, part) {
	const below = hexOf(ground);

	return `rgb(${hexOf(colour).map((value, i) => Math.round(value * part + below[i] * (1 - part))).join(' ')})`;
}

function coloursChanged() {
	readColours();
	onColours.forEach((redraw) => redraw());
}

/* ---- numbers ---- */

/* Three digits that count: 1234 -> "1,234", 12.34 -> "12.3". */
function digits(number) {
	const size = Math.abs(number);

	if (size >= 100 || size === 0)
		return Math.round(number).toLocaleString('en-US');
	return number.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 2 : 3);
}

/* The same without zeros behind the point: for axes. */
const short = (number) => Number(number.toPrecision(4)).toLocaleString('en-US', { maximumFractionDigits: 9 });
const shortParts = (parts) => (parts[0] === '0' ? '0' : `${short(Number(parts[0].replaceAll(',', '')))} ${parts[1]}`);

/* [number, unit], to be shown apart. */
function durationParts(ns) {
	if (ns < 1000)
		return [digits(ns), 'ns'];
	if (ns < 999.5e3)
		return [digits(ns / 1e3), 'µs'];
	if (ns < 999.5e6)
		return [digits(ns / 1e6), 'ms'];
	if (ns < 60e9)
		return [digits(ns / 1e9), 's'];
	if (ns < 3600e9)
		return [digits(ns / 60e9), 'min'];
	return [digits(ns / 3600e9), 'h'];
}

function bytesParts(bytes) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
	let unit = 0;

	while (bytes >= 1023.5 && unit + 1 < units.length) {
		bytes /= 1024;
		unit++;
	}
	return [Number.isInteger(bytes) ? String(bytes) : digits(bytes), units[unit]];
}

function rateParts(bytesPerSecond) {
	if (bytesPerSecond >= 0.9995e9)
		return [digits(bytesPerSecond / 1e9), 'GB/s'];
	if (bytesPerSecond >= 0.9995e6)
		return [digits(bytesPerSecond / 1e6), 'MB/s'];
	if (bytesPerSecond >= 0.9995e3)
		return [digits(bytesPerSecond / 1e3), 'kB/s'];
	return [digits(bytesPerSecond), 'B/s'];
}

const duration = (ns) => durationParts(ns).join(' ');
const bytesText = (bytes) => bytesParts(bytes).join(' ');
const rate = (bytesPerSecond) => rateParts(bytesPerSecond).join(' ');
const count = (number) => Math.round(number).toLocaleString('en-US');

/* 0.1234 -> "12.3 %". Never "100 %" for less than all, never "0 %" for more than nothing. */
function percent(share) {
	const value = share * 100;

	if (value > 0 && value < 0.1)
		return '< 0.1 %';
	if (value < 100 && value > 99.9)
		return '> 99.9 %';
	return (value >= 10 || value === 0 ? String(Math.round(value * 10) / 10) : value.toFixed(1)) + ' %';
}

/* A person's "2 h 05 min" for the length of a job. */
function longDuration(ns) {
	const s = Math.round(ns / 1e9);

	if (ns < 120e9)
		return duration(ns);
	if (s < 3600)
		return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, '0')} s`;
	if (s < 86400)
		return `${Math.floor(s / 3600)} h ${String(Math.floor(s % 3600 / 60)).padStart(2, '0')} min`;
	return `${Math.floor(s / 86400)} d ${String(Math.floor(s % 86400 / 3600)).padStart(2, '0')} h`;
}

const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many || one + 's'}`;

/* ---- time: seconds after the report's start; shown as such, or as wall time ---- */

const startSeconds = report.is_wall_time ? report.start_ns / 1e9 : null;
const sinceStart = (ns) => (ns - report.start_ns) / 1e9;
const time = { isWall: startSeconds !== null };

/* What happened in each window of time; nothing where too little has a time. */
const windows = report.windows || { count: 0, series: [], changes: [], matrix: { rows: [] } };
const windowSeconds = windows.width_ns / 1e9;
/* The middle of each window. */
const windowTimes = Array.from({ length: windows.count }, (_, i) => sinceStart(windows.start_ns) + (i + 0.5) * windowSeconds);

for (const series of windows.series) {
	series.function ??= 'unknown';
	series.kind ??= 'unknown';
}

/* With its day where there are several. Cut, as clocks are; a little is added for what doubles cannot hold. */
function wallText(seconds, decimals) {
	const unit = 10 ** decimals;
	const whole = Math.floor((startSeconds + seconds) * unit + (decimals > 3 ? 0.5 : 0.001));
	const isLong = report.duration_ns > 20 * 3600e9;
	const text = new Date(Math.floor(whole / unit) * 1000).toISOString().slice(isLong ? 5 : 11, 19).replace('T', ' ');

	return decimals ? `${text}.${String(whole % unit).padStart(decimals, '0')}` : text;
}

function elapsedText(seconds, decimals) {
	const sign = seconds < 0 ? '-' : '';
	const size = Math.abs(seconds);

	if (size < 120)
		return `${sign}${size.toFixed(decimals)} s`;
	const whole = Math.round(size);
	const minutes = Math.floor(whole / 60);
	const tail = String(whole % 60).padStart(2, '0');

	if (minutes < 60)
		return `${sign}${minutes}:${tail}`;
	return `${sign}${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}:${tail}`;
}

/* Digits behind the point, so that neighbours `step` seconds apart differ. */
const decimalsOf = (step) => Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));

function timeText(seconds, step) {
	const decimals = decimalsOf(step);

	return time.isWall ? wallText(seconds, decimals) : elapsedText(seconds, decimals);
}

/* Both, for tooltips. */
function timeLong(seconds, step) {
	const decimals = decimalsOf(step);
	const elapsed = `${elapsedText(seconds, decimals)} after the start`;

	return time.isWall ? `${wallText(seconds, decimals)} UTC, ${elapsed}` : elapsed;
}

/* Where to put ticks: steps that people count in, aligned to the clock. */
function timeTicks(from, to, most) {
	const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
		86400];
	const wanted = (to - from) / Math.max(1, most);
	let step = steps.find((candidate) => candidate >= wanted);

	if (wanted < 0.5) {
		const power = 10 ** Math.floor(Math.log10(wanted));
		step = [1, 2, 5, 10].map((times) => times * power).find((candidate) => candidate >= wanted * 0.999);
	}
	step = step || Math.ceil(wanted / 86400) * 86400;
	const shift = time.isWall ? startSeconds % step : 0;
	const ticks = [];

	for (let k = Math.ceil((from + shift) / step); k * step - shift <= to; k++)
		ticks.push(k * step - shift);
	return { ticks, step };
}

/* ---- small parts ---- */

/* A sentence that is not the main thing. */
const aside = (text) => el('p', { class: 'dim' }, text);

/* Buttons of which one is pressed. choose(value) is called on a change. */
function choice(label, options, chosen, choose) {
	const buttons = options.map(([value, text]) => el('button', {
		type: 'button',
		'aria-pressed': String(value === chosen),
		onclick: (event) => {
			buttons.forEach((button) => button.setAttribute('aria-pressed', String(button === event.currentTarget)));
			choose(value);
		},
	}, text));

	return el('div', { class: 'choice', role: 'group', 'aria-label': label }, ...buttons);
}

/* What stands in a closed box is made when it is opened. */
function onOpen(summary, make) {
	const box = el('details', {
		ontoggle: () => {
			if (box.open && box.children.length === 1)
				box.append(make());
		},
	}, el('summary', {}, summary));

	return box;
}

/* A plain table: columns are [title, isNumber], cells are text. */
function plainTable(caption, columns, rows) {
	const head = columns.map(([title, isNumber]) =>
		el('th', { scope: 'col', class: isNumber ? 'plain right' : 'plain' }, title));
	const most = 500;
	const body = rows.slice(0, most).map((cells) => el('tr', {}, ...cells.map((cell, i) =>
		el(i === 0 ? 'th' : 'td', { class: columns[i][1] ? 'right' : null, scope: i === 0 ? 'row' : null }, cell))));

	const title = rows.length > most ? `${caption} (the first ${most} rows of ${count(rows.length)})` : caption;

	return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
		el('table', {}, el('caption', {}, title), el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...body)));
}

/* Said aloud by screen readers. */
function speak(text) {
	byId('spoken').textContent = text;
}
