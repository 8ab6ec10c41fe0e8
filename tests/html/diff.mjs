import { readFileSync } from 'node:fs';
import { done, expect, expectSame, open, textOf } from './browser.mjs';

const [directory] = process.argv.slice(2);
const plain = (text) => text.trim().replaceAll(/\s+/g, ' ');

/* Rows of a section's table without the drawn intervals, with single spaces. */
const rowsOf = (page, section) => page.evaluate((id) => [...document.querySelectorAll(`#${id} tbody tr`)]
	.map((row) => [...row.cells].filter((cell) => !cell.querySelector('svg')).map((cell) => cell.textContent.trim()).join(' ')
		.replaceAll(/\s+/g, ' ')), section);

for (const name of ['slower', 'other', 'expected']) {
	const diff = JSON.parse(readFileSync(`${directory}/${name}.json`, 'utf8'));
	const text = readFileSync(`${directory}/${name}.txt`, 'utf8');
	const lines = text.split('\n').map(plain);

	for (const scheme of ['light', 'dark'])
		for (const width of [360, 1280]) {
			const { page, trouble, context } = await open(`${directory}/${name}.html`, { scheme, width, ready: 'footer' });
			const where = `${name}, ${scheme}, ${width} pixels`;

			expectSame(`${where}: no console output, errors or requests`, trouble, []);
			expect(`${where}: the page does not scroll horizontally`,
				await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
			await context.close();
		}
	const { page } = await open(`${directory}/${name}.html`, { ready: 'footer' });

	expectSame(`${name}: the answer of the JSON`, await textOf(page, '#verdict'), diff.sentences.at(-1));
	expectSame(`${name}: its other sentences`, await page.locator('.sentence').allTextContents(), diff.sentences.slice(0, -1));
	expectSame(`${name}: a row per operation`, (await rowsOf(page, 'operations')).length, diff.rows.length);
	expectSame(`${name}: each with its verdict`, await page.locator('#operations .badge').allTextContents(), diff.rows.map((row) => row.verdict));
	expectSame(`${name}: the values of the job are those of the text`,
		(await rowsOf(page, 'job')).filter((row) => !lines.includes(row)), []);
	expectSame(`${name}: an interval is drawn for each row that has one`, await page.locator('#operations svg[role=img]').count(),
		diff.rows.filter((row) => row.ratio !== null).length);
	expectSame(`${name}: intervals have names for screen readers`,
		await page.evaluate(() => [...document.querySelectorAll('svg[role=img]')].filter((svg) => !svg.querySelector('title')).length), 0);
	expectSame(`${name}: the differences of the JSON`, await rowsOf(page, 'differences'),
		diff.differences.map((one) => plain(`${one.what} ${one.a} ${one.b}`)));
	expectSame(`${name}: no scripts, and no image from a name`, await page.locator('script, img').count(), 0);
}

{
	const slower = JSON.parse(readFileSync(`${directory}/slower.json`, 'utf8'));
	const other = JSON.parse(readFileSync(`${directory}/other.json`, 'utf8'));

	const { page } = await open(`${directory}/expected.html`, { ready: 'footer' });

	expect('a name that looks like code stays text', (await textOf(page, '.facts')).includes('<img src=x onerror=alert(1)>&amp;".txt'));
	expectSame('a slow network is slower', slower.answer, 'slower');
	expectSame('fewer channels are stated', other.differences.some((one) => one.what.startsWith('channels of')), true);
}
await done();
