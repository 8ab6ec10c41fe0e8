import { done, expect, expectPart, expectSame, textOf } from '../html/browser.mjs';
import { serve } from './serve.mjs';
import { visit } from './visit.mjs';

const agent = await serve(process.argv[2]);
const { page, trouble } = await visit(agent.scene('hang'));
const press = (key) => page.keyboard.press(key);
const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.tagName);
const title = () => textOf(page, '#chosen-title');

/* Tab reaches everything in page order, with a visible focus. */
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
expectSame('the focus is always visible', unseen, 0);
expectSame('the list of communicators is one tab stop', stops.filter((name) => name === 'comm-name').length, 1);
expect('in the order of the page', stops.indexOf('pause') < stops.indexOf('find') && stops.indexOf('find') < stops.indexOf('plot') &&
	stops.indexOf('plot') < stops.indexOf('older'), stops);

await press('j');
expectSame('j goes to the next communicator', await title(), 'tensor parallel');
expectSame('and moves the focus', await focused(), 'comm-name');
await press('ArrowDown');
await press('ArrowDown');
expectSame('arrow keys move, too', await title(), 'data parallel 1');
await press('k');
expectSame('k selects the previous one', await title(), 'data parallel 0');
await press('End');
expectSame('End selects the last', await title(), '0x9e0f00aa1b2c3d4e');
await press('Home');
expectSame('Home selects the first', await title(), 'world');
// The page's clock is frozen: a late answer needs another tick.
while (!(await page.evaluate(() => !asking.isOpen && store.membersOf === store.chosen)))
	await page.clock.runFor(1);

await press('/');
expectSame('/ focuses the search field', await focused(), 'find');
await page.keyboard.type('tensor j k p');
expectSame('letters are typed there', await page.inputValue('#find'), 'tensor j k p');
await page.fill('#find', 'tensor');
expectSame('the list is filtered', await page.locator('#comm-rows tr').count(), 1);
await press('Escape');
expectSame('Escape clears it', await page.locator('#comm-rows tr').count(), 11);

await page.locator('.plot').first().focus();
await press('ArrowLeft');
await press('ArrowLeft');
expect('arrow keys move in a chart', await page.locator('#tip').isVisible());
const spoken = await page.locator('#spoken').textContent();

expectPart('the point is announced', spoken, '07:59:59; all ranks –');
await press('Home');
expectPart('Home goes to the first point', await page.locator('#spoken').textContent(), '07:55:01; all ranks 4');
await press('Shift+ArrowRight');
expectPart('Shift moves ten points', await page.locator('#spoken').textContent(), '07:55:11; ');
await press('Escape');
expect('Escape leaves the chart', !(await page.locator('#tip').isVisible()));

await page.locator('.rank-name').nth(2).focus();
await press('Enter');
expectSame('Enter highlights a rank', [await page.locator('.rank-name').nth(2).getAttribute('aria-pressed'), await textOf(page, '#legend-mark')],
	['true', 'rank 10']);
await press('Enter');
expectSame('and again removes the highlight', await textOf(page, '#legend-mark'), 'rank 13');

await press('n');
expectSame('n goes to the problems', await page.evaluate(() => !!document.activeElement.closest('.notice')), true);
await press('f');
expectSame('f goes to operations in flight', await focused(), 'flights');
await press('l');
expectSame('l goes to losses', await focused(), 'processes');
await press('c');
expectSame('c goes to the communicators', await focused(), 'communicators');
await press('t');
expectSame('t changes the theme', await page.evaluate(() => document.documentElement.dataset.theme), 'light');
await press('p');
expectPart('p pauses', await textOf(page, '#state'), 'Paused');
await press('p');
expectSame('and resumes', await textOf(page, '#state'), 'Live');

await press('?');
expect('? shows the help', await page.getByRole('dialog', { name: 'Keys and meanings' }).isVisible());
const listed = await page.locator('#keys kbd').allTextContents();

expectSame('with all keys', await page.evaluate(() => Object.keys(letterKeys).sort()), listed.filter((key) => !'←→'.includes(key)).sort());
await press('j');
expectSame('letters do nothing while it is open', await title(), 'world');
await page.locator('#letters').uncheck();
await press('Escape');
expect('Escape closes it', !(await page.getByRole('dialog').isVisible()));
await press('j');
expectSame('letter shortcuts can be disabled', await title(), 'world');
await press('?');
await page.locator('#letters').check();
await page.locator('#close-keys').click();
await press('j');
expectSame('and enabled again', await title(), 'tensor parallel');
await page.getByRole('button', { name: 'Copy ringside ps @41205' }).press('Enter');
await page.waitForFunction(() => ['Copied', 'Selected'].includes(document.querySelector('.notice button').textContent));
expect('a command is copied or selected', true);
expectSame('quietly', trouble, []);

agent.close();
await done();
