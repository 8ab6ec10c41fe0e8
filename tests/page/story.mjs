import { done, expect, expectPart, expectSame, ink, textOf } from '../html/browser.mjs';
import { serve } from './serve.mjs';
import { play, rowsOf, texts, tick, visit } from './visit.mjs';

const agent = await serve(process.argv[2]);

{
	const { page, trouble, context } = await visit(agent.scene('quiet'));

	expectSame('the heading names the node', await textOf(page, 'h1 bdi'), 'gpu-node-07');
	expectSame('so does the title', await page.title(), 'gpu-node-07 – Ringside');
	expectSame('all is well, in words', await page.getByRole('status').innerText(), 'Nothing hangs, and nobody lags behind.');
	expectSame('there is no alert', await page.locator('.notice').count(), 0);
	expectSame('jobs are listed with their ranks here', await texts(page, '#job-list li'),
		['llama-70b-sft 8 of 16 ranks here', 'eval 2 ranks'].map((text) => text.replace(/(sft|eval) /, '$1\n')));
	expectSame('figures say what goes on', await texts(page, '.tile'), ['Processes\n10\nalive', 'Operations\n161/s\non 11 communicators',
		'Waiting\n6 %\nof each rank’s time, at least', 'In flight\n4\noldest 4 ms', 'Not recorded\n0\nnothing was lost']);
	expectSame('every communicator is in the list', await page.locator('#comm-rows tr').count(), 11);
	expectSame('the largest is chosen', await textOf(page, '#chosen-title'), 'world');
	expectSame('with its ranks side by side', (await rowsOf(page, 'rank-rows')).map((row) => row[0]),
		['8', '9', '10', '11', '12', '13', '14', '15']);
	for (const canvas of ['#charts figure:nth-child(1) canvas', '#charts figure:nth-child(2) canvas', '#comm-rows tr:first-child canvas'])
		expect(`${canvas} is drawn`, (await ink(page, canvas)).colours > 10, await ink(page, canvas));
	expectSame('short operations are no list', await textOf(page, '#flights-say'), '4 operations are in flight, none for longer than 1 s.');
	await page.selectOption('#older', '0');
	expectSame('unless asked for', (await rowsOf(page, 'flight-rows')).map((row) => row[0]), ['4 ms', '4 ms', '3 ms', '2 ms']);
	expectSame('nothing is lost, in words', await textOf(page, '#losses-say'), 'Every operation that NCCL showed is recorded.');

	await page.locator('#comm-rows').getByRole('button', { name: 'tensor parallel' }).click();
	await page.waitForFunction(() => store.membersOf === store.chosen);
	expectSame('a click shows another', await textOf(page, '#chosen-title'), 'tensor parallel');
	expectSame('ranks have their number in it, where it is another', (await rowsOf(page, 'rank-rows'))[3][0], '11 as 3');
	expectSame('its bandwidth is on its chart', (await texts(page, '.chart-now'))[0], (await rowsOf(page, 'comm-rows'))[1][2]);
	agent.change = (now) => { now.communicators[1].wait_share = 0.5; };
	await tick(page, agent);
	expectSame('what changes is shown by itself', (await rowsOf(page, 'comm-rows'))[1][3], '50 %');
	await play(page, agent, 'hang');
	expectSame('what was chosen by hand stays when something else hangs', await textOf(page, '#chosen-title'), 'tensor parallel');
	expectSame('quietly', trouble, []);
	await context.close();
}

{
	const { page, trouble, context } = await visit(agent.scene('quiet'));

	await page.evaluate(() => { store.chosen = store.now.communicators[4].key; });
	await play(page, agent, 'hang');
	expectSame('who chose nothing is led to what hangs', await textOf(page, '#chosen-title'), 'world');
	const first = page.locator('.notice').first();

	expect('the banner is an alert', await page.getByRole('alert').filter({ hasText: 'rank 13' }).count() === 1);
	expectPart('it says what, in words', await first.innerText(), 'Hang: rank 13 has not called AllReduce 812 of world; 7 ranks wait for it');
	expectPart('how sure that is, and who suffers', await textOf(page, '.verdict-sure'), 'very likely · 7 ranks wait');
	expectSame('what speaks for it, the first of it', await page.locator('.verdict .evidence').first().locator('li').count(), 3);
	expectSame('the notice of the same hang is not shown beside it', await page.locator('.notice').filter({ hasText: 'has not issued' }).count(), 0);
	await page.locator('.verdict summary').click();
	expectPart('and on demand the rest', await textOf(page, '.verdict details'), 'rank 12 waits for rank 13');
	expectPart('with what could not be seen', await textOf(page, '.verdict details'), '8 of 16 ranks are on other nodes');
	expectSame('what to type, one after the other', await texts(page, '.verdict .advice code'), ['ringside ps @41205', 'py-spy dump --pid 41205']);
	expectPart('and since when', await first.innerText(), 'since 07:59:22, for 38 s');
	expectSame('the most serious comes first', (await texts(page, '.notice-kind')), ['Hang', 'Process gone']);
	expectSame('the command to type next can be copied', await first.getByRole('button').first().getAttribute('aria-label'),
		'Copy ringside ps @41205');
	expectSame('the title counts them', await page.title(), '(2) gpu-node-07 – Ringside');
	expectSame('who hangs is chosen', await textOf(page, '#chosen-title'), 'world');
	const ranks = await rowsOf(page, 'rank-rows');

	expectSame('the rank that is missing is named', ranks[5].at(-1), 'behind: has not issued what others are in');
	expectSame('others say what they are in', ranks[0].at(-1), 'in AllReduce for 38 s');
	const flights = await rowsOf(page, 'flight-rows');

	expectSame('operations in flight come with age, number, size, communicator, rank, state', flights[0].slice(0, 5),
		['38 s', 'AllReduce number 812, 64 MiB', 'world', '8', 'running']);
	expectSame('and what they wait for', flights[4][5],
		'waits for rank 13 to be ready to receive on channels 0-5, for 37 s, 24 of 64 transfers done kernel: 8 of 8 channels started, 0 stopped');
	expectSame('the marked line is the missing rank’s', await textOf(page, '#legend-mark'), 'rank 13');
	const alerts = await page.evaluate(() => {
		window.added = 0;
		new MutationObserver((changes) => changes.forEach((change) => { window.added += change.addedNodes.length; }))
			.observe(byId('notice-list'), { childList: true, subtree: true });
		return byId('notice-list').getAttribute('aria-relevant');
	});

	await tick(page, agent, 2);
	expectPart('time goes on', await first.innerText(), 'for 40 s');
	expectSame('ages grow', (await rowsOf(page, 'flight-rows'))[0][0], '40 s');
	expectSame('and that is no new alert', [alerts, await page.evaluate(() => window.added)], ['additions', 0]);
	await page.locator('.notice').nth(1).getByRole('button', { name: 'Show its ranks' }).click();
	expectPart('a notice leads to its communicator', await textOf(page, '#chosen-title'), '0x9e0f00aa1b2c3d4e');
	expectSame('where the dead process is', (await rowsOf(page, 'rank-rows'))[1].at(-1), 'process killed');
	expectSame('quietly', trouble, []);
	await context.close();
}

{
	const { page, trouble, context } = await visit(agent.scene('straggler'));

	expectPart('a straggler is a warning', await page.locator('.notice.warning').innerText(), 'Straggler: rank 13 holds up tensor parallel');
	expectPart('losses are a note', await page.locator('.notice.note').innerText(), 'Losses: 1,204 operations of rank 10 were lost');
	expectSame('its communicator is chosen', await textOf(page, '#chosen-title'), 'tensor parallel');
	const row = (await rowsOf(page, 'rank-rows'))[5];

	expectSame('the rank that the others wait for waits least itself', [row[0], row[3], row[5]], ['13 as 5', '0.4 %', 'others wait for it 25 %']);
	expectPart('losses are listed with their reason', (await rowsOf(page, 'process-rows'))[2].at(-1),
		'1,204: overwritten before they were written to the file');
	await page.locator('#rank-rows tr').nth(2).hover();
	expectSame('a rank that is pointed at is marked in the charts', await textOf(page, '#legend-mark'), 'rank 10');
	expectSame('quietly', trouble, []);
	await context.close();
}

{
	const { page, trouble, context } = await visit(agent.scene('empty'));

	expectPart('an empty node says what to do', await page.getByRole('status').innerText(), 'No NCCL job is recorded on this node.');
	expectSame('and shows nothing else', await page.locator('main section:visible').count(), 1);
	agent.scene('fresh');
	await page.clock.runFor(1000);
	await page.waitForFunction(() => store.now.processes.length > 0);
	expectSame('a job appears by itself', await textOf(page, '#chosen-title'), 'world');
	expectSame('what is not known yet is no number', (await rowsOf(page, 'rank-rows'))[0].slice(1, 5), ['–', '–', '–', '–']);
	expectSame('quietly', trouble, []);
	await context.close();
}

{
	agent.isWithoutCharts = true;
	const { page, trouble } = await visit(agent.scene('hang'));

	expectPart('without the charts’ library the page says so', await textOf(page, '#charts'), 'library was not there when this agent was built');
	expectSame('and the rest is there', (await rowsOf(page, 'rank-rows')).length, 8);
	expectSame('quietly', trouble, []);
}

agent.close();
await done();
