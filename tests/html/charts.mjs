import { readFileSync } from 'node:fs';

import { count, done, expect, expectPart, expectSame, expectStart, ink, open, textOf, textsOf } from './browser.mjs';

const [job] = process.argv.slice(2);
const report = JSON.parse(readFileSync(`${job}.json`, 'utf8'));
const { page, trouble } = await open(`${job}.html`);

async function point(selector, x, y) {
	const place = page.locator(selector);

	await place.scrollIntoViewIfNeeded();
	const box = await place.boundingBox();

	await page.mouse.move(box.x + box.width * x - 3, box.y + box.height * y);
	await page.mouse.move(box.x + box.width * x, box.y + box.height * y);
	return box;
}

const tip = async () => (await page.locator('#tip').isVisible() ? textOf(page, '#tip') : '');

/* ---- drawn ---- */

const charts = ['plot-bandwidth', 'plot-waiting', 'plot-sizes', 'plot-durations', 'plot-iterations'];

for (const id of charts) {
	const found = await ink(page, `#${id} canvas`);

	expect(`${id} is drawn`, found.colours > 20 && found.inked > found.all / 200, found);
}
const heat = await ink(page, '#heat');

expect('the heat map is drawn', heat.colours > 20 && heat.inked > heat.all / 4, heat);

/* ---- the heat map ---- */

const windows = report.windows;
const rows = windows.matrix.rows;
const shareAt = (row, column) => rows[row].wait_ns[column] / rows[row].joined_ns[column];
const box = await point('#heat', 0.5, 0.5);

expect('the tooltip of the heat map has rank, host, time and value',
	/^rank \d+ on node\d+\n\d\d:\d\d:\d\d.* UTC, .*after the start\nwaiting\n[\d.<]+%/.test(await tip()), await tip());
await page.mouse.move(box.x + box.width / 2, box.y - 60);
expectSame('it disappears when the mouse leaves', await tip(), '');
await page.locator('#heat-map').focus();
for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'End'])
	await page.keyboard.press(key);
const last = windows.count - 1;
const spoken = await textOf(page, '#spoken');

expect('arrow keys move from cell to cell and announce it', spoken.startsWith('rank 5 on node0001'), spoken);
expect('with the value of the JSON', rows[5].joined_ns[last] === 0 ? spoken.includes('no collectives')
	: spoken.includes(`waiting ${Math.round(shareAt(5, last) * 1000) / 10}`), `${spoken} against ${shareAt(5, last)}`);
await page.keyboard.press('Escape');
expectSame('Escape hides the tooltip', await tip(), '');
await page.getByRole('button', { name: 'Least waiting first' }).click();
const sums = rows.map((row, i) => [i, row.wait_ns.reduce((all, value) => all + value, 0)]).sort((a, b) => a[1] - b[1]);

await page.locator('#heat-map').focus();
await page.keyboard.press('ArrowDown');
expectStart('rows can be sorted by waiting', await tip(), `rank ${report.ranks[sums[0][0]].label} `);
await page.locator('#waiting summary').click();
await page.locator('#waiting tbody tr').first().waitFor({ state: 'attached' });
expectSame('the map is also a table', await page.locator('#waiting tbody tr').count(), rows.length);

/* ---- over time ---- */

await point('#plot-bandwidth .u-over', 0.5, 0.5);
const middle = await tip();

expect('the tooltip of the bandwidth chart has time and values',
	/ UTC, [^]*AllReduce, mixed\n[\d.]+ [GMk]B\/s/.test(middle), middle);
await page.mouse.move(5, 5);
await page.locator('#plot-bandwidth').focus();
await page.keyboard.press('Home');
const values = windows.series.map((series) => series.bus_bytes[0] / series.time_ns[0]).filter((value) => value > 0);
const shownValues = [...(await tip()).matchAll(/([\d.]+) GB\/s/g)].map((match) => Number(match[1]));

/* Three digits are shown. */
expect('Home selects the first window, with the bandwidth of the JSON', values.length > 0 &&
	values.every((value) => shownValues.some((shown) => Math.abs(shown - value) < value / 150)), [shownValues, values]);
const widths = () => page.evaluate(() => timeGroup.plots.map((plot) => plot.u.scales.x.max - plot.u.scales.x.min));
const before = await widths();

await page.keyboard.press('+');
const zoomed = await widths();

expect('plus zooms in', zoomed[0] < before[0], [before, zoomed]);
expect('charts over time zoom together', Math.abs(zoomed[0] - zoomed[1]) < 1e-9, zoomed);
await page.locator('#time').getByRole('button', { name: 'Show all' }).click();
expectSame('a button resets the zoom', await widths(), before);
const pixels = () => page.evaluate(() => document.querySelector('#plot-bandwidth canvas').toDataURL());
const shown = await pixels();
const chip = page.locator('#time .chip').first();

await chip.click();
expectSame('a line can be hidden', await chip.getAttribute('aria-pressed'), 'false');
expect('and is not drawn', await pixels() !== shown);
await chip.click();
await page.getByRole('button', { name: 'Without waiting' }).click();
expect('bandwidth without waiting can be selected', await pixels() !== shown);
await page.getByRole('button', { name: 'Elapsed' }).click();
await page.locator('#plot-waiting').focus();
await page.keyboard.press('End');
expect('times can be relative to the start', /^[\d.]+ s after the start/.test(await tip()), await tip());
await page.locator('#time summary').click();
await page.locator('#time tbody tr').first().waitFor();
expectSame('the chart is also a table', await page.locator('#time tbody tr').count(), windows.count);

/* ---- sizes, durations, iterations ---- */

await page.locator('#plot-sizes').focus();
await page.keyboard.press('End');
expect('End selects the largest message', /mean message size\n64 MiB/.test(await tip()), await tip());
await page.selectOption('#durations-of', { label: 'AllReduce, 64 MiB - 128 MiB' });
const size = report.tables.size.rows.find((row) => row.function === 'AllReduce' && row.size_least === 64 << 20);

await page.locator('#plot-durations').focus();
const bucket = size.histogram.counts.findIndex((calls) => calls > 0);

for (let i = 0; i <= bucket; i++)
	await page.keyboard.press('ArrowRight');
// A busy machine draws later.
for (let tries = 0; tries < 50 && (await tip()) === ''; tries++)
	await page.waitForTimeout(100);
expectPart('a histogram has the counts of the JSON', await tip(), `calls\n${count(size.histogram.counts[bucket])}`);
await page.locator('#durations').getByRole('button', { name: 'Log' }).click();
expect('the scale can be logarithmic', (await ink(page, '#plot-durations canvas')).colours > 20);
await page.locator('#plot-iterations').focus();
await page.keyboard.press('End');
expectStart('End selects the last iteration', await tip(), `Iteration ${count(report.iterations.list.length)}`);
expectPart('iterations are explained', await textOf(page, '#iterations .say'),
	`a repeating sequence of ${report.iterations.period_ops} operations`);

/* ---- light and dark ---- */

const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const [light, lightHeat] = [await ground(), await ink(page, '#heat')];

await page.selectOption('#theme', 'dark');
expect('the dark theme can be selected', await ground() !== light, await ground());
const dark = await ink(page, '#heat');

expect('charts are redrawn for it', dark.colours > 20 && JSON.stringify(dark) !== JSON.stringify(lightHeat), dark);
await page.selectOption('#theme', 'light');
expectSame('and for the light theme', await ink(page, '#heat'), lightHeat);
expectSame('no console output, errors or requests', trouble, []);
expect('all marks of changes have a number', (await textsOf(page, '.changes .number')).every((text, i) => text === String(i + 1)));

await done();
