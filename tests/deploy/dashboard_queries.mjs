// Checks that every query of dashboards and rules is PromQL over existing series and labels: node dashboard_queries.mjs [METRICS.md]
//
// Prints TAP. Known series: the tables of docs/METRICS.md and docs/HUB.md, recorded series, the four metrics of NCCL Inspector, and a few of Prometheus.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { annotationQueries, dashboards, queriesOf, rules, withoutVariables } from './promql.mjs';

const require = createRequire(resolve(fileURLToPath(import.meta.url), '../../../npm/package.json'));
const { parser } = require('@prometheus-io/lezer-promql');

const TARGET = ['instance', 'job'];
const COMMON = ['version', 'slurm_job_id', 'node', 'gpu', 'comm_name', 'n_nodes', 'nranks', 'message_size'];
const INSPECTOR = {
	nccl_bus_bandwidth_gbs: [...COMMON, 'collective', 'algo_proto'],
	nccl_collective_exec_time_microseconds: [...COMMON, 'collective', 'algo_proto'],
	nccl_p2p_bus_bandwidth_gbs: [...COMMON, 'p2p_operation'],
	nccl_p2p_exec_time_microseconds: [...COMMON, 'p2p_operation'],
};

// The table's rows: | `name` | type | labels | ...
function readTable(path) {
	const known = new Map();
	for (const line of readFileSync(path, 'utf8').split('\n')) {
		const cells = line.split('|').map((cell) => cell.trim());
		const name = /^`([a-z_]+)`$/.exec(cells[1] ?? '')?.[1];
		if (!name || !['counter', 'gauge', 'histogram', 'info'].includes(cells[2]))
			continue;
		const labels = cells[3].match(/[a-z_]+/g) ?? [];
		known.set(name, labels);
		if (cells[2] === 'histogram')
			for (const suffix of ['bucket', 'sum', 'count'])
				known.set(`${name}_${suffix}`, [...labels, 'le']);
	}
	return known;
}

const known = new Map([...readTable('docs/HUB.md'), ...readTable(process.argv[2] ?? 'docs/METRICS.md')]);
const recorded = new Set(rules().filter((rule) => !rule.isAlert).map((rule) => rule.name));
for (const [name, labels] of Object.entries(INSPECTOR))
	known.set(name, labels);
known.set('up', []);
const LINKS = ['runbooks', 'grafana', 'job_page', 'agent_scheme'];
known.set('ALERTS', ['alertname', 'alertstate', 'severity', 'nccl_job']);
const everyLabel = new Set([...[...known.values()].flat(), ...TARGET, ...LINKS, 'comm_label', 'partition']);

function complaints(expr) {
	const found = [];
	const text = (node) => expr.slice(node.from, node.to);
	const made = [...expr.matchAll(/(?:count_values|label_join|label_replace)[^"]*"(\w+)"/g)].map(([, label]) => label);
	let metric;
	parser.parse(expr).iterate({
		enter(node) {
			if (node.type.isError) {
				found.push(`not PromQL near "${expr.slice(Math.max(0, node.from - 20), node.to + 20)}"`);
			} else if (node.name === 'VectorSelector') {
				metric = node.node.getChild('Identifier') && text(node.node.getChild('Identifier'));
				if (!known.has(metric) && !recorded.has(metric))
					found.push(`unknown series ${metric}`);
			} else if (node.name === 'LabelName') {
				const label = text(node);
				const isMatcher = node.matchContext(['UnquotedLabelMatcher']);
				if (!everyLabel.has(label) && !made.includes(label))
					found.push(`unknown label ${label}`);
				else if (isMatcher && known.has(metric) && ![...known.get(metric), ...TARGET].includes(label))
					found.push(`${metric} has no label ${label}`);
			}
		},
	});
	return found;
}

let count = 0;
let failed = 0;
function expectNone(sentence, wrong) {
	console.log(`${wrong.length ? 'not ok' : 'ok'} ${++count} - ${sentence}`);
	wrong.forEach((line) => console.log(`#   ${line}`));
	failed += wrong.length ? 1 : 0;
}

for (const dashboard of dashboards()) {
	const wrong = queriesOf(dashboard).flatMap(({ where, expr }) =>
		complaints(withoutVariables(expr)).map((line) => `${where}: ${line}`));
	expectNone(`${dashboard.name} uses existing series`, wrong);
}
expectNone('the rules use existing series', rules().flatMap(({ where, expr }) => complaints(expr).map((line) => `${where}: ${line}`)));
const inTexts = new Set(annotationQueries());
expectNone('every recorded series is used by a rule or a dashboard', [...recorded].filter((name) => !inTexts.has(name) &&
	![...rules(), ...dashboards().flatMap(queriesOf)].some(({ expr }) => new RegExp(`(^|[^\\w:])${name}($|[^\\w:])`).test(expr))));
const page = readFileSync('docs/PROMETHEUS.md', 'utf8');
expectNone('docs/PROMETHEUS.md describes every recorded series', [...recorded].filter((name) => !page.includes(`\`${name}\``)));

// The check can fail.
const mistakes = ['sum(nccl_operations_totals)', 'nccl_operations_total{comm_name="x"}', 'sum by (rang) (nccl_operations_total)', 'sum(('];
mistakes.forEach((expr) => expectNone(`a mistake is detected in ${expr}`, complaints(expr).length ? [] : ['not detected']));
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
