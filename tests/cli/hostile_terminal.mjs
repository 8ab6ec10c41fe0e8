/*
 * What a terminal shows after the output of a command: the title that the output set, and the screen.
 *
 *	hostile_terminal.mjs FILE
 */
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const require = createRequire(new URL('../../npm/package.json', import.meta.url));
const { Terminal } = require('@xterm/headless');
const terminal = new Terminal({ cols: 240, rows: 4000, allowProposedApi: true, scrollback: 0 });
let title = 'before';

terminal.onTitleChange(text => { title = text; });
terminal.write('FIRST LINE\r\n');
terminal.write(readFileSync(process.argv[2], 'utf8').replace(/\n/g, '\r\n'), () => {
	const lines = [];

	for (let row = 0; row < terminal.rows; row++)
		lines.push(terminal.buffer.active.getLine(row).translateToString(true));
	console.log(`title ${title}`);
	console.log(`first ${lines[0]}`);
	console.log(`hidden ${/[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u0080-\u009f]/.test(lines.join(''))}`);
});
