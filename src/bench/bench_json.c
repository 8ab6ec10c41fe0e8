/*
 * The order of keys is part of the format: bench_read() must know sizes before it reads the arrays they describe.
 */
#include "bench/bench_result.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/op.h"

enum { BENCH_FIELDS_MAX = 32 };

void bench_reader_start(struct bench_reader *reader, struct bench_run *run, const char *text,
			size_t length)
{
	*reader = (struct bench_reader){ .run = run };
	json_scan_init(&reader->scan, text, length);
}

void bench_reader_end(struct bench_reader *reader)
{
	free(reader->peers);
	reader->peers = NULL;
}

/* ---- trouble --------------------------------------------------------------------------------- */

static void note_place(struct bench_reader *reader)
{
	const char *at = reader->scan.start, *end;

	reader->problem.offset = json_scan_offset(&reader->scan);
	reader->problem.line = 1;
	end = at + reader->problem.offset;
	while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		reader->problem.line++;
		at++;
	}
}

void bench_reader_fail(struct bench_reader *reader, const char *format, ...)
{
	char why[BENCH_READ_TEXT - 32];
	va_list arguments;

	if (reader->status != OK)
		return;
	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	reader->status = ERR_FORMAT;
	note_place(reader);
	if (reader->result > 0)
		text_format(reader->problem.text, sizeof(reader->problem.text), "result %zu: %s",
			    reader->result, why);
	else
		text_copy(reader->problem.text, sizeof(reader->problem.text), why);
}

void bench_reader_no_memory(struct bench_reader *reader)
{
	bench_reader_fail(reader, "out of memory");
	reader->status = ERR_NO_SPACE;
}

/* The scanner's reason is more specific. */
static void fail_scan(struct bench_reader *reader, const char *otherwise)
{
	bench_reader_fail(reader, "%s",
			  reader->scan.problem != NULL ? reader->scan.problem : otherwise);
}

/* Bytes left to read. */
static size_t bench_reader_left(const struct bench_reader *reader)
{
	return (size_t)(reader->scan.end - reader->scan.at);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

bool bench_reader_array(struct bench_reader *reader, const char *name)
{
	if (reader->status != OK)
		return false;
	if (json_scan_next(&reader->scan) == JSON_SCAN_ARRAY)
		return true;
	if (reader->scan.problem != NULL)
		fail_scan(reader, "");
	else
		bench_reader_fail(reader, "%s is not an array", name);
	return false;
}

bool bench_reader_item(struct bench_reader *reader)
{
	if (reader->status != OK)
		return false;
	reader->token = json_scan_next(&reader->scan);
	if (reader->token == JSON_SCAN_ARRAY_END)
		return false;
	if (reader->token > JSON_SCAN_END)
		return true;
	fail_scan(reader, "truncated");
	return false;
}

void bench_reader_text(struct bench_reader *reader, const char *name, char *to, size_t size)
{
	if (reader->status != OK)
		return;
	if (reader->scan.token != JSON_SCAN_STRING)
		bench_reader_fail(reader, "%s is not a string", name);
	else if (!json_scan_text(&reader->scan, to, size))
		bench_reader_fail(reader, "%s is longer than %zu bytes", name, size - 1);
}

/* The next known key of the open object; skips unknown ones. -1: end of the object, or damaged. */
static int bench_reader_key(struct bench_reader *reader, const struct json_scan_key *keys,
			    int count, uint64_t *seen)
{
	int key, hint = 0;

	while (reader->status == OK) {
		/* Keys come in order, except new ones. */
		while (hint < count && *seen >> hint & 1)
			hint++;
		key = json_scan_next_key(&reader->scan, keys, count, &hint);
		if (key == JSON_SCAN_KEY_ERROR)
			fail_scan(reader, "a key is missing");
		else if (key == JSON_SCAN_KEY_NONE)
			return -1;
		else if (key == JSON_SCAN_KEY_UNKNOWN && !json_scan_skip(&reader->scan))
			fail_scan(reader, "not a value");
		else if (key >= 0 && *seen >> key & 1)
			bench_reader_fail(reader, "%s is given twice", keys[key].name);
		else if (key >= 0) {
			*seen |= UINT64_C(1) << key;
			return key;
		}
	}
	return -1;
}

/* ---- plain values ---------------------------------------------------------------------------- */

static bool read_number(const struct bench_reader *reader, const struct bench_field *field,
			char *to)
{
	const struct json_scan *scan = &reader->scan;
	uint64_t number = 0;
	int64_t signed_number = 0;

	if (field->kind == FIELD_INT32) {
		if (!json_scan_signed(scan, &signed_number) || signed_number < field->least ||
		    signed_number > field->most)
			return false;
		memcpy(to, &(int32_t){ (int32_t)signed_number }, sizeof(int32_t));
		return true;
	}
	if (field->kind == FIELD_WRONG && scan->token == JSON_SCAN_NULL)
		number = BENCH_UNCHECKED;
	else if (!json_scan_unsigned(scan, &number))
		return false;
	if (field->kind == FIELD_UINT32) {
		if (number > UINT32_MAX)
			return false;
		memcpy(to, &(uint32_t){ (uint32_t)number }, sizeof(uint32_t));
	} else if (field->kind == FIELD_SIZE) {
		memcpy(to, &(size_t){ (size_t)number }, sizeof(size_t));
	} else {
		memcpy(to, &number, sizeof(number));
	}
	return true;
}

static const enum op_name_table name_tables[] = {
	[FIELD_FUNCTION] = OP_NAMES_FUNCTION,
	[FIELD_DATATYPE] = OP_NAMES_DATATYPE,
	[FIELD_ALGORITHM] = OP_NAMES_ALGORITHM,
	[FIELD_PROTOCOL] = OP_NAMES_PROTOCOL,
};

static bool find_name(const char *name, enum bench_field_kind kind, uint8_t *number)
{
	int is_known = 0;

	if (kind == FIELD_REDOP) {
		*number = (uint8_t)bench_redop_find(name);
		return *number != 0 || strcmp(name, bench_redop_name(BENCH_NO_REDOP)) == 0;
	}
	if (kind == FIELD_MODE)
		*number = (uint8_t)bench_mode_find(name);
	else
		*number = op_name_find(name_tables[kind], name, &is_known);
	return *number != 0;
}

static bool read_name(const struct bench_reader *reader, const struct bench_field *field, char *to)
{
	bool may_be_null = field->kind == FIELD_DATATYPE || field->kind == FIELD_ALGORITHM ||
			   field->kind == FIELD_PROTOCOL;
	uint8_t number = 0;
	char name[32];

	if (reader->scan.token == JSON_SCAN_NULL && may_be_null)
		return true; /* already 0 */
	if (reader->scan.token != JSON_SCAN_STRING ||
	    !json_scan_text(&reader->scan, name, sizeof(name)) ||
	    !find_name(name, field->kind, &number))
		return false;
	memcpy(to, &number, 1);
	return true;
}

static bool read_bool(const struct bench_reader *reader, char *to)
{
	bool is_true = reader->scan.token == JSON_SCAN_TRUE;

	if (!is_true && reader->scan.token != JSON_SCAN_FALSE)
		return false;
	memcpy(to, &is_true, sizeof(is_true));
	return true;
}

static const char *what_it_is_not(enum bench_field_kind kind)
{
	switch (kind) {
	case FIELD_BOOL:
		return "not true or false";
	case FIELD_INT32:
	case FIELD_UINT32:
	case FIELD_UINT64:
	case FIELD_SIZE:
	case FIELD_WRONG:
		return "not a whole number in range";
	default:
		return "not a known name";
	}
}

static void read_field(struct bench_reader *reader, const struct bench_field *field, char *to)
{
	bool is_good;

	if (json_scan_next(&reader->scan) == JSON_SCAN_ERROR) {
		fail_scan(reader, "not a value");
		return;
	}
	if (field->kind == FIELD_TEXT || field->kind == FIELD_PLAIN_TEXT) {
		bench_reader_text(reader, field->key.name, to, field->size);
		return;
	}
	if (field->kind == FIELD_BOOL)
		is_good = read_bool(reader, to);
	else if (field->kind >= FIELD_FUNCTION)
		is_good = read_name(reader, field, to);
	else
		is_good = read_number(reader, field, to);
	if (!is_good)
		bench_reader_fail(reader, "%s is %s", field->key.name, what_it_is_not(field->kind));
}

void bench_reader_object(struct bench_reader *reader, const char *what,
			 const struct bench_field *fields, size_t count, void *object,
			 bench_own_fn own)
{
	struct json_scan_key keys[BENCH_FIELDS_MAX];
	uint64_t seen = 0;
	int key;

	if (reader->status == OK && reader->token != JSON_SCAN_OBJECT)
		bench_reader_fail(reader, "%s is not an object", what);
	for (size_t i = 0; i < count; i++)
		keys[i] = fields[i].key;
	while ((key = bench_reader_key(reader, keys, (int)count, &seen)) >= 0) {
		const struct bench_field *field = &fields[key];

		if (field->kind == FIELD_OWN)
			own(reader, field, seen, object);
		else
			read_field(reader, field, (char *)object + field->offset);
	}
	for (size_t i = 0; i < count && reader->status == OK; i++)
		if (!(seen >> i & 1))
			bench_reader_fail(reader, "%s without %s", what, fields[i].key.name);
}

const char *bench_field_name(enum bench_field_kind kind, uint8_t number)
{
	switch (kind) {
	case FIELD_REDOP:
		return bench_redop_name(number);
	case FIELD_MODE:
		return bench_mode_name(number);
	default:
		/* 0 is "unknown". */
		return number != 0 ? op_name(name_tables[kind], number) : NULL;
	}
}

static void put_text(struct json *json, const char *field, size_t size)
{
	char text[sizeof(((struct bench_run *)NULL)->command)];

	json_string(json, bench_text_clean(text, field, size));
}

static void put_field(struct json *json, const struct bench_field *field, const char *from)
{
	uint64_t number = 0;
	int32_t signed_number;

	json_key(json, field->key.name);
	switch (field->kind) {
	case FIELD_TEXT:
		put_text(json, from, field->size);
		return;
	case FIELD_PLAIN_TEXT:
		json_string(json, from);
		return;
	case FIELD_BOOL:
		json_bool(json, *(const bool *)from);
		return;
	case FIELD_INT32:
		memcpy(&signed_number, from, sizeof(signed_number));
		json_signed(json, signed_number);
		return;
	case FIELD_UINT32:
	case FIELD_UINT64:
	case FIELD_SIZE:
	case FIELD_WRONG:
		number = field->size == sizeof(uint32_t) ? *(const uint32_t *)(const void *)from
							 : *(const uint64_t *)(const void *)from;
		if (field->kind == FIELD_WRONG && number == BENCH_UNCHECKED)
			json_null(json);
		else
			json_unsigned(json, number);
		return;
	default:
		json_string(json, bench_field_name(field->kind, *(const uint8_t *)from));
	}
}

void bench_fields_put(struct json *json, const struct bench_field *fields, size_t count,
		      const void *object, bench_put_own_fn own)
{
	for (const struct bench_field *field = fields; field < fields + count; field++) {
		if (field->kind == FIELD_OWN)
			own(json, field, object);
		else
			put_field(json, field, (const char *)object + field->offset);
	}
}

/*
 * Three kinds of objects (the run, a rank, a result) with mostly plain values: tables map keys to fields and their
 * ranges. Arrays have their own functions.
 */

/* The smallest text of a call: four numbers and four commas. Limits the memory that a damaged file can cost. */
enum { CALL_BYTES_LEAST = 8 };

/* ---- the run --------------------------------------------------------------------------------- */

#define RUN(name) FIELD_AT(bench_run, name)

enum run_key {
	RUN_FORMAT,
	RUN_VERSION,
	RUN_RANKS,
	RUN_NOTES = 13,
	RUN_MEMBERS = 15,
	RUN_RESULTS = 16,
};

static const struct bench_field run_fields[] = {
	[RUN_FORMAT] = FIELD_OF_OWN("format"),
	[RUN_VERSION] = FIELD_OF_OWN("version"),
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
	[RUN_NOTES] = FIELD_OF_OWN("notes"),
	{ FIELD_KEY("notes_lost"), FIELD_SIZE, RUN(notes_lost), 0, 0 },
	[RUN_MEMBERS] = FIELD_OF_OWN("members"),
	[RUN_RESULTS] = FIELD_OF_OWN("results"),
};

#define RANK(name) FIELD_AT(bench_rank, name)

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

#define CELL(name) FIELD_AT(bench_cell, name)

/* per_rank comes last, after everything that a table of expected bandwidth compares. */
enum cell_key { CELL_DATATYPE = 2, CELL_PEERS = 21, CELL_PER_RANK = 22 };

static const struct bench_field cell_fields[] = {
	{ FIELD_KEY("function"), FIELD_FUNCTION, CELL(function), 0, 0 },
	{ FIELD_KEY("bytes"), FIELD_UINT64, CELL(bytes), 0, 0 },
	[CELL_DATATYPE] = { FIELD_KEY("datatype"), FIELD_DATATYPE, CELL(datatype), 0, 0 },
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
	[CELL_PEERS] = FIELD_OF_OWN("peers"),
	[CELL_PER_RANK] = FIELD_OF_OWN("per_rank"),
};

/* The times of a rank's calls: one array each. */
enum { CALL_KEYS = 4 };

static const struct json_scan_key call_keys[CALL_KEYS] = {
	JSON_SCAN_KEY_OF("begin_ns"),
	JSON_SCAN_KEY_OF("gpu_ns"),
	JSON_SCAN_KEY_OF("issue_ns"),
	JSON_SCAN_KEY_OF("done_ns"),
};

static const size_t call_offsets[CALL_KEYS] = {
	offsetof(struct bench_call, begin_ns),
	offsetof(struct bench_call, gpu_ns),
	offsetof(struct bench_call, issue_ns),
	offsetof(struct bench_call, done_ns),
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
	/* A rank takes more than two bytes, which bounds a damaged count. */
	if ((size_t)run->nranks > bench_reader_left(reader) / 2)
		bench_reader_fail(reader, "truncated: fewer than %d ranks", (int)run->nranks);
	else if (bench_run_set_ranks(run, run->nranks) != OK ||
		 (reader->peers = calloc((size_t)run->nranks, sizeof(*reader->peers))) == NULL)
		bench_reader_no_memory(reader);
	while (bench_reader_item(reader)) {
		if (count == run->nranks) {
			bench_reader_fail(reader, "more than %d ranks in members",
					  (int)run->nranks);
			return;
		}
		bench_reader_object(reader, "an entry of members", rank_fields,
				    ARRAY_LENGTH(rank_fields), &run->ranks[count++], NULL);
	}
	if (reader->status == OK && count != run->nranks)
		bench_reader_fail(reader, "%d entries in members, but %d ranks", (int)count,
				  (int)run->nranks);
}

/* ---- a result -------------------------------------------------------------------------------- */

static void read_peers(struct bench_reader *reader, struct bench_cell *cell)
{
	int32_t count = 0;
	int64_t peer = 0;

	if (cell->nranks > reader->run->nranks)
		bench_reader_fail(reader, "%d ranks in a run of %d", (int)cell->nranks,
				  (int)reader->run->nranks);
	if (!bench_reader_array(reader, "peers"))
		return;
	while (bench_reader_item(reader)) {
		if (count == cell->nranks) {
			bench_reader_fail(reader, "more peers than %d ranks", (int)cell->nranks);
			return;
		}
		if (!json_scan_signed(&reader->scan, &peer) || peer < -1 || peer >= cell->nranks) {
			bench_reader_fail(reader, "a peer is neither a rank below %d nor -1",
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
			bench_reader_fail(reader, "%s: not a whole number of nanoseconds", name);
			return;
		}
		memcpy((char *)&calls[call++] + offset, &time, sizeof(time));
	}
	if (reader->status == OK && call != count)
		bench_reader_fail(reader, "%s: %u of %u calls", name, call, count);
}

static void read_rank_calls(struct bench_reader *reader, struct bench_call *calls, uint32_t count)
{
	uint64_t seen = 0;
	int key;

	while ((key = bench_reader_key(reader, call_keys, CALL_KEYS, &seen)) >= 0)
		read_times(reader, call_keys[key].name, calls, count, call_offsets[key]);
	if (reader->status == OK && seen != (1u << CALL_KEYS) - 1)
		bench_reader_fail(reader, "a rank without begin_ns, gpu_ns, issue_ns or done_ns");
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
			bench_reader_fail(reader, "per_rank: a rank is not an object");
			return;
		}
		read_rank_calls(reader, &cell->calls_of[(size_t)count * cell->calls], cell->calls);
		count++;
	}
	if (reader->status == OK && count != ranks)
		bench_reader_fail(reader, "per_rank: %d of %d ranks", (int)count, (int)ranks);
}

/* Everything else has been read: make room for the calls, no more than the rest of the text can fill. */
static struct bench_cell *add_cell(struct bench_reader *reader, const struct bench_cell *cell)
{
	struct bench_run *run = reader->run;
	struct bench_cell *added = NULL;
	uint64_t calls = cell->mode == BENCH_LOOP ? 0 : (uint64_t)cell->calls;

	if (cell->root >= cell->nranks)
		bench_reader_fail(reader, "root is rank %d of %d", (int)cell->root,
				  (int)cell->nranks);
	else if (calls * (uint64_t)cell->nranks > bench_reader_left(reader) / CALL_BYTES_LEAST)
		bench_reader_fail(reader, "truncated: fewer than %u calls of %d ranks", cell->calls,
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

static void own_of_cell(struct bench_reader *reader, const struct bench_field *field, uint64_t seen,
			void *object)
{
	const size_t key = (size_t)(field - cell_fields);
	struct bench_cell *cell = object, *added;
	const uint64_t before =
		(UINT64_C(1) << (key == CELL_PEERS ? CELL_PEERS : CELL_PER_RANK)) - 1;

	if ((seen & before) != before) {
		bench_reader_fail(reader,
				  "%s comes before another key of the result, or a key is missing",
				  field->key.name);
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
		bench_reader_fail(reader, "format is not \"ringside-bench\"");
}

static void read_version(struct bench_reader *reader)
{
	uint64_t version = 0;

	json_scan_next(&reader->scan);
	if (!json_scan_unsigned(&reader->scan, &version) || version == 0) {
		bench_reader_fail(reader, "version is not a positive number");
	} else if (version > 1) {
		bench_reader_fail(reader,
				  "version %llu is newer than this program: use a newer ringside",
				  (unsigned long long)version);
		reader->status = ERR_VERSION;
	}
}

static void own_of_run(struct bench_reader *reader, const struct bench_field *field, uint64_t seen,
		       void *object)
{
	const size_t key = (size_t)(field - run_fields);

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
		bench_reader_fail(reader, "ranks, members and results are not in this order");
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
		bench_reader_fail(&reader, "unexpected text after the end");
	status = reader.status == ERR_FORMAT && !reader.is_ours ? ERR_UNKNOWN : reader.status;
	if (status != OK && problem != NULL)
		*problem = reader.problem;
	if (status != OK)
		bench_run_release(run);
	bench_reader_end(&reader);
	return status;
}

/* The value of the key that was read last. False: damaged. */
static bool take_value(struct json_scan *scan, const char *text, const char **at, size_t *size)
{
	size_t from;

	if (json_scan_next(scan) != JSON_SCAN_OBJECT)
		return false;
	from = json_scan_offset(scan) - 1;
	if (!json_scan_skip(scan))
		return false;
	*at = text + from;
	*size = json_scan_offset(scan) - from;
	return true;
}

/* We write the format as the first key, so a large foreign document is rejected at its beginning. */
static bool is_ours(struct json_scan *scan, bool *is_whole)
{
	if (json_scan_next(scan) != JSON_SCAN_OBJECT || json_scan_next(scan) != JSON_SCAN_KEY ||
	    !json_scan_is(scan, "format") || json_scan_next(scan) != JSON_SCAN_STRING)
		return false;
	*is_whole = json_scan_is(scan, "ringside-bench");
	return *is_whole || json_scan_is(scan, "ringside-crossover") ||
	       json_scan_is(scan, "ringside-health");
}

enum status run_inside(const char *text, size_t length, const char **at, size_t *size)
{
	enum json_scan_token token;
	struct json_scan scan;
	bool is_whole;

	json_scan_init(&scan, text, length);
	if (!is_ours(&scan, &is_whole))
		return ERR_UNKNOWN;
	if (is_whole) {
		*at = text;
		*size = length;
		return OK;
	}
	while ((token = json_scan_next(&scan)) == JSON_SCAN_KEY) {
		if (json_scan_is(&scan, "run"))
			return take_value(&scan, text, at, size) ? OK : ERR_FORMAT;
		if (!json_scan_skip(&scan))
			return ERR_FORMAT;
	}
	return ERR_FORMAT;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_head(struct json *json, const struct bench_run *run)
{
	json_put_string(json, "format", "ringside-bench");
	json_put_unsigned(json, "version", 1);
	bench_fields_put(json, &run_fields[RUN_RANKS], RUN_NOTES - RUN_RANKS, run, NULL);
	json_put_array(json, "notes");
	for (size_t i = 0; i < run->note_count; i++)
		put_text(json, run->notes[i], sizeof(run->notes[i]));
	json_end(json);
	bench_fields_put(json, &run_fields[RUN_NOTES + 1], 1, run, NULL);
	json_put_array(json, "members");
	for (int32_t i = 0; i < run->nranks; i++) {
		json_object(json);
		bench_fields_put(json, rank_fields, ARRAY_LENGTH(rank_fields), &run->ranks[i],
				 NULL);
		json_end(json);
	}
	json_end(json);
}

static void put_figures(struct json *json, const struct bench_cell *cell,
			const struct bench_figures *figures)
{
	json_put_object(json, "figures");
	json_put_double(json, "mean_ns", figures->mean);
	json_put_double(json, "deviation_ns", figures->deviation);
	json_put_double(json, "min_ns", figures->least);
	json_put_double(json, "p05_ns", figures->p05);
	json_put_double(json, "p25_ns", figures->p25);
	json_put_double(json, "p50_ns", figures->p50);
	json_put_double(json, "p75_ns", figures->p75);
	json_put_double(json, "p90_ns", figures->p90);
	json_put_double(json, "p95_ns", figures->p95);
	json_put_double(json, "p99_ns", figures->p99);
	json_put_double(json, "max_ns", figures->most);
	json_put_double(json, "algbw_gbs", bench_algbw(cell, figures->p50));
	json_put_double(json, "busbw_gbs", bench_busbw(cell, figures->p50));
	json_end(json);
}

static void put_what(struct json *json, const struct bench_cell *cell, double median_ns)
{
	bench_fields_put(json, cell_fields, CELL_DATATYPE, cell, NULL);
	json_put_unsigned(json, "time_ns", (uint64_t)llround(fmin(median_ns, 1e18)));
	bench_fields_put(json, &cell_fields[CELL_DATATYPE], CELL_PEERS - CELL_DATATYPE, cell, NULL);
	json_put_array(json, "peers");
	for (int32_t rank = 0; cell->peers != NULL && rank < cell->nranks; rank++)
		json_signed(json, cell->peers[rank]);
	json_end(json);
}

static void put_calls(struct json *json, const struct bench_cell *cell)
{
	json_put_array(json, "per_rank");
	for (int32_t rank = 0; cell->calls_of != NULL && rank < cell->nranks; rank++) {
		json_object(json);
		for (size_t i = 0; i < CALL_KEYS; i++) {
			json_put_array(json, call_keys[i].name);
			for (uint32_t call = 0; call < cell->calls; call++) {
				const char *at = (const char *)bench_cell_call(cell, rank, call);
				uint64_t value;

				memcpy(&value, at + call_offsets[i], sizeof(value));
				json_unsigned(json, value);
			}
			json_end(json);
		}
		json_end(json);
	}
	json_end(json);
}

/* Whether the run is consistent; readers check this, too. */
static bool is_cell_sound(const struct bench_run *run, const struct bench_cell *cell)
{
	bool has_calls = cell->mode != BENCH_LOOP && cell->calls > 0;

	return cell->function != 0 && op_name(OP_NAMES_FUNCTION, cell->function) != NULL &&
	       cell->mode > 0 && cell->mode < BENCH_MODES && cell->redop < BENCH_REDOPS &&
	       cell->nranks >= 1 && cell->nranks <= run->nranks && cell->root >= -1 &&
	       cell->root < cell->nranks && (cell->calls_of != NULL) == has_calls;
}

static enum status put_cell(struct json *json, const struct bench_run *run,
			    const struct bench_cell *cell)
{
	struct bench_figures figures;
	enum status status;

	if (!is_cell_sound(run, cell))
		return ERR_RANGE;
	status = bench_cell_figures(cell, BENCH_OVER_MEAN, &figures);
	if (status != OK)
		return status;
	/* One line each, so that tools can handle a file of gigabytes. */
	sink_byte(json->sink, '\n');
	json_object(json);
	put_what(json, cell, figures.p50);
	put_figures(json, cell, &figures);
	put_calls(json, cell);
	json_end(json);
	return OK;
}

enum status bench_json_put(struct json *json, const struct bench_run *run)
{
	enum status status = run->nranks >= 1 && run->ranks != NULL ? OK : ERR_RANGE;

	if (status != OK)
		return status;
	json_object(json);
	put_head(json, run);
	json_put_array(json, "results");
	for (size_t i = 0; i < run->cell_count && status == OK; i++)
		status = put_cell(json, run, &run->cells[i]);
	json_end(json);
	json_end(json);
	return status;
}

void bench_json_known(struct json *json, const char *key, double value)
{
	json_put_known_double(json, key, value > 0, value);
}

enum status bench_json_write(struct sink *sink, const struct bench_run *run)
{
	enum status status;
	struct json json;

	json_init(&json, sink);
	status = bench_json_put(&json, run);
	if (status != OK)
		return status;
	json_line(&json);
	return json_status(&json);
}
