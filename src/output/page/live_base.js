'use strict';
/*
 * The live page. All its files are one script, in this order:
 *
 *	live_base.js     elements, number formats, colours
 *	live_store.js    the agent's answers, bounded
 *	live_notices.js  the list of problems
 *	live_verdicts.js the doctor's verdicts
 *	live_glance.js   figures, jobs, processes, losses
 *	live_chart.js    bandwidth and waiting over time
 *	live_comms.js    the list of communicators
 *	live_ranks.js    the selected communicator: charts and ranks
 *	live_flights.js  operations in flight
 *	live_keys.js     keyboard, theme, help dialog
 *	live_page.js     polls the agent and updates the page
 *
 * Text from the agent only becomes text nodes, because names may contain anything.
 */

const byId = (id) => document.getElementById(id);

/* el('p', { class: 'dim' }, 'text', element, ...). Keys that begin with 'on' are listeners. */
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

/*
 * Only touch what has changed: most of the page stays the same from one second to the next. The text node is kept, so
 * that a changed number inside an alert is not announced as a new alert.
 */
function setText(element, text) {
	if (element.shownText === text)
		return;
	element.shownText = text;
	if (element.firstChild && !element.firstElementChild)
		element.firstChild.data = text;
	else
		element.textContent = text;
}

function setAttribute(element, name, value) {
	if (value === null || value === undefined || value === false) {
		if (element.hasAttribute(name))
			element.removeAttribute(name);
	} else if (element.getAttribute(name) !== String(value)) {
		element.setAttribute(name, value);
	}
}

function setHidden(element, isHidden) {
	if (element.hidden !== isHidden)
		element.hidden = isHidden;
}

/* The length of a bar, 0 to 1. */
function setBar(bar, share) {
	const width = `${Math.round(Math.max(0, Math.min(1, share || 0)) * 1000) / 10}%`;

	if (bar.shownWidth !== width) {
		bar.shownWidth = width;
		bar.style.width = width;
	}
}

/*
 * Rows for items, kept from one answer to the next: rows is a Map from key to the result of make(item), whose
 * element is .row. Rows without an item are removed.
 */
function syncRows(body, rows, items, keyOf, make, update) {
	const kept = new Set();
	let at = body.firstElementChild;

	for (const item of items) {
		const key = keyOf(item);

		if (kept.has(key))
			continue;
		kept.add(key);
		if (!rows.has(key))
			rows.set(key, make(item));
		const { row } = rows.get(key);

		if (row === at)
			at = at.nextElementSibling;
		else
			body.insertBefore(row, at);
		update(rows.get(key), item);
	}
	for (const [key, { row }] of rows) {
		if (!kept.has(key)) {
			row.remove();
			rows.delete(key);
		}
	}
}

/* A cell with its column's name, which is shown on narrow screens where rows become cards. */
const shortNames = { 'Bus bandwidth': 'Bandwidth', 'Operations/s': 'Ops/s', 'Operations called': 'Called' };
const cell = (label, attributes, ...children) =>
	el('td', { role: 'cell', 'data-label': label, 'data-short': shortNames[label] || label, ...attributes }, ...children);
const headCell = (label, attributes, ...children) =>
	el('th', { role: 'rowheader', scope: 'row', 'data-short': label, ...attributes }, ...children);

/* ---- numbers ---- */

/* Three significant digits: 1234 -> "1,234", 12.34 -> "12.3". */
function digits(number) {
	const size = Math.abs(number);

	if (size >= 100 || size === 0)
		return Math.round(number).toLocaleString('en-US');
	return number.toFixed(size >= 10 ? 1 : 2);
}

const count = (number) => Math.round(number).toLocaleString('en-US');
const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many || `${one}s`}`;

const rateUnits = [[1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s'], [1, 'B/s']];
const rateUnit = (value) => rateUnits.find(([size]) => value >= size * 0.9995) || rateUnits[3];

function rate(bytesPerSecond) {
	const [size, unit] = rateUnit(bytesPerSecond);

	return `${digits(bytesPerSecond / size)} ${unit}`;
}

function bytesText(bytes) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
	let unit = 0;

	while (bytes >= 1023.5 && unit + 1 < units.length) {
		bytes /= 1024;
		unit++;
	}
	return `${Number.isInteger(bytes) ? bytes : digits(bytes)} ${units[unit]}`;
}

/* 0.1234 -> "12%": shares of a second jitter, so no decimals above 1%. */
function percent(share) {
	const value = share * 100;

	if (value > 0 && value < 0.1)
		return '< 0.1 %';
	return `${value >= 0.95 || value === 0 ? Math.round(value) : value.toFixed(1)}%`;
}

/* For ages: no more precision than a reader can follow. */
function duration(ns) {
	const s = ns / 1e9;

	if (ns < 1e6)
		return '< 1 ms';
	if (s < 0.9995)
		return `${Math.round(s * 1000)} ms`;
	if (s < 9.95)
		return `${s.toFixed(1)} s`;
	if (s < 119.5)
		return `${Math.round(s)} s`;
	const whole = Math.round(s);

	if (whole < 3600)
		return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
	if (whole < 86400)
		return `${Math.floor(whole / 3600)} h ${String(Math.floor(whole % 3600 / 60)).padStart(2, '0')} min`;
	return `${Math.floor(whole / 86400)} d ${String(Math.floor(whole % 86400 / 3600)).padStart(2, '0')} h`;
}

const two = (number) => String(number).padStart(2, '0');

/* The reader's local time, with the date if that is not today. */
function clockTime(ms) {
	const date = new Date(ms);
	const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;

	if (date.toDateString() === new Date().toDateString())
		return time;
	return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

/* ---- colours of the style sheet, for canvases ---- */

const colours = {};
const onColours = []; /* callbacks that redraw when the colours change */

function readColours() {
	const style = getComputedStyle(document.documentElement);

	for (const name of ['text', 'dim', 'line', 'line-strong', 'panel', 'accent', 'mark', 'each'])
		colours[name] = style.getPropertyValue(`--${name}`).trim();
	colours.font = style.fontFamily || 'sans-serif';
}

function coloursChanged() {
	readColours();
	onColours.forEach((redraw) => redraw());
}

/* Announced by screen readers. */
function speak(text) {
	byId('spoken').textContent = text;
}
