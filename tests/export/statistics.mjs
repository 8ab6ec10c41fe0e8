// Checks the statistics of each column and row group, and that DuckDB, which skips row groups by them, finds values.
import { openDuckdb, queryDuckdb } from "./table.mjs";

// Order of the format: texts by bytes, numbers by value.
function order(type) {
	const bytes = (text) => Buffer.from(text);
	if (type === "BYTE_ARRAY")
		return (a, b) => Buffer.compare(bytes(a), bytes(b));
	const number = (text) => (text === "true" ? 1n : text === "false" ? 0n : BigInt(text));
	return (a, b) => (number(a) < number(b) ? -1 : number(a) > number(b) ? 1 : 0);
}

function least(values, compare) {
	return values.reduce((a, b) => (compare(b, a) < 0 ? b : a));
}

function wrongInColumn(group, meta, values, isTime) {
	const where = `row group ${group}, ${meta.path_in_schema[0]}`;
	const { null_count: nulls, min_value: low, max_value: high } = meta.statistics;
	const there = [...new Set(values.filter((value) => value !== null))];
	const count = values.filter((value) => value === null).length;
	if (Number(nulls) !== count)
		return `${where}: ${nulls} nulls, there are ${count}`;
	if (there.length === 0)
		return low === undefined && high === undefined ? null : `${where}: ${low} to ${high}, and there is nothing`;
	// The dates of this reader have milliseconds.
	const text = (value) => (isTime ? value.toISOString().slice(0, 23) : String(value));
	const cut = (value) => (isTime ? value.slice(0, 23) : value);
	const compare = isTime ? (a, b) => (a < b ? -1 : a > b ? 1 : 0) : order(meta.type);
	const [first, last] = [least(there, compare), least(there, (a, b) => compare(b, a))];
	if (text(low) !== cut(first) || text(high) !== cut(last))
		return `${where}: ${text(low)} to ${text(high)}, it is ${first} to ${last}`;
	return null;
}

// The first error, or null. The table is hyparquet's.
export async function wrongStatistics(path, { names, columns, metadata }) {
	let row = 0;
	for (const [group, { columns: chunks, num_rows: rows }] of metadata.row_groups.entries()) {
		const end = row + Number(rows);
		for (const [c, chunk] of chunks.entries()) {
			const isTime = metadata.schema[c + 1].logical_type?.type === "TIMESTAMP";
			const wrong = wrongInColumn(group, chunk.meta_data, columns[c].slice(row, end), isTime);
			if (wrong)
				return wrong;
		}
		row = end;
	}
	// Search for a few values of each column.
	const connection = await openDuckdb();
	for (const [c, name] of names.entries()) {
		const distinct = [...new Set(columns[c].filter((value) => value !== null))];
		for (const value of new Set([distinct[0], distinct[distinct.length - 1]])) {
			if (value === undefined)
				continue;
			const wanted = columns[c].filter((other) => other === value).length;
			const literal = `'${value.replaceAll("'", "''")}'`;
			const found = await queryDuckdb(connection, `SELECT count(*) FROM '${path}' WHERE "${name}" = ${literal}`);
			if (Number(found.columns[0][0]) !== wanted)
				return `${name} = ${value}: DuckDB finds ${found.columns[0][0]} rows, there are ${wanted}`;
		}
	}
	return null;
}
