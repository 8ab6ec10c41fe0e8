/*
 * What the agent said. Everything here is bounded: histories have as many points as the agent itself keeps, and
 * what the last answer does not name any more is dropped.
 */

const POINTS_MAX = 300;
const fields = ['operations_per_s', 'busbw', 'algbw', 'busy', 'wait'];

const store = {
	now: null,		/* the last answer of /api/v1/now */
	histories: new Map(),	/* key of a communicator -> history, with .members: Map of rank -> history */
	after: '0',		/* newest point that we have, as the agent writes it */
	membersOf: '',		/* the communicator whose members' histories are kept */
	chosen: '',		/* key of the communicator that is shown in full */
	isChosenByHand: false,
	highlighted: null,	/* rank in it that is pointed at */
	pinned: null,		/* rank in it that was clicked */
};

const emptyHistory = () => Object.fromEntries([['time', []], ...fields.map((name) => [name, []])]);

/* Points come in order; what we have already is passed over. */
function addPoints(history, answer, fromMs) {
	const last = history.time.length ? history.time[history.time.length - 1] : -Infinity;

	for (let i = 0; i < answer.time_ms.length; i++) {
		const time = fromMs + answer.time_ms[i];

		if (time <= last)
			continue;
		history.time.push(time);
		for (const name of fields)
			history[name].push(answer[name][i]);
	}
	const extra = history.time.length - POINTS_MAX;

	if (extra > 0)
		for (const name of ['time', ...fields])
			history[name].splice(0, extra);
}

function addHistory(answer, asked) {
	const isBack = BigInt(answer.until_ns) < BigInt(store.after);
	const named = new Set();

	/* The agent's clock was set back, or another agent answers: begin again. */
	if (isBack)
		store.histories.clear();
	for (const comm of answer.communicators) {
		if (!store.histories.has(comm.key))
			store.histories.set(comm.key, emptyHistory());
		const history = store.histories.get(comm.key);

		named.add(comm.key);
		addPoints(history, comm, answer.from_ms);
		if (comm.key !== asked) {
			delete history.members;
			continue;
		}
		history.members = history.members || new Map();
		for (const member of comm.members || []) {
			if (!history.members.has(member.rank))
				history.members.set(member.rank, emptyHistory());
			addPoints(history.members.get(member.rank), member, answer.from_ms);
		}
	}
	for (const key of store.histories.keys())
		if (!named.has(key))
			store.histories.delete(key);
	store.after = isBack ? '0' : answer.until_ns;
	store.membersOf = asked;
}

/* The last value that is known, not older than ten seconds: an operation may take longer than a look. */
function lastKnown(history, name, nowMs) {
	if (!history)
		return null;
	for (let i = history.time.length - 1; i >= 0 && history.time[i] > nowMs - 10000; i--)
		if (history[name][i] !== null)
			return history[name][i];
	return null;
}

const chosenComm = () => store.now && store.now.communicators.find((comm) => comm.key === store.chosen);
const jobName = (index) => {
	const job = store.now.jobs[index];

	return job && job.name !== null ? job.name : 'job without a name';
};

/* ---- how bad ---- */

const notices = {
	hang: ['error', 'Hang'],
	missing: ['error', 'Hang'],
	mismatch: ['error', 'Mismatch'],
	dead: ['error', 'Process gone'],
	behind: ['warning', 'Behind'],
	straggler: ['warning', 'Straggler'],
	loss: ['note', 'Losses'],
};
const severityOf = (kind) => (notices[kind] || ['warning'])[0];
const severities = ['error', 'warning', 'note'];

/* The worst notice or verdict about a communicator, null none. */
function troubleOf(key) {
	const of = store.now.communicators.find((comm) => comm.key === key);
	const found = store.now.notices.filter((notice) => notice.comm === key)
		.map((notice) => severities.indexOf(severityOf(notice.kind)));

	if (of)
		found.push(...store.now.verdicts.filter((verdict) => verdict.communicator === of.label)
			.map((verdict) => severities.indexOf(verdict.severity)));

	return found.length ? severities[Math.min(...found)] : null;
}
