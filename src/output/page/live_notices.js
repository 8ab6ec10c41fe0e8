/*
 * Problems, most serious first. The list is an ARIA alert: screen readers announce additions. Elapsed times are hidden
 * from them, or they would be announced every second.
 */

const shownNotices = new Map();
let hasAllNotices = false;
const NOTICES_FIRST = 3;

const isVerdict = (item) => item.class !== undefined;
const noticeKey = (item) => (isVerdict(item) ? item.key : `${item.kind} ${item.comm} ${item.rank_label} ${item.first_ms}`);
/* Verdicts, and the notices that are not covered by a verdict. */
const wrongNow = () => [...store.now.verdicts, ...store.now.notices.filter((notice) => !isCovered(notice))];

/* The clipboard API needs a secure origin: otherwise select the text and use execCommand. */
async function copyText(code, button) {
	let isDone = false;

	try {
		await navigator.clipboard.writeText(code.textContent);
		isDone = true;
	} catch {
		getSelection().selectAllChildren(code);
		try {
			isDone = document.execCommand('copy');
		} catch {
			/* the text is still selected */
		}
	}
	button.textContent = isDone ? 'Copied' : 'Selected';
	speak(isDone ? 'Copied' : 'Selected: copy with your keyboard');
	setTimeout(() => { button.textContent = 'Copy'; }, 2000);
}

function severityMark(severity) {
	const mark = el('span', { class: `severity-mark ${severity}`, 'aria-hidden': 'true' });

	mark.textContent = { error: '■', warning: '▲', note: '●' }[severity];
	return mark;
}

/* The commands in a hint; each gets a copy button. */
const commands = /(?:sudo )?(?:ringside|nvidia-smi|py-spy|gdb|dmesg) .*?(?=; | or | on [\w.-]+(?:;|$)|$)/g;

function commandParts(command) {
	const code = el('code', {}, command);
	const copy = el('button', { type: 'button', class: 'small', 'aria-label': `Copy ${command}` }, 'Copy');

	copy.addEventListener('click', () => copyText(code, copy));
	return [code, copy];
}

function hintParts(hint) {
	const words = (from, to) => hint.slice(from, to).replace(/^[; ]+/, '').trim();
	const parts = [];
	let at = 0;

	for (const found of hint.matchAll(commands)) {
		if (words(at, found.index))
			parts.push(el('span', {}, words(at, found.index)));
		parts.push(...commandParts(found[0]));
		at = found.index + found[0].length;
	}
	if (words(at))
		parts.push(el('span', {}, words(at)));
	return parts;
}

function makeNotice(notice) {
	const severity = severityOf(notice.kind);
	const made = { severity };

	made.kind = el('span', { class: 'notice-kind' }, (notices[notice.kind] || [null, notice.kind])[1]);
	made.title = el('strong', {});
	made.text = el('p', {});
	made.hint = el('p', { class: 'hint' });
	made.since = el('span', {});
	made.lasts = el('span', { 'aria-hidden': 'true' });
	made.show = el('button', { type: 'button', class: 'small', onclick: () => showNoticeComm(made.comm) }, 'Show ranks');
	made.row = el('article', { class: `notice ${severity}` },
		severityMark(severity),
		el('div', {},
			el('h2', { class: 'notice-title' }, made.kind, ': ', made.title),
			made.text,
			el('div', { class: 'notice-foot' }, made.hint, el('p', {}, made.since, made.lasts), made.show)));
	return made;
}

function updateNotice(made, notice) {
	setText(made.title, notice.title);
	setText(made.text, notice.text || '');
	setHidden(made.text, !notice.text);
	setHidden(made.hint, !notice.hint);
	if (made.shownHint !== notice.hint) {
		made.shownHint = notice.hint;
		made.hint.replaceChildren(...hintParts(notice.hint || ''));
	}
	setText(made.since, `since ${clockTime(notice.since_ms)}`);
	setText(made.lasts, `, for ${duration(Math.max(0, store.now.time_ms - notice.since_ms) * 1e6)}`);
	made.comm = notice.comm;
	setHidden(made.show, !store.now.communicators.some((comm) => comm.key === notice.comm));
}

/* ---- what was judged ---- */

const judgedRows = new Map();

/* [words, 'good' if everything was judged and nothing was found] */
function wellText() {
	const { processes } = store.now, jobs = store.now.jobs.filter((job) => job.is_alive);
	const killed = processes.filter((process) => process.state === 'killed').length;
	const dead = killed ? `${plural(killed, 'process was', 'processes were')} killed.` : '';

	if (wrongNow().length)
		return ['', null];
	if (processes.length === 0)
		return ['No NCCL job is recorded on this node. A job appears here when it is started with: ', null];
	if (jobs.length === 0)
		return [dead ? `All processes have ended; ${dead}` : 'All processes have ended.', null];
	if (dead)
		return [dead, null];
	if (jobs.every((job) => job.hangs.is_fine && job.speed.is_fine))
		return ['No hangs, and nothing is slow.', 'good'];
	return [jobs.every((job) => job.hangs.is_fine) ? 'No hangs. Speed was not judged, or only in part.' : 'Not everything was judged.', null];
}

function judgedState(judged) {
	return judged.is_fine ? 'good' : judged.found ? 'bad' : 'open';
}

/* Each job that runs: hangs and speed, judged or not. */
function showJudged() {
	const jobs = store.now.jobs.map((job, index) => ({ ...job, index })).filter((job) => job.is_alive);

	syncRows(byId('judged'), judgedRows, jobs, (job) => `${job.index} ${job.name}`, (job) => {
		const made = { name: el('bdi', { class: 'job-name' }, jobName(job.index)), hangs: el('span', {}), speed: el('span', {}),
			advice: el('span', { class: 'hint' }) };

		made.row = el('li', {}, made.name, made.hangs, made.speed, made.advice);
		return made;
	}, (made, job) => {
		const advice = job.hangs.advice || job.speed.advice || '';

		setHidden(made.name, jobs.length < 2);
		setText(made.hangs, job.hangs.text);
		setAttribute(made.hangs, 'data-state', judgedState(job.hangs));
		setText(made.speed, job.speed.text);
		setAttribute(made.speed, 'data-state', judgedState(job.speed));
		if (made.shownAdvice !== advice) {
			made.shownAdvice = advice;
			made.advice.replaceChildren(...(advice ? commandParts(advice) : []));
		}
	});
	setHidden(byId('judged'), jobs.length === 0);
}

function showWell() {
	const well = byId('all-well'), isEmpty = store.now.processes.length === 0;
	const [text, state] = wellText();

	document.body.dataset.empty = String(isEmpty);
	setHidden(well, text === '');
	setAttribute(well, 'data-state', state);
	showJudged();
	if (well.shownWell === text)
		return;
	well.shownWell = text;
	well.replaceChildren(text, ...(isEmpty ? commandParts('ringside run -- COMMAND') : []));
}

function showNotices() {
	const all = wrongNow();
	const shown = hasAllNotices ? all : all.slice(0, NOTICES_FIRST);
	const rest = all.length - shown.length;

	syncRows(byId('notice-list'), shownNotices, shown, noticeKey,
		(item) => (isVerdict(item) ? makeVerdict(item) : makeNotice(item)),
		(made, item) => (isVerdict(item) ? updateVerdict(made, item) : updateNotice(made, item)));
	setHidden(byId('more-notices'), all.length <= NOTICES_FIRST);
	setText(byId('more-notices'), rest > 0 ? `Show ${plural(rest, 'more notice')}` : 'Show fewer');
	showWell();
	const left = all.length + store.now.notices_left_out;

	document.title = `${left ? `(${left}) ` : ''}${store.now.host || 'this node'} – Ringside`;
}

byId('more-notices').addEventListener('click', () => {
	hasAllNotices = !hasAllNotices;
	showNotices();
});
