// Tables of different readers in one form: { names, columns }, every value as text or null.
// Numbers are decimal, times "2026-01-31T14:03:10.000000001", booleans "true" and "false", so that
// readers that agree give equal texts.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(new URL("../../npm/package.json", import.meta.url));

export function load(name) {
	return require(name);
}

export async function loadModule(name) {
	return import(require.resolve(name));
}

// Nanoseconds since 1970 (a BigInt) as text.
export function timeText(ns) {
	const seconds = ns >= 0n ? ns / 1000000000n : -((999999999n - ns) / 1000000000n);
	const rest = ns - seconds * 1000000000n;
	return new Date(Number(seconds) * 1000).toISOString().slice(0, 19) + "." + String(rest).padStart(9, "0");
}

// JSON objects, one per line, with numbers as text, because JSON.parse() rounds above 2^53.
export function readLines(path) {
	const exact = (token) => (token[0] === '"' ? token : `"${token}"`);
	return readFileSync(path, "utf8").split("\n").filter((line) => line !== "")
		.map((line) => JSON.parse(line.replace(/"(?:[^"\\]|\\.)*"|-?[0-9]+/g, exact)));
}

export function readJsonl(path) {
	const rows = readLines(path);
	const names = rows.length > 0 ? Object.keys(rows[0]) : [];
	const text = (value) => (value === null ? null : String(value));
	return { names, columns: names.map((name) => rows.map((row) => text(row[name]))) };
}

// Sorted by these columns, because Parquet groups rows by process and communicator.
const KEY = ["job", "host", "rank", "pid", "comm_id", "number"];

export function sorted(table) {
	const key = KEY.filter((name) => table.names.includes(name)).map((name) => table.columns[table.names.indexOf(name)]);
	if (key.length === 0)
		return table;
	const keys = table.columns[0].map((_, row) => key.map((column) => String(column[row]).padStart(20)).join());
	const order = keys.map((_, row) => row).sort((a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : a - b));
	return { ...table, columns: table.columns.map((column) => order.map((row) => column[row])) };
}

export async function openDuckdb() {
	const { DuckDBInstance } = load("@duckdb/node-api");
	const instance = await DuckDBInstance.create(":memory:");
	return instance.connect();
}

function duckdbText(value) {
	if (value === null)
		return null;
	if (typeof value === "object" && "nanos" in value)
		return timeText(value.nanos);
	if (typeof value === "object" && "micros" in value)
		return timeText(value.micros * 1000n);
	return String(value);
}

export async function queryDuckdb(connection, sql) {
	const reader = await connection.runAndReadAll(sql);
	return {
		names: reader.columnNames(),
		columns: reader.getColumns().map((column) => column.map(duckdbText)),
		types: reader.columnTypes().map(String),
	};
}

export async function readDuckdb(path) {
	return queryDuckdb(await openDuckdb(), `SELECT * FROM read_parquet('${path}', hive_partitioning = false)`);
}

function hyparquetText(value) {
	return value === null || value === undefined ? null : String(value);
}

export async function readHyparquet(path) {
	const { parquetReadObjects, parquetMetadata, asyncBufferFromFile } = await loadModule("hyparquet");
	const { compressors } = await loadModule("hyparquet-compressors");
	const file = await asyncBufferFromFile(path);
	const bytes = readFileSync(path);
	const metadata = parquetMetadata(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
	const names = metadata.schema.slice(1).map((element) => element.name);
	const isTime = metadata.schema.slice(1).map((element) => element.logical_type?.type === "TIMESTAMP");
	// Its dates have milliseconds, so use the numbers.
	const whole = (value) => value;
	const parsers = { timestampFromNanoseconds: whole };
	const rows = await parquetReadObjects({ file, metadata, compressors, parsers, utf8: true });
	const columns = names.map((name, i) =>
		rows.map((row) => {
			const value = row[name];
			return isTime[i] && value !== null && value !== undefined ? timeText(BigInt(value)) : hyparquetText(value);
		}));
	return { names, columns, metadata };
}

export async function readWasm(path) {
	const wasm = load("parquet-wasm");
	const arrow = load("apache-arrow");
	const table = arrow.tableFromIPC(wasm.readParquet(new Uint8Array(readFileSync(path))).intoIPCStream());
	const names = table.schema.fields.map((field) => field.name);
	const columns = table.schema.fields.map((field, i) => {
		const vector = table.getChildAt(i);
		const column = [];
		const isTime = arrow.DataType.isTimestamp(field.type);
		// Arrow's getter returns milliseconds, so use the raw words.
		for (const data of vector?.data ?? []) {
			const plain = isTime ? data.values : null;
			for (let row = 0; row < data.length; row++) {
				if (data.nullCount > 0 && !data.getValid(row))
					column.push(null);
				else if (isTime)
					column.push(timeText(plain[row]));
				else
					column.push(null);
			}
		}
		if (!isTime)
			for (let row = 0; row < column.length; row++) {
				const value = vector.get(row);
				column[row] = value === null ? null : String(value);
			}
		return column;
	});
	return { names, columns };
}

// Describes the first difference, or null.
export function difference(got, wanted) {
	if (got.names.join() !== wanted.names.join())
		return `columns ${got.names} instead of ${wanted.names}`;
	for (let c = 0; c < wanted.names.length; c++) {
		const [a, b] = [got.columns[c], wanted.columns[c]];
		if (a.length !== b.length)
			return `${wanted.names[c]}: ${a.length} rows instead of ${b.length}`;
		for (let row = 0; row < b.length; row++)
			if (a[row] !== b[row])
				return `${wanted.names[c]}, row ${row}: ${a[row]} instead of ${b[row]}`;
	}
	return null;
}

