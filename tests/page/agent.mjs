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

expectPart('the agent serves the page under its policy', response.headers()['content-security-policy'], 'script-src \'self\'');
/* Ready is also a page that had no answer in time. */
await page.waitForFunction(() => store.now !== null);
expectSame('and names the node', await textOf(page, '#host'), hostname());

expectPart('where nothing runs yet', await page.getByRole('status').innerText(), 'No NCCL job is recorded on this node.');

/* The job runs. */
writeFileSync(sign, '');
await page.waitForFunction(() => store.now && store.now.communicators.some((comm) => comm.busbw > 0));
await page.waitForFunction(() => {
	const history = store.histories.get(store.chosen);

	return history?.members?.size === 4 && history.time.length >= 2;
});
expectSame('ranks are side by side', (await rowsOf(page, 'rank-rows')).map((row) => row[0]), ['0', '1', '2', '3']);
/* Of a second in which the job did not run there is no rate. */
await page.waitForFunction(() => [...document.querySelectorAll('#rank-rows tr')].some((row) => /[MG]B\/s/.test(row.cells[2].innerText)));
expect('with what they do', true);
expect('the chart is drawn', (await ink(page, '.plot canvas')).colours > 5);
expect('members are asked for the chosen communicator alone',
	requests.some((one) => /history\?after=\d+&members=[0-9a-f]{16}$/.test(one)), requests.slice(-4));

const histories = await page.evaluate(async () => Promise.all(
	['', '?members=', `?members=${store.chosen}`, '?members=nobody', `?after=9000000000000000000&members=${store.chosen}`]
		.map(async (query) => (await (await fetch(`api/v1/history${query}`)).json()).communicators)));
const withMembers = histories.map((comms) => comms.filter((comm) => comm.members).length);

expectSame('the agent keeps to that', withMembers.slice(0, 4), [0, 0, 1, 0]);
expect('and to the time', histories[4].every((comm) => [comm, ...(comm.members || [])].every((one) => one.time_ms.length === 0)));

/* Then rank 2 does not come. */
const notice = page.locator('.notice.error').filter({ hasText: 'rank 2 has not called AllReduce' });

await notice.waitFor();
expectPart('the banner names who is missing', await notice.innerText(), 'ranks wait');
expect('it is an alert', await page.getByRole('alert').filter({ hasText: 'rank 2 has not called' }).count() === 1);
expectPart('with a command to copy', await notice.locator('code').first().innerText(), 'ringside ps @');
await notice.getByRole('button', { name: 'Show its ranks' }).click();
await page.waitForFunction(() => chosenComm().members.some((member) => member.is_behind));
const ranks = await rowsOf(page, 'rank-rows');

expectPart('the missing rank is marked among the others', ranks[2].at(-1), 'behind');
expectPart('who are in the operation', ranks[0].at(-1), 'AllReduce');
/* Those who came late are not in the list before a second has passed for them, too. */
await page.waitForFunction(() => new Set([...document.querySelectorAll('#flight-rows tr')].map((row) => row.cells[3].innerText.trim())).size === 3);
const flights = await rowsOf(page, 'flight-rows');

expectSame('three are in flight', [...new Set(flights.map((row) => row[3]))].sort(), ['0', '1', '3']);
expect('for longer than a second, with what they wait for', flights.every((row) => /s$/.test(row[0]) && row[5].length > 5), flights);
expectSame('no console message, error or refused thing', trouble, []);

/* And the agent goes. */
isGone = true;
process.kill(Number(agentPid));
await page.getByRole('alert').filter({ hasText: 'The agent cannot be reached' }).waitFor();
expect('what was known stays', (await rowsOf(page, 'rank-rows')).length === 4);
expect('nothing was asked elsewhere', requests.every((one) => one.startsWith(url)), requests.filter((one) => !one.startsWith(url)));

await done();
