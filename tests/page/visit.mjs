/*
 * Opens the live page of an agent and collects all console messages and errors. Its clock is frozen; tick() advances
 * time in the page and on the agent, so that nothing depends on the speed of the machine.
 */
import { browser, PATIENCE_MS } from '../html/browser.mjs';

export async function visit(agent, { width = 1280, height = 800, scheme = 'light', motion = 'no-preference' } = {}) {
	const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: motion, timezoneId: 'UTC' });
	const page = await context.newPage();
	const trouble = [];

	page.setDefaultTimeout(PATIENCE_MS);
	page.on('console', (message) => {
		/* The browser itself prints every failed request. */
		if (!(agent.failure && message.text().startsWith('Failed to load resource')))
			trouble.push(`console: ${message.text()}`);
	});
	page.on('pageerror', (error) => trouble.push(`error: ${error.message}`));
	page.on('dialog', (dialog) => {
		trouble.push(`dialog: ${dialog.message()}`);
		dialog.dismiss();
	});
	page.on('request', (request) => {
		if (!request.url().startsWith(agent.url))
			trouble.push(`request: ${request.url()}`);
	});
	await page.addInitScript(() => {
		addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
	});
	/* Time only advances on request. It starts at the time of the scenes. */
	await page.clock.install({ time: '2026-11-15T07:59:00Z' });
	await page.clock.pauseAt('2026-11-15T08:00:00Z');
	await page.goto(agent.url);
	await page.waitForSelector('html[data-ready]');
	if (!agent.failure) {
		await page.clock.runFor(1);
		await page.waitForFunction(() => !asking.isOpen && store.now && (!store.chosen || store.membersOf === store.chosen));
	}
	return { page, trouble, context };
}

/* Switches to another scene on the same page. */
export async function play(page, agent, scene) {
	agent.scene(scene);
	await page.clock.runFor(1000);
	await page.waitForFunction((name) => !asking.isOpen && store.now.scene === name, scene);
	await page.evaluate(() => askAgent());
	await page.waitForFunction(() => !asking.isOpen && (!store.chosen || store.membersOf === store.chosen));
}

/* Advances this many seconds, one scan each. */
export async function tick(page, agent, seconds = 1) {
	for (let i = 0; i < seconds; i++) {
		agent.goOn(1);
		const wanted = await page.evaluate(() => store.now.looks + 1);

		await page.clock.runFor(1000);
		await page.waitForFunction((looks) => store.now.looks >= looks && !asking.isOpen, wanted);
	}
}

/* One question, whatever comes of it. */
export async function askOnce(page, ms = 1000) {
	const before = await page.evaluate(() => asking.failures + store.now?.looks);

	await page.clock.runFor(ms);
	await page.waitForFunction((was) => !asking.isOpen && asking.failures + store.now?.looks !== was, before);
}

export const texts = (page, selector) => page.locator(selector).allInnerTexts();
export const rowsOf = (page, body) => page.locator(`#${body} tr`).evaluateAll((rows) =>
	rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim().replace(/\s+/g, ' '))));
