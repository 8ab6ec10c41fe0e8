/* Operations in flight: the oldest of each rank and communicator, oldest first. */

const flightRows = new Map();
const FLIGHTS_FIRST = 40;
let hasAllFlights = false;

function makeFlight(flight) {
	const made = { op: el('span', { class: 'op' }), opUnder: el('span', { class: 'dim under' }) };

	made.age = cell('Age', { class: 'right age' });
	made.operation = headCell('', {}, made.op, ' ', made.opUnder);
	made.commButton = el('button', { type: 'button', class: 'link', onclick: () => showNoticeComm(flight.comm.key) },
		el('bdi', {}, flight.comm.label));
	made.comm = cell('Communicator', { class: 'whole' }, made.commButton);
	made.rank = cell('Rank', {});
	made.state = cell('State', {});
	made.waits = cell('Waits for', { class: 'waits whole' });
	made.row = el('tr', { role: 'row' }, made.age, made.operation, made.comm, made.rank, made.state, made.waits);
	return made;
}

const waitText = (wait) => `${wait.text}, for ${duration(wait.waiting_ns)}${wait.steps
	? `, ${count(wait.steps_done)} of ${plural(wait.steps, 'transfer')} done` : ''}`;

/* Lines: a rank that has not arrived, what the network side waits for, and the progress of the kernel. */
function waitLines(oldest) {
	const lines = [...(oldest.absent ? [oldest.absent] : []), ...oldest.waits.map(waitText)];

	if (oldest.kernel)
		lines.push(oldest.kernel);
	return lines.length ? lines : ['not reported by NCCL'];
}

function updateFlight(made, { member, comm }) {
	const { oldest } = member;
	const lines = waitLines(oldest);
	const isOld = oldest.age_ns > comm.hang_ns;

	setText(made.age, duration(oldest.age_ns));
	setAttribute(made.age, 'data-severity', isOld ? 'error' : null);
	setText(made.op, oldest.text);
	const number = `#${oldest.match === null ? oldest.number : oldest.match}`;

	setText(made.opUnder, oldest.bytes === null ? number : `${number}, ${bytesText(oldest.bytes)}`);
	setText(made.rank, `${member.label}${isOtherRank(member) ? ` as ${member.rank}` : ''}`);
	setText(made.state, oldest.state);
	if (made.lines !== lines.join('\n')) {
		made.lines = lines.join('\n');
		made.waits.replaceChildren(...lines.map((line, i) => el('div', { class: i ? 'dim' : null }, line)));
	}
	setAttribute(made.commButton, 'title', comm.label);
}

const flightKey = ({ comm, member }) => `${comm.key} ${member.rank} ${member.process_index} ${member.oldest.number}`;

function showFlights() {
	const all = store.now.communicators.flatMap((comm) => comm.members.filter((member) => member.oldest && !member.is_over)
		.map((member) => ({ comm, member })));
	const least = Number(byId('older').value) * 1e6;
	const old = all.filter(({ member }) => member.oldest.age_ns >= least).sort((a, b) => b.member.oldest.age_ns - a.member.oldest.age_ns);
	const shown = hasAllFlights ? old : old.slice(0, FLIGHTS_FIRST);
	const inFlight = store.now.communicators.reduce((total, comm) => total + comm.in_flight, 0);

	const many = `${plural(inFlight, 'operation is', 'operations are')} in flight`;

	syncRows(byId('flight-rows'), flightRows, shown, flightKey, makeFlight, updateFlight);
	setText(byId('flights-say'), inFlight === 0 ? 'No operations in flight.'
		: old.length === 0 ? `${many}, none for longer than ${byId('older').selectedOptions[0].textContent}.`
			: `${many}. Shown: the oldest of each rank. Ranks under “Waits for” are numbered as in the communicator.`);
	setHidden(byId('flight-scroll'), old.length === 0);
	setHidden(byId('more-flights'), old.length <= FLIGHTS_FIRST);
	setText(byId('more-flights'), hasAllFlights ? 'Show fewer' : `Show all ${count(old.length)}`);
}

byId('more-flights').addEventListener('click', () => {
	hasAllFlights = !hasAllFlights;
	showFlights();
});
byId('older').addEventListener('change', () => store.now && showFlights());
