/* Opens the page of a hub and of one of its jobs, and prints what they show as JSON: for tests/agent/hub_cluster.py. */
import { browser, PATIENCE_MS } from '../html/browser.mjs';
import { rowsOf } from './visit.mjs';

const [url, key, picture] = process.argv.slice(2);
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await context.newPage();
const trouble = [];

page.setDefaultTimeout(PATIENCE_MS);
page.on('console', (message) => trouble.push(`console: ${message.text()}`));
page.on('pageerror', (error) => trouble.push(`error: ${error.message}`));
page.on('request', (request) => request.url().startsWith(url) || trouble.push(`request: ${request.url()}`));
await page.addInitScript(() => {
	addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
});
await page.goto(`${url}/`);
await page.waitForSelector('#job-rows tr');
const rows = await rowsOf(page, 'job-rows');

if (picture)
	await page.screenshot({ path: `${picture}-jobs.png` });
await page.locator('#job-rows a').first().click();
await page.waitForSelector('.notice-title');
const heading = page.locator('.notice-title').first();
const shown = {
	row: rows[0],
	verdict: (await heading.innerText()).trim().replace(/\s+/g, ' '),
	nodes: await page.locator('#node-rows a').evaluateAll((links) => links.map((link) => link.href)),
	grafana: await page.locator('#job-links a').getAttribute('href').catch(() => null),
	key: new URL(page.url()).searchParams.get('job'),
	trouble,
};

if (shown.key !== key)
	trouble.push(`opened ${shown.key}`);
if (picture)
	await page.screenshot({ path: `${picture}-job.png`, fullPage: true });
console.log(JSON.stringify(shown));
await browser.close();
