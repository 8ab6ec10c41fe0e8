// Compares exported rows with `ringside dump`.
import { readLines, timeText } from "./table.mjs";

const CLOCKS = {
	issue_time: "issue_ns", launch_time: "launch_ns", task_time: "task_ns", active_time: "active_ns", done_time: "done_ns",
};
// Not in a dump, or checked separately.
const ELSEWHERE = ["comm_kind", "gpu", "gpu_uuid", "interface", "clock_offset_ns"];
const wrapped = (number) => BigInt.asIntN(64, number);

// The expected value of a column, from the fields of docs/JSON.md.
function expected(name, op, offset) {
	if (name in CLOCKS) {
		const clock = op[CLOCKS[name]];
		return clock === null ? null : timeText(wrapped(BigInt(clock) + offset));
	}
	if (name === "signature" || name === "stream")
		return String(BigInt(op[name]));
	if (name === "is_replay")
		return op.flags.includes("replay");
	if (name === "flags")
		return op.flags.join();
	return name.startsWith("wait_") ? op.wait_ns[name.slice(5, -3)] : op[name];
}

function wrongInRow(row, op) {
	const offset = row.clock_offset_ns === null ? 0n : BigInt(row.clock_offset_ns);
	if (op.issue_ns !== null && (op.issue_wall_ns === null) !== (row.clock_offset_ns === null))
		return `clock_offset_ns ${row.clock_offset_ns}, dumped wall time ${op.issue_wall_ns}`;
	if (op.issue_wall_ns !== null && wrapped(BigInt(op.issue_ns) + offset) !== wrapped(BigInt(op.issue_wall_ns)))
		return `clock_offset_ns ${row.clock_offset_ns}, dumped wall time ${op.issue_wall_ns}`;
	for (const name of Object.keys(row).filter((column) => !ELSEWHERE.includes(column))) {
		// Dumps omit flags without a name.
		const got = name === "flags" ? row.flags.split(",").filter((flag) => !/^bit[0-9]+$/.test(flag)).join() : row[name];
		const want = expected(name, op, offset);
		if (got !== want)
			return `${name} ${got}, dumped ${want}`;
	}
	return null;
}

// The first difference, or null.
export function wrongAgainstDump(exported, dumped) {
	const rows = readLines(exported);
	const wanted = readLines(dumped);
	if (rows.length !== wanted.length || rows.length === 0)
		return `${rows.length} rows, ${wanted.length} were dumped`;
	for (const [i, row] of rows.entries()) {
		const wrong = wrongInRow(row, wanted[i]);
		if (wrong)
			return `row ${i}: ${wrong}`;
	}
	return null;
}
