/* Tables that can be sorted, filtered and saved. */

const tableColumns = {
	name: { title: 'Communicators', isKey: true },
	communicators: { title: 'Count', type: 'count' },
	comm: { title: 'Communicator', isKey: true },
	kind: { title: 'Kind', isKey: true },
	ranks: { title: 'Ranks', type: 'count' },
	nodes: { title: 'Nodes', type: 'count' },
	missing_ranks: { title: 'Not recorded', type: 'count', hideZero: true },
	function: { title: 'Operation', isKey: true },
	size: { title: 'Size', isKey: true, sortBy: 'size_least' },
	algorithm: { title: 'Algorithm', isKey: true },
	protocol: { title: 'Protocol', isKey: true },
	rank: { title: 'Rank', type: 'label', isKey: true },
	host: { title: 'Host', isKey: true },
	gpu: { title: 'GPU', type: 'index' },
	state: { title: 'State', isKey: true },
	busy_share: { title: 'Busy', type: 'share', help: 'Share of run time during which an operation ran' },
	calls: { title: 'Calls', type: 'count' },
	timed: { title: 'Timed', type: 'count', help: 'Calls with a duration, from which times and bandwidths are computed' },
	bytes: { title: 'Bytes', type: 'bytes' },
	total_ns: { title: 'Time', type: 'time', isBarred: true, isEstimate: true,
		help: 'Total over all ranks; ~ if estimated from the timed calls' },
	share: { title: 'Share', type: 'share', help: 'Share of the time of all operations' },
	algbw_bytes_per_second: { title: 'algbw', type: 'rate', help: 'Algorithm bandwidth: bytes per time' },
	busbw_bytes_per_second: { title: 'busbw', type: 'rate', help: 'Bus bandwidth' },
	min_ns: { title: 'Min', type: 'time' },
	median_ns: { title: 'Median', type: 'time' },
	mean_ns: { title: 'Mean', type: 'time' },
	p99_ns: { title: 'p99', type: 'time' },
	max_ns: { title: 'Max', type: 'time' },
	total_wait_ns: { title: 'Waiting', type: 'time', isEstimate: true, help: 'Time spent waiting for other ranks (arrival skew)' },
	wait_share: { title: 'Waiting, %', type: 'share', help: 'Share of collective time spent waiting' },
	gpu_hours_lost: { title: 'GPU-h lost', type: 'hours', isEstimate: true, help: 'Waiting in GPU-hours' },
};

const timeColumns = ['min_ns', 'median_ns', 'mean_ns', 'p99_ns', 'max_ns'];
const measureColumns = ['calls', ...(isSampled ? ['timed'] : []), 'bytes', 'total_ns', 'share', 'algbw_bytes_per_second',
	'busbw_bytes_per_second', ...timeColumns, 'total_wait_ns', 'wait_share', 'gpu_hours_lost'];

const tableList = [
	['name', 'Communicators', ['name', 'kind', 'communicators']],
	['comm', 'Individual communicators', ['comm', 'kind', 'ranks', 'nodes', 'missing_ranks']],
	['function', 'Operations', ['function']],
	['size', 'Operations and sizes', ['function', 'size']],
	['algorithm', 'Algorithms', ['function', 'algorithm', 'protocol']],
	['rank', 'Ranks', ['rank', 'host', 'gpu', 'state', 'busy_share']],
];

/* Adds the share of the time of all operations. */
function withShare(row) {
	const all = report.total.total_ns;

	return { ...row, share: all && row.total_ns !== null ? row.total_ns / all : null };
}

function cellParts(type, value) {
	switch (type) {
	case 'count':
		return [count(value), ''];
	case 'index':
		return [String(value), ''];
	case 'bytes':
		return bytesParts(value);
	case 'time':
		return durationParts(value);
	case 'rate':
		return rateParts(value);
	case 'share':
		return [percent(value), ''];
	case 'hours':
		return [value >= 0.1 ? digits(value) : value === 0 ? '0' : value.toPrecision(2), ''];
	default:
		return [String(value), ''];
	}
}

const isNumber = (column) => column.type !== undefined && !column.isKey;

function cellText(name, value) {
	return value === null || value === undefined ? '' : cellParts(tableColumns[name].type, value).join(' ').trim();
}

function fillCell(cell, name, row, most) {
	const column = tableColumns[name];
	const value = row[name];

	if (value === null || value === undefined || (column.hideZero && value === 0)) {
		cell.append('–');
		return;
	}
	const [text, unit] = cellParts(column.type, value);

	cell.append((column.isEstimate ? estimateMark(row) : '') + text);
	if (unit)
		cell.append(el('span', { class: unit.length > 3 ? 'u wide' : 'u' }, unit));
	if (!isNumber(column))
		cell.title = text;
	if (column.isBarred && most > 0) {
		const bar = el('i', { 'aria-hidden': 'true' });

		cell.classList.add('barred');
		bar.style.width = `calc((100% - 20px) * ${value / most})`;
		cell.append(bar);
	}
}

/* Numbers by value, texts in natural order: rank 2 before rank 10. Unknown values come last. */
function compareCells(a, b, sign) {
	const isA = a !== null && a !== undefined, isB = b !== null && b !== undefined;

	if (!isA || !isB)
		return Number(isB) - Number(isA);
	if (typeof a === 'number' && typeof b === 'number')
		return sign * (a - b);
	return sign * String(a).localeCompare(String(b), 'en', { numeric: true });
}

function visibleRows(table) {
	const words = table.filter.toLowerCase().split(/\s+/).filter((word) => word !== '');
	const rows = table.rows.filter((row) => words.every((word) => row.text.includes(word)));

	const by = table.sort && (tableColumns[table.sort].sortBy || table.sort);

	return by ? rows.sort((a, b) => compareCells(a[by], b[by], table.sign)) : rows;
}

function bodyRow(table, row, most) {
	return el('tr', {}, ...table.columns.map((name, i) => {
		const side = isNumber(tableColumns[name]) ? 'right' : null;
		const cell = i === 0 ? el('th', { scope: 'row', class: side }) : el('td', { class: side });

		fillCell(cell, name, row, most[name]);
		return cell;
	}));
}

function drawTable(table) {
	const rows = visibleRows(table);
	const shown = rows.slice(0, table.limit);
	const most = { total_ns: Math.max(0, ...table.rows.map((row) => row.total_ns || 0)) };

	table.body.replaceChildren(...shown.map((row) => bodyRow(table, row, most)));
	const all = plural(table.rows.length, 'row');
	const matching = rows.length < table.rows.length ? `, ${count(rows.length)} match` : '';

	table.status.textContent = shown.length === table.rows.length ? all : `${count(shown.length)} of ${all}${matching}`;
	table.more.hidden = shown.length === rows.length;
	table.more.textContent = `Show ${count(Math.min(500, rows.length - shown.length))} more`;
	table.heads.forEach((head) => {
		const isSorted = head.dataset.name === table.sort;

		head.setAttribute('aria-sort', isSorted ? (table.sign < 0 ? 'descending' : 'ascending') : 'none');
		head.querySelector('.sort-mark').textContent = isSorted ? (table.sign < 0 ? '▼' : '▲') : '';
	});
}

function sortTable(table, name) {
	const first = isNumber(tableColumns[name]) ? -1 : 1;

	table.sign = table.sort === name ? -table.sign : first;
	table.sort = name;
	drawTable(table);
	speak(`Sorted by ${tableColumns[name].title}, ${table.sign < 0 ? 'descending' : 'ascending'}`);
}

function tableHead(table, name) {
	const column = tableColumns[name];

	return el('th', { scope: 'col', class: isNumber(column) ? 'right' : null, 'data-name': name, 'aria-sort': 'none' },
		el('button', { type: 'button', title: column.help || null, onclick: () => sortTable(table, name) },
			column.title, el('span', { class: 'sort-mark', 'aria-hidden': 'true' })));
}

/* Raw values, for spreadsheets. A quote keeps them from running a name as a formula. */
function csvOf(table) {
	const cell = (value) => {
		const text = value === null || value === undefined ? '' : String(value);
		const safe = typeof value === 'string' && /^[=+@\t\r-]/.test(text) ? `'${text}` : text;

		return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
	};
	const lines = visibleRows(table).map((row) => table.columns.map((name) => cell(row[name])).join(','));

	return [table.columns.join(','), ...lines, ''].join('\r\n');
}

function saveTable(table) {
	const address = URL.createObjectURL(new Blob([csvOf(table)], { type: 'text/csv' }));

	el('a', { href: address, download: `ringside-${table.id}.csv` }).click();
	setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/* Columns without values are omitted. */
function usedColumns(rows, names) {
	const says = (row, name) => row[name] !== null && row[name] !== undefined &&
		!(tableColumns[name].hideZero && row[name] === 0);

	return names.filter((name) => rows.some((row) => says(row, name)));
}

/* Initial order: ranks by number, sizes as in the data, the others by time. */
function firstOrder(id) {
	return id === 'rank' ? { sort: 'rank', sign: 1 } : { sort: id === 'size' ? null : 'total_ns', sign: -1 };
}

function tablePanel(table, title) {
	const left = report.tables[table.id].left_out;
	const search = el('input', {
		type: 'search', placeholder: 'Filter', 'aria-label': `Filter ${title.toLowerCase()}`,
		autocomplete: 'off', spellcheck: 'false',
		oninput: (event) => {
			table.filter = event.target.value;
			drawTable(table);
		},
	});
	const save = el('button', { type: 'button', onclick: () => saveTable(table) }, 'Save as CSV');
	const panel = el('div', {
		class: 'tab-panel', role: 'tabpanel', id: `panel-${table.id}`, 'aria-labelledby': `tab-${table.id}`, hidden: true,
	});

	panel.append(el('div', { class: 'table-tools' }, search, table.status, save),
		el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title },
			el('table', {}, el('caption', { class: 'unseen' }, title),
				el('thead', {}, el('tr', {}, ...table.heads)), table.body)),
		table.more);
	if (left > 0)
		panel.append(aside(`${plural(left, 'row')} omitted from this page; ` +
			'ringside report --json has all.'));
	return panel;
}

function makeTable(id, title, keys) {
	const rows = rowsOf(report.tables[id]).map(withShare);
	const table = { id, rows, filter: '', limit: 50, ...firstOrder(id) };

	for (const row of rows)
		row.text = keys.map((name) => cellText(name, row[name])).join(' ').toLowerCase();
	table.columns = usedColumns(rows, [...keys, ...measureColumns]);
	table.heads = table.columns.map((name) => tableHead(table, name));
	table.body = el('tbody', {});
	table.status = el('span', { class: 'dim', role: 'status' });
	table.more = el('button', {
		type: 'button', class: 'more',
		onclick: () => {
			table.limit += 500;
			drawTable(table);
		},
	});
	table.panel = tablePanel(table, title);
	drawTable(table);
	return table;
}

function selectTab(tabs, index, hasFocus) {
	tabs.forEach(({ button, table }, i) => {
		button.setAttribute('aria-selected', String(i === index));
		button.setAttribute('tabindex', i === index ? '0' : '-1');
		table.panel.hidden = i !== index;
	});
	if (hasFocus)
		tabs[index].button.focus();
}

function tabKey(tabs, event) {
	const at = tabs.findIndex(({ button }) => button === event.currentTarget);
	const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];

	if (to === undefined)
		return;
	event.preventDefault();
	selectTab(tabs, (to + tabs.length) % tabs.length, true);
}

function showTables() {
	/* If every name is unique, the two tables of communicators are the same. */
	const isTwice = report.tables.comm.rows.length === report.tables.name.rows.length;
	const wanted = tableList.filter(([id]) => report.tables[id].rows.length > 0 && !(isTwice && id === 'name'));
	const tabs = [];

	for (const [id, title, keys] of wanted) {
		const name = isTwice && id === 'comm' ? 'Communicators' : title;
		const at = tabs.length;

		tabs.push({
			table: makeTable(id, name, keys),
			button: el('button', {
				type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': `panel-${id}`,
				onclick: () => selectTab(tabs, at, false), onkeydown: (event) => tabKey(tabs, event),
			}, name),
		});
	}
	if (tabs.length === 0) {
		byId('tables').append(aside('No operations were recorded, or none match the filter.'));
		return;
	}
	byId('tables').append(
		el('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Tables' }, ...tabs.map(({ button }) => button)),
		...tabs.map(({ table }) => table.panel));
	selectTab(tabs, 0, false);
}
