// Writes the dashboards: node deploy/grafana/make-dashboards.mjs [DIRECTORY]
//
// Panels are listed below by dashboard; their style is defined once, at the top. tests/deploy/dashboards.t checks that the files in
// dashboards/ are up to date, that they match Grafana's types, and that every query is valid PromQL over existing series.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SCHEMA = 42;
const datasource = { type: 'prometheus', uid: '${datasource}' };
const KIND_NVLINK = 'kind="nvlink-only"';
const KIND_NETWORK = 'kind=~"net-only|mixed"';
// Evaluation interval of the rules (deploy/prometheus/rules), to convert sums over time to hours.
const WAITING_INTERVAL_S = 15;

// --- Variables.

const datasourceVariable = {
	name: 'datasource', type: 'datasource', label: 'Data source', query: 'prometheus', regex: '', refresh: 1,
	hide: 0, multi: false, includeAll: false, options: [],
};

function labelValues(name, label, metric, labelName, { multi = true } = {}) {
	const query = `label_values(${metric}, ${labelName})`;
	return {
		name, type: 'query', label, datasource,
		query: { query, refId: 'PrometheusVariableQueryEditor-VariableQuery' },
		refresh: 2, sort: 3, hide: 0, regex: '', multi, includeAll: true, allValue: '.*', options: [],
		current: { text: 'All', value: multi ? ['$__all'] : '$__all' },
	};
}

const jobVariable = labelValues('nccl_job', 'Job', 'nccl_process_info', 'nccl_job');

// --- Queries: a string, or { expr, legend }.

function targets(queries, { instant = false, table = false } = {}) {
	return [queries].flat().map((query, index) => {
		const { expr, legend = '' } = typeof query === 'string' ? { expr: query } : query;
		return {
			refId: String.fromCharCode(65 + index), datasource, expr, legendFormat: legend || '__auto', editorMode: 'code',
			range: !(instant || table), instant: instant || table, format: table ? 'table' : 'time_series',
		};
	});
}

// --- Panels. Width and height are in Grafana's grid of 24 columns.

const steps = (...pairs) => ({ mode: 'absolute', steps: pairs.map(([value, color]) => ({ value, color })) });
const calm = steps([null, 'text']);

function panel(type, title, description, queries, { w, h, unit, thresholds = calm, custom, min, max, decimals, options, how, overrides = [],
	transformations, links, mappings }) {
	const defaults = { unit, thresholds, mappings, links, min, max, decimals, custom };
	return {
		type, title, description, datasource, w, h, targets: targets(queries, how), transformations, options,
		fieldConfig: { defaults, overrides },
	};
}

function lines(title, description, queries, { w = 12, h = 8, unit = 'short', stack = false, thresholds, min = 0, max, calcs = ['mean', 'max'] } = {}) {
	const custom = {
		drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: stack ? 30 : 5, pointSize: 4,
		showPoints: 'auto', spanNulls: false, stacking: { mode: stack ? 'normal' : 'none', group: 'A' },
		thresholdsStyle: { mode: thresholds ? 'line' : 'off' },
	};
	return panel('timeseries', title, description, queries, { w, h, unit, custom, thresholds, min, max, options: {
		legend: { displayMode: 'table', placement: 'bottom', showLegend: true, calcs, sortBy: 'Max', sortDesc: true },
		tooltip: { mode: 'multi', sort: 'desc' },
	} });
}

function figure(title, description, query, { w = 4, h = 4, unit = 'short', thresholds, decimals } = {}) {
	return panel('stat', title, description, query, { w, h, unit, thresholds, decimals, how: { instant: true }, options: {
		reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false }, orientation: 'auto', textMode: 'auto',
		colorMode: thresholds ? 'background' : 'value', graphMode: 'none', justifyMode: 'auto', wideLayout: true,
		showPercentChange: false, percentChangeColorMode: 'standard',
	} });
}

function bars(title, description, query, { w = 12, h = 8, unit = 'short', thresholds, max } = {}) {
	return panel('bargauge', title, description, query, { w, h, unit, thresholds, min: 0, max, how: { instant: true }, options: {
		displayMode: 'basic', orientation: 'horizontal', valueMode: 'text', namePlacement: 'left', showUnfilled: true, sizing: 'auto',
		minVizWidth: 8, minVizHeight: 16, maxVizHeight: 300, legend: { displayMode: 'list', placement: 'bottom', showLegend: false, calcs: [] },
		reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
	} });
}

function table(title, description, query, { w = 24, h = 8, unit = 'short', value = 'Value', thresholds, hide = [] } = {}) {
	const excludeByName = Object.fromEntries(['Time', '__name__', 'instance', 'job', 'node', 'cluster', ...hide].map((name) => [name, true]));
	return panel('table', title, description, query, {
		w, h, unit, thresholds, how: { table: true },
		custom: { align: 'auto', cellOptions: { type: thresholds ? 'color-text' : 'auto' }, inspect: false, filterable: true },
		transformations: [{ id: 'organize', options: { excludeByName, indexByName: {}, renameByName: { Value: value } } }],
		options: { showHeader: true, cellHeight: 'sm', frameIndex: 0 },
	});
}

const row = (title) => ({ type: 'row', title });

// Panels flow from left to right; a row starts a new line.
function place(panels) {
	let x = 0, y = 0, height = 0;
	const below = () => { y += height; x = height = 0; };
	return panels.map(({ w, h, ...rest }, index) => {
		if (rest.type === 'row') {
			below();
			const placed = { id: index + 1, ...rest, collapsed: false, gridPos: { h: 1, w: 24, x: 0, y }, panels: [] };
			y += 1;
			return placed;
		}
		if (x + w > 24)
			below();
		const placed = { id: index + 1, ...rest, gridPos: { h, w, x, y } };
		x += w;
		height = Math.max(height, h);
		return placed;
	});
}

const alerts = {
	name: 'Alerts', datasource, enable: true, hide: false, iconColor: 'red',
	target: { refId: 'Alerts', expr: 'ALERTS{alertname=~"Nccl.+", alertstate="firing", nccl_job=~"$nccl_job"}', interval: '15s' },
	titleFormat: '{{alertname}}', textFormat: '{{nccl_job}} rank {{global_rank}} {{host}} {{comm_name}}',
};

function dashboard(uid, title, description, variables, panels, { refresh = '30s', from = 'now-1h', annotate = true } = {}) {
	return {
		uid, title, description, tags: ['nccl', 'ringside'], schemaVersion: SCHEMA, version: 1, editable: true, graphTooltip: 1,
		timezone: 'browser', weekStart: '', fiscalYearStartMonth: 0, liveNow: false, refresh, time: { from, to: 'now' },
		timepicker: { refresh_intervals: ['5s', '10s', '30s', '1m', '5m'] },
		links: [{
			title: 'NCCL', type: 'dashboards', tags: ['ringside'], asDropdown: true, includeVars: true, keepTime: true, targetBlank: false,
			icon: 'external link', tooltip: '', url: '',
		}],
		annotations: { list: annotate ? [alerts] : [] },
		templating: { list: [datasourceVariable, ...variables] },
		panels: place(panels),
	};
}

// --- Selectors used by all dashboards.

const J = 'nccl_job=~"$nccl_job"';
const RATE = '$__rate_interval';

// Only a sample of operations may be timed: scales totals of timed operations up to all, per series (function and size or algorithm).
const scaled = (metric, what, all = 'nccl_operations_total', timed = 'nccl_timed_operations_total') =>
	`rate(${metric}{${what}}[${RATE}]) * rate(${all}{${what}}[${RATE}]) / (rate(${timed}{${what}}[${RATE}]) > 0)`;
const lost = steps([null, 'green'], [0.5, 'orange'], [4, 'red']);
const age = steps([null, 'green'], [5, 'orange'], [15, 'red']);
const any = steps([null, 'green'], [1, 'red']);
const slow = steps([null, 'green'], [0.05, 'orange'], [0.1, 'red']);
const share = steps([null, 'green'], [0.05, 'orange'], [0.1, 'red']);
const hours = (series) => `sum_over_time(${series}[$__range]) * ${WAITING_INTERVAL_S} / 3600`;

const overview = dashboard('ringside-job', 'NCCL: jobs', 'Communication of a job: bandwidth, waiting and problems.',
	[jobVariable], [
		figure('Ranks', 'Running processes that are monitored.', `count(nccl_process_info{${J}, state=~"alive|stopped"})`),
		figure('Communicators', 'Communicators with at least one monitored rank.', `count(group by (nccl_job, comm) (nccl_communicator_info{${J}}))`),
		figure('Idle GPUs (waiting)', 'GPUs lost to waiting for other ranks in collectives (lower bound).', `sum(job:nccl_wait:gpus{${J}})`,
			{ thresholds: lost, decimals: 1 }),
		figure('GPU-hours lost', 'Lost to waiting in the selected time range (lower bound).', `sum(${hours(`job:nccl_wait:gpus{${J}}`)})`, { decimals: 1 }),
		figure('Oldest operation', 'Age of the oldest operation in flight. An alert fires after 15 s.', `max(nccl_oldest_operation_age_seconds{${J}})`,
			{ unit: 's', thresholds: age }),
		figure('Operations not recorded', 'In the selected time range. Should be 0.',
			`sum(increase(nccl_lost_operations_total{${J}}[$__range]))`, { thresholds: any, decimals: 0 }),
		lines('Bus bandwidth by kind of communicator', 'During operations, on the rank that waits least; like busbw of nccl-tests.',
			{ expr: `sum by (kind) (comm:nccl_bus_bytes:rate2m{${J}}) / sum by (kind) (comm:nccl_transfer_seconds:rate2m{${J}} > 0)`, legend: '{{kind}}' },
			{ unit: 'Bps' }),
		lines('Time in operations', 'Share of time that a rank spends in NCCL operations, including waiting; above 100% if communicators overlap. Estimated if not all operations are timed.',
			{ expr: `sum by (nccl_job, function) (${scaled('nccl_operation_seconds_total', J)}) / on (nccl_job) group_left () `
				+ `count by (nccl_job) (nccl_process_info{${J}, state=~"alive|stopped"})`, legend: '{{nccl_job}} {{function}}' }, { unit: 'percentunit', stack: true }),
		lines('Operations', 'Finished operations per second, all ranks.',
			{ expr: `sum by (function) (rate(nccl_operations_total{${J}}[${RATE}]))`, legend: '{{function}}' }, { unit: 'ops' }),
		lines('Timed operations', 'Share of finished operations that are timed. Durations, bandwidths and waiting are derived from these.',
			{ expr: `sum by (function) (rate(nccl_timed_operations_total{${J}}[${RATE}])) / sum by (function) (rate(nccl_operations_total{${J}}[${RATE}]) > 0)`,
				legend: '{{function}}' }, { unit: 'percentunit' }),
		lines('Bytes', 'Message bytes per second, all ranks, counted as in nccl-tests.',
			{ expr: `sum by (function) (rate(nccl_operation_bytes_total{${J}}[${RATE}]))`, legend: '{{function}}' }, { unit: 'Bps' }),
		lines('Idle GPUs (waiting)', 'By job.', { expr: `job:nccl_wait:gpus{${J}}`, legend: '{{nccl_job}}' }),
		lines('Slowdown vs. last 6 h', 'Additional time in collectives compared with the median bandwidth of the last 6 h. 13% means that they take 13% longer.',
			{ expr: `quantile by (nccl_job, kind) (0.2, comm:nccl_slowdown:ratio{${J}}) - 1`, legend: '{{nccl_job}} {{kind}}' },
			{ min: -0.2, unit: 'percentunit', thresholds: slow }),
		table('Alerts', 'Firing now.', `ALERTS{alertname=~"Nccl.+", alertstate="firing", ${J}}`, { hide: ['Value', 'alertstate'] }),
		table('Communicators', 'Monitored ranks of each communicator and its size.',
			`count by (nccl_job, comm_name, comm, kind, nranks, nnodes) (nccl_communicator_info{${J}})`, { value: 'ranks seen' }),
	]);

const functionVariable = labelValues('function', 'Operation', `nccl_operations_total{${J}}`, 'function');
const sizeVariable = labelValues('size', 'Size from', `nccl_operations_total{${J}, function=~"$function"}`, 'size');
const FS = `${J}, function=~"$function", size=~"$size"`;

function meanTime(kind) {
	const of = (metric) => `sum by (function, size) (rate(${metric}{${FS}}[${RATE}]) * on (nccl_job, comm, rank) group_left () `
		+ `group by (nccl_job, comm, rank) (nccl_communicator_info{${J}, ${kind}}))`;
	return `${of('nccl_operation_seconds_total')} / (${of('nccl_timed_operations_total')} > 0)`;
}

function bandwidthOf(kind) {
	return `sum by (function, size) (comm:nccl_bus_bytes:rate2m{${FS}, ${kind}}) / `
		+ `sum by (function, size) (comm:nccl_transfer_seconds:rate2m{${FS}, ${kind}} > 0)`;
}

function bandwidthRow(title, words, kind) {
	return [
		row(title[0].toUpperCase() + title.slice(1)),
		lines(`Bus bandwidth, ${title}`, `${words} On the rank that waits least, by operation and lower bound of the size class.`,
			{ expr: bandwidthOf(kind), legend: '{{function}} {{size}}' }, { unit: 'Bps', h: 10 }),
		lines(`Time per operation, ${title}`, `${words} Mean of the timed operations of all ranks, including waiting.`,
			{ expr: meanTime(kind), legend: '{{function}} {{size}}' }, { unit: 's', h: 10 }),
		lines(`Slowdown vs. last 6 h, ${title}`, 'Each communicator compared with the median of its own last 6 h. An alert fires above 10% for five minutes.',
			{ expr: `comm:nccl_slowdown:ratio{${J}, ${kind}} - 1`, legend: '{{nccl_job}} {{comm}}' }, { min: -0.2, unit: 'percentunit', thresholds: slow }),
		table(`Current bus bandwidth, ${title}`, 'By operation and size.', `${bandwidthOf(kind)}`, { w: 12, unit: 'Bps', value: 'busbw' }),
	];
}

const bandwidth = dashboard('ringside-bandwidth', 'NCCL: bandwidth', 'Bandwidth of NVLink and the network by operation and size, and the change over time.',
	[jobVariable, functionVariable, sizeVariable], [
		...bandwidthRow('NVLink only', 'Communicators within one node.', KIND_NVLINK),
		...bandwidthRow('network', 'Communicators that span nodes.', KIND_NETWORK),
		row('Network by connection'),
		lines('Sends waiting for the network', 'The ten connections whose sends wait most for the network, as a share of time.',
			{ expr: `topk(10, sum by (nccl_job, comm, rank, peer) (rate(nccl_proxy_wait_seconds_total{${J}, direction="send", state="net"}[${RATE}])))`,
				legend: '{{nccl_job}} {{comm}} {{rank}} -> {{peer}}' }, { unit: 'percentunit' }),
		lines('Bytes over the network', 'Sent, by rank (top ten).',
			{ expr: `topk(10, sum by (nccl_job, comm, rank) (rate(nccl_proxy_bytes_total{${J}, direction="send"}[${RATE}])))`,
				legend: '{{nccl_job}} {{comm}} {{rank}}' }, { unit: 'Bps' }),
	]);

const waiting = dashboard('ringside-waiting', 'NCCL: stragglers and waiting', 'Which ranks wait, for which stragglers, and the cost in GPU-hours. Needs no synchronized clocks: the rank that spends least time in a collective arrived last.',
	[jobVariable], [
		figure('GPU-hours lost', 'Lost to waiting in collectives in the selected time range (lower bound).', `sum(${hours(`job:nccl_wait:gpus{${J}}`)})`,
			{ w: 6, decimals: 1 }),
		figure('Idle GPUs (waiting)', 'Now (lower bound).', `sum(job:nccl_wait:gpus{${J}})`, { w: 6, thresholds: lost, decimals: 1 }),
		figure('Idle share of the job', 'Idle GPUs (waiting) as a share of all GPUs of the job.',
			`sum(job:nccl_wait:gpus{${J}}) / count(nccl_process_info{${J}, state=~"alive|stopped"})`, { w: 6, unit: 'percentunit', thresholds: share }),
		figure('Worst straggler', 'Share of time that other ranks wait for the worst straggler.', `max(process:nccl_delay:rate1m{${J}})`,
			{ w: 6, unit: 'percentunit', thresholds: share }),
		lines('Stragglers', 'Share of time that other ranks wait in collectives until this rank arrives. A rank that waits itself on another communicator is not the root cause.',
			{ expr: `topk(10, process:nccl_delay:rate1m{${J}})`, legend: '{{nccl_job}} rank {{global_rank}} {{host}}' },
			{ unit: 'percentunit', h: 10, thresholds: share }),
		lines('Waiting ranks', 'Share of time that a rank waits (lower bound).',
			{ expr: `topk(10, process:nccl_wait:rate1m{${J}})`, legend: '{{nccl_job}} rank {{global_rank}} {{host}}' }, { unit: 'percentunit', h: 10 }),
		bars('GPU-hours lost by waiting rank', 'The twenty ranks that waited most; they are not the cause.',
			{ expr: `topk(20, ${hours(`process:nccl_wait:rate1m{${J}}`)})`, legend: '{{nccl_job}} rank {{global_rank}} {{host}}' }, { h: 12 }),
		bars('GPU-hours lost by straggler', 'Time that other ranks waited for it, in hours of one GPU; the twenty worst stragglers.',
			{ expr: `topk(20, ${hours(`process:nccl_delay:rate1m{${J}}`)})`, legend: '{{nccl_job}} rank {{global_rank}} {{host}}' }, { h: 12 }),
		lines('Waiting by host', 'Idle GPUs (waiting) on each host.',
			{ expr: `sum by (nccl_job, host) (process:nccl_wait:rate1m{${J}})`, legend: '{{nccl_job}} {{host}}' }),
		lines('Waiting by communicator', 'Total over its ranks, in GPUs.',
			{ expr: `topk(10, sum by (nccl_job, comm) (member:nccl_wait:rate1m{${J}}))`, legend: '{{nccl_job}} {{comm}}' }),
		lines('Waiting within a node', 'As measured by each agent for its own node; a lower bound.',
			{ expr: `sum by (nccl_job, instance) (rate(nccl_wait_seconds_total{${J}}[${RATE}]))`, legend: '{{nccl_job}} {{instance}}' }),
		lines('Collectives between first and last rank', 'By communicator. Not 0 in a running job, because ranks are not scraped at the same time.',
			{ expr: `topk(10, comm:nccl_collective_lag:max{${J}})`, legend: '{{nccl_job}} {{comm}}' }),
	]);

const stuck = `max by (nccl_job, comm, rank) (nccl_oldest_operation_age_seconds{${J}})`;
const hang = dashboard('ringside-hang', 'NCCL: hangs', 'Operations that take too long, ranks that have not arrived, and what the others wait for.',
	[jobVariable], [
		figure('Oldest operation', 'Age of the oldest operation in flight.', `max(nccl_oldest_operation_age_seconds{${J}})`, { w: 6, unit: 's', thresholds: age }),
		figure('Stuck ranks', 'Ranks in an operation for more than 15 s.',
			`count(group by (nccl_job, host, pid, global_rank, gpu) (member:nccl_stuck:age_seconds{${J}})) or vector(0)`, { w: 6, thresholds: any }),
		figure('Missing ranks', 'Ranks that have not arrived and wait nowhere else.', `sum(job:nccl_culprit:ranks{${J}}) or vector(0)`, { w: 6, thresholds: any }),
		figure('Killed processes', 'Processes that ended without closing their recording, as long as the agent keeps them.',
			`count(nccl_process_info{${J}, state="killed"}) or vector(0)`, { w: 6, thresholds: any }),
		table('Missing ranks', 'Ranks with fewer collectives than the others, nothing in flight on this communicator, and no wait elsewhere.', `member:nccl_culprit:age_seconds{${J}}`,
			{ value: 'others waiting for', unit: 's', h: 6 }),
		table('Verdicts', 'Verdicts of the agents, each about its own node. Class unseen: the cause is on another node.', `nccl_verdict_info{${J}}`,
			{ hide: ['Value'], h: 6 }),
		table('Hung communicators without a missing rank', 'All ranks have arrived, and there is no progress.', `comm:nccl_all_arrived:age_seconds{${J}}`, { value: 'stuck for', unit: 's', h: 6, w: 12 }),
		table('Notices', 'Notices of the agents, each about its own node.', `nccl_notice_info{${J}}`, { hide: ['Value'], h: 6, w: 12 }),
		table('Operations in flight for more than a second', 'State, and what the operation waits for: the GPU, a peer or the network.',
			`${stuck} * on (nccl_job, comm, rank) group_right () nccl_oldest_operation_info{${J}}`, { value: 'age', unit: 's', h: 10, thresholds: age }),
		lines('Age of the oldest operation', 'By communicator.',
			{ expr: `topk(10, max by (nccl_job, comm) (nccl_oldest_operation_age_seconds{${J}}))`, legend: '{{nccl_job}} {{comm}}' },
			{ unit: 's', thresholds: age }),
		lines('Collectives called', 'By communicator, first and last rank: diverging lines mean that a rank has fallen behind.', [
			{ expr: `topk(10, max by (nccl_job, comm) (nccl_collective_number_issued{${J}}))`, legend: '{{comm}} first' },
			{ expr: `topk(10, min by (nccl_job, comm) (nccl_collective_number_issued{${J}}))`, legend: '{{comm}} last' }]),
		table('Collectives behind the first rank', 'Not 0 for some ranks of a running job, because ranks are not scraped at the same time.',
			`topk(50, max by (nccl_job, comm) (nccl_collective_number_issued{${J}}) - on (nccl_job, comm) group_right () `
			+ `max by (nccl_job, comm, rank) (nccl_collective_number_issued{${J}}))`, { value: 'behind', w: 12 }),
		table('Signatures', 'Hash of the collectives that each rank has called. Ranks with the same number of collectives must have the same hash.',
			`max by (nccl_job, comm, rank) (nccl_collective_signature{${J}}) and on (nccl_job, comm) `
			+ `(comm:nccl_signature:different or comm:nccl_signature:split or max by (nccl_job, comm) (nccl_oldest_operation_age_seconds{${J}}) > 1)`, { value: 'signature', w: 12, unit: 'none' }),
		table('Processes', 'All processes with their state.', `nccl_process_info{${J}}`, { hide: ['Value'] }),
	], { refresh: '5s', from: 'now-15m' });

const hostVariable = labelValues('host', 'Host', `nccl_process_info{${J}}`, 'host');
const H = `host=~"$host"`;
const ON_HOST = `* on (nccl_job, comm, rank) group_right () group by (nccl_job, comm, rank, host, global_rank, gpu) (nccl_communicator_info{${J}, ${H}})`;
const agents = `on (instance) group by (instance) (nccl_process_info{${J}, ${H}})`;
const quantile = (q) => `histogram_quantile(${q}, sum by (le, function) (rate(nccl_operation_duration_seconds_bucket{${J}}[${RATE}]) and ${agents})) `
	+ `or histogram_quantile(${q}, sum by (function) (rate(nccl_operation_duration_seconds{${J}}[${RATE}]) and ${agents}))`;
const node = dashboard('ringside-node', 'NCCL: nodes', 'One or more nodes: GPUs, durations of operations, network connections, and the agent.',
	[jobVariable, hostVariable], [
		figure('Processes', 'Running processes.', `count(nccl_process_info{${J}, ${H}, state=~"alive|stopped"})`),
		figure('Idle GPUs (waiting)', 'On the selected hosts (lower bound).', `sum(process:nccl_wait:rate1m{${J}, ${H}})`, { thresholds: lost, decimals: 1 }),
		figure('Oldest operation', 'Age of the oldest operation in flight.', `max(${stuck} ${ON_HOST})`, { unit: 's', thresholds: age }),
		figure('Rejected GPU timestamps', 'Operations whose GPU timestamps failed their checks, in the selected time range.',
			`sum(increase(nccl_untrusted_times_total{${J}}[$__range]) and ${agents})`, { decimals: 0 }),
		figure('Lost details', 'Details of operations that were not recorded, in the selected time range.',
			`sum(increase(nccl_lost_details_total{${J}}[$__range]) and ${agents})`, { thresholds: any, decimals: 0 }),
		figure('Unexpected events', 'Unexpected profiler events from NCCL, in the selected time range.',
			`sum(increase(nccl_odd_events_total{${J}}[$__range]) and ${agents})`, { decimals: 0 }),
		lines('Bus bytes by GPU', 'Bytes per second that a GPU sends over NVLink or the network, averaged over all time, not only during operations.',
			{ expr: `sum by (host, gpu) (sum by (nccl_job, comm, rank) (${scaled('nccl_operation_bus_bytes_total', J)}) ${ON_HOST})`, legend: '{{host}} GPU {{gpu}}' },
			{ unit: 'Bps' }),
		lines('Time in operations by GPU', 'Share of time, including waiting.',
			{ expr: `sum by (host, gpu) (sum by (nccl_job, comm, rank) (${scaled('nccl_operation_seconds_total', J)}) ${ON_HOST})`,
				legend: '{{host}} GPU {{gpu}}' }, { unit: 'percentunit' }),
		lines('Waiting by GPU', 'Share of time (lower bound).',
			{ expr: `sum by (host, gpu) (process:nccl_wait:rate1m{${J}, ${H}})`, legend: '{{host}} GPU {{gpu}}' }, { unit: 'percentunit' }),
		lines('Operations in flight by GPU', '',
			{ expr: `sum by (host, gpu) (max by (nccl_job, comm, rank) (nccl_operations_in_flight{${J}}) ${ON_HOST})`, legend: '{{host}} GPU {{gpu}}' }),
		lines('Durations', 'Median and 99th percentile by operation, over the ranks of the selected hosts.', [
			{ expr: quantile(0.5), legend: '{{function}} median' }, { expr: quantile(0.99), legend: '{{function}} p99' }], { unit: 's' }),
		lines('Algorithms', 'Time in operations by algorithm and protocol chosen by NCCL.',
			{ expr: `sum by (function, algorithm, protocol) (${scaled('nccl_algorithm_seconds_total', J, 'nccl_algorithm_operations_total',
				'nccl_algorithm_timed_operations_total')} and ${agents})`,
				legend: '{{function}} {{algorithm}} {{protocol}}' }, { unit: 'percentunit' }),
		lines('Network wait by cause', 'Seconds per second over all connections: the own GPU, the memory of the peer, the wire, flushes.',
			{ expr: `sum by (direction, state) (rate(nccl_proxy_wait_seconds_total{${J}}[${RATE}]) and ${agents})`, legend: '{{direction}} {{state}}' }),
		lines('Network bytes', 'All connections.',
			{ expr: `sum by (instance, direction) (rate(nccl_proxy_bytes_total{${J}}[${RATE}]) and ${agents})`, legend: '{{instance}} {{direction}}' }, { unit: 'Bps' }),
		table('Processes', '', `nccl_process_info{${J}, ${H}}`, { hide: ['Value'] }),
		row('Agent'),
		lines('CPU time', 'Share of one core.', { expr: `rate(process_cpu_seconds_total[${RATE}]) and ${agents}`, legend: '{{instance}}' },
			{ w: 8, unit: 'percentunit' }),
		lines('Memory', '', { expr: `process_resident_memory_bytes and ${agents}`, legend: '{{instance}}' }, { w: 8, unit: 'bytes' }),
		lines('Scan time', 'Mean time of a scan of all processes on the node.',
			{ expr: `rate(ringside_agent_look_seconds_total[${RATE}]) / rate(ringside_agent_looks_total[${RATE}])`, legend: '{{instance}}' }, { w: 8, unit: 's' }),
		lines('Watched processes', '', { expr: `sum by (instance, state) (ringside_agent_processes)`, legend: '{{instance}} {{state}}' }, { w: 8 }),
		lines('Unreadable recordings', 'Invalid, not permitted, or beyond the limit.',
			{ expr: 'ringside_agent_refused_files + ringside_agent_unreadable_files + ringside_agent_left_out_processes', legend: '{{instance}}' }, { w: 8 }),
		table('Versions', '', 'count by (version) (ringside_build_info)', { w: 8, value: 'agents' }),
	]);

// The queries of NVIDIA's template over NCCL Inspector's metrics, without a second database: busbw and time by collective, size, ranks, nodes.
const inspectorJob = labelValues('slurm_job_id', 'Slurm job', 'nccl_bus_bandwidth_gbs', 'slurm_job_id');
const collectiveVariable = labelValues('collective', 'Collective', 'nccl_bus_bandwidth_gbs{slurm_job_id=~"$slurm_job_id"}', 'collective');
const I = 'slurm_job_id=~"$slurm_job_id"';

function inspectorRow(title, metrics, selector, nodes, by) {
	const [speed, time] = metrics;
	const legend = by.map((name) => `{{${name}}}`).join(' ');
	return [
		lines(`Bus bandwidth, ${title}`, 'Mean over GPUs of the last values written by the plugin, in GB/s.',
			{ expr: `avg by (${by.join(', ')}) (${speed}{${I}, ${selector}, ${nodes}})`, legend }, { unit: 'GBs' }),
		lines(`Time per operation, ${title}`, 'Mean over GPUs of the last values written by the plugin, in microseconds.',
			{ expr: `avg by (${by.join(', ')}) (${time}{${I}, ${selector}, ${nodes}})`, legend }, { unit: 'µs' }),
	];
}

const collectives = ['nccl_bus_bandwidth_gbs', 'nccl_collective_exec_time_microseconds'];
const pairs = ['nccl_p2p_bus_bandwidth_gbs', 'nccl_p2p_exec_time_microseconds'];
const SEVERAL = 'n_nodes!="1"';
const ONE = 'n_nodes="1"';
const inspector = dashboard('ringside-inspector', 'NCCL: Inspector\'s metrics',
	'For users of NCCL Inspector\'s variables and metric names: the figures of NVIDIA\'s template, from files written by the plugin.',
	[inspectorJob, collectiveVariable], [
		row('Collectives'),
		...inspectorRow('NVLink only', collectives, 'collective=~"$collective"', ONE, ['collective', 'message_size', 'nranks']),
		...inspectorRow('network', collectives, 'collective=~"$collective"', SEVERAL, ['collective', 'message_size', 'nranks', 'n_nodes']),
		row('Send and Recv'),
		...inspectorRow('NVLink only, Send and Recv', pairs, 'p2p_operation=~"Send|Recv"', ONE, ['p2p_operation', 'message_size', 'nranks']),
		...inspectorRow('network, Send and Recv', pairs, 'p2p_operation=~"Send|Recv"', SEVERAL, ['p2p_operation', 'message_size', 'nranks', 'n_nodes']),
	], { annotate: false });

const directory = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), 'dashboards');
mkdirSync(directory, { recursive: true });
for (const made of [overview, bandwidth, waiting, hang, node, inspector])
	writeFileSync(join(directory, `${made.uid}.json`), `${JSON.stringify(made, null, 2)}\n`);
