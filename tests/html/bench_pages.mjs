import { readFileSync } from 'node:fs';
import { done, expect, expectSame, open } from './browser.mjs';

const [directory] = process.argv.slice(2);

/* Effective font sizes in charts, texts outside their chart, and how much the page overflows. */
function measures(page) {
	return page.evaluate(() => {
		const texts = [...document.querySelectorAll('svg text')];
		const heights = texts.map((text) => {
			const svg = text.ownerSVGElement;
			const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;

			return parseFloat(getComputedStyle(text).fontSize) * scale;
		});
		const outside = texts.filter((text) => {
			const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();

			return box.right > frame.right + 1 || box.left < frame.left - 1 || box.bottom > frame.bottom + 1;
		});

		return {
			charts: document.querySelectorAll('svg').length,
			least: Math.min(...heights),
			outside: outside.map((text) => text.textContent),
			wider: document.documentElement.scrollWidth - window.innerWidth,
			unnamed: [...document.querySelectorAll('svg')].filter((svg) => !svg.querySelector(':scope > title, :scope > desc')).length,
		};
	});
}

/* Rows of the visible tables, with single spaces. */
const rowsOf = (page) => page.evaluate(() => [...document.querySelectorAll('table')]
	.filter((table) => !table.closest('details'))
	.flatMap((table) => [...table.querySelectorAll('tr')].slice(1))
	.map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join(' ').replaceAll(/\s+/g, ' ')));

for (const name of ['crossover', 'profilers']) {
	const lines = readFileSync(`${directory}/${name}.txt`, 'utf8').split('\n').map((line) => line.trim().replaceAll(/\s+/g, ' '));

	for (const scheme of ['light', 'dark'])
		for (const width of [360, 1280]) {
			const { page, trouble, context } = await open(`${directory}/${name}.html`, { scheme, width, ready: 'footer' });
			const found = await measures(page);
			const where = `${name}, ${scheme}, ${width} pixels`;

			expectSame(`${where}: no console output, errors or requests`, trouble, []);
			expect(`${where}: the page does not scroll horizontally`, found.wider <= 0, found);
			expect(`${where}: text in charts is legible`, found.charts > 2 && found.least >= 9.5, found);
			expectSame(`${where}: no text in charts is cut off`, found.outside, []);
			expectSame(`${where}: charts have names for screen readers`, found.unnamed, 0);
			await context.close();
		}
	const { page } = await open(`${directory}/${name}.html`, { ready: 'footer' });
	const rows = await rowsOf(page);

	if (name === 'profilers')
		expectSame('the page has the rows of the text', rows.filter((row) => !lines.includes(row)), []);
	else
		expectSame('the page has the medians of the text',
			rows.filter((row) => {
				const words = row.split(' ').slice(0, 2).join(' ');
				const times = row.match(/[\d.]+ [num]s/g) ?? [];

				return !lines.some((line) => line.startsWith(words) && times.every((time) => line.includes(time)));
			}), []);
}
await done();
