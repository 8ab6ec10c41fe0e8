/*
 * Three kinds of objects (the run, a rank, a result) with mostly plain values: tables say which key goes
 * where and what it may be. What needs more than that (arrays) has functions of its own.
 */
#include "bench/bench_read.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_read_fields.h"
#include "common/attributes.h"
#include "import/json_scan.h"

/* The least that a call takes in the text: four numbers and four commas. Bounds what a lie can cost. */
enum { CALL_BYTES_LEAST = 8 };

/* ---- the run --------------------------------------------------------------------------------- */

#define RUN(name) offsetof(struct bench_run, name), sizeof(((struct bench_run *)NULL)->name)

enum run_key {
	RUN_FORMAT,
	RUN_VERSION,
	RUN_RANKS,
	RUN_NOTES = 13,
	RUN_MEMBERS = 15,
	RUN_RESULTS = 16,
};

static const struct bench_field run_fields[] = {
	[RUN_FORMAT] = { FIELD_KEY("format"), FIELD_OWN, 0, 0, 0, 0 },
	[RUN_VERSION] = { FIELD_KEY("version"), FIELD_OWN, 0, 0, 0, 0 },
	[RUN_RANKS] = { FIELD_KEY("ranks"), FIELD_INT32, RUN(nranks), 1, BENCH_RANKS_MAX },
	{ FIELD_KEY("nodes"), FIELD_INT32, RUN(nodes), 0, BENCH_RANKS_MAX },
	{ FIELD_KEY("nccl_version"), FIELD_INT32, RUN(nccl_version), 0, INT32_MAX },
	{ FIELD_KEY("cuda_version"), FIELD_INT32, RUN(cuda_version), 0, INT32_MAX },
	{ FIELD_KEY("gpu_shared"), FIELD_BOOL, RUN(is_gpu_shared), 0, 0 },
	{ FIELD_KEY("mps"), FIELD_BOOL, RUN(is_mps), 0, 0 },
	{ FIELD_KEY("started_ns"), FIELD_UINT64, RUN(started_ns), 0, 0 },
	{ FIELD_KEY("launcher"), FIELD_TEXT, RUN(launcher), 0, 0 },
	{ FIELD_KEY("plugin"), FIELD_TEXT, RUN(plugin), 0, 0 },
	{ FIELD_KEY("nccl_path"), FIELD_TEXT, RUN(nccl_path), 0, 0 },
	{ FIELD_KEY("command"), FIELD_TEXT, RUN(command), 0, 0 },
	[RUN_NOTES] = { FIELD_KEY("notes"), FIELD_OWN, 0, 0, 0, 0 },
	{ FIELD_KEY("notes_lost"), FIELD_SIZE, RUN(notes_lost), 0, 0 },
	[RUN_MEMBERS] = { FIELD_KEY("members"), FIELD_OWN, 0, 0, 0, 0 },
	[RUN_RESULTS] = { FIELD_KEY("results"), FIELD_OWN, 0, 0, 0, 0 },
};

#define RANK(name) offsetof(struct bench_rank, name), sizeof(((struct bench_rank *)NULL)->name)

static const struct bench_field rank_fields[] = {
	{ FIELD_KEY("host"), FIELD_TEXT, RANK(host), 0, 0 },
	{ FIELD_KEY("node"), FIELD_INT32, RANK(node), -1, BENCH_RANKS_MAX },
	{ FIELD_KEY("device"), FIELD_INT32, RANK(device), -1, INT32_MAX },
	{ FIELD_KEY("pid"), FIELD_INT32, RANK(pid), 0, INT32_MAX },
	{ FIELD_KEY("gpu_name"), FIELD_TEXT, RANK(gpu_name), 0, 0 },
	{ FIELD_KEY("gpu_uuid"), FIELD_TEXT, RANK(gpu_uuid), 0, 0 },
	{ FIELD_KEY("pci"), FIELD_TEXT, RANK(pci), 0, 0 },
	{ FIELD_KEY("memory_bytes"), FIELD_UINT64, RANK(memory_bytes), 0, 0 },
};

#define CELL(name) offsetof(struct bench_cell, name), sizeof(((struct bench_cell *)NULL)->name)

enum cell_key { CELL_PEERS = 21, CELL_PER_RANK = 22 };

static const struct bench_field cell_fields[] = {
	{ FIELD_KEY("function"), FIELD_FUNCTION, CELL(function), 0, 0 },
	{ FIELD_KEY("bytes"), FIELD_UINT64, CELL(bytes), 0, 0 },
	{ FIELD_KEY("datatype"), FIELD_DATATYPE, CELL(datatype), 0, 0 },
	{ FIELD_KEY("in_place"), FIELD_BOOL, CELL(is_in_place), 0, 0 },
	{ FIELD_KEY("ranks"), FIELD_INT32, CELL(nranks), 1, BENCH_RANKS_MAX },
	{ FIELD_KEY("count"), FIELD_UINT64, CELL(count), 0, 0 },
	{ FIELD_KEY("redop"), FIELD_REDOP, CELL(redop), 0, 0 },
	{ FIELD_KEY("root"), FIELD_INT32, CELL(root), -1, BENCH_RANKS_MAX - 1 },
	{ FIELD_KEY("mode"), FIELD_MODE, CELL(mode), 0, 0 },
	{ FIELD_KEY("algorithm"), FIELD_ALGORITHM, CELL(algorithm), 0, 0 },
	{ FIELD_KEY("protocol"), FIELD_PROTOCOL, CELL(protocol), 0, 0 },
	{ FIELD_KEY("chosen_algorithm"), FIELD_ALGORITHM, CELL(chosen_algorithm), 0, 0 },
	{ FIELD_KEY("chosen_protocol"), FIELD_PROTOCOL, CELL(chosen_protocol), 0, 0 },
	{ FIELD_KEY("grouped_sends"), FIELD_BOOL, CELL(is_grouped_sends), 0, 0 },
	{ FIELD_KEY("wrong"), FIELD_WRONG, CELL(wrong), 0, 0 },
	{ FIELD_KEY("calls"), FIELD_UINT32, CELL(calls), 0, 0 },
	{ FIELD_KEY("warmups"), FIELD_UINT32, CELL(warmups), 0, 0 },
	{ FIELD_KEY("checks"), FIELD_UINT32, CELL(checks), 0, 0 },
	{ FIELD_KEY("aligns"), FIELD_UINT32, CELL(aligns), 0, 0 },
	{ FIELD_KEY("captured"), FIELD_UINT32, CELL(captured), 0, 0 },
	{ FIELD_KEY("loop_ns"), FIELD_UINT64, CELL(loop_ns), 0, 0 },
	[CELL_PEERS] = { FIELD_KEY("peers"), FIELD_OWN, 0, 0, 0, 0 },
	[CELL_PER_RANK] = { FIELD_KEY("per_rank"), FIELD_OWN, 0, 0, 0, 0 },
};

static void read_notes(struct bench_reader *reader)
{
	struct bench_run *run = reader->run;

	if (!bench_reader_array(reader, "notes"))
		return;
	while (bench_reader_item(reader)) {
		if (run->note_count == BENCH_NOTES_MAX) {
			bench_reader_fail(reader, "more than %d notes", BENCH_NOTES_MAX);
			return;
		}
		bench_reader_text(reader, "a note", run->notes[run->note_count++],
				  BENCH_TEXT_BYTES);
	}
}

static void read_members(struct bench_reader *reader)
{
	struct bench_run *run = reader->run;
	int32_t count = 0;

	if (!bench_reader_array(reader, "members"))
		return;
	/* A member takes more than two bytes; lies about their number end here. */
	if ((size_t)run->nranks > bench_reader_left(reader) / 2)
		bench_reader_fail(reader, "it ends before its %d ranks", (int)run->nranks);
	else if (bench_run_set_ranks(run, run->nranks) != OK ||
		 (reader->peers = calloc((size_t)run->nranks, sizeof(*reader->peers))) == NULL)
		bench_reader_no_memory(reader);
	while (bench_reader_item(reader)) {
		if (count == run->nranks) {
			bench_reader_fail(reader, "more members than %d ranks", (int)run->nranks);
			return;
		}
		bench_reader_object(reader, "a member", rank_fields, ARRAY_LENGTH(rank_fields),
				    &run->ranks[count++], NULL);
	}
	if (reader->status == OK && count != run->nranks)
		bench_reader_fail(reader, "%d members of %d ranks", (int)count, (int)run->nranks);
}

/* ---- a result -------------------------------------------------------------------------------- */

static void read_peers(struct bench_reader *reader, struct bench_cell *cell)
{
	int32_t count = 0;
	int64_t peer = 0;

	if (cell->nranks > reader->run->nranks)
		bench_reader_fail(reader, "%d ranks of a run of %d", (int)cell->nranks,
				  (int)reader->run->nranks);
	if (!bench_reader_array(reader, "peers"))
		return;
	while (bench_reader_item(reader)) {
		if (count == cell->nranks) {
			bench_reader_fail(reader, "more peers than %d ranks", (int)cell->nranks);
			return;
		}
		if (!json_scan_signed(&reader->scan, &peer) || peer < -1 || peer >= cell->nranks) {
			bench_reader_fail(reader, "a peer that is no rank below %d and not -1",
					  (int)cell->nranks);
			return;
		}
		reader->peers[count++] = (int32_t)peer;
	}
	if (reader->status != OK || count == 0)
		return;
	if (count != cell->nranks)
		bench_reader_fail(reader, "%d peers for %d ranks", (int)count, (int)cell->nranks);
	cell->peers = reader->peers;
}

/* One of the four arrays of a rank. */
static void read_times(struct bench_reader *reader, const char *name, struct bench_call *calls,
		       uint32_t count, size_t offset)
{
	uint32_t call = 0;
	uint64_t time = 0;

	if (!bench_reader_array(reader, name))
		return;
	while (bench_reader_item(reader)) {
		if (call == count) {
			bench_reader_fail(reader, "%s: more than %u calls", name, count);
			return;
		}
		if (!json_scan_unsigned(&reader->scan, &time)) {
			bench_reader_fail(reader, "%s: no whole number of nanoseconds", name);
			return;
		}
		memcpy((char *)&calls[call++] + offset, &time, sizeof(time));
	}
	if (reader->status == OK && call != count)
		bench_reader_fail(reader, "%s: %u of %u calls", name, call, count);
}

static void read_rank_calls(struct bench_reader *reader, struct bench_call *calls, uint32_t count)
{
	static const struct json_scan_key keys[] = {
		JSON_SCAN_KEY_OF("begin_ns"),
		JSON_SCAN_KEY_OF("gpu_ns"),
		JSON_SCAN_KEY_OF("issue_ns"),
		JSON_SCAN_KEY_OF("done_ns"),
	};
	static const size_t offsets[] = {
		offsetof(struct bench_call, begin_ns),
		offsetof(struct bench_call, gpu_ns),
		offsetof(struct bench_call, issue_ns),
		offsetof(struct bench_call, done_ns),
	};
	uint64_t seen = 0;
	int key;

	while ((key = bench_reader_key(reader, keys, ARRAY_LENGTH(keys), &seen)) >= 0)
		read_times(reader, keys[key].name, calls, count, offsets[key]);
	if (reader->status == OK && seen != (1u << ARRAY_LENGTH(keys)) - 1)
		bench_reader_fail(reader, "a rank's calls without begin_ns, gpu_ns, issue_ns or "
					  "done_ns");
}

static void read_per_rank(struct bench_reader *reader, const struct bench_cell *cell)
{
	int32_t ranks = cell->calls_of != NULL ? cell->nranks : 0, count = 0;

	if (!bench_reader_array(reader, "per_rank"))
		return;
	while (bench_reader_item(reader)) {
		if (count == ranks) {
			bench_reader_fail(reader, "per_rank: more than %d ranks", (int)ranks);
			return;
		}
		if (reader->token != JSON_SCAN_OBJECT) {
			bench_reader_fail(reader, "per_rank: a rank's calls are no object");
			return;
		}
		read_rank_calls(reader, &cell->calls_of[(size_t)count * cell->calls], cell->calls);
		count++;
	}
	if (reader->status == OK && count != ranks)
		bench_reader_fail(reader, "per_rank: %d of %d ranks", (int)count, (int)ranks);
}

/* Everything else was read: room for the calls, no more than the text can fill. */
static struct bench_cell *add_cell(struct bench_reader *reader, const struct bench_cell *cell)
{
	struct bench_run *run = reader->run;
	struct bench_cell *added = NULL;
	uint64_t calls = cell->mode == BENCH_LOOP ? 0 : (uint64_t)cell->calls;

	if (cell->root >= cell->nranks)
		bench_reader_fail(reader, "its root is rank %d of %d", (int)cell->root,
				  (int)cell->nranks);
	else if (calls * (uint64_t)cell->nranks > bench_reader_left(reader) / CALL_BYTES_LEAST)
		bench_reader_fail(reader, "it ends before its %u calls of %d ranks", cell->calls,
				  (int)cell->nranks);
	else if (run->cell_count == BENCH_CELLS_MAX)
		bench_reader_fail(reader, "more than %d results", BENCH_CELLS_MAX);
	else {
		added = bench_run_add_cell(run, cell);
		if (added == NULL)
			bench_reader_no_memory(reader);
	}
	return added;
}

static void own_of_cell(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	struct bench_cell *cell = object, *added;
	const uint64_t before =
		(UINT64_C(1) << (key == CELL_PEERS ? CELL_PEERS : CELL_PER_RANK)) - 1;

	if ((seen & before) != before) {
		bench_reader_fail(reader,
				  "%s comes before some other key of the result, or one is "
				  "missing",
				  cell_fields[key].key.name);
	} else if (key == CELL_PEERS) {
		read_peers(reader, cell);
	} else {
		added = add_cell(reader, cell);
		if (added != NULL)
			read_per_rank(reader, added);
	}
}

static void read_results(struct bench_reader *reader)
{
	if (!bench_reader_array(reader, "results"))
		return;
	while (bench_reader_item(reader)) {
		struct bench_cell cell = { 0 };

		reader->result++;
		bench_reader_object(reader, "a result", cell_fields, ARRAY_LENGTH(cell_fields),
				    &cell, own_of_cell);
	}
	reader->result = 0;
}

/* ---- the document ---------------------------------------------------------------------------- */

static void read_format(struct bench_reader *reader)
{
	if (json_scan_next(&reader->scan) == JSON_SCAN_STRING &&
	    json_scan_is(&reader->scan, "ringside-bench"))
		reader->is_ours = true;
	else
		bench_reader_fail(reader, "its format is not \"ringside-bench\"");
}

static void read_version(struct bench_reader *reader)
{
	uint64_t version = 0;

	json_scan_next(&reader->scan);
	if (!json_scan_unsigned(&reader->scan, &version) || version == 0) {
		bench_reader_fail(reader, "its version is no number from 1 on");
	} else if (version > 1) {
		bench_reader_fail(reader,
				  "version %llu is newer than this program: use a newer "
				  "ringside",
				  (unsigned long long)version);
		reader->status = ERR_VERSION;
	}
}

static void own_of_run(struct bench_reader *reader, size_t key, uint64_t seen, void *object)
{
	(void)object;
	if (key != RUN_FORMAT && !(seen & 1u << RUN_FORMAT)) {
		bench_reader_fail(reader, "\"format\" is not the first key");
	} else if (key == RUN_FORMAT) {
		read_format(reader);
	} else if (key == RUN_VERSION) {
		read_version(reader);
	} else if (key == RUN_NOTES) {
		read_notes(reader);
	} else if (!(seen & 1u << RUN_RANKS) ||
		   (key == RUN_RESULTS && !(seen & 1u << RUN_MEMBERS))) {
		bench_reader_fail(reader, "ranks, members and results do not come in this order");
	} else if (key == RUN_MEMBERS) {
		read_members(reader);
	} else {
		read_results(reader);
	}
}

enum status bench_read(struct bench_run *run, const char *text, size_t length,
		       struct bench_read_problem *problem)
{
	struct bench_reader reader;
	enum status status;

	bench_run_init(run);
	bench_reader_start(&reader, run, text, length);
	bench_reader_item(&reader);
	bench_reader_object(&reader, "the document", run_fields, ARRAY_LENGTH(run_fields), run,
			    own_of_run);
	if (reader.status == OK && json_scan_next(&reader.scan) != JSON_SCAN_END)
		bench_reader_fail(&reader, "something stands behind it");
	status = reader.status == ERR_FORMAT && !reader.is_ours ? ERR_UNKNOWN : reader.status;
	if (status != OK && problem != NULL)
		*problem = reader.problem;
	if (status != OK)
		bench_run_release(run);
	bench_reader_end(&reader);
	return status;
}
