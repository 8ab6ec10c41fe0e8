import { statSync } from 'node:fs';

import { done, expect, expectPart, expectSame, ink, open, textOf } from './browser.mjs';

const [file] = process.argv.slice(2);
const { page, trouble } = await open(file);
const megabytes = statSync(file).size / 1e6;

expect('the page has at most four megabytes', megabytes < 4, `${megabytes} MB`);
expectPart('the number of ranks', (await textOf(page, '.facts')).replaceAll('\n', ' '), 'Ranks 4,160');
const rows = await page.evaluate(() => report.windows.matrix.rows.length);

expect('the heat map has at most 512 rows', rows > 256 && rows <= 512, rows);
await page.locator('#heat-map').focus();
await page.keyboard.press('ArrowDown');
expect('each row is several ranks', /^ranks \d+ to \d+ on /.test(await textOf(page, '#tip')), await textOf(page, '#tip'));
expect('the heat map is drawn', (await ink(page, '#heat')).colours > 10);
await page.getByRole('tab', { name: 'Ranks' }).click();
expectSame('50 ranks are shown', await page.locator('.tab-panel:visible tbody tr').count(), 50);
expectPart('the number of omitted rows is shown', await textOf(page, '.tab-panel:visible'), '64 rows omitted');
expectSame('no console output, errors or requests', trouble, []);

await done();
