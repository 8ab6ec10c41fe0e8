/* Shared by all charts. uPlot does scales, axes, lines and zoom; this adds tooltip, keyboard and colors. */

/* ---- tooltip: one for the page ---- */

/* content: { title, under: optional line below it, rows: [[name, value, optional swatch], ...] } */
function showTip(content, left, top) {
	const tip = byId('tip');
	const rows = content.rows.flatMap(([name, value, swatch]) =>
		[el('span', { class: 'tip-name' }, swatch, name), el('b', {}, value)]);

	tip.replaceChildren(el('div', { class: 'tip-title' }, content.title), el('div', { class: 'dim' }, content.under || ''),
		el('div', { class: 'tip-rows' }, ...rows));
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	const right = left + 16 + box.width <= innerWidth - 8;
	const x = right ? left + 16 : left - 16 - box.width;

	tip.style.left = `${Math.max(8, Math.min(innerWidth - 8 - box.width, x))}px`;
	tip.style.top = `${Math.max(8, Math.min(innerHeight - 8 - box.height, top - box.height / 2))}px`;
}

function hideTip() {
	byId('tip').hidden = true;
}

const announce = (content) => speak([content.title, ...(content.under ? [content.under] : []),
	...content.rows.map((row) => `${row[0]} ${row[1]}`)].join('; '));

/* ---- lines and dots that distinguish series without color ---- */

/* By kind of communicator. */
const dashes = { 'mixed': [], 'net-only': [8, 4], 'nvlink-only': [2, 3], 'single-rank': [8, 3, 2, 3], 'unknown': [1, 5] };

function lineSwatch(colour, dash) {
	return svg('svg', { width: 26, height: 10, viewBox: '0 0 26 10', 'aria-hidden': 'true' },
		svg('line', { x1: 1, y1: 5, x2: 25, y2: 5, 'stroke-width': 2.5, 'stroke-dasharray': dash.join(' ') || 'none',
			class: colour }));
}

/* Eight shapes around (x, y) with radius r, as paths. */
const shapes = [
	(x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
	(x, y, r) => `M${x - r * 0.9} ${y - r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
	(x, y, r) => `M${x} ${y - r * 1.15}L${x + r * 1.1} ${y + r * 0.85}H${x - r * 1.1}z`,
	(x, y, r) => `M${x} ${y - r * 1.25}L${x + r * 1.25} ${y}L${x} ${y + r * 1.25}L${x - r * 1.25} ${y}z`,
	(x, y, r) => `M${x} ${y + r * 1.15}L${x + r * 1.1} ${y - r * 0.85}H${x - r * 1.1}z`,
	(x, y, r) => {
		const a = r * 0.4, b = r * 1.15;
		return `M${x - a} ${y - b}h${2 * a}v${b - a}h${b - a}v${2 * a}h${a - b}v${b - a}` +
			`h${-2 * a}v${a - b}h${a - b}v${-2 * a}h${b - a}z`;
	},
	(x, y, r) => `M${x - r * 1.2} ${y - r * 0.5}h${r * 2.4}v${r}h${-r * 2.4}z`,
	(x, y, r) => `M${x - r * 0.5} ${y - r * 1.2}h${r}v${r * 2.4}h${-r}z`,
];

function dotSwatch(index) {
	return svg('svg', { width: 14, height: 14, viewBox: '0 0 14 14', 'aria-hidden': 'true' },
		svg('path', { d: shapes[index % 8](7, 7, 5), class: `fill-s${index % 8}` }));
}

/* One color per function, the same in all charts; the most expensive function first. */
const functionOrder = [...new Set([
	...rowsOf(report.tables.size).sort((a, b) => (b.total_ns || 0) - (a.total_ns || 0)).map((row) => row.function),
	...windows.series.map((series) => series.function),
])];
const colourNumber = (name) => Math.max(0, functionOrder.indexOf(name)) % 8;

/* ---- the chart ---- */

const fontOf = (size) => `${size}px ${colours.font}`;

function axis(more) {
	return {
		stroke: () => colours.dim,
		font: fontOf(12),
		grid: { stroke: () => colours.line, width: 1 },
		ticks: { stroke: () => colours.line, width: 1, size: 4 },
		gap: 5,
		...more,
	};
}

function timeAxis() {
	const step = (u) => timeTicks(u.scales.x.min, u.scales.x.max, u.bbox.width / devicePixelRatio / 84);

	return axis({
		size: 32,
		splits: (u) => step(u).ticks,
		values: (u, ticks) => ticks.map((tick) => timeText(tick, step(u).step)),
	});
}

/* Charts over time share cursor and zoom. */
const timeGroup = { plots: [], isBusy: false };

function together(group, plot, act) {
	if (!group || group.isBusy)
		return;
	group.isBusy = true;
	group.plots.filter((other) => other !== plot).forEach(act);
	group.isBusy = false;
}

/*
 * spec: label                description for screen readers
 *       height               in pixels
 *       options, data        of uPlot
 *       count()              number of items that can be pointed at
 *       place(u, i)          position of item i in the plot: [left, top]
 *       find(u, left, top)   the item at a position, or -1
 *       tip(i)               content of the tooltip
 *       group                charts with the same x axis, or undefined
 *       onZoom(isZoomed)
 */
function makePlot(host, spec) {
	const plot = { spec, at: -1, host, isZoomed: false };
	const hooks = spec.options.hooks || {};

	plot.u = new uPlot({
		...spec.options,
		width: Math.max(200, host.clientWidth),
		height: spec.height,
		legend: { show: false },
		cursor: { y: false, points: { show: false }, drag: { x: true, y: false }, ...spec.options.cursor },
		hooks: {
			...hooks,
			setCursor: [() => pointed(plot)],
			setScale: [(u, key) => key === 'x' && zoomed(plot)],
		},
	}, spec.data, host);
	if (spec.group)
		spec.group.plots.push(plot);
	host.setAttribute('tabindex', '0');
	host.setAttribute('role', 'application');
	host.setAttribute('aria-roledescription', 'chart');
	host.setAttribute('aria-label', `${spec.label}. Arrow keys move, plus and minus zoom, 0 shows all.`);
	host.addEventListener('keydown', (event) => plotKey(plot, event));
	host.addEventListener('blur', () => leave(plot));
	new ResizeObserver(() => resized(plot)).observe(host);
	onColours.push(() => plot.u.redraw(false));
	return plot;
}

function resized(plot) {
	const width = Math.max(200, plot.host.clientWidth);

	if (width !== plot.u.width)
		plot.u.setSize({ width, height: plot.spec.height });
}

/* The cursor moved, by mouse or keyboard. */
function pointed(plot) {
	const { left, top } = plot.u.cursor;
	const group = plot.spec.group;

	if (group && group.isBusy)
		return;
	plot.at = left < 0 ? -1 : plot.spec.find(plot.u, left, top);
	together(group, plot, (other) => other.u.setCursor({ left: plot.at < 0 ? -10 : left, top: 0 }, false));
	if (plot.at < 0) {
		hideTip();
	} else {
		const box = plot.u.over.getBoundingClientRect();
		const isKey = document.activeElement === plot.host && !plot.u.over.matches(':hover');
		const place = plot.spec.place(plot.u, plot.at);

		showTip(plot.spec.tip(plot.at), box.left + (isKey ? place[0] : left), box.top + (isKey ? place[1] : top));
	}
	if (plot.spec.onPoint)
		plot.spec.onPoint(plot.at);
}

function leave(plot) {
	plot.u.setCursor({ left: -10, top: -10 });
}

function zoomed(plot) {
	const { min, max } = plot.u.scales.x;
	const xs = plot.u.data[0];
	const isZoomed = xs.length > 1 && (min > xs[0] || max < xs[xs.length - 1]);

	together(plot.spec.group, plot, (other) => other.u.setScale('x', { min, max }));
	if (isZoomed !== plot.isZoomed && plot.spec.onZoom)
		plot.spec.onZoom(isZoomed);
	plot.isZoomed = isZoomed;
}

function showAll(plot) {
	const xs = plot.u.data[0];

	plot.u.setScale('x', { min: xs[0], max: xs[xs.length - 1] });
}

/* Around the current item. */
function zoomBy(plot, factor) {
	const scale = plot.u.scales.x;
	const isLog = scale.distr === 3;
	const to = (value) => (isLog ? Math.log(value) : value);
	const back = (value) => (isLog ? Math.exp(value) : value);
	const xs = plot.u.data[0];
	const middle = plot.at < 0 ? (to(scale.min) + to(scale.max)) / 2
		: to(plot.u.posToVal(plot.spec.place(plot.u, plot.at)[0], 'x'));
	const min = Math.max(to(xs[0]), middle - (middle - to(scale.min)) * factor);
	const max = Math.min(to(xs[xs.length - 1]), middle + (to(scale.max) - middle) * factor);

	if (max > min)
		plot.u.setScale('x', { min: back(min), max: back(max) });
}

function moveTo(plot, index) {
	const last = plot.spec.count() - 1;

	if (last < 0)
		return;
	const at = Math.max(0, Math.min(last, index));
	const [left, top] = plot.spec.place(plot.u, at);

	plot.u.setCursor({ left, top });
	/* uPlot finds nothing that is outside the view or covered by a neighbor. */
	if (plot.at !== at) {
		const box = plot.u.over.getBoundingClientRect();

		plot.at = at;
		showTip(plot.spec.tip(at), box.left + left, box.top + top);
	}
	announce(plot.spec.tip(at));
}

function plotKey(plot, event) {
	const last = plot.spec.count() - 1;
	const keys = {
		ArrowRight: () => moveTo(plot, plot.at + (event.shiftKey ? 10 : 1)),
		ArrowLeft: () => moveTo(plot, (plot.at < 0 ? last + 1 : plot.at) - (event.shiftKey ? 10 : 1)),
		Home: () => moveTo(plot, 0),
		End: () => moveTo(plot, last),
		Escape: () => leave(plot),
		'+': () => zoomBy(plot, 0.5),
		'=': () => zoomBy(plot, 0.5),
		'-': () => zoomBy(plot, 2),
		0: () => showAll(plot),
	};

	if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key])
		return;
	event.preventDefault();
	keys[event.key]();
}

function card(title, unit, tools, note) {
	return el('div', { class: 'card' },
		el('div', { class: 'card-head' },
			el('h3', {}, title, unit ? el('span', { class: 'unit' }, ` ${unit}`) : null),
			el('div', { class: 'tools' }, ...tools)),
		note ? el('p', { class: 'say' }, note) : null);
}

/* Visible while a chart is zoomed. */
function zoomButton(showAllOf) {
	return el('button', { type: 'button', hidden: true, onclick: showAllOf }, 'Show all');
}
