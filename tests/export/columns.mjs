// columns.mjs FILE.parquet: "name type null" or "name type -" of each column, from the schema of the file.
import { readHyparquet } from "./table.mjs";

const { metadata } = await readHyparquet(process.argv[2]);
for (const element of metadata.schema.slice(1)) {
	const logical = element.logical_type;
	let type = element.type === "BOOLEAN" ? "boolean" : "?";
	if (logical?.type === "STRING")
		type = "string";
	else if (logical?.type === "INTEGER")
		type = `${logical.isSigned ? "int" : "uint"}${logical.bitWidth}`;
	else if (logical?.type === "TIMESTAMP" && logical.unit === "NANOS" && !logical.isAdjustedToUTC)
		type = "timestamp_ns";
	console.log(element.name, type, element.repetition_type === "OPTIONAL" ? "null" : "-");
}
