import { done, expect, expectSame, ink } from '../html/browser.mjs';
import { serve } from './serve.mjs';
import { play, visit } from './visit.mjs';

const [scenes, pictures] = process.argv.slice(2);
const agent = await serve(scenes);

/* With a directory as second argument: also saves screenshots there. */
const picture = async (page, name, fullPage) => pictures && page.screenshot({ path: `${pictures}/${name}.png`, fullPage });

/* Every visible text with its contrast to the background (WCAG 2.1, 1.4.3). Opacity is taken into account. */
function contrasts(page) {
	return page.evaluate(() => {
		const parse = (text) => {
			const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
			return { r, g, b, a };
		};
		const mix = (top, below, part) => Object.fromEntries(['r', 'g', 'b'].map((key) => [key, top[key] * part + below[key] * (1 - part)]));
		const light = (colour) => {
			const [r, g, b] = [colour.r, colour.g, colour.b].map((value) => value / 255)
				.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
			return 0.2126 * r + 0.7152 * g + 0.0722 * b;
		};
		/* The background of an element and its effective opacity; computed once per element. */
		const grounds = new Map([[null, { r: 255, g: 255, b: 255, part: 1 }]]);
		const ground = (element) => {
			if (!grounds.has(element)) {
				const below = ground(element.parentElement), style = getComputedStyle(element), top = parse(style.backgroundColor);

				grounds.set(element, { ...mix(top, below, top.a), part: below.part * Number(style.opacity) });
			}
			return grounds.get(element);
		};
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		const body = ground(document.body), found = new Map();

		while (walker.nextNode()) {
			const element = walker.currentNode.parentElement;

			if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest('script, noscript, option, .unseen'))
				continue;
			const behind = ground(element), { part } = behind, colour = parse(getComputedStyle(element).color);
			const shown = mix(mix(colour, behind, colour.a), body, part);
			const [high, low] = [light(shown), light(mix(behind, body, part))].sort((a, b) => b - a);
			const contrast = (high + 0.05) / (low + 0.05);
			const key = `${getComputedStyle(element).color} on ${[behind.r, behind.g, behind.b].map(Math.round)} x ${part}`;

			if (!found.has(key) || found.get(key).contrast > contrast)
				found.set(key, { key, contrast, text: walker.currentNode.data.trim().slice(0, 40) });
		}
		return [...found.values()];
	});
}

/* Contrast of lines and marks to the background (1.4.11: 3), and of the two main lines to each other for colour-blind readers. */
function lines(page) {
	return page.evaluate(() => {
		const decode = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
		const linear = (hex) => [1, 3, 5].map((at) => decode(parseInt(hex.slice(at, at + 2), 16) / 255));
		const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
		const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
		const lab = ([r, g, b]) => {
			const f = (value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116);
			const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505), y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
			const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
			return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
		};
		const kinds = [
			[[1, 0, 0], [0, 1, 0], [0, 0, 1]],
			[[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
			[[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
		];
		const times = (row, colour) => row.reduce((total, factor, i) => total + factor * colour[i], 0);
		const seen = (matrix, colour) => lab(matrix.map((row) => Math.max(0, Math.min(1, times(row, colour)))));
		const panel = linear(colours.panel), names = ['accent', 'mark'];
		const distances = kinds.map((matrix) => {
			const [one, other] = names.map((name) => seen(matrix, linear(colours[name])));
			return Math.hypot(...one.map((value, i) => value - other[i]));
		});

		return { contrasts: names.map((name) => contrast(linear(colours[name]), panel)), each: contrast(linear(colours.each), panel), distances };
	});
}

const widths = (page) => page.evaluate(() => ({ page: document.documentElement.scrollWidth, screen: innerWidth }));

const sideways = (page) => page.locator('main .scroll:visible').evaluateAll((boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth + 1)
	.map((box) => box.id || box.className));

for (const scheme of ['light', 'dark']) {
	const { page, trouble, context } = await visit(agent.scene('hang'), { scheme });

	for (const scene of ['straggler', 'quiet', 'empty', 'hang']) {
		await play(page, agent, scene);
		const shown = await contrasts(page), poor = shown.filter((one) => one.contrast < 4.5);

		expect(`${scheme}, ${scene}: all text has a contrast of at least 4.5`, shown.length > 4 && poor.length === 0, poor);
		const { page: wide, screen } = await widths(page);

		expect(`${scheme}, ${scene}: no horizontal overflow`, wide <= screen, { wide, screen });
		expectSame(`${scheme}, ${scene}: no table scrolls sideways`, await sideways(page), []);
		await picture(page, `${scene}-${scheme}`, false);
	}
	const found = await lines(page);

	expect(`${scheme}: main lines have a contrast of 3, background lines of 2`, Math.min(...found.contrasts) >= 3 && found.each >= 2, found);
	expect(`${scheme}: the two main lines differ for colour-blind readers`, Math.min(...found.distances) > 25, found);
	const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);

	expectSame(`${scheme}: the page follows the system's setting`, Number(ground.match(/\d+/)[0]) < 128, scheme === 'dark');
	agent.fail('close');
	await page.clock.runFor(1000);
	await page.waitForSelector('body.stale');
	const stale = (await contrasts(page)).filter((one) => one.contrast < 4.5);

	expect(`${scheme}: outdated data is still readable`, stale.length === 0, stale);
	await picture(page, `gone-${scheme}`, false);
	await page.keyboard.press('?');
	const keys = (await contrasts(page)).filter((one) => one.contrast < 4.5);

	expect(`${scheme}: the help dialog is readable`, keys.length === 0, keys);
	expectSame(`${scheme}: no console messages or errors`, trouble, []);
	await context.close();
}

{
	const { page, context } = await visit(agent.scene('quiet'), { scheme: 'dark' });
	const set = () => page.evaluate(() => {
		const names = [...document.styleSheets[1].cssRules].flatMap((rule) => [...(rule.style || [])]);
		const style = getComputedStyle(document.documentElement);

		return names.filter((name) => name.startsWith('--')).map((name) => `${name} ${style.getPropertyValue(name)}`);
	});
	const bySystem = await set();

	await page.selectOption('#theme', 'dark');
	expectSame('the dark theme is the same by choice and by system setting', await set(), bySystem);
	await page.selectOption('#theme', 'light');
	expect('the light theme overrides the system setting', await page.evaluate(() => colours.panel) === '#ffffff');
	await page.reload();
	expectSame('and the choice is remembered', await page.evaluate(() => document.documentElement.dataset.theme), 'light');
	await context.close();
}

{
	const { page, trouble, context } = await visit(agent.scene('hang'), { width: 360, height: 740 });

	expect('charts are drawn on a phone', (await ink(page, '.plot canvas')).colours > 10);
	for (const scene of ['straggler', 'wide', 'hostile', 'empty', 'hang']) {
		await play(page, agent, scene);
		const { page: wide, screen } = await widths(page);

		expect(`phone, ${scene}: no horizontal overflow`, wide <= screen, { wide, screen });
		expectSame(`phone, ${scene}: no table scrolls sideways`, await sideways(page), []);
		const narrow = await page.locator(':is(main, header) :is(button, select, input[type=search])').evaluateAll((list) => list
			.filter((element) => element.checkVisibility() && element.getBoundingClientRect().height < 24)
			.map((element) => element.textContent.trim()));

		expectSame(`phone, ${scene}: touch targets are at least 24 pixels high`, narrow, []);
		await picture(page, `${scene}-phone`, true);
	}
	expectSame('phone: quietly', trouble, []);
	await play(page, agent, 'wide');
	for (const width of [600, 761, 1081, 1920]) {
		await page.setViewportSize({ width, height: 800 });
		await page.evaluate(() => new Promise((resolve) => { new ResizeObserver(resolve).observe(document.body); }));
		const { page: wide, screen } = await widths(page);

		expect(`${width} pixels: it fits`, wide <= screen, { wide, screen });
	}
	await context.close();
}

{
	const { page } = await visit(agent.scene('hang'), { motion: 'reduce' });
	const moving = await page.evaluate(() => [...document.querySelectorAll('*')].filter((element) => {
		const style = getComputedStyle(element);
		return style.transitionDuration !== '0s' || style.animationName !== 'none' || style.scrollBehavior === 'smooth';
	}).length);

	expectSame('reduced motion disables animations', moving, 0);
	const levels = await page.locator('h1, h2, h3').evaluateAll((list) => list.filter((one) => one.checkVisibility())
		.map((one) => Number(one.tagName[1])));

	expect('heading levels start at 1 and skip none', levels[0] === 1 && levels.filter((level) => level === 1).length === 1 &&
		levels.every((level, i) => i === 0 || level - levels[i - 1] <= 1), levels);
	const unnamed = await page.locator('button, select, input, canvas:not([aria-hidden])').evaluateAll((list) => list.filter((one) =>
		one.checkVisibility() && !one.closest('.uplot') && !(one.innerText || one.ariaLabel || one.labels?.length)).map((one) => one.outerHTML));

	expectSame('every control has an accessible name', unnamed, []);
}

agent.close();
await done();
