/*
 * For charts that are not lines over time: uPlot draws frame and axes and does the zoom; the content is drawn by us.
 */

/* At most `most` powers of the base; for base 10 also 2 and 5 if there is room. */
function logTicks(from, to, base, most) {
	const first = Math.ceil(Math.log(from) / Math.log(base) - 1e-9);
	const last = Math.floor(Math.log(to) / Math.log(base) + 1e-9);
	const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, most)));
	const ticks = [];

	for (let power = first; power <= last; power += 1)
		if (power % step === 0)
			ticks.push(base ** power);
	if (base !== 10 || ticks.length * 3 > most)
		return ticks;
	const finer = [];

	for (let power = first - 1; power <= last; power++)
		finer.push(...[1, 2, 5].map((times) => times * 10 ** power));
	return finer.filter((tick) => tick >= from && tick <= to);
}

/* Ticks of an axis, at least `apart` pixels apart. */
function logSplits(key, base, apart) {
	return (u) => {
		const length = (key === 'x' ? u.bbox.width : u.bbox.height) / devicePixelRatio;

		return logTicks(u.scales[key].min, u.scales[key].max, base, length / apart);
	};
}

const wholeSteps = Array.from({ length: 30 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));

/* Fixed scales and an empty frame. */
function frame(x, y) {
	return {
		data: [[x.from, x.to], [y.from, y.to]],
		options: {
			padding: [10, 24, 0, 0],
			scales: {
				x: { time: false, distr: x.base ? 3 : 1, log: x.base || 10, range: (u, min, max) => [min, max] },
				y: { distr: y.base ? 3 : 1, log: y.base || 10, range: () => [y.from, y.to] },
			},
			axes: [
				axis({
					size: 32,
					splits: x.base ? logSplits('x', x.base, 62) : undefined,
					filter: (u, ticks) => ticks,
					values: (u, ticks) => ticks.map(x.text),
					space: 50,
					incrs: x.isWhole ? wholeSteps : undefined,
				}),
				axis({
					size: 68,
					splits: y.base ? logSplits('y', y.base, 24) : undefined,
					filter: (u, ticks) => ticks,
					values: (u, ticks) => ticks.map(y.text),
					incrs: y.isWhole ? wholeSteps : undefined,
				}),
			],
			series: [{}, { paths: () => null, points: { show: false } }],
		},
	};
}

function inPlot(u, draw) {
	const { ctx, bbox } = u;

	ctx.save();
	ctx.beginPath();
	ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
	ctx.clip();
	draw(ctx, bbox, devicePixelRatio);
	ctx.restore();
}
