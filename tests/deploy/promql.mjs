// Reads the queries of dashboards and rules. Used by dashboard_queries.mjs and prometheus_story.mjs.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

// Substitutes Grafana's variables. Selections become "everything".
export function withoutVariables(expr, { window = '1m', range = '1h' } = {}) {
	return expr.replace(/\$__rate_interval|\$__interval/g, window).replace(/\$__range/g, range)
		.replace(/"\$\w+"/g, '".*"').replace(/\$price\b/g, '2');
}

export function dashboards(directory = 'deploy/grafana/dashboards') {
	return readdirSync(directory).filter((name) => name.endsWith('.json')).sort()
		.map((name) => ({ name, ...JSON.parse(readFileSync(join(directory, name), 'utf8')) }));
}

// Also those inside collapsed rows.
export function panelsOf({ panels }) {
	return panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
}

// [{ where, expr, isVariable }] of one dashboard. label_values(metric, label) queries metric.
export function queriesOf(dashboard) {
	const found = [];
	for (const panel of panelsOf(dashboard))
		for (const { expr } of panel.targets ?? [])
			found.push({ where: `${dashboard.name}: ${panel.title}`, expr });
	for (const { name, target } of dashboard.annotations.list)
		found.push({ where: `${dashboard.name}: annotation ${name}`, expr: target.expr });
	for (const { name, type, query } of dashboard.templating.list) {
		if (type !== 'query')
			continue;
		const parts = /^label_values\((.+), (\w+)\)$/.exec(query.query);
		if (!parts)
			throw new Error(`${dashboard.name}: variable ${name}: not label_values(SERIES, LABEL): ${query.query}`);
		found.push({ where: `${dashboard.name}: variable ${name}`, expr: `count by (${parts[2]}) (${parts[1]})`, isVariable: true });
	}
	return found;
}

// [{ where, name, expr, isAlert }] of the rule files: the text of `expr:` on the same line or, after "|", below it.
export function rules(directory = 'deploy/prometheus/rules') {
	const found = [];
	for (const file of readdirSync(directory).sort()) {
		const lines = readFileSync(join(directory, file), 'utf8').split('\n');
		let name, isAlert;
		lines.forEach((line, at) => {
			const begin = /^ *- (record|alert): (\S+)$/.exec(line);
			if (begin)
				[isAlert, name] = [begin[1] === 'alert', begin[2]];
			const text = /^( *)expr: (.+)$/.exec(line);
			if (!text)
				return;
			let expr = text[2];
			if (expr === '|') {
				const body = [];
				for (let i = at + 1; lines[i] === '' || lines[i]?.startsWith(`${text[1]} `); i++)
					body.push(lines[i]);
				expr = body.join('\n');
			}
			found.push({ where: `${basename(file)}: ${name}`, name, expr, isAlert });
		});
	}
	return found;
}

// What the texts of alerts ask for by name: {{ query "NAME" }}.
export function annotationQueries(directory = 'deploy/prometheus/rules') {
	return readdirSync(directory).flatMap((file) =>
		[...readFileSync(join(directory, file), 'utf8').matchAll(/query "([\w:]+)"/g)].map(([, name]) => name));
}
