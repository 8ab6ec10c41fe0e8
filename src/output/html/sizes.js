/* Bandwidth by message size: a dot per operation and size. */

/* The detailed table made for this chart, or the table by size if there was no room for it. */
function pointsOf() {
	const fine = report.custom.find((table) => table.by.includes('size') && table.by.includes('protocol'));
	const rows = rowsOf(fine || report.tables.size)
		.filter((row) => row.bytes > 0 && row.algbw_bytes_per_second !== null);
	const most = Math.max(1, ...rows.map((row) => row.total_ns));

	return rows.map((row) => ({
		...row,
		size: Math.floor(row.bytes / (row.calls - row.unknown_size)),
		speed: row.busbw_bytes_per_second ?? row.algbw_bytes_per_second,
		isBus: row.busbw_bytes_per_second !== null,
		colour: colourNumber(row.function),
		radius: 4 + 7 * Math.sqrt(row.total_ns / most),
	})).sort((a, b) => a.size - b.size);
}

function drawPoints(u, points, at) {
	inPlot(u, (ctx, bbox, ratio) => {
		/* Large dots first, so that they do not hide small ones. */
		const order = points.map((point, i) => i).sort((a, b) => points[b].radius - points[a].radius);

		for (const i of order) {
			const point = points[i];
			const x = u.valToPos(point.size, 'x', true), y = u.valToPos(point.speed, 'y', true);
			const path = new Path2D(shapes[point.colour](x, y, point.radius * ratio));

			ctx.fillStyle = colours['s' + point.colour] + 'b0';
			ctx.strokeStyle = i === at ? colours.text : colours.panel;
			ctx.lineWidth = (i === at ? 2.5 : 1) * ratio;
			ctx.fill(path);
			ctx.stroke(path);
		}
	});
}

function pointTip(point) {
	const rows = [
		[point.isBus ? 'busbw' : 'algbw', rate(point.speed)],
		['mean message size', bytesText(point.size)],
		['calls', count(point.calls) + (point.timed < point.calls && isSampled ? `, ${count(point.timed)} timed` : '')],
		['time, all ranks', duration(point.total_ns)],
	];

	if (point.kind)
		rows.push(['communicator', `${point.name} (${point.kind})`],
			['algorithm, protocol', `${point.algorithm || 'unknown'}, ${point.protocol || 'unknown'}`]);
	return { title: point.function, rows };
}

function nearestPoint(u, points, left, top) {
	let best = -1, distance = 24;

	points.forEach((point, i) => {
		const away = Math.hypot(u.valToPos(point.size, 'x') - left, u.valToPos(point.speed, 'y') - top);

		if (away < distance)
			[best, distance] = [i, away];
	});
	return best;
}

function sizesPlot(host, points, onZoom) {
	const sizes = points.map((point) => point.size), speeds = points.map((point) => point.speed);
	const made = frame({
		from: Math.min(...sizes) / 1.8, to: Math.max(...sizes) * 1.8, base: 2,
		text: (size) => shortParts(bytesParts(size)),
	}, {
		from: Math.min(...speeds) / 1.8, to: Math.max(...speeds) * 3, base: 10,
		text: (speed) => shortParts(rateParts(speed)),
	});
	let shown = points;
	const plot = makePlot(host, {
		label: 'Bus bandwidth by message size, both on logarithmic scales',
		height: 320,
		data: made.data,
		onZoom,
		options: {
			...made.options,
			cursor: { x: false },
			hooks: { draw: [(u) => drawPoints(u, shown, plot ? plot.at : -1)] },
		},
		count: () => shown.length,
		place: (u, i) => [u.valToPos(shown[i].size, 'x'), u.valToPos(shown[i].speed, 'y')],
		find: (u, left, top) => nearestPoint(u, shown, left, top),
		tip: (i) => pointTip(shown[i]),
		onPoint: () => plot && plot.u.redraw(false),
	});

	plot.show = (test) => {
		shown = points.filter(test);
		plot.at = -1;
		plot.u.redraw(false);
	};
	return plot;
}

function sizesTable(points) {
	const columns = [['Operation'], ['Kind'], ['Communicator'], ['Algorithm'],
		['Message', true], ['Bus bandwidth', true], ['Calls', true]];

	return plainTable('Bandwidth by size', columns, points.map((point) => [
		point.function, point.kind || '–', point.name || '–',
		point.algorithm ? `${point.algorithm}, ${point.protocol}` : '–',
		bytesText(point.size), rate(point.speed), count(point.calls)]));
}

/* Controls that select operations and kinds of communicators. */
function sizesChoice(points, update) {
	const hidden = new Set();
	const kinds = [...new Set(points.map((point) => point.kind).filter((one) => one))];
	const select = el('select', { id: 'sizes-kind', onchange: () => update() },
		el('option', { value: '' }, 'all'), ...kinds.map((kind) => el('option', { value: kind }, kind)));
	const names = functionOrder.filter((name) => points.some((point) => point.function === name));
	const chips = names.map((name) => el('button', {
		type: 'button', class: 'chip', 'aria-pressed': 'true',
		onclick: (event) => {
			if (!hidden.delete(name))
				hidden.add(name);
			event.currentTarget.setAttribute('aria-pressed', String(!hidden.has(name)));
			update();
		},
	}, dotSwatch(colourNumber(name)), name));

	return {
		tools: kinds.length > 1 ? [el('label', {}, 'Kind', select)] : [],
		legend: el('div', { class: 'legend', role: 'group', 'aria-label': 'Operations shown' }, ...chips),
		isShown: (point) => !hidden.has(point.function) && (select.value === '' || point.kind === select.value),
	};
}

function showSizes() {
	const points = pointsOf();

	if (points.length === 0) {
		byId('sizes').append(aside('No operation has both a size and a duration.'));
		return;
	}
	const chosen = sizesChoice(points, () => plot.show(chosen.isShown));
	const reset = zoomButton(() => showAll(plot));
	const host = el('div', { class: 'plot', id: 'plot-sizes' });
	const doubt = points.every((point) => point.isBus) ? ''
		: ' Algbw where the number of ranks is unknown.';
	const box = card('Bus bandwidth', 'by message size', [reset, ...chosen.tools],
		`Each dot is one operation and size; larger dots take more time in total.${doubt}`);

	box.append(host, chosen.legend, onOpen('As a table', () => sizesTable(points)));
	byId('sizes').append(box);
	const plot = sizesPlot(host, points, (isZoomed) => { reset.hidden = !isZoomed; });
}
