// Opens a timeline in speedscope in a headless browser.
//
//	node speedscope.mjs FILE [PICTURE.png]
//
// Prints the title of the profile and the rows of the table of slices as JSON. Fails on errors of the page. All files
// are served by this process on the loopback address.
import { createServer } from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

/* Generous, for busy machines. */
const PATIENCE_MS = 120000;
const [path, picture] = process.argv.slice(2);
const packages = fileURLToPath(new URL('../../npm/node_modules', import.meta.url));
const { chromium } = createRequire(join(packages, 'x.js'))('playwright-core');
const root = join(packages, 'speedscope/dist/release');
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json' };

const server = createServer((request, response) => {
	const name = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
	const file = name.startsWith('/timeline') ? path : join(root, name);
	if (!existsSync(file)) {
		response.writeHead(404).end();
		return;
	}
	response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
	response.end(readFileSync(file));
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const base = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM,
	args: ['--no-sandbox', '--enable-unsafe-swiftshader'],
	timeout: PATIENCE_MS,
});
const errors = [];
try {
	const page = await browser.newPage({ viewport: { width: 1400, height: 800 } });
	page.setDefaultTimeout(PATIENCE_MS);
	page.on('pageerror', (error) => errors.push(String(error)));
	// speedscope reports problems in a dialog or in its log.
	page.on('dialog', (dialog) => { errors.push(dialog.message()); dialog.dismiss(); });
	page.on('console', (message) => {
		if (message.type() === 'error' && !/favicon|404/.test(message.text())) errors.push(message.text());
	});
	const file = `timeline${path.endsWith('.gz') ? '.json.gz' : '.json'}`;
	await page.goto(`${base}/index.html#profileURL=${encodeURIComponent(`${base}/${file}`)}`);
	await page.waitForFunction(() => /\(\d+\/\d+\)/.test(document.body.innerText), null, { timeout: PATIENCE_MS });
	const title = await page.evaluate(() => /[^\n]*\(\d+\/\d+\)/.exec(document.body.innerText)[0]);
	if (picture) {
		await page.waitForTimeout(500);
		await page.screenshot({ path: picture });
	}
	await page.keyboard.press('3');
	await page.waitForFunction(() => document.querySelectorAll('table tbody tr, table tr').length > 3, null, { timeout: PATIENCE_MS });
	const rows = await page.evaluate(() => [...document.querySelectorAll('table tr')].map((row) => row.innerText));
	if (picture) await page.screenshot({ path: picture.replace(/\.png$/, '-table.png') });
	console.log(JSON.stringify({ title, rows, errors }));
} finally {
	await browser.close();
	server.close();
}
process.exit(errors.length > 0 ? 1 : 0);
