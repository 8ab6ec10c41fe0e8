import { readFileSync } from 'node:fs';

import { count, done, expect, expectPart, expectSame, expectStart, open, textOf, textsOf } from './browser.mjs';

const [job, stuck] = process.argv.slice(2);
const json = (path) => JSON.parse(readFileSync(`${path}.json`, 'utf8'));
const plain = (text) => text.replaceAll('`', '');
const percent = (share) => `${Math.round(share * 1000) / 10}`;

async function compareFindings(page, report, whose) {
	expectSame(`${whose}: as many findings as the JSON has`, await page.locator('.finding').count(), report.findings.length);
	expectSame(`${whose}: with the same titles`, await textsOf(page, '.finding h4'), report.findings.map((one) => one.title));
	expectSame(`${whose}: the same sentences`, await page.locator('.finding .text').allTextContents(),
		report.findings.map((one) => plain(one.text)));
	expectSame(`${whose}: the same hints`, await page.locator('.finding .hint').allTextContents(),
		report.findings.filter((one) => one.hint).map((one) => `Next: ${plain(one.hint)}`));
	expectSame(`${whose}: and severities in words`, (await textsOf(page, '.finding .badge')).join(' ').toLowerCase(),
		report.findings.map((one) => one.severity).join(' '));
}

{
	const report = json(job);
	const { page, trouble } = await open(`${job}.html`);
	const facts = (await textOf(page, '.facts')).replaceAll('\n', ' ');

	expectSame('the title names the job', await page.title(), `${report.jobs[0].name} - Ringside report`);
	expectSame('so does the heading', await textOf(page, 'h1'), `Job ${report.jobs[0].name}`);
	expectPart('the ranks are those of the JSON', facts, `Ranks ${report.ranks.length}`);
	expectPart('and the hosts', facts, `Hosts ${report.hosts.length}`);
	expectPart('and NCCL\'s release', facts, `NCCL ${report.nccl[0].release}`);
	expectPart('and when it began', facts, `${report.start.slice(0, 10)} ${report.start.slice(11, 19)} UTC`);
	expectStart('the share of time in communication is the JSON\'s', await textOf(page, '#tile-busy .figure'), percent(report.busy_share));
	expectStart('the share of waiting, too', await textOf(page, '#tile-wait .figure'), percent(report.total.wait_share));
	expectPart('how many operations were read, too', await textOf(page, '#tile-recorded'), count(report.completeness.read));
	expectStart('the median iteration, too', await textOf(page, '#tile-iteration .figure'), (report.iterations.median_ns / 1e6).toPrecision(3));
	await compareFindings(page, report, 'a slow job');

	const functions = [...report.tables.function.rows].sort((a, b) => b.total_ns - a.total_ns).slice(0, 3);

	expectSame('the operations that cost most come in the JSON\'s order, with their share',
		(await page.locator('#costly-operations .cost-line').allTextContents()),
		functions.map((row) => `${row.function}${percent(row.total_ns / report.total.total_ns)} %`));
	expectSame('as many stragglers as in the JSON', await page.locator('#stragglers li').count(), report.stragglers.list.length);
	const late = report.stragglers.list.find((one) => one.class === 'slow_rank');

	expectPart('the late rank is named', await textOf(page, '#stragglers'),
		late ? `rank ${report.ranks[late.rank_index].label} on ${report.hosts[late.host_index].name}` : 'a late rank in the JSON');
	expect('the changes over time are listed', report.windows.changes.length > 0 && await page.locator('.changes li').count() > 0);
	expect('the licence of the charts is in the page', (await page.content()).includes('Copyright (c) 2022 Leon Sorokin'));
	expectSame('nothing was printed, thrown or fetched', trouble, []);
	const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content');

	expectStart('a policy forbids all', policy, 'default-src \'none\'');
	expect('but the page\'s own script', !policy.includes('unsafe'), policy);
	await page.evaluate(() => new Promise((done) => {
		addEventListener('securitypolicyviolation', done);
		document.body.appendChild(Object.assign(new Image(), { onerror: done })).src = 'https://example.invalid/x.png';
	}));
	/* The browser tells us in its order: what the page printed before is here when this is. */
	await page.evaluate(() => console.log('that was all'));
	while (!trouble.some((line) => line.includes('that was all')))
		await page.waitForEvent('console');
	expectPart('and holds: an image from elsewhere is refused', trouble.join('\n'), 'Content Security Policy');
}

{
	const report = json(stuck);
	const { page, trouble } = await open(`${stuck}.html`);

	await compareFindings(page, report, 'a job that hangs');
	expect('what is broken is an error', await page.locator('.finding.error').count() > 0);
	expectSame('its page is quiet, too', trouble, []);
}

await done();
