import { readFileSync } from 'node:fs';

import { count, done, expect, expectPart, expectSame, open, saved, textOf } from './browser.mjs';

const [job] = process.argv.slice(2);
const report = JSON.parse(readFileSync(`${job}.json`, 'utf8'));
const { page, trouble } = await open(`${job}.html`);

/* The rows of the visible table, as text. */
const panel = page.locator('.tab-panel:visible');
const cells = () => panel.locator('tbody tr').evaluateAll((rows) =>
	rows.map((row) => [...row.children].map((cell) => cell.innerText.trim())));
const heads = () => panel.locator('thead th').evaluateAll((list) => list.map((head) => head.dataset.name));
const focusText = () => page.evaluate(() => document.activeElement.textContent.trim());
const column = async (name) => {
	const at = (await heads()).indexOf(name);

	return (await cells()).map((row) => row[at]);
};

/* ---- tabs ---- */

await page.locator('[role=tab]').first().focus();
const seen = [await focusText()];

for (let i = 0; i < 12; i++) {
	await page.keyboard.press('ArrowRight');
	if (await focusText() === seen[0])
		break;
	seen.push(await focusText());
}
expectSame('arrow keys cycle through the tables', seen,
	['Communicators', 'Operations', 'Operations and sizes', 'Algorithms', 'Ranks']);
await page.keyboard.press('End');
expectSame('End selects the last', await focusText(), 'Ranks');
expectSame('one panel is visible', await page.locator('.tab-panel:visible').count(), 1);

/* ---- ranks: more than the rows shown initially ---- */

const ranks = report.tables.rank.rows;
const byLabel = [...ranks].sort((a, b) => Number(a.rank) - Number(b.rank));

expectSame('ranks are sorted by number: 2 before 10', (await column('rank')).slice(0, 12), byLabel.slice(0, 12).map((row) => row.rank));
expectSame('the calls of the JSON', await column('calls'), byLabel.slice(0, 50).map((row) => count(row.calls)));
expectSame('50 rows are shown', (await cells()).length, 50);
await panel.locator('.more').press('Enter');
expectSame('all rows on demand', (await cells()).length, ranks.length);

/* ---- sort ---- */

const waiting = panel.locator('th[data-name=total_wait_ns]');

await waiting.locator('button').focus();
await page.keyboard.press('Enter');
const most = [...ranks].sort((a, b) => b.total_wait_ns - a.total_wait_ns);

expectSame('Enter on a heading sorts in descending order', (await column('rank'))[0], most[0].rank);
expectSame('aria-sort is descending', await waiting.getAttribute('aria-sort'), 'descending');
await page.keyboard.press('Space');
expectSame('once more, ascending', (await column('rank'))[0], most[most.length - 1].rank);
expectSame('aria-sort is ascending', await waiting.getAttribute('aria-sort'), 'ascending');

/* ---- filter ---- */

await panel.locator('input[type=search]').focus();
await page.keyboard.type('node0003');
expectSame('typing filters', [...new Set(await column('host'))], ['node0003']);
const hostOf = (row) => report.hosts[report.ranks[row.rank_index].host_index].name;

expectSame('only the ranks of that host', (await cells()).length, ranks.filter((row) => hostOf(row) === 'node0003').length);
await page.keyboard.type(' nothing-is-called-so');
expectSame('no match, no rows', (await cells()).length, 0);
expectPart('the number of matches is shown', await textOf(page, '.tab-panel:visible [role=status]'), '0 match');
await panel.locator('input[type=search]').fill('');

/* ---- save ---- */

const file = await saved(page, panel.getByRole('button', { name: 'Save as CSV' }));
const lines = file.text.trim().split('\r\n').map((line) => line.split(','));
const sumAt = lines[0].indexOf('total_ns');
const sumOf = new Map(ranks.map((row) => [row.rank, String(row.total_ns)]));

expectSame('the saved file has the name of the table', file.name, 'ringside-rank.csv');
expectSame('all its rows', lines.length, ranks.length + 1);
expect('and exact numbers', lines.slice(1).every((line) => sumOf.get(line[0]) === line[sumAt]), lines.slice(0, 3));

/* ---- the other tables ---- */

await page.getByRole('tab', { name: 'Operations and sizes' }).click();
const sizes = report.tables.size.rows;

expectSame('operations and sizes: the rows of the JSON', await column('function'), sizes.map((row) => row.function));
expectSame('and their calls', await column('calls'), sizes.map((row) => count(row.calls)));
await page.getByRole('tab', { name: 'Algorithms' }).click();
expectSame('algorithms: the number of rows of the JSON', (await cells()).length, report.tables.algorithm.rows.length);
await page.getByRole('tab', { name: 'Communicators', exact: true }).click();
await panel.locator('input[type=search]').fill('nvlink-only');
expectSame('communicators can be filtered by kind', [...new Set(await column('kind'))], ['nvlink-only']);
expectSame('no console output, errors or requests', trouble.filter((line) => !line.startsWith('request: blob:')), []);

await done();
