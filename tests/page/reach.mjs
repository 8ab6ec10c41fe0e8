import { done, expect, expectPart, expectSame, textOf } from '../html/browser.mjs';
import { serve } from './serve.mjs';
import { askOnce, rowsOf, tick, visit } from './visit.mjs';

const agent = await serve(process.argv[2]);
const stateOf = (page) => page.locator('#state').getAttribute('data-state');
const asked = (part) => agent.requests.filter((url) => url.includes(part)).length;

{
	const { page, trouble, context } = await visit(agent.scene('hang'));

	expectSame('an agent that answers is shown as live', await stateOf(page), 'live');
	agent.fail('close');
	await askOnce(page);
	const alert = page.getByRole('alert').filter({ hasText: 'Agent unreachable' });

	expectPart('an unreachable agent is an alert with its start time', await alert.innerText(), 'Since 08:00:01: connection failed.');
	expectPart('the data is labelled as outdated', await alert.innerText(), 'The data below is from before.');
	expectSame('and looks outdated', await page.evaluate(() => document.body.classList.contains('stale')), true);
	expectSame('the header says so, too', await textOf(page, '#state'), 'Unreachable');
	expectSame('the last data stays', (await rowsOf(page, 'flight-rows')).length, 7);
	await page.clock.runFor(500);
	await askOnce(page, 1000);
	await askOnce(page, 2000);
	expectPart('the elapsed time grows', await alert.innerText(), 'Retrying for 3.');
	agent.fail(503);
	await askOnce(page, 4000);
	expectPart('an error status is shown', await alert.innerText(), 'Since 08:00:01: HTTP status 503.');
	agent.fail(401);
	await askOnce(page, 8000);
	expectPart('a required password is reported', await alert.innerText(), 'a user name and password are required');
	agent.fail('garbage');
	await askOnce(page, 10000);
	expectPart('an invalid answer is reported', await alert.innerText(), 'unexpected answer');
	agent.fail(0);
	agent.goOn(25);
	await askOnce(page, 10000);
	expectSame('everything is normal again when it comes back', [await stateOf(page), await alert.count(),
		await page.evaluate(() => document.body.classList.contains('stale'))], ['live', 0, false]);
	expectSame('quietly', trouble, []);
	await context.close();
}

{
	agent.fail('close');
	const { page, context } = await visit(agent);

	expectPart('a page that never had an answer says so', await page.locator('#unreachable').innerText(), 'Agent unreachable');
	expectSame('and shows no data', await page.locator('main section:visible').count(), 0);
	agent.fail(0);
	await page.clock.runFor(1000);
	await page.waitForFunction(() => store.now !== null);
	expectSame('until it has one', await stateOf(page), 'live');
	await context.close();
}

{
	const { page, trouble, context } = await visit(agent.scene('quiet'));

	await page.getByRole('button', { name: 'Pause' }).click();
	const before = agent.requests.length;

	await page.clock.runFor(20000);
	expectSame('no requests while paused', agent.requests.length, before);
	expectSame('and the page says so', await textOf(page, '#state'), 'Paused at 08:00:00');
	await page.getByRole('button', { name: 'Resume' }).click();
	await page.waitForFunction(() => !asking.isOpen);
	expect('resuming sends a request at once', agent.requests.length > before);

	const hide = (isHidden) => page.evaluate((value) => {
		Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
		document.dispatchEvent(new Event('visibilitychange'));
	}, isHidden);

	await hide(true);
	const hidden = agent.requests.length;

	await page.clock.runFor(20000);
	expectSame('no requests while the tab is hidden', agent.requests.length, hidden);
	await hide(false);
	await page.waitForFunction(() => !asking.isOpen);
	expect('a visible tab is updated at once', agent.requests.length > hidden);

	await tick(page, agent, 3);
	expectPart('only new points of the history are requested', agent.requests.at(-1), 'after=17947296021');
	const sizes = () => page.evaluate(() => ({
		points: Math.max(...[...store.histories.values()].flatMap((one) => [one, ...(one.members || new Map()).values()]).map((one) => one.time.length)),
		histories: store.histories.size, elements: document.querySelectorAll('*').length,
	}));
	const first = await sizes();

	agent.goOn(400);
	await askOnce(page);
	await tick(page, agent, 3);
	expectSame('points, histories and elements do not grow', await sizes(), first);
	expectSame('the page keeps as many points as the agent', first.points, 300);
	agent.change = (now) => { now.communicators.splice(2); };
	await tick(page, agent);
	expectSame('communicators that are gone are removed', await page.locator('#comm-rows tr').count(), 2);

	/* Another agent, or a clock that was set back. */
	agent.scene('quiet');
	agent.goOn(-100);
	await askOnce(page);
	await page.clock.runFor(1000);
	await page.waitForFunction(() => !asking.isOpen && store.after.startsWith('17947295001'));
	const times = await page.evaluate(() => store.histories.get(store.chosen).time);

	expect('a clock that was set back starts a new history', times.length === 300 && times.every((time, i) => i === 0 || time > times[i - 1]) &&
		times.at(-1) === 1794729600123, times.slice(-3));
	expectSame('quietly', trouble, []);
	await context.close();
}

{
	const { page } = await visit(agent.scene('quiet'));

	for (let i = 0; i < 12; i++) {
		await page.clock.runFor(1000);
		await page.waitForFunction(() => !asking.isOpen);
	}
	expectPart('an agent that answers but does not scan is detected', await textOf(page, '#state'), 'No scan by the agent for 1');
	expect('every request is one of two', asked('/api/v1/now') > 10 && agent.requests.every((url) => !url.startsWith('/api') ||
		/^\/api\/v1\/(now|history\?after=\d+&members=[0-9a-f]*)$/.test(url)), agent.requests.slice(-3));
}

agent.close();
await done();
