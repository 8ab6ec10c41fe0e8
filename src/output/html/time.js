/* Bandwidth and waiting over time, with lasting changes. */

function bandwidthSeries() {
	const sum = (values) => values.reduce((all, value) => all + value, 0);
	const rates = (bytes, ns) => bytes.map((value, i) => (value > 0 && ns[i] > 0 ? value / ns[i] * 1e9 : null));
	const list = windows.series.map((series) => ({
		busbw: rates(series.bus_bytes, series.time_ns),
		move: rates(series.move_bus_bytes, series.move_ns),
		total: sum(series.time_ns),
		name: `${series.function}, ${series.kind}`,
		colour: colourNumber(series.function),
		dash: dashes[series.kind] || [],
	})).filter((series) => series.busbw.some((value) => value !== null));

	list.sort((a, b) => b.total - a.total);
	list.forEach((series, i) => {
		series.letter = i < 26 ? String.fromCharCode(65 + i) : String(i + 1);
		series.isShown = i < 6;
	});
	return list;
}

/* Changes close to each other share a number. */
function changeMarks() {
	const marks = [];

	for (const change of [...windows.changes].sort((a, b) => a.at_ns - b.at_ns)) {
		const last = marks[marks.length - 1];
		const at = sinceStart(change.at_ns);

		if (last && at - last.at <= 2 * windowSeconds)
			last.changes.push(change);
		else
			marks.push({ at, number: marks.length + 1, changes: [change] });
	}
	marks.forEach((mark) => mark.changes.sort((a, b) => Math.abs(b.percent) - Math.abs(a.percent)));
	return marks;
}

function drawMarks(u, marks, hasNumbers) {
	const { ctx, bbox } = u;
	const ratio = devicePixelRatio;

	ctx.save();
	ctx.strokeStyle = colours.mark;
	ctx.fillStyle = colours.mark;
	ctx.lineWidth = 1.5 * ratio;
	for (const mark of marks) {
		const x = u.valToPos(mark.at, 'x', true);

		if (x < bbox.left || x > bbox.left + bbox.width)
			continue;
		ctx.setLineDash([4 * ratio, 4 * ratio]);
		ctx.beginPath();
		ctx.moveTo(x, bbox.top);
		ctx.lineTo(x, bbox.top + bbox.height);
		ctx.stroke();
		if (!hasNumbers)
			continue;
		ctx.setLineDash([]);
		ctx.beginPath();
		ctx.arc(x, bbox.top - 1 * ratio, 8 * ratio, 0, 2 * Math.PI);
		ctx.fill();
		ctx.fillStyle = colours.panel;
		ctx.font = `700 ${11 * ratio}px ${colours.font}`;
		ctx.textAlign = 'center';
		ctx.textBaseline = 'middle';
		ctx.fillText(String(mark.number), x, bbox.top - 0.5 * ratio);
		ctx.fillStyle = colours.mark;
	}
	ctx.restore();
}

/* The letter of each line at its right end, without overlaps. */
function drawLetters(u, list) {
	const { ctx, bbox } = u;
	const ratio = devicePixelRatio;
	const ends = [];

	list.forEach((series, s) => {
		const values = u.data[s + 1];
		let i = u.data[0].length - 1;

		while (i >= 0 && (values[i] === null || u.data[0][i] > u.scales.x.max))
			i--;
		if (series.isShown && i >= 0 && u.data[0][i] >= u.scales.x.min)
			ends.push({ series, x: u.valToPos(u.data[0][i], 'x', true), y: u.valToPos(values[i], 'y', true) });
	});
	ends.sort((a, b) => a.y - b.y);
	ends.forEach((end, i) => {
		if (i > 0)
			end.y = Math.max(end.y, ends[i - 1].y + 13 * ratio);
	});
	for (let i = ends.length - 1, most = bbox.top + bbox.height - 5 * ratio; i >= 0; i--, most -= 13 * ratio)
		ends[i].y = Math.min(ends[i].y, most);
	ctx.save();
	ctx.font = `700 ${12 * ratio}px ${colours.font}`;
	ctx.textAlign = 'left';
	ctx.textBaseline = 'middle';
	for (const { series, x, y } of ends) {
		ctx.fillStyle = colours['s' + series.colour];
		ctx.fillText(series.letter, Math.min(x + 5 * ratio, bbox.left + bbox.width + 5 * ratio), y);
	}
	ctx.restore();
}

/* Dots where a line would be invisible: a value without neighbors, or few windows. */
const windowDots = {
	show: true,
	size: 5,
	filter: (u, s) => u.data[s].map((value, i) => i).filter((i) => u.data[s][i] !== null &&
		(windows.count < 40 || ((u.data[s][i - 1] ?? null) === null && (u.data[s][i + 1] ?? null) === null))),
};

/* The unit for a chart whose largest value is this. */
function rateUnit(most) {
	return most >= 1e9 ? [1e9, 'GB/s'] : most >= 1e6 ? [1e6, 'MB/s'] : [1e3, 'kB/s'];
}

function windowTip(list, which, i) {
	const rows = list.filter((series) => series.isShown && series[which][i] !== null)
		.sort((a, b) => b[which][i] - a[which][i])
		.map((series) => [`${series.letter} ${series.name}`, rate(series[which][i]),
			lineSwatch(`stroke-s${series.colour}`, series.dash)]);

	return { title: timeLong(windowTimes[i], windowSeconds), rows };
}

function bandwidthPlot(host, list, marks, state, onZoom) {
	const most = Math.max(1, ...list.flatMap((series) => [...series.busbw, ...series.move]));
	const [unit, unitName] = rateUnit(most);
	const scaled = (value) => (value === null ? null : value / unit);
	const values = () => [windowTimes, ...list.map((series) => series[state.which].map(scaled))];
	const plot = makePlot(host, {
		label: 'Bus bandwidth over time, one line per operation and kind of communicator',
		height: 300,
		group: timeGroup,
		onZoom,
		data: values(),
		options: {
			padding: [16, 38, 0, 0],
			scales: { x: { time: false }, y: { range: (u, min, max) => [0, (max || 1) * 1.06] } },
			axes: [timeAxis(), axis({ size: 50, values: (u, ticks) => ticks.map(short) })],
			series: [{}, ...list.map((series) => ({
				show: series.isShown,
				stroke: () => colours['s' + series.colour],
				width: 2,
				dash: series.dash,
				points: windowDots,
			}))],
			hooks: { draw: [(u) => { drawMarks(u, marks, true); drawLetters(u, list); }] },
		},
		count: () => windows.count,
		place: (u, i) => [u.valToPos(windowTimes[i], 'x'), u.over.clientHeight / 3],
		find: (u, left) => u.posToIdx(left),
		tip: (i) => windowTip(list, state.which, i),
	});

	plot.unitName = unitName;
	plot.update = () => plot.u.setData(values(), false) || plot.u.redraw();
	return plot;
}

function legendOf(list, plot) {
	const chips = list.map((series, i) => el('button', {
		type: 'button', class: 'chip', 'aria-pressed': String(series.isShown),
		onclick: (event) => {
			series.isShown = !series.isShown;
			event.currentTarget.setAttribute('aria-pressed', String(series.isShown));
			plot.u.setSeries(i + 1, { show: series.isShown });
		},
	}, lineSwatch(`stroke-s${series.colour}`, series.dash), el('span', { class: 'letter' }, series.letter), series.name));

	return el('div', { class: 'legend', role: 'group', 'aria-label': 'Lines shown' }, ...chips);
}

function changeItem(mark) {
	const more = mark.changes.length - 4;

	return el('li', {}, el('span', { class: 'number' }, String(mark.number)),
		el('div', {}, el('b', {}, timeLong(mark.at, Math.min(1, windowSeconds))),
			...mark.changes.slice(0, 4).map((change) => el('div', {}, change.text)),
			more > 0 ? el('div', { class: 'dim' }, `and ${count(more)} more`) : null));
}

/* Waiting and collective time of all ranks. */
function waitingSums() {
	const wait = new Array(windows.count).fill(0), joined = new Array(windows.count).fill(0);

	for (const row of windows.matrix.rows) {
		for (let i = 0; i < windows.count; i++) {
			wait[i] += row.wait_ns[i];
			joined[i] += row.joined_ns[i];
		}
	}
	return { wait, joined };
}

function waitingPlot(host, sums, marks) {
	const share = sums.wait.map((wait, i) => (sums.joined[i] > 0 ? wait / sums.joined[i] * 100 : null));
	const most = Math.max(1, ...share.filter((value) => value !== null));

	return makePlot(host, {
		label: 'Waiting as a share of collective time, over time',
		height: 150,
		group: timeGroup,
		data: [windowTimes, share],
		options: {
			padding: [8, 38, 0, 0],
			scales: { x: { time: false }, y: { range: () => [0, Math.min(100, most * 1.15)] } },
			axes: [timeAxis(), axis({ size: 50, values: (u, ticks) => ticks.map((tick) => `${short(tick)}%`) })],
			series: [{}, { stroke: () => colours.s1, width: 2, fill: () => colours.s1 + '26', points: windowDots }],
			hooks: { draw: [(u) => drawMarks(u, marks, false)] },
		},
		count: () => windows.count,
		place: (u, i) => [u.valToPos(windowTimes[i], 'x'), u.over.clientHeight / 3],
		find: (u, left) => u.posToIdx(left),
		tip: (i) => ({
			title: timeLong(windowTimes[i], windowSeconds),
			rows: share[i] === null ? [['no collective ended in this window', '']] : [
				['waiting', percent(share[i] / 100)],
				['all ranks', duration(sums.wait[i])],
				['collective time', duration(sums.joined[i])]],
		}),
	});
}

function timeTable(list, sums) {
	const columns = [['Time'], ...list.map((series) => [`${series.name}, GB/s`, true]), ['Waiting, % of collective time', true]];
	const rows = windowTimes.map((at, i) => [timeText(at, windowSeconds),
		...list.map((series) => (series.busbw[i] === null ? '–' : (series.busbw[i] / 1e9).toFixed(2))),
		sums.joined[i] > 0 ? percent(sums.wait[i] / sums.joined[i]) : '–']);

	return plainTable('Bus bandwidth and waiting per window', columns, rows);
}

function bandwidthCard(list, marks) {
	const state = { which: 'busbw' };
	const host = el('div', { class: 'plot', id: 'plot-bandwidth' });
	const reset = zoomButton(() => showAll(plot));
	const tools = [reset];

	if (list.some((series) => series.move.some((value) => value !== null)))
		tools.push(choice('Bandwidth', [['busbw', 'With waiting'], ['move', 'Without waiting']], 'busbw', (which) => {
			state.which = which;
			plot.update();
		}));
	if (startSeconds !== null)
		tools.push(choice('Time axis', [[true, 'UTC'], [false, 'Elapsed']], true, (isWall) => {
			time.isWall = isWall;
			onColours.forEach((redraw) => redraw());
		}));
	const box = card('Bus bandwidth', '', tools);

	byId('time').append(box);
	if (list.length === 0) {
		box.append(aside('Unknown: no operation has a duration, a size and a known number of ranks.'));
		return box;
	}
	box.append(host);
	const plot = bandwidthPlot(host, list, marks, state, (isZoomed) => { reset.hidden = !isZoomed; });

	box.querySelector('h3').append(el('span', { class: 'unit' }, ` ${plot.unitName}`));
	box.append(legendOf(list, plot));
	if (windows.series_left_out > 0)
		box.append(aside(`${count(windows.series_left_out)} more lines omitted.`));
	return box;
}

function showTime() {
	if (windows.count < 2) {
		byId('time').append(aside('Too few operations have a time to draw a chart.'));
		return;
	}
	const list = bandwidthSeries();
	const marks = changeMarks();
	const sums = waitingSums();
	const box = bandwidthCard(list, marks);
	const host = el('div', { class: 'plot', id: 'plot-waiting' });

	if (knowsWaiting && sums.joined.some((value) => value > 0)) {
		box.append(el('h3', { class: 'plot-title' }, 'Waiting (arrival skew)',
			el('span', { class: 'unit' }, ' share of collective time')), host);
		waitingPlot(host, sums, marks);
	}
	if (marks.length > 0)
		box.append(el('h3', { class: 'plot-title' }, 'Changes in transfer speed'),
			el('ul', { class: 'changes' }, ...marks.map(changeItem)));
	if (windows.changes_left_out > 0)
		box.append(aside(`${count(windows.changes_left_out)} smaller changes omitted.`));
	box.append(onOpen('As a table', () => timeTable(list, sums)));
}
