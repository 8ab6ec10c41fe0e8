/*
 * The page of the hub: all jobs, and with ?job=KEY one of them with its verdict and its nodes. It uses the elements,
 * formats and verdicts of the live page (live_base.js, live_notices.js, live_verdicts.js).
 */

const PERIOD_MS = 2000;
const PATIENCE_MS = 8000;
const ROWS_FIRST = 200;
const chosenKey = new URLSearchParams(location.search).get('job');
const store = { now: null };	/* for verdicts: communicators are not known here */
const hub = { now: null, isOpen: false, failures: 0, failedSince: 0, why: '', find: '', hasAll: { jobs: false, nodes: false } };
const shownJobs = new Map(), shownNodes = new Map(), shownVerdicts = new Map(), shownAgents = new Map();

const showNoticeComm = () => {};
const commOfVerdict = () => undefined;
const order = ['stuck', 'slow', 'silent', 'running', 'ended'];
const stateWords = { stuck: 'hung', slow: 'slow', silent: 'agents silent', running: 'running', ended: 'ended' };
const jobName = (job) => job.name || `(no name) on${job.key}`;
const isLink = (url) => /^https?:[/][/]/.test(url || '');

/* Healthy only if it was judged. */
function judgedWords(job) {
	switch (job.judgement) {
	case 'healthy':
		return job.trouble === 'stuck' ? 'stuck, cause unknown' : 'no trouble found';
	case 'found':
		return job.verdict ? job.verdict.title : '';
	case 'could_not_tell':
		return `could not tell${job.problem ? `: ${job.problem}` : ''}`;
	case 'failed':
		return `could not be judged${job.problem ? `: ${job.problem}` : ''}`;
	default:
		return job.verdict ? job.verdict.title : job.is_judging ? 'being judged' : 'not judged';
	}
}

/* ---- all jobs ---- */

function makeJob(job) {
	const made = { name: el('a', { href: `?job=${encodeURIComponent(job.key)}` }, el('bdi', {}, jobName(job))) };

	made.cells = ['State', 'Verdict', 'Ranks', 'Nodes', 'Waiting', 'GPU-hours lost', 'Cost'].map((label, i) => cell(label, { class: i > 1 ? 'right' : null }));
	made.row = el('tr', { role: 'row' }, headCell('Job', {}, made.name), ...made.cells);
	return made;
}

function updateJob(made, job) {
	const [state, verdict, ranks, nodes, waiting, hours, money] = made.cells;

	setText(state, stateWords[job.state] || job.state);
	setAttribute(state, 'class', job.state === 'stuck' || job.state === 'slow' ? 'bad' : null);
	setText(verdict, judgedWords(job));
	setText(ranks, job.world_size && job.world_size !== job.ranks ? `${count(job.ranks)} of ${count(job.world_size)}` : count(job.ranks));
	setText(nodes, count(job.nodes) + (job.nodes_silent ? ` (${count(job.nodes_silent)} silent)` : ''));
	setText(waiting, job.wait_share === null ? '–' : percent(job.wait_share));
	setText(hours, digits(job.gpu_hours));
	setText(money, job.money === null ? '' : digits(job.money));
	setHidden(money, job.money === null);
}

function wanted(job) {
	const text = `${jobName(job)} ${stateWords[job.state]} ${judgedWords(job)}`.toLowerCase();

	return text.includes(hub.find.toLowerCase());
}

/* The first rows, and a button for the rest. */
function firstOf(items, what) {
	const button = byId(`more-${what}`), rest = items.length - ROWS_FIRST;

	setHidden(button, rest <= 0);
	setText(button, hub.hasAll[what] ? 'Show fewer' : `Show ${count(Math.max(0, rest))} more`);
	return hub.hasAll[what] ? items : items.slice(0, ROWS_FIRST);
}

function showJobs() {
	const jobs = [...hub.now.jobs].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || b.gpu_hours - a.gpu_hours || (a.key < b.key ? -1 : 1));
	const bad = jobs.filter((job) => job.state === 'stuck' || job.state === 'slow').length;
	const judged = jobs.filter((job) => job.judgement === 'healthy').length;

	setHidden(byId('jobs-section'), chosenKey !== null);
	setHidden(byId('money-head'), !jobs.some((job) => job.money !== null));
	setText(byId('jobs-say'), jobs.length === 0 ? 'No agent has a job.'
		: `${plural(jobs.length, 'job')}, ${count(bad)} in trouble, ${count(judged)} judged without trouble.` +
			(hub.now.jobs_left_out ? ` ${plural(hub.now.jobs_left_out, 'job')} beyond the limits not shown.` : ''));
	syncRows(byId('job-rows'), shownJobs, chosenKey === null ? firstOf(jobs.filter(wanted), 'jobs') : [], (job) => job.key, makeJob, updateJob);
	document.title = `${bad ? `(${bad}) ` : ''}${chosenKey === null ? hub.now.host || 'hub' : chosenKey} – Ringside hub`;
}

/* ---- one job ---- */

const verdictWords = (verdict) => (/^(slow|below)/.test(verdict.class) ? 'Slow' : verdict.class === 'setup' ? 'Configuration' : 'Hang');

function makeHubVerdict(verdict) {
	const made = makeVerdict(verdict);

	made.row.querySelector('.notice-kind').textContent = verdictWords(verdict);
	return made;
}

function makeNode(node) {
	const made = { name: isLink(node.url) ? el('a', { href: `${node.url}/`, rel: 'noreferrer noopener' }, node.agent) : el('span', {}, node.agent) };

	made.cells = ['State', 'Ranks', 'Without progress', 'Waiting'].map((label, i) => cell(label, { class: i > 0 ? 'right' : null }));
	made.row = el('tr', { role: 'row' }, headCell('Agent', {}, made.name, el('bdi', { class: 'under' }, node.host || '')), ...made.cells);
	return made;
}

function updateNode(made, node) {
	const [state, ranks, stuck, waiting] = made.cells;

	setText(state, node.is_silent ? `silent: ${node.problem || 'no answer'}` : node.processes_alive ? 'answers' : 'processes ended');
	setAttribute(state, 'class', node.is_silent ? 'bad' : null);
	setText(ranks, count(node.ranks));
	setText(stuck, node.stuck_ns > 0 ? duration(node.stuck_ns) : '–');
	setText(waiting, node.wait_share === null ? '–' : percent(node.wait_share));
}

function judgedLine(job) {
	const again = job.judged_again_ns === null ? '' : ` Judged again in ${duration(job.judged_again_ns)}.`;

	if (job.judged_ago_ns === null)
		return `${job.is_judging ? 'Being judged now.' : 'Not judged yet.'}${again}`;
	return `Judged ${duration(job.judged_ago_ns)} ago${job.judgement === 'found' ? '' : `: ${judgedWords(job)}`}.${again}`;
}

function showJobLinks(job) {
	const { grafana } = hub.now, links = byId('job-links');

	setHidden(links, !isLink(grafana) || !job.name);
	if (links.firstElementChild || !isLink(grafana))
		return;
	links.append(el('a', { href: `${grafana}${grafana.includes('?') ? '&' : '?'}var-nccl_job=${encodeURIComponent(job.name)}`, rel: 'noreferrer noopener' }, 'Grafana'));
}

function showJob() {
	const job = hub.now.jobs.find((one) => one.key === chosenKey);

	setHidden(byId('job'), chosenKey === null);
	if (chosenKey === null)
		return;
	setText(byId('job-title'), job ? jobName(job) : `No job ${chosenKey}`);
	if (!job) {
		setText(byId('job-facts'), 'No agent has it: it has ended, or its agents do not answer.');
		return;
	}
	setText(byId('job-facts'), [stateWords[job.state], plural(job.ranks, 'rank'), plural(job.nodes, 'node'),
		job.wait_share === null ? '' : `waiting ${percent(job.wait_share)}`, `at least ${digits(job.gpu_hours)} GPU-hours lost`,
		job.money === null ? '' : `cost ${digits(job.money)}`].filter(Boolean).join(' · '));
	syncRows(byId('notice-list'), shownVerdicts, hub.now.job_verdicts || [], (one) => one.key, makeHubVerdict, updateVerdict);
	setText(byId('job-judged'), judgedLine(job));
	showJobLinks(job);
	const nodes = [...(hub.now.job_nodes || [])].sort((a, b) => b.is_silent - a.is_silent || b.stuck_ns - a.stuck_ns || (a.agent < b.agent ? -1 : 1));

	syncRows(byId('node-rows'), shownNodes, firstOf(nodes, 'nodes'), (node) => node.agent, makeNode, updateNode);
}

/* ---- agents ---- */

function showAgents() {
	const { agents, sources } = hub.now;
	const problems = sources.filter((source) => source.problem).map((source) => `${source.kind} ${source.value}: ${source.problem}.`);

	setText(byId('agents-say'), [`${plural(agents.total, 'agent')}, ${count(agents.silent)} without an answer.`, ...problems].join(' '));
	syncRows(byId('agent-list'), shownAgents, agents.silent_list, (one) => one.name,
		(one) => {
			const text = el('span', { class: 'bad' });

			return { text, row: el('li', {}, isLink(one.url) ? el('a', { href: `${one.url}/`, rel: 'noreferrer noopener' }, one.name) : one.name, ' ', text) };
		},
		(made, one) => setText(made.text, `${one.problem || 'no answer'}${one.silent_ns ? `, for ${duration(one.silent_ns)}` : ''}`));
}

/* ---- asking ---- */

function showState() {
	const text = byId('unreachable');

	setAttribute(byId('state'), 'data-state', hub.failures ? 'gone' : hub.now ? 'live' : 'starting');
	setText(byId('state-text'), hub.failures ? 'Unreachable' : hub.now ? 'Live' : 'Connecting');
	setText(text, hub.failures ? `Hub unreachable since ${clockTime(hub.failedSince)}: ${hub.why}.` : '');
	document.body.classList.toggle('stale', hub.failures > 0);
}

async function askHub() {
	if (hub.isOpen)
		return;
	hub.isOpen = true;
	try {
		const response = await fetch(`api/v1/jobs${chosenKey === null ? '' : `?job=${encodeURIComponent(chosenKey)}`}`,
			{ signal: AbortSignal.timeout(PATIENCE_MS), cache: 'no-store' });

		if (!response.ok)
			throw new Error(`HTTP status ${response.status}`);
		const now = await response.json();

		if (now.format !== 'ringside-hub' || now.version !== 1)
			throw new Error('unexpected answer: reload this page');
		hub.now = now;
		store.now = { time_ms: now.time_ms, communicators: [], verdicts: [], notices: [] };
		Object.assign(hub, { failures: 0, failedSince: 0 });
		setText(byId('host'), now.host);
		setText(byId('made'), `Ringside ${now.ringside}. Agents are asked every ${duration(now.interval_ns)}; a hang is reported after ${duration(now.hang_ns)}.`);
		[showJob, showJobs, showAgents].forEach((part) => part());
		document.body.dataset.filled = 'true';
	} catch (error) {
		hub.failures++;
		hub.failedSince = hub.failedSince || Date.now();
		hub.why = error.name === 'TimeoutError' ? 'no answer' : error instanceof TypeError ? 'connection failed' : error.message;
	}
	hub.isOpen = false;
	showState();
}

function setTheme(theme) {
	if (theme === 'light' || theme === 'dark')
		document.documentElement.dataset.theme = theme;
	else
		delete document.documentElement.dataset.theme;
	byId('theme').value = theme;
	try {
		localStorage.setItem('ringside-theme', theme);
	} catch {
		/* storage may be disabled */
	}
}

byId('theme').addEventListener('change', () => setTheme(byId('theme').value));
byId('find').addEventListener('input', () => {
	hub.find = byId('find').value;
	if (hub.now)
		showJobs();
});
for (const what of ['jobs', 'nodes'])
	byId(`more-${what}`).addEventListener('click', () => {
		hub.hasAll[what] = !hub.hasAll[what];
		(what === 'jobs' ? showJobs : showJob)();
	});
try {
	setTheme(localStorage.getItem('ringside-theme') || '');
} catch {
	/* the system's colours then */
}
setInterval(() => document.hidden || askHub(), PERIOD_MS);
document.addEventListener('visibilitychange', () => document.hidden || askHub());
askHub();
