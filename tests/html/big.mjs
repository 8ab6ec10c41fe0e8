import { statSync } from 'node:fs';

import { done, expect, expectPart, expectSame, ink, open, textOf } from './browser.mjs';

const [file] = process.argv.slice(2);
const { page, trouble } = await open(file);
const megabytes = statSync(file).size / 1e6;

expect('the page has at most four megabytes', megabytes < 4, `${megabytes} MB`);
expectPart('it says how many ranks there are', (await textOf(page, '.facts')).replaceAll('\n', ' '), 'Ranks 4,160');
const rows = await page.evaluate(() => report.windows.matrix.rows.length);

expect('the map has 512 rows at most', rows > 256 && rows <= 512, rows);
await page.locator('#heat-map').focus();
await page.keyboard.press('ArrowDown');
expect('each of several ranks', /^ranks \d+ to \d+ on /.test(await textOf(page, '#tip')), await textOf(page, '#tip'));
expect('and is drawn', (await ink(page, '#heat')).colours > 10);
await page.getByRole('tab', { name: 'Ranks' }).click();
expectSame('a screenful of ranks is shown', await page.locator('.tab-panel:visible tbody tr').count(), 50);
expectPart('and it is said that some are left out', await textOf(page, '.tab-panel:visible'), '64 more rows are left out');
expectSame('nothing was printed, thrown or fetched', trouble, []);

await done();
