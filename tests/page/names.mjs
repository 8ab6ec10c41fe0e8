import { done, expect, expectPart, expectSame, textOf } from '../html/browser.mjs';
import { serve } from './serve.mjs';
import { rowsOf, tick, visit } from './visit.mjs';

const agent = await serve(process.argv[2]);
const evil = '</script><img src=x onerror=alert(1)>';

agent.scene('hostile');
agent.change = (now) => { now.host = `${evil}<b>host</b>`; };
const { page, trouble } = await visit(agent);

expectSame('the heading shows the host name unchanged', await textOf(page, 'h1 bdi'), `${evil}<b>host</b>`);
expectPart('the title shows it', await page.title(), evil);
expectPart('the job name', await textOf(page, '#job-list'), `<b>job</b>${evil}`);
expectPart('the title of the notice', await textOf(page, '.notice.warning'), `rank 0 of ${evil} is behind`);
expectPart('the text of the notice', await textOf(page, '.notice.warning'), '<script>alert(4)</script>');
expectPart('the command of the notice', await textOf(page, '.notice.warning code'), 'ringside ps \'<u>x</u>\'');
expectPart('the title of the verdict', await textOf(page, '.verdict'), `${evil} is stuck`);
expectPart('the evidence', await textOf(page, '.verdict'), '<script>alert(5)</script>');
await page.locator('.verdict summary').click();
expectPart('the caveats', await textOf(page, '.verdict details'), '<img src=x onerror=alert(6)>');
expectPart('the next steps', await textOf(page, '.verdict code'), 'ringside ps \'<u>y</u>\'');
expect('the communicator names', (await rowsOf(page, 'comm-rows')).some((row) => row[0].includes(evil)));
await page.locator('#comm-rows').getByRole('button', { name: 'onerror' }).click();
expectPart('the name of the selected one', await textOf(page, '#chosen-title'), evil);
expect('the communicator of an operation', (await rowsOf(page, 'flight-rows')).some((row) => row[2].includes(evil)), await rowsOf(page, 'flight-rows'));
expectPart('the process', (await rowsOf(page, 'process-rows'))[0][2], '"><svg onload=alert(2)>');
expectSame('a name that changes the writing direction is isolated', await page.locator('#comm-rows bdi').count(), 4);
expectPart('a change of direction and invalid bytes are marked', await textOf(page, '#chosen-title'), '&amp;?gnp?');

/* Open everything that can be opened. */
for (const row of await page.locator('#comm-rows button').all()) {
	await row.click();
	await page.waitForFunction(() => store.membersOf === store.chosen);
	await page.locator('#rank-rows button').first().click();
	await page.locator('.plot').first().focus();
	await page.keyboard.press('End');
	expect('the tooltip is shown', await page.locator('#tip').isVisible());
}
await page.fill('#find', '&amp; <img');
expectSame('they can be searched for', await page.locator('#comm-rows tr').count(), 1);
await page.fill('#find', '__proto__');
expectSame('this one, too', await page.locator('#comm-rows tr').count(), 2);
await tick(page, agent, 2);
expectSame('no name became an element', await page.locator('img, main svg, iframe, b:text("job")').count(), 0);
expectSame('or a script', await page.locator('script').count(), 2);
expectSame('no console messages, errors, requests or policy violations', trouble, []);

agent.close();
await done();
