/* Durations of iterations, and the communication in them. */

/* One bar per iteration, or per group of iterations if there are many; `from` and `to` are positions on the axis. */
function iterationsOf() {
	const { list, together } = data.iterations;
	const all = report.iterations.count;

	return list.map(([start, mean, longest, busy, bytes, odd], i) => ({
		start: sinceStart(start), mean, longest, bytes,
		busy: busy === null ? null : Math.min(busy, mean),
		isOdd: odd === 1,
		first: i * together,
		from: i * together + 0.5,
		to: Math.min((i + 1) * together, all) + 0.5,
	}));
}

function drawIterations(u, list, at) {
	inPlot(u, (ctx, bbox, ratio) => {
		const ground = u.valToPos(0, 'y', true);
		const rest = mixed(colours.s0, colours.panel, 0.25);
		const isWide = bbox.width / list.length > 5 * ratio;
		const gap = isWide ? data.iterations.together * 0.1 : 0;

		list.forEach((one, i) => {
			const from = u.valToPos(one.from + gap, 'x', true), to = u.valToPos(one.to - gap, 'x', true);
			const width = Math.max(ratio, to - from);
			const top = u.valToPos(one.mean, 'y', true), busy = u.valToPos(one.busy || 0, 'y', true);

			ctx.fillStyle = i === at ? colours.mark : one.isOdd ? colours.hatch : rest;
			ctx.fillRect(from, top, width, ground - top);
			ctx.fillStyle = i === at ? colours.mark : one.isOdd ? colours.dim : colours.s0;
			ctx.fillRect(from, busy, width, ground - busy);
			if (one.isOdd && width > 3 * ratio) {
				ctx.strokeStyle = colours.dim;
				ctx.lineWidth = ratio;
				ctx.strokeRect(from, top, width, ground - top);
			}
		});
		const median = u.valToPos(report.iterations.median_ns, 'y', true);

		ctx.strokeStyle = colours.text;
		ctx.lineWidth = 1.5 * ratio;
		ctx.setLineDash([3 * ratio, 3 * ratio]);
		ctx.beginPath();
		ctx.moveTo(bbox.left, median);
		ctx.lineTo(bbox.left + bbox.width, median);
		ctx.stroke();
	});
}

function iterationTip(one) {
	const many = data.iterations.together > 1;
	const last = Math.min(one.first + data.iterations.together, report.iterations.count);

	const name = many ? `Iterations ${count(one.first + 1)} to ${count(last)}` : `Iteration ${count(one.first + 1)}`;

	return {
		title: one.isOdd && !many ? `${name} (irregular)` : name,
		under: timeLong(one.start, 0.01),
		rows: [
			[many ? 'mean' : 'duration', duration(one.mean)],
			...(many ? [['longest', duration(one.longest)]] : []),
			['communication', one.busy === null ? 'not timed'
				: `${duration(one.busy)} (${percent(one.mean ? one.busy / one.mean : 0)})`],
			['bytes', bytesText(one.bytes)]],
	};
}

function iterationsPlot(host, list, onZoom) {
	const regular = list.filter((one) => !one.isOdd).map((one) => one.mean);
	const most = Math.max(...list.map((one) => one.mean));
	/* A long evaluation must not flatten everything else. */
	const shown = Math.min(most, 3 * Math.max(...regular, most / 20));
	const made = frame({ from: 0.5, to: report.iterations.count + 0.5, isWhole: true, text: count },
		{ from: 0, to: shown * 1.08, text: (tick) => shortDuration(tick) });
	const plot = makePlot(host, {
		label: 'Duration of each iteration, and the communication in it',
		height: 240,
		data: made.data,
		onZoom,
		options: {
			...made.options,
			cursor: { x: false },
			hooks: { draw: [(u) => drawIterations(u, list, plot ? plot.at : -1)] },
		},
		count: () => list.length,
		place: (u, i) => [u.valToPos((list[i].from + list[i].to) / 2, 'x'), u.over.clientHeight / 3],
		find: (u, left) => {
			const i = Math.floor((u.posToVal(left, 'x') - 0.5) / data.iterations.together);
			return Math.max(0, Math.min(list.length - 1, i));
		},
		tip: (i) => iterationTip(list[i]),
		onPoint: () => plot && plot.u.redraw(false),
	});

	return plot;
}

function exposedText(found) {
	if (found.exposed === 0)
		return '';
	if (found.exposed_measured > 0)
		return ` Exposed communication: ${duration(found.exposed_low_ns)} of the median iteration, ` +
			`measured in ${count(found.exposed_measured)} of ${count(found.regular)}.`;
	return ' Exposed communication: ' +
		(found.exposed_low_ns > 0 ? `${duration(found.exposed_low_ns)} to ` : 'at most ') +
		`${duration(found.exposed_high_ns)} of the median iteration.`;
}

function iterationsText() {
	const found = report.iterations;
	const how = found.is_by_tag ? 'from its tags' : `from a repeating sequence of ${plural(found.period_ops, 'operation')}`;
	const odd = found.count - found.regular;

	return `${plural(found.count, 'iteration')}, found in rank ${data.iterations.rank} ${how}. ` +
		`Median ${duration(found.median_ns)} (dashed line), ` +
		`${found.median_busy_ns === null ? 'communication unknown (not timed)' : `${duration(found.median_busy_ns)} of it communication`}; ` +
		`p99 ${duration(found.p99_ns)}; the slowest, #${count(found.slowest + 1)}, took ` +
		`${duration(found.slowest_ns)}.` + exposedText(found) +
		(odd > 0 ? ` ${count(odd)} irregular (gray): checkpoints, evaluations.` : '');
}

function iterationsTable(list) {
	const columns = [['Iteration'], ['Start', true], ['Duration', true], ['Communication', true], ['Bytes', true]];

	return plainTable('Iterations', columns,
		list.map((one) => [count(one.first + 1) + (one.isOdd ? ' (irregular)' : ''), timeText(one.start, 0.01),
			duration(one.mean), one.busy === null ? 'not timed' : duration(one.busy), bytesText(one.bytes)]));
}

function showIterations() {
	if (data.iterations.list.length === 0) {
		byId('iterations').append(aside('No iterations found: no sequence of operations repeats.'));
		return;
	}
	const reset = zoomButton(() => showAll(plot));
	const box = card('Duration', '', [reset], iterationsText());
	const host = el('div', { class: 'plot', id: 'plot-iterations' });
	const list = iterationsOf();

	box.append(host, el('div', { class: 'heat-key' },
		el('span', {}, el('i', { class: 'key-busy' }), 'communication'),
		el('span', {}, el('i', { class: 'key-rest' }), 'other')),
	onOpen('As a table', () => iterationsTable(list)));
	byId('iterations').append(box);
	const plot = iterationsPlot(host, list, (isZoomed) => { reset.hidden = !isZoomed; });
}
