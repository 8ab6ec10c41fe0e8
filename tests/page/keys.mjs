import { done, expect, expectPart, expectSame, textOf } from '../html/browser.mjs';
import { serve } from './serve.mjs';
import { visit } from './visit.mjs';

const agent = await serve(process.argv[2]);
const { page, trouble } = await visit(agent.scene('hang'));
const press = (key) => page.keyboard.press(key);
const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.tagName);
const title = () => textOf(page, '#chosen-title');

/* Tab goes through everything, in the order of the page, and shows where it is. */
const stops = [];
let unseen = 0;

for (let i = 0; i < 200; i++) {
	await press('Tab');
	const stop = await page.evaluate(() => {
		const at = document.activeElement, style = getComputedStyle(at);

		return {
			name: at.id || at.className || at.tagName, isBody: at === document.body,
			isSeen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
		};
	});

	if (stop.isBody || (stops.length > 3 && stop.name === stops[0]))
		break;
	stops.push(stop.name);
	unseen += !stop.isSeen;
}
for (const wanted of ['skip', 'pause', 'theme', 'show-keys', 'small', 'find', 'order', 'comm-name', 'plot', 'rank-name', 'older', 'link'])
	expect(`Tab reaches ${wanted}`, stops.includes(wanted), stops);
expectSame('what has the focus is seen, always', unseen, 0);
expectSame('a list of communicators is one stop', stops.filter((name) => name === 'comm-name').length, 1);
expect('in the order of the page', stops.indexOf('pause') < stops.indexOf('find') && stops.indexOf('find') < stops.indexOf('plot') &&
	stops.indexOf('plot') < stops.indexOf('older'), stops);

await press('j');
expectSame('j goes to the next communicator', await title(), 'tensor parallel');
expectSame('and the focus with it', await focused(), 'comm-name');
await press('ArrowDown');
await press('ArrowDown');
expectSame('arrow keys go on', await title(), 'data parallel 1');
await press('k');
expectSame('k goes back', await title(), 'data parallel 0');
await press('End');
expectSame('End to the last', await title(), '0x9e0f00aa1b2c3d4e');
await press('Home');
expectSame('Home to the first', await title(), 'world');
// The page's clock stands still: an answer that comes late needs another tick.
while (!(await page.evaluate(() => !asking.isOpen && store.membersOf === store.chosen)))
	await page.clock.runFor(1);

await press('/');
expectSame('/ finds', await focused(), 'find');
await page.keyboard.type('tensor j k p');
expectSame('letters are letters there', await page.inputValue('#find'), 'tensor j k p');
await page.fill('#find', 'tensor');
expectSame('the list follows', await page.locator('#comm-rows tr').count(), 1);
await press('Escape');
expectSame('Escape clears it', await page.locator('#comm-rows tr').count(), 11);

await page.locator('.plot').first().focus();
await press('ArrowLeft');
await press('ArrowLeft');
expect('in a chart arrow keys move', await page.locator('#tip').isVisible());
const spoken = await page.locator('#spoken').textContent();

expectPart('and what is pointed at is said', spoken, '07:59:59; all ranks –');
await press('Home');
expectPart('Home goes to its beginning', await page.locator('#spoken').textContent(), '07:55:01; all ranks 4');
await press('Shift+ArrowRight');
expectPart('Shift takes ten', await page.locator('#spoken').textContent(), '07:55:11; ');
await press('Escape');
expect('Escape leaves', !(await page.locator('#tip').isVisible()));

await page.locator('.rank-name').nth(2).focus();
await press('Enter');
expectSame('Enter marks a rank', [await page.locator('.rank-name').nth(2).getAttribute('aria-pressed'), await textOf(page, '#legend-mark')],
	['true', 'rank 10']);
await press('Enter');
expectSame('and again unmarks it', await textOf(page, '#legend-mark'), 'rank 13');

await press('n');
expectSame('n goes to what is wrong', await page.evaluate(() => !!document.activeElement.closest('.notice')), true);
await press('f');
expectSame('f to operations in flight', await focused(), 'flights');
await press('l');
expectSame('l to losses', await focused(), 'processes');
await press('c');
expectSame('c to the communicators', await focused(), 'communicators');
await press('t');
expectSame('t changes colours', await page.evaluate(() => document.documentElement.dataset.theme), 'light');
await press('p');
expectPart('p pauses', await textOf(page, '#state'), 'Paused');
await press('p');
expectSame('and goes on', await textOf(page, '#state'), 'Live');

await press('?');
expect('? shows the keys', await page.getByRole('dialog', { name: 'Keys and meanings' }).isVisible());
const listed = await page.locator('#keys kbd').allTextContents();

expectSame('all of them', await page.evaluate(() => Object.keys(letterKeys).sort()), listed.filter((key) => !'←→'.includes(key)).sort());
await press('j');
expectSame('letters do nothing behind it', await title(), 'world');
await page.locator('#letters').uncheck();
await press('Escape');
expect('Escape closes it', !(await page.getByRole('dialog').isVisible()));
await press('j');
expectSame('letters can be switched off', await title(), 'world');
await press('?');
await page.locator('#letters').check();
await page.locator('#close-keys').click();
await press('j');
expectSame('and on again', await title(), 'tensor parallel');
await page.getByRole('button', { name: 'Copy ringside ps @41205' }).press('Enter');
await page.waitForFunction(() => ['Copied', 'Selected'].includes(document.querySelector('.notice button').textContent));
expect('a command is copied, or selected', true);
expectSame('quietly', trouble, []);

agent.close();
await done();
