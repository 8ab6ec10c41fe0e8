// csv.mjs FILE.csv FILE.jsonl: with the right types, DuckDB reads the same from CSV as from JSON lines.
import { difference, openDuckdb, queryDuckdb, readJsonl } from "./table.mjs";

const [csv, jsonl] = process.argv.slice(2);
const wanted = readJsonl(jsonl);
// All as text except times; quotes distinguish an empty text from null.
const types = wanted.names.map((name) => `'${name}': '${name.endsWith("_time") ? "TIMESTAMP_NS" : "VARCHAR"}'`);
const got = await queryDuckdb(await openDuckdb(), `SELECT * FROM read_csv('${csv}', header = true, delim = ',', quote = '"',
	escape = '"', allow_quoted_nulls = false, columns = { ${types.join()} })`);
const why = difference(got, wanted);
console.log(why ?? "the same");
process.exit(why === null ? 0 : 1);
