'use strict';
/*
 * The report's page. All its files are one script, in this order:
 *
 *	base.js     elements, colors, formatting of numbers
 *	answer.js   the summary
 *	plot.js     shared by all charts: axes, tooltip, keyboard
 *	time.js     bandwidth and waiting over time
 *	heat.js     waiting by rank and time
 *	frame.js    shared by the three below
 *	sizes.js, durations.js, iterations.js
 *	tables.js   tables that can be sorted, filtered and saved
 *	report.js   builds the page
 *
 * Text from the data only ever becomes text nodes, because names may contain anything.
 */

const data = JSON.parse(document.getElementById('data').textContent);
const report = data.report;

/* Waiting is unknown if no calls could be compared between ranks. */
const knowsWaiting = report.total.wait_share !== null;

/* Some finished calls have no duration. */
const isSampled = data.words.timed !== '';

/* As in the text report: ~ marks an estimate, > a total without kinds of calls that were never timed. */
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

/* ---- colors of the style sheet, read again when they change ---- */

const colours = {};
const onColours = []; /* called after a change, to redraw */

function readColours() {
	const style = getComputedStyle(document.documentElement);

	for (const name of ['text', 'dim', 'line', 'line-strong', 'panel', 'accent', 'mark', 'hatch',
		'good', 's0', 's1', 's2', 's3', 's4', 's5', 's6', 's7',
		'heat0', 'heat1', 'heat2', 'heat3', 'heat4'])
		colours[name] = style.getPropertyValue('--' + name).trim();
	colours.font = style.getPropertyValue('font-family') || 'sans-serif';
}

const hexOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

/* An opaque mix of two colors: overlapping shapes do not get darker. */
function mixed(colour, ground, part) {
	const below = hexOf(ground);

	return `rgb(${hexOf(colour).map((value, i) => Math.round(value * part + below[i] * (1 - part))).join(' ')})`;
}

function coloursChanged() {
	readColours();
	onColours.forEach((redraw) => redraw());
}

/* ---- numbers ---- */

/* Three significant digits: 1234 -> "1,234", 12.34 -> "12.3". */
function digits(number) {
	const size = Math.abs(number);

	if (size >= 100 || size === 0)
		return Math.round(number).toLocaleString('en-US');
	return number.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 2 : 3);
}

/* Without trailing zeros, for axes. */
const short = (number) => Number(number.toPrecision(4)).toLocaleString('en-US', { maximumFractionDigits: 9 });
const shortParts = (parts) => (parts[0] === '0' ? '0' : `${short(Number(parts[0].replaceAll(',', '')))} ${parts[1]}`);
const shortDuration = (ns) => (ns < 60e9 ? shortParts(durationParts(ns)) : ns < 3600e9 ? `${short(ns / 60e9)} min` : `${short(ns / 3600e9)} h`);

/* [number, unit], which are styled differently. The same as in the text report: "1.23 ms", "1 min 07 s", "2 h 05 min". */
function durationParts(ns) {
	const s = Math.floor(ns / 1e9);
	const two = (number) => String(number).padStart(2, '0');

	if (ns < 1000)
		return [digits(ns), 'ns'];
	if (ns < 999.5e3)
		return [digits(ns / 1e3), 'µs'];
	if (ns < 999.5e6)
		return [digits(ns / 1e6), 'ms'];
	if (ns < 60e9)
		return [digits(ns / 1e9), 's'];
	if (s < 3600)
		return [`${Math.floor(s / 60)} min ${two(s % 60)}`, 's'];
	if (s < 86400)
		return [`${Math.floor(s / 3600)} h ${two(Math.floor(s % 3600 / 60))}`, 'min'];
	return [`${Math.floor(s / 86400)} d ${two(Math.floor(s % 86400 / 3600))}`, 'h'];
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

/* 0.1234 -> "12.3%". "100%" is exactly all, "0%" exactly nothing. */
function percent(share) {
	const value = share * 100;

	if (value > 0 && value < 0.1)
		return '<0.1%';
	if (value < 100 && value > 99.9)
		return '>99.9%';
	return (value >= 10 || value === 0 ? String(Math.round(value * 10) / 10) : value.toFixed(1)) + '%';
}

const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many || one + 's'}`;

/* ---- time: in seconds after the start of the report, shown as such or as wall time ---- */

const startSeconds = report.is_wall_time ? report.start_ns / 1e9 : null;
const sinceStart = (ns) => (ns - report.start_ns) / 1e9;
const time = { isWall: startSeconds !== null };

/* null if too little has a time */
const windows = report.windows || { count: 0, series: [], changes: [], matrix: { rows: [] } };
const windowSeconds = windows.width_ns / 1e9;
/* The middle of each window. */
const windowTimes = Array.from({ length: windows.count }, (_, i) => sinceStart(windows.start_ns) + (i + 0.5) * windowSeconds);

for (const series of windows.series) {
	series.function ??= 'unknown';
	series.kind ??= 'unknown';
}

/* With the date if there are several days. Truncated like a clock; the small addend makes up for rounding of doubles. */
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

/* Decimals needed to distinguish times `step` seconds apart. */
const decimalsOf = (step) => Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));

function timeText(seconds, step) {
	const decimals = decimalsOf(step);

	return time.isWall ? wallText(seconds, decimals) : elapsedText(seconds, decimals);
}

/* Wall time and elapsed time, for tooltips. */
function timeLong(seconds, step) {
	const decimals = decimalsOf(step);
	const elapsed = `${elapsedText(seconds, decimals)} after the start`;

	return time.isWall ? `${wallText(seconds, decimals)} UTC, ${elapsed}` : elapsed;
}

/* Ticks at round times. */
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

const aside = (text) => el('p', { class: 'dim' }, text);

/* Buttons of which one is pressed; choose(value) is called on a change. */
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

/* The content is made when the box is opened for the first time. */
function onOpen(summary, make) {
	const box = el('details', {
		ontoggle: () => {
			if (box.open && box.children.length === 1)
				box.append(make());
		},
	}, el('summary', {}, summary));

	return box;
}

/* columns: [title, isNumber]; cells: text */
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

/* Read aloud by screen readers. */
function speak(text) {
	byId('spoken').textContent = text;
}
