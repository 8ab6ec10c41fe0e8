// query.mjs SQL: prints the rows of a DuckDB query, one per line, cells separated by |.
import { openDuckdb, queryDuckdb } from "./table.mjs";

const { columns } = await queryDuckdb(await openDuckdb(), process.argv[2]);
for (let row = 0; row < (columns[0]?.length ?? 0); row++)
	console.log(columns.map((column) => column[row] ?? "NULL").join("|"));
