/* Heat map of waiting by rank and time. */

const heat = { left: 40, right: 18, top: 8, bottom: 26, value: 'share', order: 'rank', row: -1, column: -1 };

function heatRowName(row) {
	return row.last_rank === row.first_rank ? `rank ${row.first_rank}` : `ranks ${row.first_rank} to ${row.last_rank}`;
}

function heatHostName(row) {
	return row.last_host === row.first_host ? row.first_host : `${row.first_host} to ${row.last_host}`;
}

/* A share, or nanoseconds; null if nothing could be compared. */
function heatValue(row, i, which) {
	if (!(row.joined_ns[i] > 0))
		return null;
	return which === 'share' ? row.wait_ns[i] / row.joined_ns[i] : row.wait_ns[i];
}

/* The next 1, 2 or 5 times a power of ten. */
function niceAbove(value) {
	const power = 10 ** Math.floor(Math.log10(value));

	return [1, 2, 5, 10].map((times) => times * power).find((candidate) => candidate >= value * 0.999);
}

/* The end of the scale: the 98th percentile, so that one extreme cell does not make all others pale. */
function heatMost() {
	const values = [];

	for (const row of heat.rows)
		for (let i = 0; i < windows.count; i++)
			if (heatValue(row, i, heat.value) > 0)
				values.push(heatValue(row, i, heat.value));
	if (values.length === 0)
		return heat.value === 'share' ? 1 : 1e6;
	values.sort((a, b) => a - b);
	const most = niceAbove(values[Math.floor((values.length - 1) * 0.98)]);

	return heat.value === 'share' ? Math.min(1, most) : most;
}

/* 256 steps from heat0 to heat4. */
function heatRamp() {
	const stops = [0, 1, 2, 3, 4].map((i) => hexOf(colours['heat' + i]));
	const ramp = [];

	for (let step = 0; step < 256; step++) {
		const at = step / 255 * 4, low = Math.min(3, Math.floor(at)), part = at - low;

		ramp.push(stops[low].map((value, i) => Math.round(value + (stops[low + 1][i] - value) * part)));
	}
	return ramp;
}

/* One pixel per cell; scaled up when drawn. */
function heatCells() {
	const cells = document.createElement('canvas');
	const ramp = heatRamp();

	cells.width = windows.count;
	cells.height = heat.rows.length;
	const context = cells.getContext('2d');
	const image = context.createImageData(cells.width, cells.height);

	heat.rows.forEach((row, r) => {
		for (let i = 0; i < windows.count; i++) {
			const value = heatValue(row, i, heat.value);

			if (value === null)
				continue;
			const colour = ramp[Math.round(Math.min(1, value / heat.most) * 255)];

			image.data.set([...colour, 255], (r * windows.count + i) * 4);
		}
	});
	context.putImageData(image, 0, 0);
	return cells;
}

function hatch(context, box) {
	context.save();
	context.beginPath();
	context.rect(box.x, box.y, box.width, box.height);
	context.clip();
	context.strokeStyle = colours.hatch;
	context.lineWidth = 1;
	context.beginPath();
	for (let x = box.x - box.height; x < box.x + box.width; x += 6) {
		context.moveTo(x, box.y + box.height);
		context.lineTo(x + box.height, box.y);
	}
	context.stroke();
	context.restore();
}

function heatBox() {
	const width = heat.canvas.clientWidth;

	return { x: heat.left, y: heat.top, width: width - heat.left - heat.right, height: heat.rowHeight * heat.rows.length };
}

function prepare(canvas, width, height) {
	const ratio = devicePixelRatio;

	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	canvas.style.height = `${height}px`;
	const context = canvas.getContext('2d');

	context.scale(ratio, ratio);
	context.font = fontOf(11);
	context.textBaseline = 'middle';
	return context;
}

function isStragglerRow(row) {
	return report.stragglers.list.some((one) => one.rank_index !== null && one.class !== 'network' &&
		one.rank_index >= row.first_rank_index && one.rank_index <= row.last_rank_index);
}

const heatLabel = (row) => (row.last_rank === row.first_rank ? row.first_rank : `${row.first_rank}–${row.last_rank}`);

/* Width of the longest label, limited: a rank may be named "host:pid". */
function heatLeft() {
	const context = heat.canvas.getContext('2d');

	context.font = fontOf(11);
	const widest = Math.max(...heat.rows.map((row) => context.measureText(heatLabel(row)).width));

	return Math.max(28, Math.min(110, Math.ceil(widest) + 14));
}

function drawHeatRows(context, box) {
	const step = Math.max(1, Math.ceil(14 / heat.rowHeight));
	/* Powers of two, so that labels are 0, 8, 16, ... */
	const every = [1, 2, 4, 8, 16, 32, 64, 128].find((candidate) => candidate >= step) || step;

	context.textAlign = 'right';
	heat.rows.forEach((row, r) => {
		const y = box.y + (r + 0.5) * heat.rowHeight;

		if (r % every === 0) {
			context.fillStyle = colours.dim;
			context.fillText(heatLabel(row), box.x - 8, y, heat.left - 10);
		}
		if (isStragglerRow(row)) {
			const right = box.x + box.width;

			context.fillStyle = colours.mark;
			context.beginPath();
			context.moveTo(right + 3, y);
			context.lineTo(right + 12, y - 5);
			context.lineTo(right + 12, y + 5);
			context.fill();
		}
		if (heat.order === 'rank' && r > 0 && row.first_host !== heat.rows[r - 1].first_host && heat.rowHeight >= 3) {
			context.fillStyle = colours.panel;
			context.fillRect(box.x, box.y + r * heat.rowHeight - 0.5, box.width, 1);
		}
	});
}

function drawHeatTime(context, box) {
	const from = sinceStart(windows.start_ns), to = from + windows.count * windowSeconds;
	const { ticks, step } = timeTicks(from, to, box.width / 84);

	context.textAlign = 'center';
	for (const tick of ticks) {
		const x = box.x + (tick - from) / (to - from) * box.width;

		context.fillStyle = colours['line-strong'];
		context.fillRect(x, box.y + box.height, 1, 4);
		context.fillStyle = colours.dim;
		context.fillText(timeText(tick, step), Math.min(x, box.x + box.width - 18), box.y + box.height + 15);
	}
}

/* About 420 pixels in total; 512 rows take a pixel each. */
function heatRowHeight() {
	if (heat.rows.length > 160)
		return heat.rows.length > 320 ? 1 : 2;
	return Math.max(3, Math.min(18, Math.floor(420 / heat.rows.length)));
}

function drawHeat() {
	const width = heat.canvas.clientWidth;

	heat.left = heatLeft();
	heat.rowHeight = heatRowHeight();
	const box = heatBox();
	const context = prepare(heat.canvas, width, box.height + heat.top + heat.bottom);

	heat.most = heatMost();
	hatch(context, box);
	context.imageSmoothingEnabled = false;
	context.drawImage(heatCells(), box.x, box.y, box.width, box.height);
	drawHeatRows(context, box);
	drawHeatTime(context, box);
	context.strokeStyle = colours.line;
	context.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
	heat.ends.textContent = heat.value === 'share'
		? percent(heat.most) + (heat.most < 1 ? ' and more' : '') : `${duration(heat.most)} and more`;
	drawHeatPoint();
}

/* The frame around the current cell, on a canvas of its own. */
function drawHeatPoint() {
	const box = heatBox();
	const context = prepare(heat.over, heat.canvas.clientWidth, box.height + heat.top + heat.bottom);

	if (heat.row < 0)
		return;
	const width = box.width / windows.count;
	const x = box.x + heat.column * width, y = box.y + heat.row * heat.rowHeight;

	context.fillStyle = colours.mark;
	context.fillRect(box.x - 5, y, 3, heat.rowHeight);
	context.fillRect(x, box.y + box.height + 1, Math.max(1, width), 3);
	context.lineWidth = 1.5;
	context.strokeStyle = colours.panel;
	context.strokeRect(x - 2, y - 2, width + 4, heat.rowHeight + 4);
	context.strokeStyle = colours.mark;
	context.strokeRect(x - 1, y - 1, width + 2, heat.rowHeight + 2);
}

function heatTip() {
	const row = heat.rows[heat.row];
	const share = heatValue(row, heat.column, 'share');

	return {
		title: `${heatRowName(row)} on ${heatHostName(row)}`,
		under: timeLong(windowTimes[heat.column], windowSeconds),
		rows: share === null ? [['no collectives to compare', '']] : [
			['waiting', percent(share)],
			['in this window', duration(row.wait_ns[heat.column])],
			['collective time', duration(row.joined_ns[heat.column])]],
	};
}

function pointHeat(row, column) {
	heat.row = row;
	heat.column = column;
	drawHeatPoint();
	if (row < 0) {
		hideTip();
		return;
	}
	const box = heatBox(), place = heat.canvas.getBoundingClientRect();

	showTip(heatTip(), place.left + box.x + (column + 0.5) * box.width / windows.count,
		place.top + box.y + (row + 0.5) * heat.rowHeight);
}

function heatMouse(event) {
	const box = heatBox(), place = heat.canvas.getBoundingClientRect();
	const column = Math.floor((event.clientX - place.left - box.x) / box.width * windows.count);
	const row = Math.floor((event.clientY - place.top - box.y) / heat.rowHeight);
	const isInside = row >= 0 && row < heat.rows.length && column >= 0 && column < windows.count;

	if (!isInside)
		pointHeat(-1, -1);
	else if (row !== heat.row || column !== heat.column)
		pointHeat(row, column);
}

function heatKey(event) {
	const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
		PageUp: [-8, 0], PageDown: [8, 0], Home: [0, -1e9], End: [0, 1e9] };
	const move = moves[event.key];
	const far = event.shiftKey ? 10 : 1;

	if (event.key === 'Escape')
		pointHeat(-1, -1);
	if (!move || event.ctrlKey || event.metaKey || event.altKey)
		return;
	event.preventDefault();
	const within = (value, most) => Math.max(0, Math.min(most - 1, value));

	pointHeat(heat.row < 0 ? 0 : within(heat.row + move[0] * far, heat.rows.length),
		heat.row < 0 ? 0 : within(heat.column + move[1] * far, windows.count));
	announce(heatTip());
}

function orderHeat() {
	const waited = (row) => row.wait_ns.reduce((all, value) => all + value, 0);

	heat.rows = [...windows.matrix.rows];
	if (heat.order === 'waiting')
		heat.rows.sort((a, b) => waited(a) - waited(b));
	heat.row = -1;
}

function heatTable() {
	const rows = heat.rows.map((row) => {
		const sum = (values) => values.reduce((all, value) => all + value, 0);
		const wait = sum(row.wait_ns), joined = sum(row.joined_ns);
		const worst = row.wait_ns.indexOf(Math.max(...row.wait_ns));

		return [heatRowName(row), heatHostName(row), duration(wait), joined > 0 ? percent(wait / joined) : '–',
			wait > 0 ? timeText(windowTimes[worst], windowSeconds) : '–'];
	});

	return plainTable('Waiting by rank', [['Rank'], ['Host'], ['Waiting', true], ['% of collective time', true], ['Peak', true]], rows);
}

/* The legend. */
function heatKeyLine() {
	const triangle = svg('svg', { width: 10, height: 10, viewBox: '0 0 10 10', 'aria-hidden': 'true' },
		svg('path', { d: 'M0 5 9 0v10z', class: 'fill-mark' }));

	return el('div', { class: 'heat-key' },
		el('span', {}, 'no waiting', el('i', { class: 'ramp' }), heat.ends),
		el('span', {}, el('i', { class: 'hatched' }), 'no data'),
		windows.matrix.rows.some(isStragglerRow) ? el('span', {}, triangle, 'straggler') : null);
}

function heatMap() {
	const leaveHeat = () => pointHeat(-1, -1);
	const map = el('div', {
		class: 'heat', id: 'heat-map', tabindex: '0', role: 'application', 'aria-roledescription': 'heat map',
		'aria-label': 'Waiting by rank and time. Arrow keys move from cell to cell. A table with the same data is below.',
		onkeydown: heatKey, onmousemove: heatMouse, onclick: heatMouse, onmouseleave: leaveHeat, onblur: leaveHeat,
	}, heat.canvas, heat.over);
	let width = 0;

	new ResizeObserver(() => {
		if (map.clientWidth !== width) {
			width = map.clientWidth;
			drawHeat();
		}
	}).observe(map);
	return map;
}

function showWaiting() {
	if (windows.count < 2 || windows.matrix.rows.length === 0 || !knowsWaiting) {
		byId('waiting').append(aside('Unknown: no collectives of several ranks could be compared.'));
		return;
	}
	const set = (key) => (value) => {
		heat[key] = value;
		orderHeat();
		drawHeat();
	};
	const what = windows.matrix.ranks_per_row > 1 ? `Each row is ${count(windows.matrix.ranks_per_row)} ranks`
		: `Each row is a rank, each column a window of ${duration(windows.width_ns)}`;
	const box = card('Waiting', '', [
		choice('Value', [['share', 'Share'], ['time', 'Time']], 'share', set('value')),
		choice('Order of rows', [['rank', 'By rank'], ['waiting', 'Least waiting first']], 'rank', set('order')),
	], `A straggler waits least: look for a row with less waiting than the others. ${what}.`);

	heat.canvas = el('canvas', { id: 'heat' });
	heat.over = el('canvas', { class: 'over', 'aria-hidden': 'true' });
	heat.ends = el('span', {});
	box.append(heatMap(), heatKeyLine(), onOpen('As a table', heatTable));
	byId('waiting').append(box);
	orderHeat();
	drawHeat();
	onColours.push(drawHeat);
}
