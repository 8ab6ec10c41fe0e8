import { done, expect, expectPart, expectSame, ink, textOf } from '../html/browser.mjs';
import { serve } from './serve.mjs';
import { play, rowsOf, tick, visit } from './visit.mjs';

const agent = await serve(process.argv[2]);
const { page, trouble } = await visit(agent.scene('many'));
const first = async () => (await rowsOf(page, 'comm-rows'))[0][0];
const elements = () => page.evaluate(() => document.querySelectorAll('*').length);

expectSame('all communicators are listed', await page.locator('#comm-rows tr').count(), 100);
expectSame('the oldest operations are listed', (await rowsOf(page, 'flight-rows')).length, 40);
expectSame('the others on demand', await textOf(page, '#more-flights'), 'Show all 160');
await page.click('#more-flights');
expectSame('all operations are listed', await page.locator('#flight-rows tr').count(), 160);
expectPart('the oldest first', (await rowsOf(page, 'flight-rows'))[0][0], '2.3 s');
await page.click('#more-flights');

expect('histories of ranks are requested for one communicator only',
	agent.requests.filter((url) => url.includes('history')).every((url) => /members=([0-9a-f]{16})?$/.test(url)), agent.requests);
expectSame('and kept for that one only', await page.evaluate(() => [...store.histories.values()].filter((one) => one.members).length), 1);
await page.locator('#comm-rows button').nth(50).click();
await page.clock.runFor(1);
await page.waitForFunction(() => !asking.isOpen && store.membersOf === store.chosen);
expectSame('also when another one is selected',
	await page.evaluate(() => [...store.histories].filter(([, one]) => one.members).map(([key]) => key === store.chosen)), [true]);
expectSame('whose ranks have their history', await page.evaluate(() => store.histories.get(store.chosen).members.get(7).time.length), 300);

await page.selectOption('#order', 'wait');
expectPart('the list is sorted', await first(), 'expert group 9');
const before = await first();

agent.change = (now) => { now.communicators[3].wait_share = 0.9; };
await page.locator('#comm-rows tr').nth(2).hover();
await tick(page, agent, 6);
expectSame('not while the pointer is in it', await first(), before);
await page.mouse.move(5, 5);
await page.locator('#order').focus();
await tick(page, agent, 6);
expectPart('but soon afterwards', await first(), 'expert group 03');
await page.selectOption('#order', 'age');
expectPart('sorted by oldest operation', await first(), 'expert group');
await page.selectOption('#order', 'given');
await page.fill('#find', 'group 77');
expectSame('the search finds one', await page.locator('#comm-rows tr').count(), 1);
await page.fill('#find', 'nobody has this');
expectSame('an unsuccessful search says so', await textOf(page, '#comm-none'), 'No communicator matches.');
await page.fill('#find', '');

agent.change = (now) => now.communicators.forEach((comm, i) => { comm.is_finalized = i >= 10; });
await tick(page, agent);
expectSame('ended ones are hidden', await page.locator('#comm-rows tr').count(), 10);
await page.locator('#ended').check();
expectSame('unless requested', await page.locator('#comm-rows tr').count(), 100);
await tick(page, agent);
const size = await elements();

await tick(page, agent, 5);
expectSame('the page does not grow', await elements(), size);

await play(page, agent, 'crowd');
expectSame('many ranks are drawn as a band', await textOf(page, '#legend-each'), 'range of all ranks');
expectSame('with two edges', await page.evaluate(() => charts[0].u.series.length), 5);
expect('the chart is drawn', (await ink(page, '.plot canvas')).colours > 10);
expectSame('the first ranks are listed', [await page.locator('#rank-rows tr').count(), await textOf(page, '#more-ranks')], [64, 'Show all 72']);
await page.click('#more-ranks');
expectSame('then all of them', await page.locator('#rank-rows tr').count(), 72);
expectSame('the first processes are listed', [await page.locator('#process-rows tr').count(), await textOf(page, '#more-processes')], [64, 'Show all 72']);
await page.click('#more-processes');
expectSame('then all processes', await page.locator('#process-rows tr').count(), 72);
await page.locator('.plot').nth(1).focus();
await page.keyboard.press('End');
expect('the tooltip names the lowest and the highest rank', /rank 71, highest.*rank 7, lowest/s.test(await textOf(page, '#tip')), await textOf(page, '#tip'));
expectSame('quietly', trouble, []);

agent.close();
await done();
