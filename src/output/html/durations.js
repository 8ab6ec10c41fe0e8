/* Histograms of durations. */

/* Eight buckets per factor of two; the first includes all shorter durations. */
const bucketUpper = (bucket) => 2 ** (bucket / 8 - 22) * 1e9;

function histogramName(one) {
	if (!one.function)
		return 'All operations';
	if (one.size !== undefined)
		return `${one.function}, ${one.size || 'unknown size'}`;
	return one.kind ? `${one.function}, ${one.kind}` : one.function;
}

/* All operations, then the rows of the tables with histograms. */
function histograms() {
	const { kind, size } = report.tables;

	return [report.total, ...[report.tables.function, kind, size].flatMap(rowsOf)].filter((row) => row.timed > 0)
		.map((row) => ({ ...row, ...row.histogram, calls: row.calls - row.in_flight }));
}

function drawHistogram(u, one, isLog, at) {
	const floor = isLog ? 0.5 : 0;

	inPlot(u, (ctx, bbox, ratio) => {
		const ground = u.valToPos(floor, 'y', true);

		one.counts.forEach((calls, i) => {
			const from = u.valToPos(bucketUpper(one.first + i - 1), 'x', true);
			const to = u.valToPos(bucketUpper(one.first + i), 'x', true);

			if (calls === 0)
				return;
			const top = Math.min(u.valToPos(calls, 'y', true), ground - ratio);

			ctx.fillStyle = i === at ? colours.mark : colours.accent;
			ctx.fillRect(from + 0.5 * ratio, top, Math.max(ratio, to - from - ratio), ground - top);
		});
		ctx.fillStyle = colours.text;
		ctx.font = `${12 * ratio}px ${colours.font}`;
		ctx.lineJoin = 'round';
		const marks = [['median', one.median_ns, 0], ['p99', one.p99_ns, 1]].filter(([, ns]) => ns !== null);

		for (const [name, ns, line] of marks) {
			const x = u.valToPos(ns, 'x', true);
			const text = `${name} ${duration(ns)}`;
			const isRight = x + ctx.measureText(text).width + 10 * ratio < bbox.left + bbox.width;

			ctx.strokeStyle = colours.text;
			ctx.lineWidth = 1.5 * ratio;
			ctx.setLineDash([3 * ratio, 3 * ratio]);
			ctx.beginPath();
			ctx.moveTo(x, bbox.top);
			ctx.lineTo(x, bbox.top + bbox.height);
			ctx.stroke();
			ctx.textAlign = isRight ? 'left' : 'right';
			const place = [text, x + (isRight ? 5 : -5) * ratio, bbox.top + (13 + 16 * line) * ratio];

			ctx.setLineDash([]);
			ctx.lineWidth = 4 * ratio;
			ctx.strokeStyle = colours.panel;
			ctx.strokeText(...place);
			ctx.fillText(...place);
		}
	});
}

function bucketTip(one, i) {
	const before = one.counts.slice(0, i + 1).reduce((all, calls) => all + calls, 0);

	return {
		title: `${duration(bucketUpper(one.first + i - 1))} – ${duration(bucketUpper(one.first + i))}`,
		rows: [['calls', count(one.counts[i])], ['share', percent(one.counts[i] / one.timed)],
			['cumulative', percent(before / one.timed)]],
	};
}

function histogramPlot(host, one, isLog) {
	const most = Math.max(...one.counts);
	const upper = (i) => bucketUpper(one.first + i);
	const made = frame(
		{ from: upper(-3), to: upper(one.counts.length + 1), base: 10, text: (ns) => shortDuration(ns) },
		isLog ? { from: 0.5, to: most * 2, base: 10, text: count }
			: { from: 0, to: most * 1.2, isWhole: true, text: count });
	const plot = makePlot(host, {
		label: `Histogram of durations: ${histogramName(one)}`,
		height: 320,
		data: made.data,
		options: { ...made.options, hooks: { draw: [(u) => drawHistogram(u, one, isLog, plot ? plot.at : -1)] } },
		count: () => one.counts.length,
		place: (u, i) => [u.valToPos(Math.sqrt(upper(i - 1) * upper(i)), 'x'), u.over.clientHeight / 2],
		find: (u, left) => {
			const i = Math.ceil((Math.log2(u.posToVal(left, 'x') / 1e9) + 22) * 8 - 1e-9) - one.first;

			return i >= 0 && i < one.counts.length ? i : -1;
		},
		tip: (i) => bucketTip(one, i),
		onPoint: () => plot && plot.u.redraw(false),
	});

	return plot;
}

function histogramTable(one) {
	return plainTable(`Durations: ${histogramName(one)}`, [['Up to'], ['Calls', true], ['Cumulative', true]],
		one.counts.map((calls, i) =>
			[duration(bucketUpper(one.first + i)), count(calls), bucketTip(one, i).rows[2][1]]));
}

function histogramOptions(list) {
	const group = (label, test) => {
		const options = list.map((one, i) => [one, i]).filter(([one]) => test(one));

		return options.length === 0 ? null : el('optgroup', { label }, ...options.map(([one, i]) =>
			el('option', { value: String(i) }, histogramName(one))));
	};

	return [el('option', { value: '0' }, 'All operations'),
		group('By operation', (one) => one.function && one.size === undefined && !one.kind),
		group('By operation and kind of communicator', (one) => one.kind),
		group('By operation and size', (one) => one.size !== undefined)].filter((one) => one !== null);
}

function showDurations() {
	const list = histograms();

	if (list.length === 0) {
		byId('durations').append(aside('No operation was timed.'));
		return;
	}
	const state = { index: 0, isLog: false, redraw: null };
	const host = el('div', {}), below = el('div', {});
	const draw = () => {
		const one = list[state.index];
		const place = el('div', { class: 'plot', id: 'plot-durations' });

		/* Do not redraw the old chart. */
		if (state.redraw)
			onColours.splice(onColours.indexOf(state.redraw), 1);
		host.replaceChildren(place);
		histogramPlot(place, one, state.isLog);
		state.redraw = onColours[onColours.length - 1];
		below.replaceChildren(
			one.timed < one.calls ? aside(`Timed: ${count(one.timed)} of ${plural(one.calls, 'call')}.`) : '',
			onOpen('As a table', () => histogramTable(one)));
	};
	const select = el('select', {
		id: 'durations-of',
		onchange: (event) => {
			state.index = Number(event.target.value);
			draw();
		},
	}, ...histogramOptions(list));
	const scale = choice('Scale', [[false, 'Linear'], [true, 'Log']], false, (isLog) => {
		state.isLog = isLog;
		draw();
	});
	const box = card('Calls', 'by duration', [el('label', {}, 'Show', select), scale], 'Buckets are 9% wide. ' +
		'Two peaks suggest two algorithms, or ranks that sometimes wait.');

	box.append(host, below);
	byId('durations').append(box);
	draw();
}
