import { constants } from 'node:os';
import { done, expect, Session } from './terminal.mjs';

const [ringside] = process.argv.slice(2);
const { SIGCONT, SIGHUP, SIGINT, SIGSTOP, SIGTERM } = constants.signals;
const top = () => new Session(80, 24, [ringside, 'top', '--interval', '200ms']);
const stopped = async (session) => {
	for (;;)
		if ((await session.askModes()).stopped)
			return session.modes;
};

for (const [name, number] of Object.entries({ SIGTERM, SIGHUP, SIGINT })) {
	const session = top();

	await session.shows(`${name}: it runs`, /2 ranks alive/);
	session.signal(number);
	await session.ended(`${name} ends it`, 128 + number);
	expect(`${name}: the terminal is restored`, session.isRestored(), JSON.stringify(session.modes));
}

const session = top();

await session.shows('it runs', /^> world/m);
session.press('\x1a');
await stopped(session);
await session.until('Ctrl-Z restores the terminal', () => session.isRestored());
session.resize(60, 20);
session.signal(SIGCONT);
await session.until('it continues, with the current window size', () =>
	/2 ranks alive/.test(session.lines()[0]) && session.lines()[0].length === 60 && /^q quit/.test(session.lines()[19]));
expect('on the alternate screen', session.terminal.buffer.active.type === 'alternate');
const modes = await session.askModes();

expect('without echo', !modes.echo && !modes.lines);

session.signal(SIGSTOP);
await stopped(session);
/* Simulate a shell that has written to the terminal in the meantime. */
await new Promise((resolve) => session.terminal.write('\x1b[H\x1b[2Jsomebody else wrote this', resolve));
session.signal(SIGCONT);
await session.until('after SIGSTOP the screen is redrawn', () =>
	/^> world/m.test(session.text()) && !/somebody else/.test(session.text()));
session.press('\x0c');
session.press('q');
await session.ended('q quits', 0);
expect('the terminal is restored', session.isRestored());

const asked = top();

await asked.shows('it runs', /^> world/m);
asked.press('\x03');
await asked.ended('Ctrl-C quits', 128 + SIGINT);
expect('Ctrl-C: the terminal is restored', asked.isRestored());
done();
