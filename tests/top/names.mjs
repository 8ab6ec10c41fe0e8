import { done, expect, Session } from './terminal.mjs';

const [ringside] = process.argv.slice(2);

/* The column at which the ranks (1/4) of each row end, in terminal columns. */
function ends(session) {
	const found = [];

	for (let row = 0; row < session.terminal.rows; row++) {
		let text = '';

		for (let column = 0; column < session.terminal.cols; column++) {
			const cell = session.cell(row, column);

			/* One letter per column, whatever it contains. */
			text += cell.getWidth() === 0 ? '' : (cell.getChars() || ' ').slice(0, 1).padEnd(cell.getWidth(), '_');
		}
		if (text.includes('1/4'))
			found.push(text.indexOf('1/4'));
	}
	return found;
}

for (const [columns, rows, environment] of [[80, 40, {}], [120, 40, {}], [60, 40, {}], [80, 40, { LC_ALL: 'C' }]]) {
	const session = new Session(columns, rows, [ringside, 'top', '--interval', '200ms'], environment);
	const name = `${columns} columns${environment.LC_ALL ? ', no UTF-8' : ''}`;

	await session.shows(`${name}: names are shown`, /-bytes .*\n(.*\n)*.*plain/);
	await session.until(`${name}: all ten of them`, () => ends(session).length === 10);
	expect(`${name}: columns are aligned`, new Set(ends(session)).size === 1, session.text());
	expect(`${name}: no name controls the terminal`, /1 rank alive/.test(session.lines()[0]), session.text());
	expect(`${name}: no name changes the writing direction`, !session.text().includes('\u202e'));
	if (!environment.LC_ALL) {
		expect(`${name}: wide characters are readable`, session.text().includes('訓練'), session.text());
		expect(`${name}: combining marks stay on their letter`, /e\u0301\u0302-marks/.test(session.text().normalize('NFD')), session.text());
	} else {
		expect(`${name}: the screen is ASCII`, /^[\x20-\x7e\n]*$/.test(session.text()), session.text());
	}
	session.press('q');
	await session.ended(`${name}: q quits`, 0);
}
done();
