/* The summary: job, key figures, findings, stragglers, largest costs. */

const severityWords = { error: 'Error', warning: 'Warning', note: 'Note' };

/* Severities differ in shape, not only in color. */
function severityShape(severity) {
	const shapes = {
		error: 'M3.5 0h5L12 3.5v5L8.5 12h-5L0 8.5v-5zM5.2 2.5v4.2h1.6V2.5zM5.2 7.9v1.6h1.6V7.9z',
		warning: 'M6 .5 12 11.5H0zM5.3 4v4h1.4V4zM5.3 8.8v1.4h1.4V8.8z',
		note: 'M6 0a6 6 0 1 1 0 12A6 6 0 0 1 6 0zM5.2 5.2v4.3h1.6V5.2zM5.2 2.5v1.6h1.6V2.5z',
	};

	return svg('svg', { width: 12, height: 12, viewBox: '0 0 12 12', 'aria-hidden': 'true' },
		svg('path', { d: shapes[severity] || shapes.note, 'fill-rule': 'evenodd' }));
}

function jobName() {
	const names = report.jobs.map((job) => job.name).filter((name) => name !== null);
	const more = report.jobs.length - 1;

	if (names.length === 0)
		return 'NCCL job (no name)';
	return more > 0 ? `${names[0]} and ${plural(more, 'more job')}` : `Job ${names[0]}`;
}

function facts() {
	const list = [
		['Ranks', count(data.counts.ranks)],
		['Hosts', count(data.counts.hosts)],
		['Communicators', count(data.counts.communicators)],
		['NCCL', data.words.nccl.replace(/^NCCL /, '')],
		['Duration', report.duration_ns === null ? 'unknown' : duration(report.duration_ns)],
		['Start', report.start ? `${report.start.slice(0, 10)} ${report.start.slice(11, 19)} UTC` : 'unknown'],
	];

	if (report.total.timed > 0)
		list.push(['Durations from', data.words.sources]);
	if (isSampled)
		list.push(['Timed', data.words.timed + (report.total.estimated > 0 ? '; totals (~) are estimated from these' : '')]);
	if (report.total.timed > 0 && data.words.not_timed)
		list.push(['Not timed, excluded from totals', data.words.not_timed]);
	if (data.words.rates)
		list.push(['Per rank', data.words.rates]);
	if (data.words.spans)
		list.push(['Not durations', data.words.spans]);
	if (report.since || report.until)
		list.push(['Time range', [report.since && `from ${report.since}`, report.until && `until ${report.until}`]
			.filter((part) => part).join(' ')]);
	return el('dl', { class: 'facts' }, ...list.map(([name, value]) =>
		el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

function lead() {
	const parts = [];
	const serious = report.findings.filter((finding) => finding.severity !== 'note');

	if (report.total.calls === 0)
		return el('p', { class: 'lead' }, 'No operations were recorded, or none match the filter.');
	if (report.busy_share !== null)
		parts.push(`Communication took ${estimateMark(report.total)}${percent(report.busy_share)} of run time ` +
			'on average over ranks.');
	else if (report.total.timed === 0)
		parts.push('No call was timed, so durations, bandwidths and waiting are unknown.');
	if (knowsWaiting)
		parts.push(`${percent(report.total.wait_share)} of collective time was waiting for other ranks (arrival skew): ` +
			`${estimateMark(report.total)}${data.words.lost} lost.`);
	if (report.gpu_hours_hung > 0)
		parts.push(`The job hung at the end: ${data.words.hung} lost.`);
	if (serious.length === 0)
		parts.push('No errors or warnings.');
	else if (serious.length === 1)
		parts.push(`One finding: ${serious[0].title}.`);
	else
		parts.push(`${count(serious.length)} findings; first: ${serious[0].title}.`);
	return el('p', { class: 'lead' }, parts.join(' '));
}

function gauge(share) {
	const bar = el('i');

	bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
	return el('div', { class: 'gauge', 'aria-hidden': 'true' }, bar);
}

/* The unit is in small type. */
function figure(text) {
	const parts = /^(.*\d)( ?\D+)$/.exec(text);

	return parts ? el('div', { class: 'figure' }, parts[1], el('span', { class: 'u' }, parts[2]))
		: el('div', { class: 'figure' }, text);
}

function tile(id, name, text, share, under) {
	return el('div', { class: 'tile', id }, el('dt', {}, name),
		el('dd', {}, figure(text), gauge(share), el('div', { class: 'under' }, under)));
}

function recordedTile() {
	const found = report.completeness;
	const isKnown = found.issued !== null && found.share !== null;

	return tile('tile-recorded', 'Recorded', isKnown ? percent(found.share) : 'unknown', isKnown ? found.share : 0,
		data.words.completeness);
}

function iterationTile() {
	const found = report.iterations;

	if (found === null || found.count === 0)
		return tile('tile-iteration', 'Iteration', 'none found', 0, 'No repeating sequence of operations');
	if (found.median_busy_ns === null)
		return tile('tile-iteration', 'Iteration, median', duration(found.median_ns), 0,
			`communication unknown (not timed); ${plural(found.regular, 'iteration')}`);
	return tile('tile-iteration', 'Iteration, median', duration(found.median_ns), found.median_busy_ns / found.median_ns,
		`${duration(found.median_busy_ns)} of it communication; ${plural(found.regular, 'iteration')}` +
		(found.timed < found.regular ? `, ${count(found.timed)} timed` : ''));
}

function tiles() {
	const busy = report.busy_share, waited = report.total.wait_share;

	return el('dl', { class: 'tiles' },
		tile('tile-busy', 'Communication', busy === null ? 'unknown' : estimateMark(report.total) + percent(busy), busy || 0,
			'of run time, mean over ranks (upper bound)'),
		knowsWaiting
			? tile('tile-wait', 'Waiting', percent(waited), waited,
				`of collective time; ${estimateMark(report.total)}${data.words.lost} lost`)
			: tile('tile-wait', 'Waiting', 'unknown', 0, 'No timed collective of several ranks to compare'),
		recordedTile(), iterationTile());
}

/* Text in backticks is code. */
function withCode(text) {
	return text.split('`').map((part, i) => (i % 2 ? el('code', {}, part) : part));
}

function findingItem(finding) {
	return el('li', { class: `finding ${finding.severity}` },
		el('span', { class: 'badge' }, severityShape(finding.severity),
			severityWords[finding.severity] || finding.severity),
		el('h4', {}, finding.title),
		el('p', { class: 'text' }, ...withCode(finding.text)),
		finding.hint ? el('p', { class: 'hint' }, el('b', {}, 'Next: '), ...withCode(finding.hint)) : null);
}

function findings() {
	const list = report.findings;
	const shown = 8;
	const items = list.map(findingItem);
	const more = el('button', {
		type: 'button', class: 'more',
		onclick: () => {
			items.forEach((item) => { item.hidden = false; });
			more.hidden = true;
		},
	}, `Show all ${count(list.length)}`);

	items.slice(shown).forEach((item) => { item.hidden = true; });
	return el('div', {}, el('h3', {}, 'Findings'),
		list.length === 0 ? el('p', { class: 'calm' }, 'None.')
			: el('ul', { class: 'findings' }, ...items),
		list.length > shown ? more : null,
		report.findings_left_out > 0 ? aside(`${count(report.findings_left_out)} more omitted.`) : null);
}

/* The rows of a table as objects. */
function rowsOf(table) {
	return table.rows.map((cells) => {
		const row = Object.fromEntries(table.columns.map((name, i) => [name, cells[i]]));

		for (const name of ['function', 'kind'])
			if (row[name] === null)
				row[name] = 'unknown';
		return row;
	});
}

function costItem(name, row) {
	if (row.total_ns === null)
		return el('li', {}, el('div', { class: 'cost-line' }, el('span', {}, name), el('span', {}, '–')), gauge(0),
			el('div', { class: 'under' }, `not timed, ${plural(row.calls, 'call')}`));
	const share = report.total.total_ns ? row.total_ns / report.total.total_ns : 0;
	const waited = row.wait_share !== null ? `, waiting ${percent(row.wait_share)} of collective time` : '';
	const speed = row.busbw_bytes_per_second !== null ? `, ${rate(row.busbw_bytes_per_second)}` : '';
	const timed = row.timed < row.calls && isSampled ? ` (${count(row.timed)} timed)` : '';

	return el('li', {}, el('div', { class: 'cost-line' }, el('span', {}, name), el('span', {}, percent(share))),
		gauge(share),
		el('div', { class: 'under' }, `${estimateMark(row)}${duration(row.total_ns)} in ${plural(row.calls, 'call')}${timed}${speed}${waited}`));
}

function nameOfComm(row) {
	if (row.communicators > 1)
		return `${row.name} (${plural(row.communicators, 'communicator')}, ${row.kind})`;
	return `${row.name} (${row.kind})`;
}

function costs() {
	const longest = (rows) => rows.sort((a, b) => (b.total_ns || 0) - (a.total_ns || 0)).slice(0, 3);
	const comms = longest(rowsOf(report.tables.name));
	const functions = longest(rowsOf(report.tables.function));

	return el('div', {}, el('h3', {}, 'Most expensive communicators'),
		el('ol', { class: 'costs', id: 'costly-comms' }, ...comms.map((row) => costItem(nameOfComm(row), row))),
		el('h3', {}, 'Most expensive operations'),
		el('ol', { class: 'costs', id: 'costly-operations' }, ...functions.map((row) => costItem(row.function, row))));
}

/* ---- stragglers ---- */

function stragglerWhen(one) {
	const when = (ns) => timeText(sinceStart(ns), 1);

	if (one.pattern === 'always')
		return 'all the time';
	if (one.first_ns === null)
		return one.pattern === 'bursts' ? 'in bursts' : 'part of the time';
	if (one.pattern === 'since')
		return `since ${when(one.first_ns)}`;
	if (one.pattern === 'until')
		return `until ${when(one.last_ns)}`;
	return `in bursts, ${when(one.first_ns)} to ${when(one.last_ns)}`;
}

function stragglerItem(one) {
	const parts = [stragglerWhen(one)];

	if (one.caused_ns > 0)
		parts.push(`${duration(one.caused_ns)} of waiting in total`);
	parts.push(`confidence ${one.confidence >= 0.999 ? '>99.9%' : percent(one.confidence)}`);
	return el('li', {}, el('div', {}, one.text), el('div', { class: 'under' }, parts.join('; ')));
}

function stragglers() {
	const found = report.stragglers;
	const box = el('div', { id: 'stragglers' }, el('h3', {}, 'Stragglers'));

	if (found.list.length > 0)
		box.append(el('ol', { class: 'costs' }, ...found.list.map(stragglerItem)));
	else if (found.has_enough)
		box.append(el('p', { class: 'calm' }, 'None: no rank or link is repeatedly late ' +
			`(${plural(found.meetings, 'collective')} compared).`));
	else
		box.append(aside('Not judged: too few collectives to compare ' +
			`(${count(found.meetings)} of ${count(found.least_meetings)}).`));
	if (found.explained > 0)
		box.append(aside(`${plural(found.explained, 'other rank is', 'other ranks are')} late only ` +
			'because of one of these.'));
	return box;
}

function showAnswer() {
	byId('answer').append(
		el('h1', { id: 'job' }, jobName()), facts(), lead(), tiles(),
		el('div', { class: 'answer-columns' }, el('div', {}, findings(), stragglers()),
			report.total.calls > 0 ? costs() : null));
	byId('made').textContent = `Generated by Ringside ${report.ringside}. The page is self-contained and makes no network requests.`;
}
