import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';

import { browser, done, expect, expectPart, expectSame, ink, PATIENCE_MS, textOf } from '../html/browser.mjs';
import { rowsOf } from './visit.mjs';

const [address, agentPid, sign] = process.argv.slice(2);
const url = address.endsWith('/') ? address : `${address}/`;
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const page = await context.newPage();
const trouble = [];
const requests = [];
let isGone = false;

page.setDefaultTimeout(PATIENCE_MS);
page.on('console', (message) => isGone || trouble.push(`console: ${message.text()}`));
page.on('pageerror', (error) => trouble.push(`error: ${error.message}`));
page.on('request', (request) => requests.push(request.url()));
await page.addInitScript(() => {
	addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
});

const response = await page.goto(url);

expectPart('the agent serves the page with its content security policy', response.headers()['content-security-policy'], 'script-src \'self\'');
/* A page without an answer in time is ready, too. */
await page.waitForFunction(() => store.now !== null);
expectSame('the page shows the host name', await textOf(page, '#host'), hostname());

expectPart('an idle node says so', await page.getByRole('status').innerText(), 'No NCCL job is recorded on this node.');

/* The job runs. */
writeFileSync(sign, '');
await page.waitForFunction(() => store.now && store.now.communicators.some((comm) => comm.busbw > 0));
await page.waitForFunction(() => {
	const history = store.histories.get(store.chosen);

	return history?.members?.size === 4 && history.time.length >= 2;
});
expectSame('ranks are listed', (await rowsOf(page, 'rank-rows')).map((row) => row[0]), ['0', '1', '2', '3']);
/* There is no rate for a second in which the job did not run. */
await page.waitForFunction(() => [...document.querySelectorAll('#rank-rows tr')].some((row) => /[MG]B\/s/.test(row.cells[2].innerText)));
expect('with their bandwidth', true);
expect('the chart is drawn', (await ink(page, '.plot canvas')).colours > 5);
expect('histories of ranks are requested for the selected communicator only',
	requests.some((one) => /history\?after=\d+&members=[0-9a-f]{16}$/.test(one)), requests.slice(-4));

const histories = await page.evaluate(async () => Promise.all(
	['', '?members=', `?members=${store.chosen}`, '?members=nobody', `?after=9000000000000000000&members=${store.chosen}`]
		.map(async (query) => (await (await fetch(`api/v1/history${query}`)).json()).communicators)));
const withMembers = histories.map((comms) => comms.filter((comm) => comm.members).length);

expectSame('the agent returns only what was requested', withMembers.slice(0, 4), [0, 0, 1, 0]);
expect('and only newer points', histories[4].every((comm) => [comm, ...(comm.members || [])].every((one) => one.time_ms.length === 0)));

/* Then rank 2 does not arrive. */
const notice = page.locator('.notice.error').filter({ hasText: 'rank 2 has not called AllReduce' });

await notice.waitFor();
expectPart('the banner names the missing rank', await notice.innerText(), 'ranks wait');
expect('it is an ARIA alert', await page.getByRole('alert').filter({ hasText: 'rank 2 has not called' }).count() === 1);
expectPart('it has a command to copy', await notice.locator('code').first().innerText(), 'ringside ps @');
await notice.getByRole('button', { name: 'Show ranks' }).click();
await page.waitForFunction(() => chosenComm().members.some((member) => member.is_behind));
const ranks = await rowsOf(page, 'rank-rows');

expectPart('the missing rank is marked', ranks[2].at(-1), 'not arrived');
expectPart('the others are in the operation', ranks[0].at(-1), 'AllReduce');
/* Ranks that arrived late are listed when their operation is a second old, too. */
await page.waitForFunction(() => new Set([...document.querySelectorAll('#flight-rows tr')].map((row) => row.cells[3].innerText.trim())).size === 3);
const flights = await rowsOf(page, 'flight-rows');

expectSame('three ranks have an operation in flight', [...new Set(flights.map((row) => row[3]))].sort(), ['0', '1', '3']);
expect('with its age and what it waits for', flights.every((row) => /s$/.test(row[0]) && row[5].length > 5), flights);
expectSame('no console messages, errors or policy violations', trouble, []);

/* Then the agent ends. */
isGone = true;
process.kill(Number(agentPid));
await page.getByRole('alert').filter({ hasText: 'Agent unreachable' }).waitFor();
expect('the last data stays', (await rowsOf(page, 'rank-rows')).length === 4);
expect('no requests to other origins', requests.every((one) => one.startsWith(url)), requests.filter((one) => !one.startsWith(url)));

await done();
