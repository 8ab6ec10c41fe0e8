// readers.mjs DIRECTORY NAME...: compares what three independent readers find in NAME.parquet with NAME.jsonl and, if there
// is one, NAME.dump, and checks the statistics. Prints a line each, "ok" or "not ok".
import { existsSync } from "node:fs";
import { wrongAgainstDump } from "./dump.mjs";
import { wrongStatistics } from "./statistics.mjs";
import { difference, readDuckdb, readHyparquet, readJsonl, readWasm, sorted } from "./table.mjs";

const [directory, ...names] = process.argv.slice(2);

async function say(sentence, check) {
	let why;
	try {
		why = await check();
	} catch (error) {
		why = String(error.stack).replaceAll("\n", " ");
	}
	console.log(why === null ? `ok ${sentence}` : `not ok ${sentence}: ${why}`);
}

// A file without rows still has its columns.
function compare(got, wanted) {
	if (wanted.names.length > 0)
		return difference(sorted(got), wanted);
	return got.names.length > 0 && got.columns.every((column) => column.length === 0) ? null : "not empty";
}

for (const name of names) {
	const path = `${directory}/${name}`;
	const wanted = sorted(readJsonl(`${path}.jsonl`));
	let table;
	await say(`${name}: DuckDB reads what was written`, async () => compare(await readDuckdb(`${path}.parquet`), wanted));
	await say(`${name}: hyparquet reads what was written`, async () => {
		table = await readHyparquet(`${path}.parquet`);
		return compare(table, wanted);
	});
	await say(`${name}: parquet-wasm reads what was written`, async () => compare(await readWasm(`${path}.parquet`), wanted));
	await say(`${name}: statistics are true`, async () => wrongStatistics(`${path}.parquet`, table));
	if (existsSync(`${path}.dump`))
		await say(`${name}: a dump says the same`, async () => wrongAgainstDump(`${path}.jsonl`, `${path}.dump`));
}
