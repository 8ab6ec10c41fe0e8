import { done, expect, expectPart, expectSame, expectStart, open, saved, textOf } from './browser.mjs';

const [file] = process.argv.slice(2);
const { page, trouble } = await open(file);
const evil = '</script ><img src=x onerror=alert(1)>';

expectStart('the heading shows the name of the job literally', await textOf(page, 'h1'), `Job <!--${evil}`);
expectStart('so does the title', await page.title(), `<!--${evil}`);
expectSame('no image in the page', await page.locator('img').count(), 0);
expectSame('only its own scripts', await page.locator('script').count(), 3);
expectPart('the name of the communicator is shown literally', await textOf(page, '#costly-comms'), `${evil}<script>alert(2)`);
expect('also in the table', (await page.locator('#tables tbody th').allTextContents()).some((text) => text.includes(evil)));

await page.locator('#heat-map').focus();
await page.keyboard.press('ArrowRight');
expectStart('tooltips show the host name literally', await textOf(page, '#tip'), `rank 0 on a${evil}`);
await page.locator('#plot-sizes').focus();
await page.keyboard.press('End');
expectPart('also those of dots', await textOf(page, '#tip'), `${evil}<script>alert(2) (mixed)`);
await page.evaluate(() => document.querySelectorAll('details').forEach((box) => { box.open = true; }));
await page.waitForTimeout(50);
for (const tab of await page.locator('[role=tab]').all())
	await tab.click();
await page.locator('.tab-panel:visible input').fill('<script>');
expectSame('no dialogs, console output, errors or requests', trouble, []);
expectSame('still no image', await page.locator('img').count(), 0);

/* A spreadsheet must not run a name either. */
await page.getByRole('tab', { name: 'Communicators', exact: true }).click();
const { text } = await saved(page, page.locator('.tab-panel:visible').getByRole('button', { name: 'Save as CSV' }));

expectSame('a saved table has one line per row', text.split('\r\n').length, 4);
expect('and no cell that is a formula', !/(^|,)"?[=+@]/m.test(text), text);

await done();
