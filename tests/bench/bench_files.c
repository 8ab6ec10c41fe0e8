/*
 * Writes what `ringside bench` would have written, in each of its formats, and independently the rows of the
 * Parquet file as JSON lines, for other readers.
 *
 *	bench_files plain|everything|empty|many PREFIX
 *	bench_files like:NCCL-TESTS.txt PREFIX	the times of that file, as if measured by us
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench_result.h"
#include "common/op.h"
#include "common/text.h"
#include "import/expected.h"
#include "output/json.h"
#include "tests/support/bench_sample.h"

static const struct bench_table_options table_options = { .has_percentiles = true };

static enum status write_table(struct sink *sink, const struct bench_run *run)
{
	return bench_table_write(sink, run, &table_options);
}

static void put_name(struct json *json, const char *key, enum op_name_table table, uint8_t number)
{
	json_put_string(json, key, number ? op_name(table, number) : NULL);
}

static void put_rank(struct json *json, const char *key, int32_t rank)
{
	if (rank < 0)
		json_put_null(json, key);
	else
		json_put_signed(json, key, rank);
}

static void put_time(struct json *json, const char *key, uint64_t time)
{
	if (time == 0)
		json_put_null(json, key);
	else
		json_put_unsigned(json, key, time);
}

static void put_cell(struct json *json, const struct bench_run *run, const struct bench_cell *cell)
{
	json_put_unsigned(json, "result", (uint64_t)(cell - run->cells));
	json_put_string(json, "function", op_function_name(cell->function));
	json_put_unsigned(json, "bytes", cell->bytes);
	json_put_unsigned(json, "count", cell->count);
	put_name(json, "datatype", OP_NAMES_DATATYPE, cell->datatype);
	json_put_string(json, "redop", cell->redop ? bench_redop_name(cell->redop) : NULL);
	put_rank(json, "root", cell->root);
	json_put_string(json, "mode", bench_mode_name(cell->mode));
	json_put_bool(json, "in_place", cell->is_in_place);
	put_name(json, "algorithm", OP_NAMES_ALGORITHM, cell->algorithm);
	put_name(json, "protocol", OP_NAMES_PROTOCOL, cell->protocol);
	put_name(json, "chosen_algorithm", OP_NAMES_ALGORITHM, cell->chosen_algorithm);
	put_name(json, "chosen_protocol", OP_NAMES_PROTOCOL, cell->chosen_protocol);
	json_put_bool(json, "grouped_sends", cell->is_grouped_sends);
	json_put_signed(json, "ranks", cell->nranks);
	if (cell->wrong == BENCH_UNCHECKED)
		json_put_null(json, "wrong");
	else
		json_put_unsigned(json, "wrong", cell->wrong);
}

static void put_row(struct json *json, const struct bench_run *run, const struct bench_cell *cell,
		    int32_t rank, uint32_t number)
{
	const struct bench_call *call = bench_cell_call(cell, rank, number);
	const struct bench_rank *where = &run->ranks[rank];
	char time[UNITS_TEXT];

	json_object(json);
	put_cell(json, run, cell);
	json_put_signed(json, "rank", rank);
	put_rank(json, "peer", cell->peers != NULL ? cell->peers[rank] : -1);
	json_put_string(json, "host", where->host);
	json_put_signed(json, "node", where->node);
	json_put_signed(json, "device", where->device);
	json_put_signed(json, "pid", where->pid);
	json_put_string(json, "gpu", where->gpu_name);
	json_put_string(json, "gpu_uuid", where->gpu_uuid);
	json_put_unsigned(json, "call", number);
	units_wall_time(time, call->begin_ns);
	time[strlen(time) - 1] = '\0'; /* without a time zone */
	json_put_string(json, "begin_time", time);
	put_time(json, "gpu_ns", call->gpu_ns);
	json_put_unsigned(json, "issue_ns", call->issue_ns);
	put_time(json, "done_ns", call->done_ns);
	json_end(json);
	json_line(json);
}

static enum status write_lines(struct sink *sink, const struct bench_run *run)
{
	struct json json;

	json_init(&json, sink);
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct bench_cell *cell = &run->cells[i];

		for (int32_t rank = 0; cell->calls_of != NULL && rank < cell->nranks; rank++)
			for (uint32_t call = 0; call < cell->calls; call++)
				put_row(&json, run, cell, rank, call);
	}
	return json_status(&json);
}

static void write_file(const char *prefix, const char *suffix, const struct bench_run *run,
		       enum status (*write)(struct sink *, const struct bench_run *))
{
	char path[4096];
	struct sink sink;
	int fd;

	text_format(path, sizeof(path), "%s.%s", prefix, suffix);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	sink_init_fd(&sink, fd);
	if (fd == -1 || write(&sink, run) != OK || sink_flush(&sink) != OK) {
		fprintf(stderr, "%s: cannot write\n", path);
		exit(1);
	}
	sink_release(&sink);
	close(fd);
}

/* Every row of an nccl-tests output as a loop result. */
static void make_like(struct bench_run *run, const char *path)
{
	struct expected expected;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	expected_init(&expected);
	if (fd == -1 || expected_add_fd(&expected, fd, 0) != OK || expected.count == 0)
		exit(1);
	close(fd);
	sample_start(run, expected.rows[0].nranks);
	for (size_t i = 0; i < expected.count; i++)
		sample_add(run, expected.rows[i].function, BENCH_LOOP, expected.rows[i].bytes,
			   expected.rows[i].is_in_place, expected.rows[i].time_ns);
	/* Not applicable to a job: each is much faster than the rest. */
	sample_add(run, OP_ALL_REDUCE, BENCH_LOOP, 4096, false, 10)->wrong = 1;
	sample_add(run, OP_ALL_REDUCE, BENCH_LOOP, 4096, false, 10)->algorithm = OP_TREE;
	expected_release(&expected);
}

static void add_many(struct bench_run *run, int32_t ranks, uint64_t bytes, uint32_t calls)
{
	struct bench_cell like = {
		.function = OP_ALL_REDUCE,
		.datatype = OP_BFLOAT16,
		.redop = BENCH_AVG,
		.mode = BENCH_BACK_TO_BACK,
		.is_in_place = bytes % 8 == 0,
		.root = -1,
		.nranks = ranks,
		.count = bytes / 2,
		.bytes = bytes,
		.calls = calls,
	};
	struct bench_cell *cell = bench_run_add_cell(run, &like);

	if (cell == NULL)
		exit(1);
	sample_calls(cell, 20000 + 7919 * bytes);
}

/* More codes than a dictionary can have, which makes two row groups; and more calls than fit into one batch. */
static void make_many(struct bench_run *run)
{
	sample_start(run, 1024);
	for (uint64_t i = 0; i < 17; i++)
		add_many(run, run->nranks, 1024 + 4 * i, 1);
	add_many(run, 1, 1 << 20, 5000);
}

int main(int argc, char **argv)
{
	struct bench_run run;

	if (argc != 3)
		return 2;
	if (strcmp(argv[1], "plain") == 0)
		sample_plain(&run);
	else if (strcmp(argv[1], "everything") == 0)
		sample_everything(&run);
	else if (strcmp(argv[1], "empty") == 0)
		sample_start(&run, 1);
	else if (strcmp(argv[1], "many") == 0)
		make_many(&run);
	else if (strncmp(argv[1], "like:", 5) == 0)
		make_like(&run, argv[1] + 5);
	else
		return 2;
	write_file(argv[2], "json", &run, bench_json_write);
	write_file(argv[2], "parquet", &run, bench_parquet_write);
	write_file(argv[2], "jsonl", &run, write_lines);
	write_file(argv[2], "txt", &run, write_table);
	bench_run_release(&run);
	return 0;
}
