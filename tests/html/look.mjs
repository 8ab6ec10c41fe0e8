import { done, expect, expectSame, ink, open } from './browser.mjs';

const [job] = process.argv.slice(2);

/* Every visible text with its contrast to the background. WCAG 2.1, 1.4.3. */
function contrasts(page) {
	return page.evaluate(() => {
		const parse = (text) => {
			const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
			return { r, g, b, a };
		};
		const mix = (top, below, key) => top[key] * top.a + below[key] * (1 - top.a);
		const over = (top, below) => ({ r: mix(top, below, 'r'), g: mix(top, below, 'g'), b: mix(top, below, 'b'), a: 1 });
		const light = ({ r, g, b }) => {
			const [red, green, blue] = [r, g, b].map((value) => value / 255)
				.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));

			return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
		};
		const behind = (element) => {
			const layers = [];

			for (let at = element; at; at = at.parentElement)
				layers.push(parse(getComputedStyle(at).backgroundColor));
			return layers.reverse().reduce((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
		};
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		const found = new Map();

		while (walker.nextNode()) {
			const element = walker.currentNode.parentElement;
			const style = getComputedStyle(element);

			if (!walker.currentNode.data.trim() || !element.checkVisibility())
				continue;
			if (element.closest('script, noscript, option, .unseen'))
				continue;
			const ground = behind(element), ink = over(parse(style.color), ground);
			const [high, low] = [light(ink), light(ground)].sort((a, b) => b - a);
			const contrast = (high + 0.05) / (low + 0.05);
			const key = `${style.color} on ${ground.r | 0},${ground.g | 0},${ground.b | 0}`;

			if (!found.has(key) || found.get(key).contrast > contrast)
				found.set(key, { key, contrast, text: walker.currentNode.data.trim().slice(0, 30) });
		}
		return [...found.values()];
	});
}

/*
 * Contrast of lines and dots to the panel (1.4.11: 3), and the smallest distance between two of them as seen with
 * the common kinds of color blindness (matrices of Machado, Oliveira and Fernandes, full strength).
 */
function palette(page) {
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
		const kinds = {
			all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
			protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
			deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
		};
		const panel = linear(colours.panel);
		const series = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => linear(colours[`s${i}`]));
		const least = {};

		for (const [kind, matrix] of Object.entries(kinds)) {
			const seen = (colour) => matrix.map((row) => row.reduce((sum, factor, i) => sum + factor * colour[i], 0))
				.map((value) => Math.max(0, Math.min(1, value)));
			const labs = series.map((colour) => lab(seen(colour)));

			/* Few jobs have more than six operations; letters and shapes distinguish the last two. */
			least[kind] = Math.min(...[0, 1, 2, 3, 4, 5].flatMap((i) => labs.slice(i + 1, 6)
				.map((other) => Math.hypot(...labs[i].map((value, k) => value - other[k])))));
		}
		const ramp = heatRamp().map((colour) => light(colour.map((value) => decode(value / 255))));
		const way = Math.sign(ramp[255] - ramp[0]);

		return {
			contrasts: series.map((colour) => contrast(colour, panel)), least,
			isOneWay: ramp.every((value, i) => i === 0 || way * (value - ramp[i - 1]) >= 0),
		};
	});
}

for (const scheme of ['light', 'dark']) {
	const { page, trouble } = await open(`${job}.html`, { scheme });

	await page.evaluate(() => document.querySelectorAll('details').forEach((box) => { box.open = true; }));
	await page.waitForTimeout(50);
	const texts = await contrasts(page);
	const poor = texts.filter((one) => one.contrast < 4.5);

	expect(`${scheme}: all texts have a contrast of at least 4.5`, texts.length > 5 && poor.length === 0, poor);
	const found = await palette(page);

	expect(`${scheme}: all series have a contrast of at least 3`, Math.min(...found.contrasts) >= 3, found.contrasts);
	expect(`${scheme}: the first six series are distinguishable with color blindness`, Math.min(...Object.values(found.least)) > 20, found.least);
	expect(`${scheme}: the heat map's lightness is monotonic`, found.isOneWay);
	const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	const isDark = Number(ground.match(/\d+/)[0]) < 128;

	expectSame(`${scheme}: the page follows the system setting`, isDark, scheme === 'dark');
	expectSame(`${scheme}: no console output, errors or requests`, trouble, []);
}

{
	const { page } = await open(`${job}.html`, { scheme: 'dark' });
	const set = () => page.evaluate(() => {
		const names = [...document.styleSheets[1].cssRules].flatMap((rule) => [...(rule.style || [])]);
		const style = getComputedStyle(document.documentElement);

		return names.filter((name) => name.startsWith('--')).map((name) => `${name} ${style.getPropertyValue(name)}`);
	});
	const bySystem = await set();

	await page.selectOption('#theme', 'dark');
	expectSame('selecting dark gives the same colors as the system setting', await set(), bySystem);
	await page.reload();
	expectSame('the choice is remembered', await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
}

{
	const { page, trouble } = await open(`${job}.html`, { width: 360, height: 640 });
	const wide = await page.evaluate(() => ({ page: document.documentElement.scrollWidth, screen: innerWidth }));

	expect('on a phone the page is not wider than the screen', wide.page <= wide.screen, wide);
	await page.evaluate(() => document.querySelectorAll('details').forEach((box) => { box.open = true; }));
	await page.waitForTimeout(50);
	const opened = await page.evaluate(() => ({ page: document.documentElement.scrollWidth, screen: innerWidth }));

	expect('nor with all details open', opened.page <= opened.screen, opened);
	const narrow = await page.locator('main button, main select, main input, nav a').evaluateAll((list) =>
		list.filter((element) => element.checkVisibility() && element.getBoundingClientRect().height < 24)
			.map((element) => element.textContent.trim()));

	expectSame('controls are at least 24 pixels high', narrow, []);
	for (const id of ['plot-bandwidth', 'plot-sizes', 'plot-durations', 'plot-iterations'])
		expect(`${id} is drawn on a phone`, (await ink(page, `#${id} canvas`)).colours > 20);
	const small = await page.evaluate(() => parseFloat(getComputedStyle(document.body).fontSize));

	expect('text has at least 14 pixels', small >= 14, small);
	expectSame('no console output, errors or requests on a phone', trouble, []);
}

{
	const { page, trouble } = await open(`${job}.html`, { scheme: 'dark', motion: 'reduce' });

	const scrolling = await page.evaluate(() => getComputedStyle(document.documentElement).scrollBehavior);

	expectSame('no smooth scrolling with reduced motion', scrolling, 'auto');
	await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
	await page.emulateMedia({ media: 'print' });
	expectSame('the print style is white', await page.evaluate(() => colours.panel), '#ffffff');
	const printed = await page.locator('.tab-panel').evaluateAll((panels) => panels.map((panel) => panel.checkVisibility()));

	expect('all tables are printed', printed.length > 3 && printed.every((isSeen) => isSeen), printed);
	await page.emulateMedia({ media: 'screen' });
	await page.evaluate(() => dispatchEvent(new Event('afterprint')));
	expect('the theme is restored after printing', await page.evaluate(() => colours.panel) !== '#ffffff');
	/* Every control can be reached with the Tab key. */
	const stops = new Set();

	for (let i = 0; i < 150; i++) {
		await page.keyboard.press('Tab');
		const id = await page.evaluate(() => document.activeElement.id || document.activeElement.tagName);

		if (id === 'BODY')
			break;
		stops.add(id);
	}
	const wanted = ['theme', 'plot-bandwidth', 'plot-waiting', 'heat-map', 'plot-sizes', 'durations-of', 'plot-durations',
		'plot-iterations', 'tab-comm', 'INPUT'];

	expectSame('Tab reaches charts, heat map, tabs and filters', wanted.filter((id) => !stops.has(id)), []);
	expectSame('no console output, errors or requests', trouble, []);
}

await done();
