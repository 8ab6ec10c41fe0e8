/*
 * For tests that drive a browser: opens a page from a file, collects its console output, errors and requests, and
 * prints TAP.
 *
 *	const { page, trouble } = await open(file, { width: 360 });
 *	expect('what is tested', condition, 'what was found instead');
 *	await done();
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(new URL('../../npm/package.json', import.meta.url));
const { chromium } = require('playwright-core');

/* Generous, for busy machines. */
export const PATIENCE_MS = 120000;
export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'], timeout: PATIENCE_MS });
let tests = 0, failed = 0;

export function expect(sentence, holds, found) {
	tests++;
	console.log(`${holds ? 'ok' : 'not ok'} ${tests} - ${sentence}`);
	if (!holds) {
		failed++;
		if (found !== undefined)
			console.log(`# ${typeof found === 'string' ? found : JSON.stringify(found)}`.replaceAll('\n', '\n# '));
	}
}

export function expectSame(sentence, found, wanted) {
	const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];

	expect(sentence, one === other, `found: ${one}\nwanted: ${other}`);
}

export const expectStart = (sentence, text, start) =>
	expect(sentence, text.startsWith(start), `found: ${text}\nwanted at its start: ${start}`);
export const expectPart = (sentence, text, part) =>
	expect(sentence, text.includes(part), `found: ${text}\nwanted in it: ${part}`);

/* trouble: console output, errors and requests of the page. `ready`: a selector that matches once the page is complete. */
export async function open(file, { width = 1280, height = 900, scheme = 'light', motion = 'no-preference',
	ready = 'html[data-ready]' } = {}) {
	const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: motion });
	const page = await context.newPage();
	const address = String(pathToFileURL(file));
	const trouble = [];

	page.setDefaultTimeout(PATIENCE_MS);

	page.on('console', (message) => trouble.push(`console: ${message.text()}`));
	page.on('pageerror', (error) => trouble.push(`error: ${error.message}`));
	page.on('dialog', (dialog) => {
		trouble.push(`dialog: ${dialog.message()}`);
		dialog.dismiss();
	});
	page.on('request', (request) => {
		if (request.url() !== address && !request.url().startsWith('data:'))
			trouble.push(`request: ${request.url()}`);
	});
	await page.goto(address);
	await page.waitForSelector(ready);
	return { page, trouble, context };
}

/* The number of colors of a canvas, of pixels that differ from the one in the corner, and the sum of all pixels. */
export function ink(page, selector) {
	return page.evaluate((found) => {
		const { width, height } = document.querySelector(found);
		/* A copy for reading: the browser warns about reading others often. */
		const copy = Object.assign(document.createElement('canvas'), { width, height });
		const context = copy.getContext('2d', { willReadFrequently: true });

		context.drawImage(document.querySelector(found), 0, 0);
		const { data } = context.getImageData(0, 0, width, height);
		const words = new Uint32Array(data.buffer);
		const colours = new Set(words);

		return { colours: colours.size, inked: words.filter((word) => word !== words[0]).length, all: words.length,
			sum: words.reduce((sum, word) => sum + word, 0) };
	}, selector);
}

/* The file that a button saves. */
export async function saved(page, button) {
	const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);

	return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
}

export const textOf = (page, selector) => page.locator(selector).first().innerText();
export const textsOf = (page, selector) => page.locator(selector).allInnerTexts();
/* 1234 as on the page: 1,234 */
export const count = (number) => number.toLocaleString('en-US');

export async function done() {
	await browser.close();
	console.log(`1..${tests}`);
	process.exit(failed === 0 ? 0 : 1);
}
