import { done, expect, expectPart, expectSame, textOf } from '../html/browser.mjs';
import { serve } from './serve.mjs';
import { rowsOf, tick, visit } from './visit.mjs';

const agent = await serve(process.argv[2]);
const evil = '</script><img src=x onerror=alert(1)>';

agent.scene('hostile');
agent.change = (now) => { now.host = `${evil}<b>host</b>`; };
const { page, trouble } = await visit(agent);

expectSame('the heading shows the host’s name as it is', await textOf(page, 'h1 bdi'), `${evil}<b>host</b>`);
expectPart('so does the title', await page.title(), evil);
expectPart('the job’s', await textOf(page, '#job-list'), `<b>job</b>${evil}`);
expectPart('the notice’s title', await textOf(page, '.notice.warning'), `rank 0 of ${evil} is behind`);
expectPart('its text', await textOf(page, '.notice.warning'), '<script>alert(4)</script>');
expectPart('its command', await textOf(page, '.notice.warning code'), 'ringside ps \'<u>x</u>\'');
expectPart('the verdict’s title', await textOf(page, '.verdict'), `${evil} is stuck`);
expectPart('its evidence', await textOf(page, '.verdict'), '<script>alert(5)</script>');
await page.locator('.verdict summary').click();
expectPart('what could not be seen', await textOf(page, '.verdict details'), '<img src=x onerror=alert(6)>');
expectPart('what to type', await textOf(page, '.verdict code'), 'ringside ps \'<u>y</u>\'');
expect('the communicators’', (await rowsOf(page, 'comm-rows')).some((row) => row[0].includes(evil)));
await page.locator('#comm-rows').getByRole('button', { name: 'onerror' }).click();
expectPart('the chosen one’s', await textOf(page, '#chosen-title'), evil);
expect('the operation’s', (await rowsOf(page, 'flight-rows')).some((row) => row[2].includes(evil)), await rowsOf(page, 'flight-rows'));
expectPart('the process’s', (await rowsOf(page, 'process-rows'))[0][2], '"><svg onload=alert(2)>');
expectSame('a name that turns the writing around stays within itself', await page.locator('#comm-rows bdi').count(), 4);
expect('and bytes that are no letters are marked', (await textOf(page, '#chosen-title')).includes('\ufffd'));

/* Everything that can be opened, opened. */
for (const row of await page.locator('#comm-rows button').all()) {
	await row.click();
	await page.waitForFunction(() => store.membersOf === store.chosen);
	await page.locator('#rank-rows button').first().click();
	await page.locator('.plot').first().focus();
	await page.keyboard.press('End');
	expect('the tooltip is there', await page.locator('#tip').isVisible());
}
await page.fill('#find', '&amp; <img');
expectSame('they are found by what they are', await page.locator('#comm-rows tr').count(), 1);
await page.fill('#find', '__proto__');
expectSame('also this one', await page.locator('#comm-rows tr').count(), 2);
await tick(page, agent, 2);
expectSame('there is no image in the page, nor a picture from a name', await page.locator('img, main svg, iframe, b:text("job")').count(), 0);
expectSame('and no more scripts than its own', await page.locator('script').count(), 2);
expectSame('nothing of it ran, was printed, fetched or refused', trouble, []);

agent.close();
await done();
