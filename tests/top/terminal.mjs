/* Runs a command in a real terminal: terminal_bridge.py runs it, @xterm/headless interprets its output. */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../npm/package.json', import.meta.url));
const { Terminal } = require('@xterm/headless');

/* How long to wait for expected output. After one timeout the others would fail, too. */
const PATIENCE_MS = 60000, IMPATIENCE_MS = 1000;

let count = 0, failed = 0;

export function expect(sentence, is, ...notes) {
	console.log(`${is ? '' : 'not '}ok ${++count} - ${sentence}`);
	if (is)
		return;
	failed++;
	for (const note of notes)
		console.log(String(note).split('\n').map((line) => `#   ${line}`).join('\n'));
}

export function done() {
	console.log(`1..${count}`);
	process.exit(failed ? 1 : 0);
}

export class Session {
	constructor(columns, rows, command, environment = {}) {
		this.terminal = new Terminal({ cols: columns, rows, allowProposedApi: true });
		this.bytes = 0;
		this.modes = null;
		this.code = null;
		this.watchers = new Set();
		this.bridge = spawn('python3', ['tests/top/terminal_bridge.py', columns, rows, ...command].map(String),
			{ env: { ...process.env, TERM: 'xterm-256color', LC_ALL: 'C.UTF-8', ...environment } });
		this.bridge.stdout.on('data', (data) => {
			this.bytes += data.length;
			this.terminal.write(data, () => this.wake());
		});
		this.bridge.stderr.on('data', (data) => {
			for (const line of String(data).split('\n').filter(Boolean)) {
				const words = line.match(/^modes echo=(\w+) lines=(\w+) stopped=(\w+)/);

				if (words)
					this.modes = { echo: words[1] === 'True', lines: words[2] === 'True', stopped: words[3] === 'True' };
				else
					console.log(`# ${line}`);
			}
			this.wake();
		});
		this.bridge.on('close', (code) => {
			this.code = code;
			/* After the output before it. */
			this.terminal.write('', () => this.wake());
		});
	}

	wake() {
		for (const watcher of this.watchers)
			watcher();
	}

	/* The visible lines without trailing blanks. */
	lines() {
		const buffer = this.terminal.buffer.active;

		return Array.from({ length: this.terminal.rows }, (_, i) =>
			buffer.getLine(buffer.baseY + i).translateToString(true));
	}

	text() {
		return this.lines().join('\n');
	}

	/* The terminal columns of a text in a line: a wide character takes two. */
	cell(row, column) {
		const buffer = this.terminal.buffer.active;

		return buffer.getLine(buffer.baseY + row).getCell(column);
	}

	/* Waits for expected output; prints the screen if it does not appear. */
	until(sentence, is) {
		return new Promise((resolve) => {
			const end = (isThere) => {
				clearTimeout(timer);
				this.watchers.delete(look);
				expect(sentence, isThere, this.text());
				resolve(isThere);
			};
			const look = () => {
				if (is(this))
					end(true);
			};
			const timer = setTimeout(() => end(false), failed ? IMPATIENCE_MS : PATIENCE_MS);

			this.watchers.add(look);
			look();
		});
	}

	shows(sentence, pattern) {
		return this.until(sentence, () => pattern.test(this.text()));
	}

	say(line) {
		this.bridge.stdin.write(`${line}\n`);
	}

	press(keys) {
		this.say(`keys ${Buffer.from(keys).toString('hex')}`);
	}

	resize(columns, rows) {
		this.terminal.resize(columns, rows);
		this.say(`size ${columns} ${rows}`);
	}

	signal(number) {
		this.say(`signal ${number}`);
	}

	/* The current terminal modes. */
	askModes() {
		this.modes = null;
		this.say('modes');
		return new Promise((resolve) => {
			const look = () => {
				if (!this.modes)
					return;
				this.watchers.delete(look);
				resolve(this.modes);
			};

			this.watchers.add(look);
		});
	}

	async ended(sentence, code) {
		await this.until(sentence, () => this.code !== null && this.modes !== null);
		expect(`${sentence}: exit code`, this.code === code, `got ${this.code}, wanted ${code}`);
	}

	/* Whether the terminal is in the state in which a shell left it. */
	isRestored() {
		return this.terminal.buffer.active.type === 'normal' && this.modes.echo && this.modes.lines &&
			!this.terminal._core.coreService.isCursorHidden;
	}
}
