/* The list of communicators; the selected one is shown in full beside it. */

const commRows = new Map();
const COMMS_FIRST = 500;
const order = { keys: [], at: 0 };

const ranksText = (comm) => (comm.ranks === null ? plural(comm.recorded_ranks, 'rank')
	: comm.recorded_ranks < comm.ranks ? `${count(comm.recorded_ranks)} of ${plural(comm.ranks, 'rank')}` : plural(comm.ranks, 'rank'));
const tagText = (comm) => (comm.user_tag === null ? null : `tag ${comm.user_tag}`);
const kindText = (comm) => [ranksText(comm), comm.kind, tagText(comm), comm.is_finalized ? 'ended' : null]
	.filter(Boolean).join(' · ');

function makeComm(comm) {
	const made = {};

	made.button = el('button', { type: 'button', class: 'comm-name', tabindex: '-1', onclick: () => choose(comm.key) },
		el('bdi', {}, comm.label));
	made.mark = el('span', { class: 'row-mark' });
	made.under = el('span', { class: 'dim under' });
	made.canvas = el('canvas', { class: 'trend', 'aria-hidden': 'true' });
	made.busbw = cell('Bus bandwidth', { class: 'right' });
	made.waitText = el('span', {});
	made.waitBar = el('i', {});
	made.wait = cell('Waiting', { class: 'right barred' }, made.waitText, made.waitBar);
	made.age = cell('Oldest', { class: 'right age' });
	made.row = el('tr', { role: 'row', onclick: (event) => event.target.closest('button') || choose(comm.key) },
		headCell('', { class: 'comm-cell', title: comm.label }, el('div', { class: 'comm-line' }, made.mark, made.button), made.under),
		el('td', { role: 'cell', class: 'trend-cell' }, made.canvas), made.busbw, made.wait, made.age);
	return made;
}

function sizeTrend(canvas) {
	const width = Math.round(80 * devicePixelRatio), height = Math.round(26 * devicePixelRatio);

	if (canvas.width !== width) {
		canvas.width = width;
		canvas.height = height;
	}
}

function updateComm(made, comm) {
	const history = store.histories.get(comm.key);
	const busbw = lastKnown(history, 'busbw', store.now.time_ms);
	const isChosen = comm.key === store.chosen;
	const trouble = troubleOf(comm.key);

	setText(made.under, store.now.jobs.length > 1 ? `${kindText(comm)} · ${jobName(comm.job_index)}` : kindText(comm));
	setText(made.busbw, busbw === null ? '–' : rate(busbw));
	setText(made.waitText, comm.wait_share === null ? '–' : percent(comm.wait_share));
	setBar(made.waitBar, comm.wait_share);
	setText(made.age, comm.in_flight ? duration(comm.oldest_age_ns) : '–');
	setAttribute(made.age, 'data-severity', comm.oldest_age_ns > comm.hang_ns ? 'error' : null);
	setAttribute(made.row, 'data-chosen', isChosen ? 'true' : null);
	setAttribute(made.button, 'aria-pressed', String(isChosen));
	setAttribute(made.button, 'tabindex', isChosen ? '0' : '-1');
	if (made.trouble !== trouble) {
		made.trouble = trouble;
		made.mark.replaceChildren(...(trouble ? [severityMark(trouble), el('span', { class: 'unseen' }, `${trouble}: `)] : []));
	}
}

/* Drawing is expensive: only draw what is new and visible. Measure everything before drawing anything. */
function drawTrends() {
	const list = byId('comm-scroll').getBoundingClientRect();
	const seen = [...commRows].filter(([, made]) => made.drawnAt !== store.now.time_ms).filter(([, made]) => {
		const box = made.row.getBoundingClientRect();

		return box.bottom > list.top - 100 && box.top < Math.min(list.bottom, innerHeight) + 100;
	});

	for (const [key, made] of seen) {
		made.drawnAt = store.now.time_ms;
		sizeTrend(made.canvas);
		drawTrend(made.canvas, store.histories.get(key), store.now.time_ms);
	}
}

/* ---- filter and order ---- */

const isMatch = (comm, words) => {
	const text = `${comm.label} ${comm.name || ''} ${comm.hash || ''} ${comm.kind || ''} ${tagText(comm) || ''} ${jobName(comm.job_index)}`.toLowerCase();

	return words.every((word) => text.includes(word));
};

const orders = {
	given: null,
	trouble: (comm) => worseness(comm),
	wait: (comm) => comm.wait_share || 0,
	busy: (comm) => comm.busy_share || 0,
	age: (comm) => comm.oldest_age_ns,
};

/* A list that jumps cannot be read: it is sorted at most every five seconds, and not while the pointer or the focus
 * is in it. */
function sorted(comms) {
	const by = orders[byId('order').value];
	const list = byId('comm-rows');

	if (!by)
		return comms;
	const places = new Map(order.keys.map((key, i) => [key, i]));
	const isHeld = list.matches(':hover') || list.contains(document.activeElement);

	if (!order.isDirty && (isHeld || store.now.time_ms - order.at < 5000) && comms.every((comm) => places.has(comm.key)))
		return [...comms].sort((a, b) => places.get(a.key) - places.get(b.key));
	const found = [...comms].map((comm) => [by(comm), comm]).sort((a, b) => b[0] - a[0]).map(([, comm]) => comm);

	Object.assign(order, { keys: found.map((comm) => comm.key), at: store.now.time_ms, isDirty: false });
	return found;
}

function shownComms() {
	const words = byId('find').value.toLowerCase().split(/\s+/).filter(Boolean);
	const hasEnded = byId('ended').checked;

	return sorted(store.now.communicators.filter((comm) => (hasEnded || !comm.is_finalized) && isMatch(comm, words)))
		.slice(0, COMMS_FIRST);
}

const worseness = (comm) => {
	const trouble = troubleOf(comm.key);

	return trouble === null ? 0 : severities.length - severities.indexOf(trouble);
};

/* The one with the worst problem, else the largest that is in use. */
function chooseFirst(comms) {
	const worst = comms.reduce((found, comm) => (worseness(comm) > (found ? worseness(found) : 0) ? comm : found), null);
	const found = worst || comms.find((comm) => comm.operations > 0 || comm.in_flight) || comms[0];

	store.chosen = found ? found.key : '';
}

/* Until the reader selects one, the page shows the one with the worst problem; it does not switch between equals. */
function followTrouble(comms) {
	const comm = chosenComm();

	if (!comm || (!store.isChosenByHand && comms.some((other) => worseness(other) > worseness(comm))))
		chooseFirst(comms);
}

function showComms() {
	const comms = shownComms();
	const all = store.now.communicators;
	const ended = all.filter((comm) => comm.is_finalized).length;
	const list = byId('comm-scroll');

	followTrouble(comms);
	syncRows(byId('comm-rows'), commRows, comms, (comm) => comm.key, makeComm, updateComm);
	/* Keep the list reachable by Tab if the selected one is not in it. */
	if (comms.length && !comms.some((comm) => comm.key === store.chosen))
		commRows.get(comms[0].key).button.tabIndex = 0;
	setHidden(list, comms.length === 0);
	setHidden(byId('comm-none'), comms.length > 0);
	setText(byId('comm-none'), all.length === 0 ? 'No communicators yet.'
		: byId('find').value ? 'No communicator matches.' : 'All communicators here have ended.');
	setHidden(byId('ended-label'), ended === 0);
	setText(byId('ended-text'), `show ended (${count(ended)})`);
	setHidden(byId('communicators'), all.length === 0);
	drawTrends();
}

/* ---- selecting ---- */

function choose(key, hasFocus) {
	store.isChosenByHand = true;
	if (store.chosen !== key) {
		store.chosen = key;
		store.pinned = store.highlighted = null;
		showComms();
		showChosen();
		askSoon();
	}
	const made = commRows.get(key);

	if (made && hasFocus)
		made.button.focus({ preventScroll: true });
	if (made)
		made.row.scrollIntoView({ block: 'nearest' });
}

function showNoticeComm(key) {
	byId('find').value = '';
	if (store.now.communicators.some((comm) => comm.key === key && comm.is_finalized))
		byId('ended').checked = true;
	showComms();
	choose(key);
	byId('chosen').scrollIntoView({ block: 'nearest' });
	if (commRows.has(key))
		commRows.get(key).button.focus({ preventScroll: true });
}

function step(by, hasFocus) {
	const keys = [...byId('comm-rows').children].map((row) => [...commRows].find(([, made]) => made.row === row)[0]);
	const at = keys.indexOf(store.chosen);

	if (keys.length)
		choose(keys[Math.max(0, Math.min(keys.length - 1, at < 0 ? 0 : at + by))], hasFocus);
}

byId('comm-rows').addEventListener('keydown', (event) => {
	const far = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];

	if (far === undefined || event.ctrlKey || event.metaKey || event.altKey)
		return;
	event.preventDefault();
	step(far, true);
});
for (const [id, event] of [['find', 'input'], ['order', 'change'], ['ended', 'change']])
	byId(id).addEventListener(event, () => {
		order.isDirty = true;
		if (store.now)
			showComms();
	});
/* Draw what becomes visible. */
for (const scrolled of [byId('comm-scroll'), document])
	scrolled.addEventListener('scroll', () => store.now && requestAnimationFrame(drawTrends), { passive: true });
onColours.push(() => {
	for (const made of commRows.values())
		made.drawnAt = 0;
	if (store.now)
		showComms();
});
