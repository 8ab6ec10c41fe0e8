// queries.mjs PAGE DIRECTORY: runs every ```sql block of the page in DuckDB, in DIRECTORY, and prints "ok HEADING: rows" or
// "not ok HEADING: why". With a third argument, prints the rows of the last block below that heading instead.
import { readFileSync } from "node:fs";
import { openDuckdb, queryDuckdb } from "./table.mjs";

const [page, directory, wanted] = process.argv.slice(2);
const lines = readFileSync(page, "utf8").split("\n");
const blocks = [];
let heading = "";
let block = null;
for (const line of lines) {
	if (block === null && /^###? /.test(line))
		heading = line.replace(/^#+ /, "");
	if (line.startsWith("```")) {
		if (block !== null)
			blocks.push(block);
		block = block === null && line === "```sql" ? { heading, sql: "" } : null;
	} else if (block !== null)
		block.sql += line + "\n";
}

process.chdir(directory);
const connection = await openDuckdb();
let rows = "";
for (const { heading: name, sql } of blocks) {
	try {
		let table = null;
		// One statement at a time; no query has a ; inside a string.
		for (const statement of sql.split(";").filter((text) => text.replace(/--.*/g, "").trim() !== ""))
			table = await queryDuckdb(connection, statement);
		const count = table.columns[0]?.length ?? 0;
		if (name === wanted)
			rows = Array.from({ length: count }, (_, row) => table.columns.map((column) => column[row] ?? "NULL").join("|")).join("\n");
		if (wanted === undefined)
			console.log(`ok ${name}: ${/\bSELECT\b/.test(sql) && !/\bCREATE\b/.test(sql) ? `${count} rows` : "made"}`);
	} catch (error) {
		console.log(`not ok ${name}: ${String(error.message).replaceAll("\n", " ")}`);
	}
}
if (wanted !== undefined)
	console.log(rows);
