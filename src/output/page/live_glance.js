/* The node overview: figures and jobs; at the end of the page, processes and losses. */

const figures = {};

function makeFigure(name, title) {
	const value = el('span', { class: 'figure' }), under = el('span', { class: 'dim under' });

	figures[name] = { value, under };
	byId('figures').append(el('div', { class: 'tile' }, el('span', { class: 'dim' }, title), value, under));
}

makeFigure('ranks', 'Processes');
makeFigure('rate', 'Operations');
makeFigure('wait', 'Waiting');
makeFigure('flight', 'In flight');
makeFigure('lost', 'Not recorded');

function figure(name, value, under, severity, underSeverity) {
	setText(figures[name].value, value);
	setText(figures[name].under, under);
	setAttribute(figures[name].value, 'data-severity', severity);
	setAttribute(figures[name].under, 'data-severity', underSeverity);
}

const sum = (list, of) => list.reduce((total, one) => total + (of(one) || 0), 0);
const states = ['alive', 'killed', 'ended', 'unknown'];
const stateCounts = (processes) => states
	.map((state) => [state, processes.filter((process) => process.state === state).length])
	.filter(([, number]) => number > 0);

/* Waiting of a rank in all its communicators, which may overlap; the mean over ranks. */
function waitingShare() {
	const waits = new Map();

	for (const comm of store.now.communicators)
		for (const member of comm.members)
			if (member.wait_share !== null)
				waits.set(member.process_index, (waits.get(member.process_index) || 0) + member.wait_share);
	return waits.size ? sum([...waits.values()], (share) => Math.min(1, share)) / waits.size : null;
}

function showFigures() {
	const { communicators: comms, processes } = store.now;
	const alive = processes.filter((process) => process.state === 'alive').length;
	const dead = stateCounts(processes).filter(([state]) => state !== 'alive');
	const share = waitingShare();
	const isUntimed = comms.some((comm) => comm.operations > 0) && comms.every((comm) => comm.timed === 0);
	const inFlight = sum(comms, (comm) => comm.in_flight);
	const oldest = comms.reduce((most, comm) => Math.max(most, comm.oldest_age_ns), 0);
	const lost = sum(processes, (process) => process.lost_operations);
	const issued = sum(processes, (process) => process.issued);

	figure('ranks', count(alive), `alive${dead.map(([state, number]) => `, ${count(number)} ${state}`).join('')}`,
		null, dead.some(([state]) => state === 'killed') ? 'error' : null);
	figure('rate', `${digits(sum(comms, (comm) => comm.operations_per_s))}/s`,
		`on ${plural(comms.filter((comm) => !comm.is_finalized).length, 'communicator')}`);
	figure('wait', share === null ? '–' : percent(share),
		share !== null ? 'of each rank’s time (lower bound)' : isUntimed ? 'not timed' : 'no ranks to compare');
	figure('flight', count(inFlight), inFlight ? `oldest ${duration(oldest)}` : 'none waiting',
		comms.some((comm) => comm.oldest_age_ns > comm.hang_ns) ? 'error' : null);
	figure('lost', count(lost), lost ? `of ${count(issued)} operations` : 'no losses', lost ? 'warning' : null);
}

/* ---- jobs ---- */

const jobRows = new Map();

function showJobs() {
	const jobs = store.now.jobs.map((job, index) => ({ ...job, index }));

	syncRows(byId('job-list'), jobRows, jobs, (job) => `${job.index} ${job.name}`, (job) => {
		const made = { ranks: el('span', {}), dead: el('span', { class: 'bad' }) };

		made.row = el('li', {}, el('bdi', { class: 'job-name' }, jobName(job.index)), made.ranks, made.dead);
		return made;
	}, (made, job) => {
		const here = job.world_size !== null && job.world_size !== job.ranks
			? `${count(job.ranks)} of ${plural(job.world_size, 'rank')} here` : plural(job.ranks, 'rank');
		const killed = store.now.processes.filter((process) => process.job_index === job.index && process.state === 'killed').length;

		setText(made.ranks, here);
		setText(made.dead, killed ? `${count(killed)} killed` : '');
	});
	setHidden(byId('jobs'), jobs.length === 0);
}

/* ---- processes ---- */

const processRows = new Map();
const PROCESSES_FIRST = 64;
let hasAllProcesses = false;

/* The recorder's reasons for losses. */
const reasons = {
	no_comm: 'more communicators than the recorder holds',
	ring_busy: 'a writer was overtaken in the ring buffer',
	ring_overrun: 'overwritten before being written to the file',
	quota: 'the trace file reached its quota',
	no_space: 'the disk was full',
	write_error: 'the trace file could not be written',
	off: 'recording was switched off',
	detail_overrun: 'details overwritten',
	detail_quota: 'details beyond the quota',
	proxy_slot: 'network activity not tracked: table full',
	totals: 'counted under “other”: totals table full',
	late_child: 'events that arrived too late',
};
const lossText = (process) => Object.entries(process.lost)
	.map(([reason, number]) => `${count(number)}: ${reasons[reason] || reason}`).join('; ');

function makeProcess() {
	const made = {};

	made.label = headCell('Rank', {});
	for (const [name, label, isRight] of [['job', 'Job'], ['pid', 'Process', true], ['gpu', 'GPU', true], ['state', 'State'],
		['mode', 'Mode'], ['issued', 'Operations called', true], ['lost', 'Lost']])
		made[name] = cell(label, { class: isRight ? 'right' : `cell-${name}` });
	made.row = el('tr', { role: 'row' }, made.label, made.job, made.pid, made.gpu, made.state, made.mode, made.issued, made.lost);
	return made;
}

function updateProcess(made, process) {
	const isHere = process.host === null || process.host === store.now.host;

	setText(made.label, process.label || '–');
	setText(made.job, jobName(process.job_index));
	setText(made.pid, `${process.pid === null ? '–' : process.pid}${isHere ? '' : ` on ${process.host}`}`);
	setText(made.gpu, process.gpu === null ? '–' : String(process.gpu));
	setAttribute(made.gpu, 'title', process.gpu_uuid);
	setText(made.state, process.state);
	setAttribute(made.state, 'data-severity', process.state === 'killed' ? 'error' : null);
	setText(made.mode, process.mode || '–');
	setText(made.issued, count(process.issued));
	setText(made.lost, lossText(process) || 'nothing');
	setAttribute(made.lost, 'data-severity', process.lost_operations ? 'warning' : null);
	made.lost.classList.toggle('dim', !process.lost_operations);
}

function showProcesses() {
	const all = store.now.processes;
	const shown = hasAllProcesses ? all : all.slice(0, PROCESSES_FIRST);
	const lost = sum(all, (process) => process.lost_operations), details = sum(all, (process) => process.lost_details);

	syncRows(byId('process-rows'), processRows, shown, (process) => `${process.host} ${process.pid} ${process.label} ${process.job_index}`,
		makeProcess, updateProcess);
	setText(byId('losses-say'), all.length === 0 ? 'No recorded processes.'
		: lost === 0 && details === 0 ? 'No losses: every operation reported by NCCL was recorded.'
			: `${plural(lost, 'operation')} and ${plural(details, 'detail')} are missing from the recordings.`);
	setHidden(byId('process-scroll'), all.length === 0);
	setHidden(byId('more-processes'), all.length <= PROCESSES_FIRST);
	setText(byId('more-processes'), hasAllProcesses ? 'Show fewer' : `Show all ${count(all.length)}`);
}

byId('more-processes').addEventListener('click', () => {
	hasAllProcesses = !hasAllProcesses;
	showProcesses();
});
