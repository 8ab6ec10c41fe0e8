/*
 * The agent's answers. Everything here is bounded: histories have as many points as the agent itself keeps, and
 * communicators missing from the last answer are dropped.
 */

const POINTS_MAX = 300;
const fields = ['operations_per_s', 'busbw', 'algbw', 'busy', 'wait'];

const store = {
	now: null,		/* the last answer of /api/v1/now */
	histories: new Map(),	/* key of a communicator -> history, with .members: Map of rank -> history */
	after: '0',		/* timestamp of the newest point, as written by the agent */
	membersOf: '',		/* the communicator whose ranks' histories are kept */
	chosen: '',		/* key of the selected communicator */
	isChosenByHand: false,
	highlighted: null,	/* its rank under the pointer */
	pinned: null,		/* its rank that was clicked */
};

const emptyHistory = () => Object.fromEntries([['time', []], ...fields.map((name) => [name, []])]);

/* Points arrive in order; known ones are skipped. */
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

	/* The agent's clock was set back, or another agent answers: start over. */
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

/* The last known value of the past ten seconds: an operation may take longer than a scan interval. */
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

	return job && job.name !== null ? job.name : 'unnamed job';
};

/* ---- severity ---- */

const notices = {
	hang: ['error', 'Hang'],
	missing: ['error', 'Hang'],
	mismatch: ['error', 'Mismatch'],
	dead: ['error', 'Process gone'],
	behind: ['warning', 'Not arrived'],
	slow: ['warning', 'Slow'],
	straggler: ['warning', 'Straggler'],
	loss: ['note', 'Losses'],
};
const severityOf = (kind) => (notices[kind] || ['warning'])[0];
const severities = ['error', 'warning', 'note'];

/* Labels are unique, but slowness is judged job by job, where a shorter label may do: the hash decides. */
function commOfVerdict(verdict) {
	const ofJob = store.now.communicators.filter((comm) => (store.now.jobs[comm.job_index] || {}).name === verdict.job);
	const same = verdict.communicator_hash === null ? [] : ofJob.filter((comm) => comm.hash === verdict.communicator_hash);

	return (same.length ? same : ofJob).find((comm) => comm.label === verdict.communicator) || same[0];
}

/* The most severe notice or verdict about a communicator; null if there is none. */
function troubleOf(key) {
	const of = store.now.communicators.find((comm) => comm.key === key);
	const found = store.now.notices.filter((notice) => notice.comm === key)
		.map((notice) => severities.indexOf(severityOf(notice.kind)));

	if (of)
		found.push(...store.now.verdicts.filter((verdict) => commOfVerdict(verdict) === of)
			.map((verdict) => severities.indexOf(verdict.severity)));

	return found.length ? severities[Math.min(...found)] : null;
}
