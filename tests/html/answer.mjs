import { readFileSync } from 'node:fs';

import { count, done, expect, expectPart, expectSame, expectStart, open, textOf, textsOf } from './browser.mjs';

const [job, stuck] = process.argv.slice(2);
const json = (path) => JSON.parse(readFileSync(`${path}.json`, 'utf8'));
const plain = (text) => text.replaceAll('`', '');
const percent = (share) => `${Math.round(share * 1000) / 10}`;

async function compareFindings(page, report, whose) {
	expectSame(`${whose}: the number of findings of the JSON`, await page.locator('.finding').count(), report.findings.length);
	expectSame(`${whose}: the same titles`, await textsOf(page, '.finding h4'), report.findings.map((one) => one.title));
	expectSame(`${whose}: the same sentences`, await page.locator('.finding .text').allTextContents(),
		report.findings.map((one) => plain(one.text)));
	expectSame(`${whose}: the same hints`, await page.locator('.finding .hint').allTextContents(),
		report.findings.filter((one) => one.hint).map((one) => `Next: ${plain(one.hint)}`));
	expectSame(`${whose}: the severities in words`, (await textsOf(page, '.finding .badge')).join(' ').toLowerCase(),
		report.findings.map((one) => one.severity).join(' '));
}

{
	const report = json(job);
	const { page, trouble } = await open(`${job}.html`);
	const facts = (await textOf(page, '.facts')).replaceAll('\n', ' ');

	expectSame('the title is the job\'s name', await page.title(), `${report.jobs[0].name} - Ringside report`);
	expectSame('so is the heading', await textOf(page, 'h1'), `Job ${report.jobs[0].name}`);
	expectPart('the number of ranks of the JSON', facts, `Ranks ${report.ranks.length}`);
	expectPart('the number of hosts', facts, `Hosts ${report.hosts.length}`);
	expectPart('the NCCL release', facts, `NCCL ${report.nccl[0].release}`);
	expectPart('the start time', facts, `${report.start.slice(0, 10)} ${report.start.slice(11, 19)} UTC`);
	expectStart('the JSON\'s share of communication', await textOf(page, '#tile-busy .figure'), percent(report.busy_share));
	expectStart('its share of waiting', await textOf(page, '#tile-wait .figure'), percent(report.total.wait_share));
	expectPart('its number of operations', await textOf(page, '#tile-recorded'), count(report.completeness.read));
	expectStart('its median iteration', await textOf(page, '#tile-iteration .figure'), (report.iterations.median_ns / 1e6).toPrecision(3));
	await compareFindings(page, report, 'a slow job');

	const functions = [...report.tables.function.rows].sort((a, b) => b.total_ns - a.total_ns).slice(0, 3);

	expectSame('the most expensive operations with their shares',
		(await page.locator('#costly-operations .cost-line').allTextContents()),
		functions.map((row) => `${row.function}${percent(row.total_ns / report.total.total_ns)}%`));
	expectSame('long durations are written as in the text report',
		await page.evaluate(() => [67e9, 3599.9e9, 20844e9, 90061e9].map((ns) => duration(ns))),
		['1 min 07 s', '59 min 59 s', '5 h 47 min', '1 d 01 h']);
	expectSame('the number of stragglers of the JSON', await page.locator('#stragglers li').count(), report.stragglers.list.length);
	const late = report.stragglers.list.find((one) => one.class === 'slow_rank');

	expectPart('the straggler is named', await textOf(page, '#stragglers'),
		late ? `rank ${report.ranks[late.rank_index].label} on ${report.hosts[late.host_index].name}` : 'a late rank in the JSON');
	expect('changes over time are listed', report.windows.changes.length > 0 && await page.locator('.changes li').count() > 0);
	expect('the license of the chart library is in the page', (await page.content()).includes('Copyright (c) 2022 Leon Sorokin'));
	expectSame('no console output, errors or requests', trouble, []);
	const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute('content');

	expectStart('the policy denies everything', policy, 'default-src \'none\'');
	expect('except the page\'s own scripts', !policy.includes('unsafe'), policy);
	await page.evaluate(() => new Promise((done) => {
		addEventListener('securitypolicyviolation', done);
		document.body.appendChild(Object.assign(new Image(), { onerror: done })).src = 'https://example.invalid/x.png';
	}));
	/* Console messages arrive in order, so earlier ones are here after this one. */
	await page.evaluate(() => console.log('that was all'));
	while (!trouble.some((line) => line.includes('that was all')))
		await page.waitForEvent('console');
	expectPart('the policy works: a remote image is blocked', trouble.join('\n'), 'Content Security Policy');
}

{
	const report = json(stuck);
	const { page, trouble } = await open(`${stuck}.html`);

	await compareFindings(page, report, 'a hung job');
	expect('a hang is an error', await page.locator('.finding.error').count() > 0);
	expectPart('its GPU time is counted', await page.locator('p.lead').innerText(), 'The job hung at the end');
	expectSame('no console output, errors or requests on its page', trouble, []);
}

await done();
