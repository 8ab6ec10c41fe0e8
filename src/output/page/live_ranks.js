/* The selected communicator: charts over time, and its ranks. */

const charts = [];
const rankRows = new Map();
const RANKS_FIRST = 64;
let hasAllRanks = false;

const rateTicks = (ticks) => {
	const [size, unit] = rateUnit(ticks[ticks.length - 1] || 1);

	return ticks.map((tick) => (tick === 0 ? '0' : `${Number((tick / size).toPrecision(3))} ${unit}`));
};

function makeCharts() {
	if (!hasCharts()) {
		byId('charts').append(el('p', { class: 'dim' },
			'This agent was built without the chart library; the figures below are complete.'));
		return;
	}
	charts.push(makeChart({ title: 'Bus bandwidth', label: 'Bus bandwidth over five minutes', name: 'busbw', format: rate,
		top: (high) => (high > 0 ? high * 1.15 : 1e9), ticks: rateTicks }));
	charts.push(makeChart({ title: 'Waiting (lower bound)', label: 'Share of time spent waiting, over five minutes', name: 'wait',
		format: percent, top: (high) => Math.min(1.02, Math.max(0.1, high * 1.15)),
		ticks: (ticks) => ticks.map((tick) => `${Math.round(tick * 100)}%`) }));
	byId('charts').append(...charts.map((chart) => chart.element), el('p', { class: 'legend dim' },
		el('span', {}, el('i', { class: 'key-all' }), 'all ranks'),
		el('span', {}, el('i', { class: 'key-each' }), el('span', { id: 'legend-each' }, 'each rank')),
		el('span', {}, el('i', { class: 'key-mark' }), el('span', { id: 'legend-mark' }, 'the rank selected below'))));
}

function highlight(rank) {
	store.highlighted = rank;
	charts.forEach(highlightChart);
	showLegend();
}

function showLegend() {
	const rank = highlightedRank();

	if (!charts.length)
		return;
	setText(byId('legend-mark'), rank === null ? 'the rank selected below' : rankName(rank));
	setText(byId('legend-each'), charts[0].data && charts[0].data.isBand ? 'range of all ranks' : 'each rank');
}

/* ---- ranks ---- */

/* Ranks are labelled by their rank in the job and, if different, their rank in the communicator. */
const isOtherRank = (member) => member.rank !== null && member.rank !== member.global_rank;

function makeRank(member) {
	const made = { label: el('span', { class: 'rank-label' }), as: el('span', { class: 'dim' }) };

	made.button = el('button', { type: 'button', class: 'rank-name', 'aria-pressed': 'false',
		onclick: () => {
			store.pinned = store.pinned === member.rank ? null : member.rank;
			highlight(null);
			showChosen();
		} }, made.label, made.as);
	for (const [name, label] of [['ops', 'Operations/s'], ['busbw', 'Bus bandwidth'], ['wait', 'Waiting']]) {
		made[`${name}Text`] = el('span', {});
		made[`${name}Bar`] = el('i', {});
		made[name] = cell(label, { class: 'right barred' }, made[`${name}Text`], made[`${name}Bar`]);
	}
	made.inFlight = cell('In flight', { class: 'right' });
	made.state = cell('State', { class: 'rank-state' });
	made.row = el('tr', { role: 'row', onpointerenter: () => highlight(member.rank), onpointerleave: () => highlight(null) },
		headCell('', {}, made.button), made.ops, made.busbw, made.wait, made.inFlight, made.state);
	return made;
}

/* The state of a rank as the agent names it, with details, and its severity. */
function rankState(comm, member) {
	switch (member.state) {
	case 'killed':
		return ['killed', 'error'];
	case 'not arrived':
		return ['not arrived: others are in a collective it has not called', 'error'];
	case 'stuck':
		return [`stuck in ${member.oldest.text} for ${duration(member.oldest.age_ns)}`, 'warning'];
	case 'straggler':
		return [`straggler: others wait ${percent(comm.straggler_share)}`, 'warning'];
	case 'no progress':
		return [`no progress for ${duration(member.still_ns)}`, 'warning'];
	case 'idle':
		return [`idle for ${duration(member.still_ns)}`, null];
	default:
		return [member.state, null];
	}
}

function updateRank(made, comm, member, most) {
	const history = (store.histories.get(store.chosen) || {}).members;
	const held = history && lastKnown(history.get(member.rank), 'busbw', store.now.time_ms);
	const busbw = member.busbw !== null ? member.busbw : held || null;
	const [words, severity] = rankState(comm, member);

	setText(made.label, member.label);
	setText(made.as, isOtherRank(member) ? ` as ${member.rank}` : '');
	setAttribute(made.button, 'aria-pressed', String(store.pinned === member.rank && member.rank !== null));
	setText(made.opsText, member.operations_per_s === null ? '–' : digits(member.operations_per_s));
	setBar(made.opsBar, member.operations_per_s / most.ops);
	setText(made.busbwText, busbw === null ? '–' : rate(busbw));
	setBar(made.busbwBar, busbw / most.busbw);
	setText(made.waitText, member.wait_share === null ? '–' : percent(member.wait_share));
	setBar(made.waitBar, member.wait_share);
	setText(made.inFlight, member.in_flight ? count(member.in_flight) : '–');
	setText(made.state, words);
	setAttribute(made.state, 'data-severity', severity);
}

function showRanks(comm) {
	const members = hasAllRanks ? comm.members : comm.members.slice(0, RANKS_FIRST);
	const most = {
		ops: Math.max(...comm.members.map((member) => member.operations_per_s || 0), 1e-9),
		busbw: Math.max(...comm.members.map((member) => member.busbw || 0), 1),
	};

	syncRows(byId('rank-rows'), rankRows, members, (member) => `${comm.key} ${member.rank} ${member.process_index}`, makeRank,
		(made, member) => updateRank(made, comm, member, most));
	setHidden(byId('more-ranks'), comm.members.length <= RANKS_FIRST);
	setText(byId('more-ranks'), hasAllRanks ? 'Show fewer' : `Show all ${count(comm.members.length)}`);
}

function showFacts(facts) {
	const line = byId('chosen-facts');

	while (line.children.length < facts.length)
		line.append(el('span', {}));
	[...line.children].forEach((fact, i) => {
		setText(fact, facts[i] || '');
		setHidden(fact, i >= facts.length);
	});
}

function showChosen() {
	const comm = chosenComm();

	setHidden(byId('chosen'), !comm);
	if (!comm)
		return;
	setText(byId('chosen-title'), comm.label);
	showFacts([
		ranksText(comm),
		comm.kind,
		tagText(comm),
		comm.nodes === null ? null : plural(comm.nodes, 'node'),
		`${plural(comm.operations, 'operation')}, ${bytesText(comm.bytes)}`,
		comm.timed < comm.operations ? `timed: ${count(comm.timed)} of ${plural(comm.operations, 'operation')}` : null,
		comm.busy_share === null ? null : `busy ${comm.timed < comm.operations ? '~' : ''}${percent(comm.busy_share)}`,
		comm.hash !== null && comm.hash !== comm.label ? comm.hash : null,
	].filter(Boolean));
	charts.forEach((chart) => updateChart(chart, comm.key));
	showLegend();
	showRanks(comm);
}

byId('more-ranks').addEventListener('click', () => {
	hasAllRanks = !hasAllRanks;
	showChosen();
});
