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

// Addresses for links, from deploy/prometheus/rules/ringside-links.rules.yml. Hidden.
const linkVariables = ['runbooks', 'job_page', 'agent_scheme'].map((name) =>
	({ ...labelValues(name, name, 'ringside:links:info', name, { multi: false }), includeAll: false, allValue: undefined, hide: 2, current: undefined }));
const priceVariable = {
	name: 'price', type: 'textbox', label: 'Price of a GPU-hour', query: '0', hide: 0, options: [], current: { text: '0', value: '0' },
};

// --- Links. They keep the selected time.

const link = (title, url) => ({ title, url, targetBlank: false });
const nodeLink = (host, job) => link('Node', `/d/ringside-node?var-host=\${${host}}&var-nccl_job=\${${job}}&\${__url_time_range}`);
const jobLink = (job) => link('Job', `/d/ringside-job?var-nccl_job=\${${job}}&\${__url_time_range}`);
// For series with these labels, and for columns of tables with these names.
const ofNode = [nodeLink('__field.labels.host', '__field.labels.nccl_job')];
const ofJob = [jobLink('__field.labels.nccl_job')];
const COLUMN_LINKS = {
	Job: [jobLink('__value.text'), link('Hangs of the job', '/d/ringside-hang?var-nccl_job=${__value.text}&${__url_time_range}'),
		link('Page of the job (job_page in ringside-links.rules.yml)', '${job_page}${__value.text}')],
	Host: [nodeLink('__value.text', '__data.fields.Job')],
	Agent: [link('Live page of the agent', '${agent_scheme}://${__value.text}/')],
	Alert: [link('Runbook', '${runbooks}/${__value.text}.md')],
};

// --- Queries: a string, or { expr, legend }.

function targets(queries, { instant = false, table = false, heatmap = false } = {}) {
	return [queries].flat().map((query, index) => {
		const { expr, legend = '' } = typeof query === 'string' ? { expr: query } : query;
		return {
			refId: String.fromCharCode(65 + index), datasource, expr, legendFormat: legend || '__auto', editorMode: 'code',
			range: !(instant || table), instant: instant || table, format: table ? 'table' : heatmap ? 'heatmap' : 'time_series',
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

function lines(title, description, queries,
	{ w = 12, h = 8, unit = 'short', stack = false, thresholds, min = 0, max, calcs = ['mean', 'max'], links } = {}) {
	const custom = {
		drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: stack ? 30 : 5, pointSize: 4,
		showPoints: 'auto', spanNulls: false, stacking: { mode: stack ? 'normal' : 'none', group: 'A' },
		thresholdsStyle: { mode: thresholds ? 'line' : 'off' },
	};
	return panel('timeseries', title, description, queries, { w, h, unit, custom, thresholds, min, max, links, options: {
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

function bars(title, description, query, { w = 12, h = 8, unit = 'short', thresholds, max, links } = {}) {
	return panel('bargauge', title, description, query, { w, h, unit, thresholds, min: 0, max, links, how: { instant: true }, options: {
		displayMode: 'basic', orientation: 'horizontal', valueMode: 'text', namePlacement: 'left', showUnfilled: true, sizing: 'auto',
		minVizWidth: 8, minVizHeight: 16, maxVizHeight: 300, legend: { displayMode: 'list', placement: 'bottom', showLegend: false, calcs: [] },
		reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
	} });
}

// Columns are [field, title, field settings], in this order; all others are hidden. Several queries are joined by the field `by`.
function table(title, description, queries, columns, { w = 24, h = 8, by, sortBy } = {}) {
	const shown = columns.map(([field]) => field);
	const index = Object.fromEntries(shown.map((field, at) => [field, at]));
	const names = Object.fromEntries(columns.map(([field, name]) => [field, name]));
	const overrides = columns.map(([, name, settings = {}]) => ({
		matcher: { id: 'byName', options: name },
		properties: Object.entries({ ...settings, ...(COLUMN_LINKS[name] ? { links: COLUMN_LINKS[name] } : {}) })
			.map(([id, value]) => ({ id, value })),
	})).filter(({ properties }) => properties.length > 0);
	return panel('table', title, description, queries, {
		w, h, how: { table: true }, overrides,
		custom: { align: 'auto', cellOptions: { type: 'auto' }, inspect: false, filterable: true },
		transformations: [
			...(by ? [{ id: 'joinByField', options: { byField: by, mode: 'outer' } }] : []),
			{ id: 'filterFieldsByName', options: { include: { names: shown } } },
			{ id: 'organize', options: { excludeByName: {}, indexByName: index, renameByName: names } },
		],
		options: { showHeader: true, cellHeight: 'sm', frameIndex: 0, sortBy: sortBy ? [{ displayName: sortBy, desc: true }] : [] },
	});
}

const JOB = ['nccl_job', 'Job'];
const HOST = ['host', 'Host'];
const RANK = ['global_rank', 'Rank'];
const COMM = ['comm_name', 'Communicator'];
const COMM_LABEL = ['comm_label', 'Communicator'];
const COMM_RANK = ['rank', 'Rank there'];
const PID = ['pid', 'Process'];
const GPU = ['gpu', 'GPU'];
const AGENT = ['instance', 'Agent'];
const value = (title, unit, thresholds) => ['Value', title, coloured(unit, thresholds)];
const coloured = (unit, thresholds) => ({ unit, ...(thresholds ? { thresholds, 'custom.cellOptions': { type: 'color-text' } } : {}) });

// How many series, or how much of a value, lie in each class, over time. From a histogram, or calculated from many series.
function heatmap(title, description, query, { w = 12, h = 10, unit = 's', calculate = false } = {}) {
	const made = panel('heatmap', title, description, query, { w, h, how: { heatmap: !calculate },
		custom: { hideFrom: { legend: false, tooltip: false, viz: false } }, options: {
			calculate, calculation: calculate ? { xBuckets: { mode: 'size' }, yBuckets: { mode: 'count', value: '20' } } : {},
			cellGap: 1, color: { mode: 'scheme', scheme: 'Oranges', exponent: 0.5, fill: 'dark-orange', scale: 'exponential', steps: 64, reverse: false },
			exemplars: { color: 'rgba(255,0,255,0.7)' }, filterValues: { le: 1e-9 }, legend: { show: true }, rowsFrame: { layout: 'auto' },
			showValue: 'never', tooltip: { mode: 'single', yHistogram: true, showColorScale: false }, yAxis: { axisPlacement: 'left', unit },
		} });
	delete made.fieldConfig.defaults.thresholds;
	return made;
}

const row = (title, { collapsed = false } = {}) => ({ type: 'row', title, collapsed });

// Panels flow from left to right; a row starts a new line. A collapsed row contains its panels.
function place(panels) {
	const placed = [];
	let x = 0, y = 0, height = 0, into = placed;
	const below = () => { y += height; x = height = 0; };
	panels.forEach(({ w, h, ...rest }, index) => {
		if (rest.type === 'row') {
			below();
			const made = { id: index + 1, ...rest, gridPos: { h: 1, w: 24, x: 0, y }, panels: [] };
			placed.push(made);
			into = rest.collapsed ? made.panels : placed;
			y += 1;
			return;
		}
		if (x + w > 24)
			below();
		into.push({ id: index + 1, ...rest, gridPos: { h, w, x, y } });
		x += w;
		height = Math.max(height, h);
	});
	return placed;
}

const alerts = {
	name: 'Alerts', datasource, enable: true, hide: false, iconColor: 'red',
	target: { refId: 'Alerts', expr: 'ALERTS{alertname=~"Nccl.+", alertstate="firing", nccl_job=~"$nccl_job"}', interval: '15s' },
	titleFormat: '{{alertname}}', textFormat: '{{nccl_job}} rank {{global_rank}} {{host}} {{comm_name}}',
};
const running = 'group by (nccl_job) (nccl_process_info{nccl_job=~"$nccl_job", state="alive"})';
const before = 'group by (nccl_job) (nccl_process_info{nccl_job=~"$nccl_job", state="alive"} offset 1m)';
const moment = (name, iconColor, expr, titleFormat) => ({
	name, datasource, enable: true, hide: false, iconColor, target: { refId: name.replaceAll(' ', ''), expr, interval: '1m' }, titleFormat,
});
const moments = [
	moment('Job starts', 'green', `${running} unless ${before}`, 'Job {{nccl_job}} started'),
	moment('Job ends', 'blue', `${before} unless ${running}`, 'Job {{nccl_job}} ended'),
	moment('Agent restarts', 'purple', 'max by (instance) (changes(process_start_time_seconds{job=~"ringside.*"}[2m])) > 0',
		'Agent on {{instance}} restarted'),
];

function dashboard(uid, title, description, variables, panels, { refresh = '30s', from = 'now-1h', annotate = true } = {}) {
	return {
		uid, title, description, tags: ['nccl', 'ringside'], schemaVersion: SCHEMA, version: 1, editable: true, graphTooltip: 1,
		timezone: 'browser', weekStart: '', fiscalYearStartMonth: 0, liveNow: false, refresh, time: { from, to: 'now' },
		timepicker: { refresh_intervals: ['5s', '10s', '30s', '1m', '5m'] },
		links: [{
			title: 'NCCL', type: 'dashboards', tags: ['ringside'], asDropdown: true, includeVars: true, keepTime: true, targetBlank: false,
			icon: 'external link', tooltip: '', url: '',
		}],
		annotations: { list: annotate ? [alerts, ...moments] : [] },
		templating: { list: [datasourceVariable, ...variables, ...(annotate ? linkVariables : [])] },
		panels: place(panels),
	};
}

// --- Selectors used by all dashboards.

const J = 'nccl_job=~"$nccl_job"';
const RATE = '$__rate_interval';

// An agent that is scraped twice, under different target labels, must count once: keep one series by its own labels before adding up.
const BY_RANK = 'nccl_job, comm, rank';
const BY_SIZE = `${BY_RANK}, function, size`;
const BY_CHOICE = `${BY_RANK}, function, algorithm, protocol`;
const once = (by, expr) => `max by (${by}) (${expr})`;
const rate = (metric, what, by = BY_SIZE) => once(by, `rate(${metric}{${what}}[${RATE}])`);

// Only a sample of operations may be timed: scales totals of timed operations up to all, per series (function and size or algorithm).
const scaled = (metric, what, all = 'nccl_operations_total', timed = 'nccl_timed_operations_total', by = BY_SIZE) =>
	once(by, `rate(${metric}{${what}}[${RATE}]) * rate(${all}{${what}}[${RATE}]) / (rate(${timed}{${what}}[${RATE}]) > 0)`);
const processes = (what) => `group by (nccl_job, host, pid, global_rank) (nccl_process_info{${what}, state=~"alive|stopped"})`;
// The same series over the whole time range: members of a plain topk change at every step, and its lines flicker.
const most = (count, expr) => `${expr} and topk(${count}, avg_over_time((${expr})[$__range:] @ end()))`;
const least = (count, expr) => `${expr} and bottomk(${count}, avg_over_time((${expr})[$__range:] @ end()))`;
// Bytes sent on a link over the time during which it was in use.
const onTheWire = (by) => `(${rate('nccl_wire_bytes_total', J, by)} / (${rate('nccl_wire_seconds_total', J, by)} > 0))`;
// Communicators by name; ranks by their number in the job, and by host.
const named = (expr) => `${expr} * on (nccl_job, comm) group_left (comm_label) comm:nccl_name:info`;
const placed = (expr) => `${expr} * on (${BY_RANK}) group_left (global_rank, host) topk by (${BY_RANK}) (1, `
	+ `group by (${BY_RANK}, global_rank, host) (nccl_communicator_info{${J}}))`;
const lost = steps([null, 'green'], [0.5, 'orange'], [4, 'red']);
const age = steps([null, 'green'], [5, 'orange'], [15, 'red']);
const any = steps([null, 'green'], [1, 'red']);
const slow = steps([null, 'green'], [0.05, 'orange'], [0.1, 'red']);
const share = steps([null, 'green'], [0.05, 'orange'], [0.1, 'red']);
const hours = (series) => `sum_over_time(${series}[$__range]) * ${WAITING_INTERVAL_S} / 3600`;

const alertTable = table('Alerts', 'Firing now. The name links to the runbook.', `ALERTS{alertname=~"Nccl.+", alertstate="firing", ${J}}`,
	[['alertname', 'Alert'], ['severity', 'Severity'], JOB, RANK, HOST, ['class', 'Class'], ['peer_global_rank', 'Peer rank'], ['peer_host', 'Peer host'],
		COMM]);

// One row per job.
const waitShare = `job:nccl_wait:gpus{${J}} / on (nccl_job) count by (nccl_job) (${processes(J)})`;
const lostHours = hours(`job:nccl_wait:gpus{${J}}`);
const state = [
	`3 * group by (nccl_job) (ALERTS{alertname=~"NcclHang.+|NcclMismatch", alertstate="firing", severity="critical", ${J}})`,
	`2 * group by (nccl_job) (ALERTS{alertname=~"NcclHang.+|NcclMismatch", alertstate="firing", ${J}})`,
	`group by (nccl_job) (ALERTS{alertname=~"NcclSlow.+|NcclStraggler|Nccl.+Degraded", alertstate="firing", ${J}})`,
	`0 * group by (nccl_job) (${processes(J)})`].join(' or ');
const states = [{ type: 'value', options: {
	0: { text: 'no alert', color: 'green', index: 0 }, 1: { text: 'slow', color: 'orange', index: 1 },
	2: { text: 'hangs', color: 'red', index: 2 }, 3: { text: 'hangs, critical', color: 'dark-red', index: 3 } } }];
const fleet = dashboard('ringside-fleet', 'NCCL: all jobs', 'All running jobs, one row each: state, size, bandwidth, waiting, cost and owner.',
	[jobVariable, priceVariable], [
		figure('Running jobs', 'With at least one monitored process.', `count(group by (nccl_job) (${processes(J)}))`),
		figure('Jobs that hang', 'With a firing alert about a hang or mismatched calls.',
			`count(group by (nccl_job) (ALERTS{alertname=~"NcclHang.+|NcclMismatch", alertstate="firing", ${J}})) or vector(0)`, { thresholds: any }),
		figure('Slow jobs', 'With a firing alert about a straggler, link, NVLink or the network.',
			`count(group by (nccl_job) (ALERTS{alertname=~"NcclSlow.+|NcclStraggler|Nccl.+Degraded", alertstate="firing", ${J}})) or vector(0)`,
			{ thresholds: any }),
		figure('Idle GPUs (waiting)', 'GPUs lost to waiting for other ranks in collectives, now (lower bound).', `sum(job:nccl_wait:gpus{${J}})`,
			{ thresholds: lost, decimals: 1 }),
		figure('GPU-hours lost', 'Lost to waiting in collectives in the selected time range (lower bound, without hangs that have not ended).', `sum(${lostHours})`,
			{ decimals: 1 }),
		figure('Cost of waiting', 'GPU-hours lost times the price of a GPU-hour, which is set above.', `sum(${lostHours}) * $price`, { decimals: 0 }),
		table('Jobs', 'By GPU-hours lost in the selected time range. State "no alert" means that no alert fires: it is not a diagnosis.', [
			state,
			`count by (nccl_job) (${processes(J)})`,
			`count by (nccl_job) (group by (nccl_job, host) (${processes(J)}))`,
			`sum by (nccl_job) (comm:nccl_bus_bytes:rate2m{${J}}) / sum by (nccl_job) (comm:nccl_transfer_seconds:rate2m{${J}} > 0)`,
			waitShare,
			lostHours,
			`(${lostHours}) * $price`,
			`max by (nccl_job) (nccl_oldest_operation_age_seconds{${J}})`,
			`topk by (nccl_job) (1, group by (nccl_job, user, account, partition, job_name) (nccl_job_info{${J}}))`,
		], [
			JOB, ['job_name', 'Name'], ['Value #A', 'State', { mappings: states, 'custom.cellOptions': { type: 'color-background' } }],
			['Value #B', 'Ranks'], ['Value #C', 'Nodes'], ['Value #D', 'Bus bandwidth', { unit: 'Bps' }],
			['Value #E', 'Waiting', coloured('percentunit', share)], ['Value #F', 'GPU-hours lost', { decimals: 1 }], ['Value #G', 'Cost', { decimals: 0 }],
			['Value #H', 'Oldest operation', coloured('s', age)], ['user', 'User'], ['account', 'Account'], ['partition', 'Partition'],
		], { by: 'nccl_job', h: 16, sortBy: 'GPU-hours lost' }),
		alertTable,
		lines('Idle GPUs (waiting) by job', 'The ten jobs that lose most.', { expr: most(10, `job:nccl_wait:gpus{${J}}`), legend: '{{nccl_job}}' }, { links: ofJob }),
		lines('Bus bandwidth by job', 'During operations, on the rank that waits least.',
			{ expr: `sum by (nccl_job) (comm:nccl_bus_bytes:rate2m{${J}}) / sum by (nccl_job) (comm:nccl_transfer_seconds:rate2m{${J}} > 0)`, legend: '{{nccl_job}}' },
			{ unit: 'Bps', links: ofJob }),
		bars('GPU-hours lost by user', 'In the selected time range.',
			{ expr: `topk(20, sum by (user) (${lostHours} * on (nccl_job) group_left (user) `
				+ `topk by (nccl_job) (1, group by (nccl_job, user) (nccl_job_info{${J}}))))`, legend: '{{user}}' }),
		bars('GPU-hours lost by account', 'In the selected time range; jobs without a Slurm account have none.',
			{ expr: `topk(20, sum by (account) (${lostHours} * on (nccl_job) group_left (account) `
				+ `topk by (nccl_job) (1, group by (nccl_job, account) (nccl_job_info{${J}}))))`, legend: '{{account}}' }),
	]);

const overview = dashboard('ringside-job', 'NCCL: jobs', 'Communication of a job: bandwidth, waiting and problems.',
	[jobVariable], [
		figure('Ranks', 'Running processes that are monitored.', `count(${processes(J)})`),
		figure('Communicators', 'Communicators with at least one monitored rank.', `count(group by (nccl_job, comm) (nccl_communicator_info{${J}}))`),
		figure('Idle GPUs (waiting)', 'GPUs lost to waiting for other ranks in collectives (lower bound).', `sum(job:nccl_wait:gpus{${J}})`,
			{ thresholds: lost, decimals: 1 }),
		figure('GPU-hours lost', 'Lost to waiting in the selected time range (lower bound).', `sum(${hours(`job:nccl_wait:gpus{${J}}`)})`, { decimals: 1 }),
		figure('Oldest operation', 'Age of the oldest operation in flight. An alert fires after 15 s.', `max(nccl_oldest_operation_age_seconds{${J}})`,
			{ unit: 's', thresholds: age }),
		figure('Operations not recorded', 'In the selected time range. Should be 0.',
			`sum(${once('nccl_job, global_rank, pid, reason', `increase(nccl_lost_operations_total{${J}}[$__range])`)})`, { thresholds: any, decimals: 0 }),
		lines('Bus bandwidth by kind of communicator', 'During operations, on the rank that waits least; like busbw of nccl-tests.',
			{ expr: `sum by (kind) (comm:nccl_bus_bytes:rate2m{${J}}) / sum by (kind) (comm:nccl_transfer_seconds:rate2m{${J}} > 0)`, legend: '{{kind}}' },
			{ unit: 'Bps' }),
		lines('Time in operations', 'Share of time that a rank spends in NCCL operations, including waiting; above 100% if communicators overlap. Estimated if not all operations are timed.',
			{ expr: `sum by (nccl_job, function) (${scaled('nccl_operation_seconds_total', J)}) / on (nccl_job) group_left () `
				+ `count by (nccl_job) (${processes(J)})`, legend: '{{nccl_job}} {{function}}' }, { unit: 'percentunit', stack: true }),
		lines('Operations', 'Finished operations per second, all ranks.',
			{ expr: `sum by (function) (${rate('nccl_operations_total', J)})`, legend: '{{function}}' }, { unit: 'ops' }),
		lines('Timed operations', 'Share of finished operations that are timed. Durations, bandwidths and waiting are derived from these.',
			{ expr: `sum by (function) (${rate('nccl_timed_operations_total', J)}) / sum by (function) (${rate('nccl_operations_total', J)} > 0)`,
				legend: '{{function}}' }, { unit: 'percentunit' }),
		lines('Bytes', 'Message bytes per second, all ranks, counted as in nccl-tests.',
			{ expr: `sum by (function) (${rate('nccl_operation_bytes_total', J)})`, legend: '{{function}}' }, { unit: 'Bps' }),
		lines('Idle GPUs (waiting)', 'By job.', { expr: `job:nccl_wait:gpus{${J}}`, legend: '{{nccl_job}}' }),
		lines('Slowdown vs. last 6 h', 'Additional time in collectives compared with the median bandwidth of the last 6 h. 13% means that they take 13% longer.',
			{ expr: `quantile by (nccl_job, kind) (0.2, comm:nccl_slowdown:ratio{${J}}) - 1`, legend: '{{nccl_job}} {{kind}}' },
			{ min: -0.2, unit: 'percentunit', thresholds: slow }),
		alertTable,
		table('Communicators', 'Monitored ranks of each communicator and its size.',
			`count by (nccl_job, comm_name, comm, kind, nranks, nnodes) (group by (${BY_RANK}, comm_name, kind, nranks, nnodes) (nccl_communicator_info{${J}}))`,
			[JOB, COMM, ['kind', 'Kind'], ['nranks', 'Ranks'], value('Ranks monitored'), ['nnodes', 'Nodes'], ['comm', 'Hash']]),
	]);

// Classic or native histograms.
const durations = (what) => `sum by (le) (${rate('nccl_operation_duration_seconds_bucket', what, `${BY_RANK}, function, le`)}) `
	+ `or sum(rate(nccl_operation_duration_seconds{${what}}[${RATE}]))`;

const functionVariable = labelValues('function', 'Operation', `nccl_operations_total{${J}}`, 'function');
const sizeVariable = labelValues('size', 'Size from', `nccl_operations_total{${J}, function=~"$function"}`, 'size');
const FS = `${J}, function=~"$function", size=~"$size"`;

function meanTime(kind) {
	const of = (metric) => `sum by (function, size) (${rate(metric, FS)} * on (nccl_job, comm, rank) group_left () `
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
			{ expr: named(`(comm:nccl_slowdown:ratio{${J}, ${kind}} - 1)`), legend: '{{nccl_job}} {{comm_label}}' },
			{ min: -0.2, unit: 'percentunit', thresholds: slow, links: ofJob }),
		heatmap(`Bus bandwidth of all communicators, ${title}`, 'How many pairs of communicator and message size have which bandwidth.',
			`comm:nccl_bus_bandwidth:rate2m{${FS}, ${kind}}`, { unit: 'Bps', h: 8, calculate: true }),
		table(`Current bus bandwidth, ${title}`, 'By operation and size.', `${bandwidthOf(kind)}`,
			[['function', 'Operation'], ['size', 'Size from'], value('Bus bandwidth', 'Bps')], { w: 24 }),
	];
}

const bandwidth = dashboard('ringside-bandwidth', 'NCCL: bandwidth', 'Bandwidth of NVLink and the network by operation and size, and the change over time.',
	[jobVariable, functionVariable, sizeVariable], [
		...bandwidthRow('NVLink only', 'Communicators within one node.', KIND_NVLINK),
		...bandwidthRow('network', 'Communicators that span nodes.', KIND_NETWORK),
		row('Network by connection'),
		lines('Sends waiting for the network', 'The ten connections whose sends wait most for the network, as a share of time.',
			{ expr: placed(named(`(${most(10, rate('nccl_proxy_wait_seconds_total', `${J}, direction="send", state="net"`, `${BY_RANK}, peer`))})`)),
				legend: '{{nccl_job}} rank {{global_rank}} {{host}} -> rank {{peer}} of {{comm_label}}' }, { unit: 'percentunit', links: ofNode }),
		lines('Bandwidth on the wire', 'What a link moves while it is in use: the ten slowest. On every NCCL release, whether or not calls have durations.',
			{ expr: placed(named(`(${least(10, onTheWire(`${BY_RANK}, peer`))})`)),
				legend: '{{nccl_job}} rank {{global_rank}} {{host}} -> rank {{peer}} of {{comm_label}}' }, { unit: 'Bps', links: ofNode }),
		lines('Bytes over the network', 'Sent, by rank (the ten that send most).',
			{ expr: placed(named(`(${most(10, `sum by (${BY_RANK}) (${rate('nccl_proxy_bytes_total', `${J}, direction="send"`, `${BY_RANK}, peer`)})`)})`)),
				legend: '{{nccl_job}} rank {{global_rank}} {{host}} in {{comm_label}}' }, { unit: 'Bps', links: ofNode }),
		row('Durations'),
		heatmap('Durations of operations', 'Timed operations per second by duration, including waiting; all sizes of the selected operations.',
			durations(`${J}, function=~"$function"`), { w: 24 }),
	]);

const waiting = dashboard('ringside-waiting', 'NCCL: stragglers and waiting', 'Which ranks wait, for which stragglers, and the cost in GPU-hours. Needs no synchronized clocks: the rank that spends least time in a collective arrived last.',
	[jobVariable, priceVariable], [
		figure('GPU-hours lost', 'Lost to waiting in collectives in the selected time range (lower bound).', `sum(${lostHours})`, { decimals: 1 }),
		figure('Cost of waiting', 'GPU-hours lost times the price of a GPU-hour, which is set above.', `sum(${lostHours}) * $price`, { decimals: 0 }),
		figure('Idle GPUs (waiting)', 'Now (lower bound).', `sum(job:nccl_wait:gpus{${J}})`, { thresholds: lost, decimals: 1 }),
		figure('Idle share of the job', 'Idle GPUs (waiting) as a share of all GPUs of the job.',
			`sum(job:nccl_wait:gpus{${J}}) / count(${processes(J)})`, { w: 6, unit: 'percentunit', thresholds: share }),
		figure('Worst straggler', 'Share of time that other ranks wait for the worst straggler.', `max(process:nccl_delay:rate1m{${J}})`,
			{ w: 6, unit: 'percentunit', thresholds: share }),
		lines('Stragglers', 'Share of time that other ranks wait in collectives until this rank arrives. A rank that waits itself on another communicator is not the root cause.',
			{ expr: most(10, `process:nccl_delay:rate1m{${J}}`), legend: '{{nccl_job}} rank {{global_rank}} {{host}}' },
			{ unit: 'percentunit', h: 10, thresholds: share, links: ofNode }),
		lines('Waiting ranks', 'Share of time that a rank waits (lower bound).',
			{ expr: most(10, `process:nccl_wait:rate1m{${J}}`), legend: '{{nccl_job}} rank {{global_rank}} {{host}}' },
			{ unit: 'percentunit', h: 10, links: ofNode }),
		heatmap('Ranks by share of time waiting', 'How many ranks wait how much. One dark line near 0 below a band: the others wait for a few.',
			`process:nccl_wait:rate1m{${J}}`, { w: 24, unit: 'percentunit', calculate: true }),
		bars('GPU-hours lost by waiting rank', 'The twenty ranks that waited most; they are not the cause.',
			{ expr: `topk(20, ${hours(`process:nccl_wait:rate1m{${J}}`)})`, legend: '{{nccl_job}} rank {{global_rank}} {{host}}' },
			{ h: 12, links: ofNode }),
		bars('GPU-hours lost by straggler', 'Time that other ranks waited for it, in hours of one GPU; the twenty worst stragglers.',
			{ expr: `topk(20, ${hours(`process:nccl_delay:rate1m{${J}}`)})`, legend: '{{nccl_job}} rank {{global_rank}} {{host}}' },
			{ h: 12, links: ofNode }),
		lines('Waiting by host', 'Idle GPUs (waiting) on each host.',
			{ expr: `sum by (nccl_job, host) (process:nccl_wait:rate1m{${J}})`, legend: '{{nccl_job}} {{host}}' }),
		lines('Waiting by communicator', 'Total over its ranks, in GPUs.',
			{ expr: named(`(${most(10, `sum by (nccl_job, comm) (member:nccl_wait:rate1m{${J}})`)})`), legend: '{{nccl_job}} {{comm_label}}' }),
		lines('Waiting within a node', 'As measured by each agent for its own node; a lower bound.',
			{ expr: `sum by (nccl_job, instance) (${rate('nccl_wait_seconds_total', J, `${BY_RANK}, instance`)})`, legend: '{{nccl_job}} {{instance}}' }),
		lines('Collectives between first and last rank', 'By communicator. Not 0 in a running job, because ranks are not scraped at the same time.',
			{ expr: named(`(${most(10, `comm:nccl_collective_lag:max{${J}}`)})`), legend: '{{nccl_job}} {{comm_label}}' }),
	]);

const processTable = (what) => table('Processes', 'All processes with their state.',
	`max by (nccl_job, host, pid, global_rank, gpu, gpu_uuid, mode, state, instance) (nccl_process_info{${what}})`,
	[JOB, RANK, HOST, GPU, ['state', 'State'], PID, ['mode', 'Mode'], ['gpu_uuid', 'GPU UUID'], AGENT]);

const stuck = `max by (nccl_job, comm, rank) (nccl_oldest_operation_age_seconds{${J}})`;
const hang = dashboard('ringside-hang', 'NCCL: hangs', 'Operations that take too long, ranks that have not arrived, and what the others wait for.',
	[jobVariable], [
		figure('Oldest operation', 'Age of the oldest operation in flight.', `max(nccl_oldest_operation_age_seconds{${J}})`, { w: 6, unit: 's', thresholds: age }),
		figure('Stuck ranks', 'Ranks in an operation for more than 15 s.',
			`count(group by (nccl_job, host, pid, global_rank, gpu) (member:nccl_stuck:age_seconds{${J}})) or vector(0)`, { w: 6, thresholds: any }),
		figure('Missing ranks', 'Ranks that have not arrived and wait nowhere else.', `sum(job:nccl_culprit:ranks{${J}}) or vector(0)`, { w: 6, thresholds: any }),
		figure('Killed processes', 'Processes that ended without closing their recording, as long as the agent keeps them.',
			`count(group by (nccl_job, host, pid) (nccl_process_info{${J}, state="killed", run=""})) or vector(0)`, { w: 6, thresholds: any }),
		table('Missing ranks', 'Ranks with fewer collectives than the others, nothing in flight on this communicator, and no wait elsewhere.',
			`member:nccl_culprit:age_seconds{${J}}`,
			[JOB, RANK, HOST, GPU, PID, value('Others waiting for', 's', age), COMM, COMM_RANK, ['nranks', 'of']], { h: 6 }),
		table('Verdicts', 'Verdicts of the agents, each about its own node.', `max by (nccl_job, class, severity, confidence, comm, global_rank, host, peer_global_rank, peer_host, instance) (nccl_verdict_info{${J}})`,
			[JOB, ['class', 'Class'], ['severity', 'Severity'], ['confidence', 'Confidence'], RANK, HOST, ['peer_global_rank', 'Peer rank'],
				['peer_host', 'Peer host'], ['instance', 'Agent']], { h: 6 }),
		table('Hung communicators without a missing rank', 'All ranks have arrived, and there is no progress.', `comm:nccl_all_arrived:age_seconds{${J}}`,
			[JOB, COMM, ['kind', 'Kind'], ['nranks', 'Ranks'], value('Stuck for', 's', age)], { h: 6, w: 12 }),
		table('Notices', 'Notices of the agents, each about its own node.', named(`max by (nccl_job, kind, comm, rank, instance) (nccl_notice_info{${J}, comm!=""})`),
			[JOB, ['kind', 'Notice'], COMM_LABEL, COMM_RANK, AGENT], { h: 6, w: 12 }),
		table('Operations in flight for more than a second', 'State, and what the operation waits for: the GPU, a peer or the network.',
			placed(named(`(${stuck} * on (${BY_RANK}) group_right () max by (${BY_RANK}, function, state, waits_for, peer, count, datatype) (nccl_oldest_operation_info{${J}}))`)),
			[JOB, RANK, HOST, ['function', 'Operation'], value('Age', 's', age), ['state', 'State'], ['waits_for', 'Waits for'], ['peer', 'Peer'], COMM_LABEL,
				COMM_RANK, ['count', 'Count'], ['datatype', 'Type']], { h: 10 }),
		lines('Age of the oldest operation', 'By communicator.',
			{ expr: named(`(${most(10, `max by (nccl_job, comm) (nccl_oldest_operation_age_seconds{${J}})`)})`), legend: '{{nccl_job}} {{comm_label}}' },
			{ unit: 's', thresholds: age, links: ofJob }),
		row('Progress of all ranks', { collapsed: true }),
		lines('Collectives called', 'By communicator, first and last rank: diverging lines mean that a rank has fallen behind.', [
			{ expr: named(`(${most(10, `max by (nccl_job, comm) (nccl_collective_number_issued{${J}})`)})`), legend: '{{nccl_job}} {{comm_label}} first' },
			{ expr: named(`(${most(10, `min by (nccl_job, comm) (nccl_collective_number_issued{${J}})`)})`), legend: '{{nccl_job}} {{comm_label}} last' }]),
		table('Collectives behind the first rank', 'Not 0 for some ranks of a running job, because ranks are not scraped at the same time.',
			placed(named(`topk(50, max by (nccl_job, comm) (nccl_collective_number_issued{${J}}) - on (nccl_job, comm) group_right () `
			+ `max by (nccl_job, comm, rank) (nccl_collective_number_issued{${J}}))`)),
			[JOB, RANK, HOST, COMM_LABEL, COMM_RANK, value('Behind')], { w: 12 }),
		table('Signatures', 'Hash of the collectives that each rank has called. Ranks with the same number of collectives must have the same hash.',
			placed(named(`(max by (nccl_job, comm, rank) (nccl_collective_signature{${J}}) and on (nccl_job, comm) `
			+ `(comm:nccl_signature:different or comm:nccl_signature:split or max by (nccl_job, comm) (nccl_oldest_operation_age_seconds{${J}}) > 1))`)),
			[JOB, COMM_LABEL, RANK, HOST, value('Signature', 'none')], { w: 12 }),
		processTable(J),
	], { refresh: '5s', from: 'now-15m' });

const hostVariable = labelValues('host', 'Host', `nccl_process_info{${J}}`, 'host');
const H = `host=~"$host"`;
const ON_HOST = `* on (nccl_job, comm, rank) group_right () group by (nccl_job, comm, rank, host, global_rank, gpu) (nccl_communicator_info{${J}, ${H}})`;
const AGENTS = 'job=~"ringside.*"';
const agents = `on (instance) group by (instance) (nccl_process_info{${J}, ${H}})`;
const members = `on (${BY_RANK}) group by (${BY_RANK}) (nccl_communicator_info{${J}, ${H}})`;
const ofProcess = (metric) => `sum(${once('nccl_job, global_rank, pid, reason', `increase(${metric}{${J}}[$__range])`)} and on (nccl_job, global_rank, pid) `
	+ `group by (nccl_job, global_rank, pid) (nccl_process_info{${J}, ${H}}))`;
const quantile = (q) => `histogram_quantile(${q}, sum by (le, function) (rate(nccl_operation_duration_seconds_bucket{${J}}[${RATE}]) and ${members})) `
	+ `or histogram_quantile(${q}, sum by (function) (rate(nccl_operation_duration_seconds{${J}}[${RATE}]) and ${members}))`;
const node = dashboard('ringside-node', 'NCCL: nodes', 'One or more nodes: GPUs, durations of operations, network connections, and the agent.',
	[jobVariable, hostVariable], [
		figure('Processes', 'Running processes.', `count(${processes(`${J}, ${H}`)})`),
		figure('Idle GPUs (waiting)', 'On the selected hosts (lower bound).', `sum(process:nccl_wait:rate1m{${J}, ${H}})`, { thresholds: lost, decimals: 1 }),
		figure('Oldest operation', 'Age of the oldest operation in flight.', `max(${stuck} ${ON_HOST})`, { unit: 's', thresholds: age }),
		figure('Rejected GPU timestamps', 'Operations whose GPU timestamps failed their checks, in the selected time range.',
			`sum(${once(BY_RANK, `increase(nccl_untrusted_times_total{${J}}[$__range])`)} and ${members})`, { decimals: 0 }),
		figure('Lost details', 'Details of operations that were not recorded, in the selected time range.',
			ofProcess('nccl_lost_details_total'), { thresholds: any, decimals: 0 }),
		figure('Unexpected events', 'Unexpected profiler events from NCCL, in the selected time range.',
			ofProcess('nccl_odd_events_total'), { decimals: 0 }),
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
				'nccl_algorithm_timed_operations_total', BY_CHOICE)} and ${members})`,
				legend: '{{function}} {{algorithm}} {{protocol}}' }, { unit: 'percentunit' }),
		lines('Network wait by cause', 'Seconds per second over all connections: the own GPU, the memory of the peer, the wire, flushes.',
			{ expr: `sum by (direction, state) (${rate('nccl_proxy_wait_seconds_total', J, `${BY_RANK}, direction, state, peer`)} and ${members})`, legend: '{{direction}} {{state}}' }),
		lines('Network bytes', 'All connections.',
			{ expr: `sum by (host, direction) (sum by (${BY_RANK}, direction) (${rate('nccl_proxy_bytes_total', J, `${BY_RANK}, direction, peer`)}) `
				+ `* on (${BY_RANK}) group_left (host) topk by (${BY_RANK}) (1, group by (${BY_RANK}, host) (nccl_communicator_info{${J}, ${H}})))`,
				legend: '{{host}} {{direction}}' }, { unit: 'Bps' }),
		heatmap('Durations of operations', 'Timed operations per second by duration, including waiting, on all hosts of the job.', durations(J)),
		processTable(`${J}, ${H}`),
		row('Agent', { collapsed: true }),
		lines('CPU time', 'Share of one core.', { expr: `${once('instance', `rate(process_cpu_seconds_total{${AGENTS}}[${RATE}])`)} and ${agents}`, legend: '{{instance}}' },
			{ w: 8, unit: 'percentunit' }),
		lines('Memory', '', { expr: `${once('instance', `process_resident_memory_bytes{${AGENTS}}`)} and ${agents}`, legend: '{{instance}}' }, { w: 8, unit: 'bytes' }),
		lines('Scan time', 'Mean time of a scan of all processes on the node.',
			{ expr: `${once('instance', `rate(ringside_agent_look_seconds_total[${RATE}]) / rate(ringside_agent_looks_total[${RATE}])`)} and ${agents}`, legend: '{{instance}}' }, { w: 8, unit: 's' }),
		lines('Watched processes', '', { expr: `${once('instance, state', 'ringside_agent_processes')} and ${agents}`, legend: '{{instance}} {{state}}' }, { w: 8 }),
		lines('Unreadable recordings', 'Invalid, not permitted, or beyond the limit.',
			{ expr: `${once('instance', 'ringside_agent_refused_files + ringside_agent_unreadable_files + ringside_agent_left_out_processes')} and ${agents}`, legend: '{{instance}}' }, { w: 8 }),
		table('Versions', 'Of the agents.', 'count by (version) (group by (version, instance) (ringside_build_info))', [['version', 'Version'], value('Agents')], { w: 8 }),
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
const all = [fleet, overview, bandwidth, waiting, hang, node, inspector];
for (const made of all)
	writeFileSync(join(directory, `${made.uid}.json`), `${JSON.stringify(made, null, 2)}\n`);
// For Grafana's sidecar in Kubernetes, which loads ConfigMaps with this label.
writeFileSync(join(directory, 'kustomization.yaml'), `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: ringside
generatorOptions:
  disableNameSuffixHash: true
  labels:
    app.kubernetes.io/part-of: ringside
    grafana_dashboard: "1"
configMapGenerator:
${all.map((made) => `  - name: ${made.uid}-dashboard\n    files: [${made.uid}.json]\n`).join('')}`);
