import { done, expect, Session } from './terminal.mjs';

const [ringside] = process.argv.slice(2);
const top = (columns, rows, environment) =>
	new Session(columns, rows, [ringside, 'top', '--interval', '200ms'], environment);

const COMMS = /COMMUNICATOR +.*BUSBW/;
const RANKS = /RANK +.*OLDEST STATE/;
const FLIGHTS = /AGE COMM +RANK OPERATION/;

/* ---- 80x24 ---- */
const plain = top(80, 24);

await plain.shows('all ranks are there', /4 ranks alive/);
await plain.until('the three panes have their titles', () =>
	[COMMS, RANKS, FLIGHTS].every((title) => title.test(plain.text())));
await plain.shows('a communicator with its kind, its ranks and its bandwidth', /tp-0 +nvlink-only +2\/2 +\S+ +\S+ [GM]B\/s/);
await plain.shows('the last minute is drawn in blocks', /world .*[▁▂▃▄▅▆▇█]/);
await plain.shows('each rank of the first one has a row', /^ +0 +\d+ .*\n +1 +\d+ .*\n +2 +\d+ .*\n +3 +\d+ /m);
await plain.shows('keys are explained', /^q quit .*\? help/m);
expect('the screen is the alternate one', plain.terminal.buffer.active.type === 'alternate');
await plain.shows('something is in flight at some time', /^ +\d+[mu]?s (tp|pp|world)\S* +\d /m);
await plain.shows('the cursor is on the first communicator', /^> world/m);
plain.press('\x1bOB');
await plain.shows('the arrow moves it down', /^> pp-0/m);
plain.press('j');
await plain.shows('j does, too', /^> pp-1/m);
await plain.shows('and the ranks are those of this one', /^ +1 +0 +\d+ .*\n +3 +1 +\d+ /m);
plain.press('k');
await plain.shows('k moves it up', /^> pp-0/m);
plain.press('\t');
await plain.shows('tab goes to the ranks', /^> +0 .*\n +2 /m);
plain.press('\x1b[Z');
plain.press('s');
await plain.shows('s sorts the communicators', /COMMUNICATOR.*LAST 60s +by wait/);
plain.press('ssss');
await plain.until('and comes back to the first order', () => /^. world/m.test(plain.lines()[2]));

plain.press('/PP-');
await plain.shows('a filter is typed', /^filter: PP-_/m);
await plain.until('and hides the others', () => /pp-0/.test(plain.text()) && !/world|tp-0/.test(plain.text()));
plain.press('\r');
await plain.shows('enter ends the typing', /^filter: PP- .*escape/m);
plain.press('\x1b');
await plain.shows('escape shows all again', /world/);

plain.press('+');
await plain.shows('+ looks less often', /every 500ms/);
plain.press('-');
await plain.shows('- more often', /every 200ms/);
plain.press('p');
await plain.shows('p pauses', /PAUSED/);
/* What was drawn last comes in pieces. */
let before, modes;

do {
	before = plain.text();
	modes = await plain.askModes();
} while (plain.text() !== before);
modes = await plain.askModes();

expect('keys are not echoed, nor kept until enter', !modes.echo && !modes.lines);
expect('a paused screen stands still', plain.text() === before);
plain.press('p');
await plain.until('p goes on', () => !/PAUSED/.test(plain.text()) && plain.lines()[0] !== before.split('\n')[0]);
plain.press('?');
await plain.shows('? helps', /BUSBW +bytes a second/);
plain.press('x');
await plain.shows('any key ends the help', COMMS);

/* ---- another size ---- */
plain.resize(200, 50);
await plain.until('a larger window is used', () =>
	/every 200ms$/.test(plain.lines()[0]) && plain.lines()[0].length === 200 && /^q quit/.test(plain.lines()[49]));
plain.resize(40, 10);
await plain.until('a small one has one pane', () => COMMS.test(plain.text()) && !RANKS.test(plain.text()));
plain.press('\t\t');
await plain.shows('and tab shows the next ones', /AGE +RANK OPERATION/);
plain.resize(20, 5);
await plain.until('a tiny one has what matters', () => /ranks alive/.test(plain.lines()[0]) && /AGE RANK/.test(plain.text()));
plain.resize(80, 24);
await plain.until('and all comes back', () =>
	[COMMS, RANKS, FLIGHTS].every((title) => title.test(plain.text())));
expect('no line is longer than the window', plain.lines().every((line) => line.length <= 80), plain.text());
plain.press('q');
await plain.ended('q ends it', 0);
expect('the terminal is as it was: screen, cursor, echo', plain.isRestored(), JSON.stringify(plain.modes));

/* ---- sizes from the start ---- */
for (const [columns, rows, title] of [[200, 50, /STATE +WAITS FOR/], [40, 10, /COMMUNICATOR +BUSBW/], [20, 5, /COMMUNI\S* +BUSBW/]]) {
	const other = top(columns, rows);

	await other.shows(`${columns}x${rows}: rows and titles`, title);
	await other.shows(`${columns}x${rows}: the first communicator`, /^> world/m);
	other.press('q');
	await other.ended(`${columns}x${rows}: q ends it`, 0);
	expect(`${columns}x${rows}: the terminal is as it was`, other.isRestored());
}

/* ---- other terminals ---- */
const ascii = top(80, 24, { LC_ALL: 'C' });

await ascii.shows('without UTF-8 the last minute is drawn in ASCII', /world .*[_.:=+*#-]{2}$/m);
expect('and nothing else is', /^[\x20-\x7e\n]*$/.test(ascii.text()), ascii.text());
ascii.press('q');
await ascii.ended('it ends', 0);

const coloured = (session) => {
	for (let row = 0; row < session.terminal.rows; row++)
		for (let column = 0; column < session.terminal.cols; column++)
			if (!session.cell(row, column).isFgDefault() || !session.cell(row, column).isBgDefault())
				return true;
	return false;
};
const colours = top(80, 24), none = top(80, 24, { NO_COLOR: '1' }), old = top(80, 24, { TERM: 'vt100' });

for (const session of [colours, none, old])
	await session.shows('rows are there', /world/);
expect('there are colours', coloured(colours));
expect('NO_COLOR has none', !coloured(none));
expect('vt100 has none', !coloured(old));
for (const session of [colours, none, old]) {
	session.press('q');
	await session.ended('it ends', 0);
}
done();
