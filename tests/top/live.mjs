import { done, expect, Session } from './terminal.mjs';

const [ringside] = process.argv.slice(2);
const top = (columns, rows, environment) =>
	new Session(columns, rows, [ringside, 'top', '--interval', '200ms'], environment);

const COMMS = /COMMUNICATOR +.*BUSBW/;
const RANKS = /RANK +.*OLDEST STATE/;
const FLIGHTS = /AGE COMM +RANK OPERATION/;

/* ---- 80x24 ---- */
const plain = top(80, 24);

await plain.shows('all ranks are shown', /4 ranks alive/);
await plain.until('all three panes have a title', () =>
	[COMMS, RANKS, FLIGHTS].every((title) => title.test(plain.text())));
await plain.shows('a communicator has kind, ranks and bandwidth', /tp-0 +nvlink-only +2\/2 +\S+ +\S+ [GM]B\/s/);
await plain.shows('the last minute is drawn with blocks', /world .*[▁▂▃▄▅▆▇█]/);
await plain.shows('each rank of the first one has a row', /^ +0 +\d+ .*\n +1 +\d+ .*\n +2 +\d+ .*\n +3 +\d+ /m);
await plain.shows('the last line explains the keys', /^q quit .*\? help/m);
expect('the alternate screen is used', plain.terminal.buffer.active.type === 'alternate');
await plain.shows('operations in flight are listed', /^ +\d+[mu]?s (tp|pp|world)\S* +\d /m);
await plain.shows('the cursor is on the first communicator', /^> world/m);
plain.press('\x1bOB');
await plain.shows('the arrow moves it down', /^> pp-0/m);
plain.press('j');
await plain.shows('so does j', /^> pp-1/m);
await plain.shows('the ranks are those of this communicator', /^ +1 +0 +\d+ .*\n +3 +1 +\d+ /m);
plain.press('k');
await plain.shows('k moves it up', /^> pp-0/m);
plain.press('\t');
await plain.shows('tab goes to the ranks', /^> +0 .*\n +2 /m);
plain.press('\x1b[Z');
plain.press('s');
await plain.shows('s changes the sort order', /COMMUNICATOR.*LAST 60s +by wait/);
plain.press('ssss');
await plain.until('and wraps around', () => /^. world/m.test(plain.lines()[3]));

plain.press('/PP-');
await plain.shows('a filter is typed', /^filter: PP-_/m);
await plain.until('and hides other communicators', () => /pp-0/.test(plain.text()) && !/world|tp-0/.test(plain.text()));
plain.press('\r');
await plain.shows('enter ends the typing', /^filter: PP- .*escape/m);
plain.press('\x1b');
await plain.shows('escape clears the filter', /world/);

plain.press('+');
await plain.shows('+ refreshes less often', /every 500ms/);
plain.press('-');
await plain.shows('- refreshes more often', /every 200ms/);
plain.press('p');
await plain.shows('p pauses', /PAUSED/);
/* Output may still be arriving in pieces. */
let before, modes;

do {
	before = plain.text();
	modes = await plain.askModes();
} while (plain.text() !== before);
modes = await plain.askModes();

expect('input is not echoed and not line-buffered', !modes.echo && !modes.lines);
expect('a paused screen does not change', plain.text() === before);
plain.press('p');
await plain.until('p resumes', () => !/PAUSED/.test(plain.text()) && plain.lines()[0] !== before.split('\n')[0]);
plain.press('?');
await plain.shows('? shows the help', /BUSBW +bus bandwidth/);
plain.press('x');
await plain.shows('any key closes the help', COMMS);

/* ---- another size ---- */
plain.resize(200, 50);
await plain.until('a larger window is filled', () =>
	/every 200ms$/.test(plain.lines()[0]) && plain.lines()[0].length === 200 && /^q quit/.test(plain.lines()[49]));
plain.resize(40, 10);
await plain.until('a small one shows one pane', () => COMMS.test(plain.text()) && !RANKS.test(plain.text()));
plain.press('\t\t');
await plain.shows('and tab shows the next pane', /AGE +RANK OPERATION/);
plain.resize(20, 5);
await plain.until('a tiny one shows the essentials', () => /ranks alive/.test(plain.lines()[0]) && /AGE RANK/.test(plain.text()));
plain.resize(80, 24);
await plain.until('and everything is back at the old size', () =>
	[COMMS, RANKS, FLIGHTS].every((title) => title.test(plain.text())));
expect('no line is longer than the window', plain.lines().every((line) => line.length <= 80), plain.text());
plain.press('q');
await plain.ended('q quits', 0);
expect('the terminal is restored: screen, cursor, echo', plain.isRestored(), JSON.stringify(plain.modes));

/* ---- sizes at start ---- */
for (const [columns, rows, title] of [[200, 50, /STATE +WAITS FOR/], [40, 10, /COMMUNICATOR +BUSBW/], [20, 5, /COMMUNI\S* +BUSBW/]]) {
	const other = top(columns, rows);

	await other.shows(`${columns}x${rows}: rows and titles`, title);
	await other.shows(`${columns}x${rows}: the first communicator`, /^> world/m);
	other.press('q');
	await other.ended(`${columns}x${rows}: q quits`, 0);
	expect(`${columns}x${rows}: the terminal is restored`, other.isRestored());
}

/* ---- other terminals ---- */
const ascii = top(80, 24, { LC_ALL: 'C' });

await ascii.shows('without UTF-8 the last minute is drawn in ASCII', /world .*[_.:=+*#-]{2}$/m);
expect('and the whole screen is ASCII', /^[\x20-\x7e\n]*$/.test(ascii.text()), ascii.text());
ascii.press('q');
await ascii.ended('it quits', 0);

const coloured = (session) => {
	for (let row = 0; row < session.terminal.rows; row++)
		for (let column = 0; column < session.terminal.cols; column++)
			if (!session.cell(row, column).isFgDefault() || !session.cell(row, column).isBgDefault())
				return true;
	return false;
};
const colours = top(80, 24), none = top(80, 24, { NO_COLOR: '1' }), old = top(80, 24, { TERM: 'vt100' });

for (const session of [colours, none, old])
	await session.shows('rows are shown', /world/);
expect('colours are used', coloured(colours));
expect('no colours with NO_COLOR', !coloured(none));
expect('no colours on vt100', !coloured(old));
for (const session of [colours, none, old]) {
	session.press('q');
	await session.ended('it quits', 0);
}
done();
