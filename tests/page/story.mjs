import { done, expect, expectPart, expectSame, ink, textOf } from '../html/browser.mjs';
import { serve } from './serve.mjs';
import { play, rowsOf, texts, tick, visit } from './visit.mjs';

const agent = await serve(process.argv[2]);

{
	const { page, trouble, context } = await visit(agent.scene('quiet'));

	expectSame('the heading names the node', await textOf(page, 'h1 bdi'), 'gpu-node-07');
	expectSame('the title names the node', await page.title(), 'gpu-node-07 – Ringside');
	expectSame('a healthy node says so', await page.getByRole('status').innerText(), 'No hangs, and nothing is slow.');
	expectSame('in green', await page.getByRole('status').getAttribute('data-state'), 'good');
	expectSame('with what was judged of each job', await texts(page, '#judged li'), ['llama-70b-sft', 'eval'].map((job) =>
		`${job}\nHangs: judged, none\nSpeed: judged over the last 2 min 03 s, nothing slow`));
	expectSame('there are no alerts', await page.locator('.notice').count(), 0);
	expectSame('jobs are listed with their ranks on this node', await texts(page, '#job-list li'),
		['llama-70b-sft 8 of 16 ranks here', 'eval 2 ranks'].map((text) => text.replace(/(sft|eval) /, '$1\n')));
	expectSame('the tiles show the figures', await texts(page, '.tile'), ['Processes\n10\nalive', 'Operations\n161/s\non 11 communicators',
		'Waiting\n6%\nof each rank’s time (lower bound)', 'In flight\n4\noldest 4 ms', 'Not recorded\n0\nno losses']);
	expectSame('every communicator is listed', await page.locator('#comm-rows tr').count(), 11);
	expectSame('the largest is selected', await textOf(page, '#chosen-title'), 'world');
	expectSame('with its ranks', (await rowsOf(page, 'rank-rows')).map((row) => row[0]),
		['8', '9', '10', '11', '12', '13', '14', '15']);
	expectSame('all of them are running', [...new Set((await rowsOf(page, 'rank-rows')).map((row) => row.at(-1)))], ['running']);
	for (const canvas of ['#charts figure:nth-child(1) canvas', '#charts figure:nth-child(2) canvas', '#comm-rows tr:first-child canvas'])
		expect(`${canvas} is drawn`, (await ink(page, canvas)).colours > 10, await ink(page, canvas));
	expectSame('short operations are not listed', await textOf(page, '#flights-say'), '4 operations are in flight, none for longer than 1 s.');
	await page.selectOption('#older', '0');
	expectSame('unless requested', (await rowsOf(page, 'flight-rows')).map((row) => row[0]), ['4 ms', '4 ms', '3 ms', '2 ms']);
	expectSame('it says that nothing was lost', await textOf(page, '#losses-say'), 'No losses: every operation reported by NCCL was recorded.');

	await page.locator('#comm-rows').getByRole('button', { name: 'tensor parallel' }).click();
	await page.waitForFunction(() => store.membersOf === store.chosen);
	expectSame('a click selects another one', await textOf(page, '#chosen-title'), 'tensor parallel');
	expectSame('ranks show their number in the communicator if it differs', (await rowsOf(page, 'rank-rows'))[3][0], '11 as 3');
	expectSame('the chart shows its bandwidth', (await texts(page, '.chart-now'))[0], (await rowsOf(page, 'comm-rows'))[1][2]);
	agent.change = (now) => { now.communicators[1].wait_share = 0.5; };
	await tick(page, agent);
	expectSame('changes appear without reloading', (await rowsOf(page, 'comm-rows'))[1][3], '50%');
	await play(page, agent, 'hang');
	expectSame('a selection by the reader stays when something else hangs', await textOf(page, '#chosen-title'), 'tensor parallel');
	expectSame('no console messages or errors', trouble, []);
	await context.close();
}

{
	const { page, trouble, context } = await visit(agent.scene('quiet'));

	await page.evaluate(() => { store.chosen = store.now.communicators[4].key; });
	await play(page, agent, 'hang');
	expectSame('without a selection the hanging communicator is shown', await textOf(page, '#chosen-title'), 'world');
	const first = page.locator('.notice').first();

	expect('the banner is an ARIA alert', await page.getByRole('alert').filter({ hasText: 'rank 13' }).count() === 1);
	expectPart('its title names the rank', await first.innerText(), 'Hang: rank 13 has not called AllReduce');
	expectPart('confidence and number of waiting ranks', await textOf(page, '.verdict-sure'), 'confidence 85% · 7 ranks wait');
	expectSame('the first lines of evidence', await page.locator('.verdict .evidence').first().locator('li').count(), 3);
	expectSame('the notice of the same hang is not shown again', await page.locator('.notice:not(.verdict)').filter({ hasText: 'rank 13' }).count(), 0);
	await page.locator('.verdict summary').click();
	expectPart('the remaining evidence on demand', await textOf(page, '.verdict details'), 'rank 12 waits for rank 13');
	expectPart('with the caveats', await textOf(page, '.verdict details'), '8 of 16 ranks are on other nodes');
	expectSame('the next steps', await texts(page, '.verdict .advice code'), ['ringside ps @41205', 'py-spy dump --pid 41205']);
	expectPart('and the start time', await first.innerText(), 'since 07:59:22, for 38 s');
	expectSame('the most serious comes first', (await texts(page, '.notice-kind')), ['Hang', 'Process gone']);
	expectSame('the command can be copied', await first.getByRole('button').first().getAttribute('aria-label'),
		'Copy ringside ps @41205');
	expectSame('the title has their number', await page.title(), '(2) gpu-node-07 – Ringside');
	expectSame('the hanging communicator is selected', await textOf(page, '#chosen-title'), 'world');
	const ranks = await rowsOf(page, 'rank-rows');

	expectSame('the missing rank is marked', ranks[5].at(-1), 'not arrived: others are in a collective it has not called');
	expectSame('the others are stuck', ranks[0].at(-1), 'stuck in AllReduce for 38 s');
	const flights = await rowsOf(page, 'flight-rows');

	expectSame('operations in flight come with age, number, size, communicator, rank, state', flights[0].slice(0, 5),
		['38 s', 'AllReduce #812, 64 MiB', 'world', '8', 'running']);
	expectSame('and what they wait for, as in ringside top', flights[4][5],
		'rank 13, which has not called it waits for rank 13 to be ready to receive on channels 0-5, for 37 s, 24 of 64 transfers done kernel: 8 of 8 channels started, 0 stopped');
	expectSame('the chart highlights the missing rank', await textOf(page, '#legend-mark'), 'rank 13');
	const alerts = await page.evaluate(() => {
		window.added = 0;
		new MutationObserver((changes) => changes.forEach((change) => { window.added += change.addedNodes.length; }))
			.observe(byId('notice-list'), { childList: true, subtree: true });
		return byId('notice-list').getAttribute('aria-relevant');
	});

	await tick(page, agent, 2);
	expectPart('the elapsed time grows', await first.innerText(), 'for 40 s');
	expectSame('ages grow', (await rowsOf(page, 'flight-rows'))[0][0], '40 s');
	expectSame('and is not announced as a new alert', [alerts, await page.evaluate(() => window.added)], ['additions', 0]);
	await page.locator('.notice').nth(1).getByRole('button', { name: 'Show ranks' }).click();
	expectPart('a notice leads to its communicator', await textOf(page, '#chosen-title'), '0x9e0f00aa1b2c3d4e');
	expectSame('which lists the killed process', (await rowsOf(page, 'rank-rows'))[1].at(-1), 'killed');
	expectSame('no console messages or errors', trouble, []);
	await context.close();
}

{
	const { page, trouble, context } = await visit(agent.scene('quiet'));
	const well = page.getByRole('status');

	agent.change = (now) => {
		Object.assign(now.jobs[0].speed, { is_judged: false, is_fine: false, not_judged: '0 of 300 calls are timed',
			advice: 'ringside run --times all -- COMMAND', text: 'Speed: not judged: 0 of 300 calls are timed' });
	};
	await tick(page, agent);
	expectSame('what was not judged is not fine', [await well.innerText(), await well.getAttribute('data-state')],
		['No hangs. Speed was not judged, or only in part.', null]);
	expectSame('it is listed, with what would help', await textOf(page, '#judged li'),
		'llama-70b-sft\nHangs: judged, none\nSpeed: not judged: 0 of 300 calls are timed\nringside run --times all -- COMMAND\nCopy');
	expectSame('only hangs are green', await page.locator('#judged li:first-child [data-state="good"]').count(), 1);

	agent.change = (now) => { now.processes[3].state = 'killed'; };
	await tick(page, agent);
	expectSame('nothing is fine beside a killed process', [await well.innerText(), await well.getAttribute('data-state')],
		['1 process was killed.', null]);

	agent.change = (now) => {
		const { label, hash } = now.communicators[0];

		now.verdicts = [{ class: 'slow_link', severity: 'warning', key: '0x1', title: 'slow link: rank 11 -> rank 12', confidence: 0.9,
			job: now.jobs[0].name, communicator: label, communicator_hash: hash, rank: 11, rank_label: '11', victims: 7,
			since_ns: now.time_ms * 1e6 - 60e9, evidence: ['Sends take longer.'], missing: [], advice: ['$ ssh node ibstat'] }];
		now.notices = [{ kind: 'slow', job: now.jobs[0].name, title: 'slow link: rank 11 -> rank 12', text: '', hint: '', comm: null,
			comm_label: null, rank_label: '11', since_ms: now.time_ms, first_ms: now.time_ms },
		{ kind: 'dead', job: now.jobs[1].name, title: 'rank 11 died', text: '', hint: '', comm: null, comm_label: null, rank_label: '11',
			since_ms: now.time_ms, first_ms: now.time_ms }];
		Object.assign(now.jobs[0].speed, { is_fine: false, found: 1, text: 'Speed: judged over the last 2 min 03 s, 1 found' });
	};
	await tick(page, agent);
	expectSame('slowness is shown once, as such; another job with the same rank has its own notice', await texts(page, '.notice-title'),
		['Slow: slow link: rank 11 -> rank 12', 'Process gone: rank 11 died']);
	expectSame('then nothing is fine', await page.locator('#all-well').isVisible(), false);
	expectPart('what was judged is still listed', await textOf(page, '#judged li'), 'Speed: judged over the last 2 min 03 s, 1 found');
	agent.change = null;
	expectSame('no console messages or errors', trouble, []);
	await context.close();
}

{
	const { page, trouble, context } = await visit(agent.scene('straggler'));

	expectPart('a straggler is a warning', await page.locator('.notice.warning').innerText(), 'Straggler: rank 13 holds up tensor parallel');
	expectPart('losses are a note', await page.locator('.notice.note').innerText(), 'Losses: 1,204 operations of rank 10 were lost');
	expectSame('its communicator is selected', await textOf(page, '#chosen-title'), 'tensor parallel');
	const row = (await rowsOf(page, 'rank-rows'))[5];

	expectSame('the straggler waits least', [row[0], row[3], row[5]], ['13 as 5', '0.4%', 'straggler: others wait 25%']);
	expectPart('losses are listed with their reason', (await rowsOf(page, 'process-rows'))[2].at(-1),
		'1,204: overwritten before being written to the file');
	await page.locator('#rank-rows tr').nth(2).hover();
	expectSame('the rank under the pointer is highlighted in the charts', await textOf(page, '#legend-mark'), 'rank 10');
	expectSame('no console messages or errors', trouble, []);
	await context.close();
}

{
	const { page, trouble, context } = await visit(agent.scene('empty'));

	expectPart('an empty node shows how to start a job', await page.getByRole('status').innerText(), 'No NCCL job is recorded on this node.');
	expectSame('and nothing else', await page.locator('main section:visible').count(), 1);
	agent.scene('fresh');
	await page.clock.runFor(1000);
	await page.waitForFunction(() => store.now.processes.length > 0);
	expectSame('a job appears without reloading', await textOf(page, '#chosen-title'), 'world');
	expectSame('unknown values are dashes', (await rowsOf(page, 'rank-rows'))[0].slice(1, 5), ['–', '–', '–', '–']);
	expectSame('no console messages or errors', trouble, []);
	await context.close();
}

{
	agent.isWithoutCharts = true;
	const { page, trouble } = await visit(agent.scene('hang'));

	expectPart('a missing chart library is reported', await textOf(page, '#charts'), 'built without the chart library');
	expectSame('the rest of the page is complete', (await rowsOf(page, 'rank-rows')).length, 8);
	expectSame('no console messages or errors', trouble, []);
}

agent.close();
await done();
