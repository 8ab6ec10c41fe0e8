/*
 * Lines over the last five minutes: a thin one per rank, the communicator's own on top, and the highlighted rank in
 * its own colour. Many ranks become a band from the lowest to the highest. Line widths and the tooltip work without
 * colours.
 */

const WINDOW_S = 300;
const LINES_MAX = 16;
const hasCharts = () => typeof uPlot === 'function';

/* ---- tooltip: one for the page ---- */

function showTip(summary, left, top) {
	const tip = byId('tip');

	tip.replaceChildren(el('div', { class: 'tip-title' }, summary.title),
		el('div', { class: 'tip-rows' }, ...summary.rows.flatMap(([name, value]) => [el('span', {}, name), el('b', {}, value)])));
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	const x = left + 16 + box.width <= innerWidth - 8 ? left + 16 : left - 16 - box.width;

	tip.style.left = `${Math.max(8, Math.min(innerWidth - 8 - box.width, x))}px`;
	tip.style.top = `${Math.max(8, Math.min(innerHeight - 8 - box.height, top - box.height / 2))}px`;
}

const hideTip = () => { byId('tip').hidden = true; };

/* ---- data ---- */

/* Values of the ranks at the communicator's points in time; null where a rank has none. */
function alignTo(times, history, name) {
	const values = new Array(times.length).fill(null);
	let at = 0;

	for (let i = 0; i < times.length; i++) {
		while (at < history.time.length && history.time[at] < times[i])
			at++;
		if (history.time[at] === times[i])
			values[i] = history[name][at];
	}
	return values;
}

function extreme(lists, length, better) {
	return Array.from({ length }, (unused, i) => lists.reduce((found, values) =>
		(values[i] !== null && (found === null || better(values[i], found)) ? values[i] : found), null));
}

/* { x, all, members: [{ rank, values }], lines: drawn below the communicator's own } */
function chartData(key, name) {
	const history = store.histories.get(key) || emptyHistory();
	const x = history.time.map((ms) => ms / 1000);
	const members = [...(history.members || new Map())].map(([rank, of]) => ({ rank, values: alignTo(history.time, of, name) }));
	const lists = members.map((member) => member.values);
	const isBand = members.length > LINES_MAX;
	const lines = isBand ? [extreme(lists, x.length, (a, b) => a > b), extreme(lists, x.length, (a, b) => a < b)] : lists;

	return { x, all: history[name], members, lines, isBand };
}

/* The straggler or the rank that has not arrived: highlighted unless the reader points at another one. */
function culprit() {
	const comm = chosenComm();
	const behind = comm && comm.members.find((member) => member.is_behind);

	return behind ? behind.rank : comm ? comm.straggler : null;
}

/* The label used in the table below. */
function rankName(rank) {
	const comm = chosenComm();
	const found = comm && comm.members.find((member) => member.rank === rank);

	return `rank ${found ? found.label : rank}`;
}

function highlightedRank() {
	if (store.highlighted !== null)
		return store.highlighted;
	return store.pinned !== null ? store.pinned : culprit();
}

function highlightValues(data) {
	const found = data.members.find((member) => member.rank === highlightedRank());

	return found ? found.values : new Array(data.x.length).fill(null);
}

/* ---- drawing ---- */

/* A second or two without a finished operation is not a gap; ten seconds are. */
function gapsOf(u, seriesIndex, from, to, nullGaps) {
	const least = 10 * u.bbox.width / (u.scales.x.max - u.scales.x.min);

	return nullGaps.filter(([start, end]) => end - start > least);
}

const fontOf = (size) => `${size}px ${colours.font}`;
const axisOf = (more) => ({
	stroke: () => colours.dim,
	font: fontOf(12),
	grid: { stroke: () => colours.line, width: 1 },
	ticks: { stroke: () => colours.line, width: 1, size: 4 },
	gap: 5,
	...more,
});
const lineOf = (stroke, width, more) => ({ stroke, width, points: { show: false }, gaps: gapsOf, ...more });

function chartOptions(chart) {
	const each = lineOf(() => colours.each, 1);
	const lines = chart.data.lines.map(() => each);

	return {
		width: Math.max(200, chart.host.clientWidth),
		height: chart.height,
		legend: { show: false },
		cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
		scales: {
			x: { time: true, range: () => [chart.end - WINDOW_S, chart.end] },
			y: { range: (u, low, high) => [0, chart.spec.top(high || 0)] },
		},
		axes: [
			axisOf({ size: 28, space: 56, incrs: [60, 120, 300],
				values: (u, ticks) => ticks.map((tick) => clockTime(tick * 1000).slice(-8, -3)) }),
			axisOf({ size: 68, space: 32, values: (u, ticks) => chart.spec.ticks(ticks) }),
		],
		series: [{}, ...lines, lineOf(() => colours.accent, 2), lineOf(() => colours.mark, 2.5)],
		bands: chart.data.isBand ? [{ series: [1, 2], fill: () => `${colours.each}59` }] : [],
		hooks: { setCursor: [() => pointed(chart)] },
	};
}

/* spec: title, label, field name, format(value), top(highest) of the scale, ticks(values). */
function makeChart(spec) {
	const chart = { spec, u: null, at: -1, shape: '', height: 150, data: null, end: 0 };

	chart.host = el('div', { class: 'plot', tabindex: '0', role: 'application', 'aria-roledescription': 'chart' });
	chart.now = el('span', { class: 'chart-now' });
	chart.element = el('figure', { class: 'chart' }, el('figcaption', {}, el('span', {}, spec.title), chart.now), chart.host);
	chart.host.addEventListener('keydown', (event) => chartKey(chart, event));
	chart.host.addEventListener('blur', () => leave(chart));
	new ResizeObserver(() => {
		const width = Math.max(200, chart.host.clientWidth);

		if (chart.u && width !== chart.u.width)
			chart.u.setSize({ width, height: chart.height });
	}).observe(chart.host);
	onColours.push(() => chart.u && chart.u.redraw(false));
	return chart;
}

/* Adds points; a different communicator or number of lines creates a new chart. */
function updateChart(chart, key) {
	const data = chartData(key, chart.spec.name);
	const shape = `${key} ${data.lines.length} ${data.isBand}`;
	const last = lastKnown(store.histories.get(key), chart.spec.name, store.now.time_ms);

	chart.data = data;
	chart.end = store.now.time_ms / 1000;
	const summary = last === null ? null : chart.spec.format(last);

	setText(chart.now, summary || '–');
	setAttribute(chart.host, 'aria-label', `${chart.spec.label}: ${summary || 'no data'}. Arrow keys move.`);
	if (chart.shape !== shape) {
		chart.shape = shape;
		chart.at = -1;
		if (chart.u)
			chart.u.destroy();
		chart.u = new uPlot(chartOptions(chart), [data.x, ...data.lines, data.all, highlightValues(data)], chart.host);
	} else {
		chart.u.setData([data.x, ...data.lines, data.all, highlightValues(data)]);
	}
}

function highlightChart(chart) {
	if (chart.u)
		chart.u.setData([chart.data.x, ...chart.data.lines, chart.data.all, highlightValues(chart.data)]);
}

/* ---- pointing ---- */

function summaryAt(chart, i) {
	const { data, spec } = chart;
	const show = (value) => (value === null || value === undefined ? '–' : spec.format(value));
	const known = data.members.filter((member) => member.values[i] !== null).sort((a, b) => b.values[i] - a.values[i]);
	const rows = [['all ranks', show(data.all[i])]];

	if (known.length > 1) {
		rows.push([`${rankName(known[0].rank)}, highest`, show(known[0].values[i])]);
		rows.push([`${rankName(known[known.length - 1].rank)}, lowest`, show(known[known.length - 1].values[i])]);
	}
	const chosen = data.members.find((member) => member.rank === highlightedRank());

	if (chosen)
		rows.push([`${rankName(chosen.rank)}, marked`, show(chosen.values[i])]);
	return { title: clockTime(data.x[i] * 1000), rows };
}

function pointed(chart) {
	const { left, top, idx } = chart.u.cursor;

	if (left < 0 || idx === null || idx === undefined) {
		hideTip();
		return;
	}
	const box = chart.u.over.getBoundingClientRect();

	chart.at = idx;
	showTip(summaryAt(chart, idx), box.left + left, box.top + Math.max(0, top));
}

function leave(chart) {
	chart.at = -1;
	if (chart.u)
		chart.u.setCursor({ left: -10, top: -10 });
	hideTip();
}

function moveTo(chart, index) {
	const last = chart.data.x.length - 1;

	if (last < 0)
		return;
	const at = Math.max(0, Math.min(last, index));

	chart.u.setCursor({ left: chart.u.valToPos(chart.data.x[at], 'x'), top: chart.height / 2 });
	chart.at = at;
	const summary = summaryAt(chart, at);

	speak([summary.title, ...summary.rows.map((row) => row.join(' '))].join('; '));
}

function chartKey(chart, event) {
	const last = chart.data ? chart.data.x.length - 1 : -1;
	const far = event.shiftKey ? 10 : 1;
	const keys = {
		ArrowRight: () => moveTo(chart, chart.at < 0 ? last : chart.at + far),
		ArrowLeft: () => moveTo(chart, (chart.at < 0 ? last + 1 : chart.at) - far),
		Home: () => moveTo(chart, 0),
		End: () => moveTo(chart, last),
		Escape: () => leave(chart),
	};

	if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key])
		return;
	event.preventDefault();
	keys[event.key]();
}

/* ---- sparklines in the list ---- */

function drawTrend(canvas, history, endMs) {
	const { width, height } = canvas;
	const draw = canvas.getContext('2d');
	const values = history ? history.busbw : [];
	const top = Math.max(...values.map((value) => value || 0), 1);
	let previous = -Infinity;

	draw.clearRect(0, 0, width, height);
	draw.lineWidth = Math.max(1, devicePixelRatio);
	draw.strokeStyle = colours.accent;
	draw.beginPath();
	for (let i = 0; i < values.length; i++) {
		const time = history.time[i];

		if (values[i] === null || time < endMs - WINDOW_S * 1000)
			continue;
		const x = width * (1 - (endMs - time) / (WINDOW_S * 1000)), y = height - 2 - (height - 4) * values[i] / top;

		if (time - previous > 10000)
			draw.moveTo(x, y);
		else
			draw.lineTo(x, y);
		previous = time;
	}
	draw.stroke();
}
