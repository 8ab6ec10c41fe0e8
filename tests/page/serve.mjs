/*
 * An agent for the tests of the page: serves its files with the content security policy and answers from scenes written by
 * tests/unit/output/test_live_json.c. Time in a scene only advances with goOn(), so that nothing depends on speed.
 *
 *	const agent = await serve(directory);
 *	agent.scene('hang');
 *	agent.goOn(5);		five seconds pass: times, ages, one point per second
 *	agent.fail(503);	or 'close', 'hang', 'garbage'; 0: answer again
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const types = { html: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' };
const fields = ['operations_per_s', 'busbw', 'algbw', 'busy', 'wait'];
const files = { '/': 'index.html', '/page.css': 'page.css', '/page.js': 'page.js', '/icon.svg': 'icon.svg', '/uplot.css': 'uplot.css',
	'/uplot.js': 'uplot.js' };

/* A history continued for this many seconds, repeating its last point, from afterMs on. */
function past(history, fromMs, seconds, afterMs) {
	const last = history.time_ms.length - 1;
	const more = Array.from({ length: last < 0 ? 0 : Math.max(0, seconds) }, (unused, i) => i + 1);
	const times = [...history.time_ms, ...more.map((i) => history.time_ms[last] + i * 1000)];
	const first = times.findIndex((ms) => fromMs + ms > afterMs);
	const cut = (list) => (first < 0 ? [] : list.slice(first));
	const made = Object.fromEntries(fields.map((name) => [name, cut([...history[name], ...more.map(() => history[name][last])])]));

	return { ...made, time_ms: cut(times) };
}

function grow(now, seconds) {
	now.time_ms += seconds * 1000;
	now.looks += seconds;
	for (const comm of now.communicators) {
		comm.oldest_age_ns += comm.in_flight ? seconds * 1e9 : 0;
		for (const member of comm.members.filter((one) => one.oldest)) {
			member.oldest.age_ns += seconds * 1e9;
			member.oldest.waits.forEach((wait) => { wait.waiting_ns += seconds * 1e9; });
		}
	}
}

export async function serve(directory) {
	const agent = { name: 'quiet', seconds: 0, failure: 0, requests: [], isWithoutCharts: false, change: null };
	const policy = readFileSync(`${directory}/policy`, 'utf8');
	const read = (name) => JSON.parse(readFileSync(`${directory}/${name}.json`, 'utf8'));
	const histories = new Map();
	const known = (name) => histories.get(name) || histories.set(name, read(name)).get(name);
	const answers = {
		'/api/v1/now': () => {
			const now = read(`${agent.name}.now`);

			now.scene = agent.name;
			grow(now, agent.seconds);
			if (agent.change)
				agent.change(now);
			return now;
		},
		'/api/v1/history': (query) => {
			const { communicators, from_ms: from, ...history } = known(`${agent.name}.history`);
			const wanted = query.get('members'), after = Number(BigInt(query.get('after') || '0') / 1000000n);

			history.from_ms = from;
			history.until_ns = String(BigInt(history.until_ns) + BigInt(agent.seconds) * 1000000000n);
			history.communicators = communicators.map((comm) => ({
				key: comm.key, ...past(comm, from, agent.seconds, after),
				...(wanted === null || wanted === comm.key
					? { members: comm.members.map((member) => ({ rank: member.rank, ...past(member, from, agent.seconds, after) })) } : {}),
			}));
			return history;
		},
	};

	const server = createServer((request, response) => {
		const url = new URL(request.url, 'http://agent');

		agent.requests.push(request.url);
		response.setHeader('Content-Security-Policy', policy);
		response.setHeader('X-Content-Type-Options', 'nosniff');
		if (files[url.pathname]) {
			const name = files[url.pathname];

			response.setHeader('Content-Type', types[name.split('.').pop()]);
			response.end(agent.isWithoutCharts && name.startsWith('uplot') ? '' : readFileSync(`${directory}/${name}`));
		} else if (!answers[url.pathname]) {
			response.writeHead(404).end();
		} else if (agent.failure === 'close') {
			request.socket.destroy();
		} else if (agent.failure === 'garbage') {
			response.end('{"format":"something else"}');
		} else if (agent.failure) {
			response.writeHead(agent.failure).end('no');
		} else {
			response.setHeader('Content-Type', 'application/json');
			response.end(JSON.stringify(answers[url.pathname](url.searchParams)));
		}
	});

	await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
	agent.url = `http://127.0.0.1:${server.address().port}/`;
	agent.scene = (name) => Object.assign(agent, { name, seconds: 0, failure: 0, change: null });
	agent.goOn = (seconds) => { agent.seconds += seconds; };
	agent.fail = (how) => { agent.failure = how; };
	agent.close = () => {
		server.closeAllConnections();
		server.close();
	};
	return agent;
}
