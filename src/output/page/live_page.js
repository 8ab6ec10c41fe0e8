/*
 * Polls the agent every second. One request is open at a time, and none while the tab is hidden or the page is paused.
 * When the agent does not answer, the page shows since when and why, and keeps the last data, faded: it may be all
 * that is left of a node that has just died.
 */

const PERIOD_MS = 1000;
const PATIENCE_MS = 8000;
const asking = {
	timer: 0, isOpen: false, isPaused: false,
	isWanted: false,	/* ask again as soon as the open request is answered */
	failures: 0, failedSince: 0, why: '',
	lookSeen: 0, lookAt: 0,	/* the agent's last scan, and when this page first saw it */
};

async function ask(path) {
	const response = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS), cache: 'no-store' });

	if (!response.ok)
		throw new Error(response.status === 401 || response.status === 403 ? 'a user name and password are required: reload the page'
			: `HTTP status ${response.status}`);
	return response.json();
}

/* The fields that this page needs: an error message is better than half a page. */
function isAnswer(now, history) {
	return now.format === 'ringside-now' && now.version === 1 && Array.isArray(now.communicators) &&
		history.format === 'ringside-history' && history.version === 1;
}

async function askBoth() {
	const now = await ask('api/v1/now');
	const wanted = store.chosen || '';
	/* Another communicator was selected: ask for the whole history of its ranks. */
	const after = wanted === store.membersOf ? store.after : '0';
	const history = await ask(`api/v1/history?after=${after}&members=${encodeURIComponent(wanted)}`);

	if (!isAnswer(now, history))
		throw new Error('unexpected answer: this page may be older than the agent; reload it');
	return { now, history, wanted };
}

function schedule(ms) {
	clearTimeout(asking.timer);
	if (!asking.isPaused && !document.hidden)
		asking.timer = setTimeout(askAgent, ms);
}

async function askAgent() {
	const started = performance.now();

	clearTimeout(asking.timer);
	if (asking.isOpen) {
		asking.isWanted = true;
		return;
	}
	asking.isOpen = true;
	asking.isWanted = false;
	try {
		take(await askBoth());
	} catch (error) {
		fail(error);
	}
	asking.isOpen = false;
	document.documentElement.dataset.ready = 'true';
	const spent = performance.now() - started;
	const pause = asking.failures ? Math.min(10000, PERIOD_MS * 2 ** (asking.failures - 1)) : PERIOD_MS - spent;

	schedule(asking.isWanted ? 0 : Math.max(100, pause));
}

/* The selection changed: do not wait for the next second. */
function askSoon() {
	if (!asking.isPaused && !asking.failures)
		askAgent();
}

/* An error in one part does not affect the others. */
function show(part) {
	try {
		part();
	} catch (error) {
		console.error(error);
	}
}

/* Of users who have more than the agent follows. */
function leftOutText(now) {
	const of = (now.left_out || []).map((user) => `uid ${user.uid}: ${[
		user.silent ? 'what does not answer' : '',
		user.processes ? plural(user.processes, 'process', 'processes') : '',
		user.directories ? `the rest of ${plural(user.directories, 'directory', 'directories')}` : '',
	].filter(Boolean).join(' and ')}`);

	return of.length ? `Not shown, beyond the limits of the agent: ${of.slice(0, 8).join('; ')}${of.length > 8 ? ' ...' : ''}.` : '';
}

function take({ now, history, wanted }) {
	addHistory(history, wanted);
	store.now = now;
	Object.assign(asking, { failures: 0, failedSince: 0 });
	if (asking.lookSeen !== now.looks)
		Object.assign(asking, { lookSeen: now.looks, lookAt: performance.now() });
	setText(byId('host'), now.host || 'this node');
	[showNotices, showFigures, showJobs, showComms, showChosen, showFlights, showProcesses, showState].forEach(show);
	setText(byId('left-out'), leftOutText(now));
	setHidden(byId('left-out'), leftOutText(now) === '');
	setText(byId('made'), `Ringside ${now.ringside}. Ranks on other nodes are on the pages of their agents.`);
	document.body.classList.remove('stale');
	document.body.dataset.filled = 'true';
	/* The selection changed: get the history of its ranks now. */
	if (store.chosen !== wanted)
		asking.isWanted = true;
}

/* fetch() reports "Failed to fetch" for everything. */
function whyFailed(error) {
	if (error.name === 'TimeoutError')
		return `no answer within ${PATIENCE_MS / 1000} s`;
	return error instanceof TypeError ? 'connection failed' : error.message;
}

function fail(error) {
	asking.failures++;
	asking.failedSince = asking.failedSince || Date.now();
	asking.why = whyFailed(error);
	if (store.now === null)
		document.body.dataset.filled = 'false';
	document.body.classList.add('stale');
	showState();
}

/* ---- the state, in the header and as an alert ---- */

const unreachable = { row: null, text: null, lasts: null };

function showUnreachable() {
	const isGone = asking.failures > 0;

	if (!isGone && unreachable.row) {
		unreachable.row.remove();
		unreachable.row = null;
	}
	if (!isGone)
		return;
	if (!unreachable.row) {
		unreachable.text = el('p', {});
		unreachable.lasts = el('span', { 'aria-hidden': 'true' });
		unreachable.row = el('div', { class: 'notice error' }, severityMark('error'),
			el('div', {}, el('h2', { class: 'notice-title' }, el('strong', {}, 'Agent unreachable')), unreachable.text));
		unreachable.said = el('span', {});
		unreachable.text.append(unreachable.said, unreachable.lasts);
		byId('unreachable').append(unreachable.row);
	}
	setText(unreachable.said, `Since ${clockTime(asking.failedSince)}: ${asking.why}. ` +
		(store.now ? 'The data below is from before. ' : ''));
	setText(unreachable.lasts, `Retrying for ${duration((Date.now() - asking.failedSince) * 1e6)}.`);
}

/* [state, words] */
function stateNow() {
	const silent = performance.now() - asking.lookAt;

	if (asking.isPaused)
		return ['paused', store.now ? `Paused at ${clockTime(store.now.time_ms)}` : 'Paused'];
	if (asking.failures)
		return ['gone', 'Unreachable'];
	if (!store.now)
		return ['starting', 'Connecting'];
	if (silent > 10000)
		return ['gone', `No scan by the agent for ${duration(silent * 1e6)}`];
	return ['live', 'Live'];
}

function showState() {
	const [state, words] = stateNow();

	setAttribute(byId('state'), 'data-state', state);
	setText(byId('state-text'), words);
	showUnreachable();
}

function setPaused(isPaused) {
	asking.isPaused = isPaused;
	setAttribute(byId('pause'), 'aria-pressed', String(isPaused));
	setText(byId('pause'), isPaused ? 'Resume' : 'Pause');
	speak(isPaused ? 'Paused' : 'Live');
	if (isPaused)
		clearTimeout(asking.timer);
	else
		askAgent();
	showState();
}

byId('pause').addEventListener('click', () => setPaused(!asking.isPaused));
document.addEventListener('visibilitychange', () => {
	if (document.hidden)
		clearTimeout(asking.timer);
	else if (!asking.isPaused)
		askAgent();
});
/* Update the elapsed time between two attempts. */
setInterval(() => document.hidden || showState(), 1000);

setTheme(remembered('ringside-theme'));
makeCharts();
askAgent();
