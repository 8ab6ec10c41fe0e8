/*
 * The doctor's verdicts: title, evidence, confidence, caveats, next steps. They are listed before the notices. Elements
 * are kept from answer to answer and only their text changes, so that screen readers do not announce them again.
 */

const EVIDENCE_FIRST = 3;

/* Notices of hangs, mismatches and slowness repeat a verdict; so may those of late ranks, and of deaths that cause a
 * hang. Labels of ranks are unique within a job only. */
function isCovered(notice) {
	const verdicts = store.now.verdicts.filter((one) => one.job === notice.job);

	if (['hang', 'missing', 'mismatch', 'slow'].includes(notice.kind))
		return verdicts.length > 0;
	if (notice.kind === 'behind')
		return verdicts.some((one) => !isSlow(one) && one.communicator === notice.comm_label);
	return notice.kind === 'dead' && verdicts.some((one) => one.class === 'process_dead' && one.rank_label === notice.rank_label);
}

const isSlow = (verdict) => verdict.class.startsWith('slow_') || verdict.class === 'below_expected';
const verdictKind = (verdict) => (isSlow(verdict) ? 'Slow' : verdict.severity === 'error' ? 'Hang' : 'Not arrived');

/* One list item per line. */
function syncLines(list, lines) {
	while (list.children.length > lines.length)
		list.lastElementChild.remove();
	while (list.children.length < lines.length)
		list.append(el('li', {}));
	lines.forEach((line, i) => setText(list.children[i], line));
	setHidden(list, lines.length === 0);
}

function adviceParts(line) {
	return line.startsWith('$ ') ? commandParts(line.slice(2)) : hintParts(line);
}

/* An address, or the command that shows it. */
function runbookItem(runbook) {
	return el('li', { class: 'hint' }, 'Runbook: ', ...(/^https?:\/\//.test(runbook)
		? [el('a', { href: runbook, rel: 'noreferrer' }, runbook)] : commandParts(runbook)));
}

function makeVerdict(verdict) {
	const made = { severity: verdict.severity };

	made.title = el('strong', {});
	made.sure = el('span', { class: 'sure' });
	made.waiting = el('span', {});
	made.first = el('ul', { class: 'evidence' });
	made.more = el('ul', { class: 'evidence' });
	made.missing = el('ul', { class: 'evidence' });
	made.missingBox = el('div', {}, el('p', {}, 'Caveats:'), made.missing);
	made.details = el('details', {}, el('summary', {}, 'More evidence'), made.more, made.missingBox);
	made.advice = el('ul', { class: 'advice' });
	made.since = el('span', {});
	made.lasts = el('span', { 'aria-hidden': 'true' });
	made.show = el('button', { type: 'button', class: 'small', onclick: () => showNoticeComm(made.comm) }, 'Show ranks');
	made.row = el('article', { class: `notice verdict ${verdict.severity}` },
		severityMark(verdict.severity),
		el('div', {},
			el('h2', { class: 'notice-title' }, el('span', { class: 'notice-kind' }, verdictKind(verdict)), ': ', made.title),
			el('p', { class: 'verdict-sure' }, made.sure, made.waiting),
			made.first, made.details, made.advice,
			el('div', { class: 'notice-foot' }, el('p', {}, made.since, made.lasts), made.show)));
	return made;
}

function updateVerdict(made, verdict) {
	const comm = commOfVerdict(verdict), sinceMs = verdict.since_ns / 1e6;
	const more = verdict.evidence.slice(EVIDENCE_FIRST);

	setText(made.title, verdict.title);
	setText(made.sure, `confidence ${verdict.confidence >= 0.995 && verdict.confidence < 1 ? '>99%' : percent(verdict.confidence)}`);
	setText(made.waiting, verdict.victims ? ` · ${plural(verdict.victims, 'rank waits', 'ranks wait')}` : '');
	syncLines(made.first, verdict.evidence.slice(0, EVIDENCE_FIRST));
	syncLines(made.more, more);
	syncLines(made.missing, verdict.missing);
	setHidden(made.missingBox, verdict.missing.length === 0);
	setHidden(made.details, more.length === 0 && verdict.missing.length === 0);
	if (made.shownAdvice !== verdict.advice.join('\n')) {
		made.shownAdvice = verdict.advice.join('\n');
		made.advice.replaceChildren(...verdict.advice.map((line) => el('li', { class: 'hint' }, ...adviceParts(line))),
			...(verdict.runbook ? [runbookItem(verdict.runbook)] : []));
	}
	setHidden(made.since.parentElement, verdict.since_ns === null);
	setText(made.since, `since ${clockTime(sinceMs)}`);
	setText(made.lasts, `, for ${duration(Math.max(0, store.now.time_ms - sinceMs) * 1e6)}`);
	made.comm = comm && comm.key;
	setHidden(made.show, !comm);
}
