/*
 * How fast recorded operations are exported, on one core: rows per second of only reading, and of reading and
 * writing Parquet, CSV and JSON lines, discarded; and bytes per row.
 *
 * Usage: perf_parquet PATH [ROUNDS [write]]; prints one "name value" line per result, the best of the rounds, in
 * CPU time; with "write" only the time of writing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "output/export.h"
#include "recording/recording.h"

static void fail(const char *what)
{
	fprintf(stderr, "perf_parquet: %s\n", what);
	exit(1);
}

struct task {
	const struct export_format *format; /* NULL: only read */
	void *writer;
	uint64_t rows;
};

static bool take(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct task *task = context;

	(void)place;
	task->rows += batch->rows;
	return task->format == NULL || task->format->batch(task->writer, batch) == OK;
}

/* Nanoseconds; writes to an unnamed file to count bytes, because a pipe would cost time. */
static uint64_t run(const struct recording *recording, struct task *task, int fd)
{
	uint64_t began = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct sink sink;

	sink_init_fd(&sink, fd);
	task->rows = 0;
	if (task->format != NULL) {
		task->writer = task->format->begin(&sink, EXPORT_ALL_COLUMNS);
		if (task->writer == NULL)
			fail("out of memory");
	}
	for (size_t i = 0; i < recording->count; i++) {
		if (task->format != NULL)
			task->format->process(task->writer, recording->processes[i]);
		if (recording_each_batch(recording->processes[i], export_words(), take, task,
					 NULL) != OK)
			fail("cannot read");
	}
	if (task->format != NULL && task->format->end(task->writer) != OK)
		fail("cannot write");
	sink_flush(&sink);
	sink_release(&sink);
	return clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - began;
}

/* ---- writing alone: rows that lie in memory ---------------------------------------------------- */

enum { KEPT_ROWS = 1 << 19, KEPT_BATCH = 1024 };

struct kept {
	uint64_t *columns[OP_RECORD_WORDS];
	uint32_t rows;
};

static bool keep(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct kept *kept = context;
	uint32_t rows = batch->rows;

	(void)place;
	if (rows > KEPT_ROWS - kept->rows)
		rows = KEPT_ROWS - kept->rows;
	for (unsigned int i = 0; i < OP_RECORD_WORDS; i++)
		if (batch->words & OP_WORD_BIT(i))
			memcpy(kept->columns[i] + kept->rows, batch->column[i],
			       rows * sizeof(uint64_t));
	kept->rows += rows;
	return kept->rows < KEPT_ROWS;
}

static uint64_t write_kept(const struct kept *kept, const struct recording_process *process,
			   const struct export_format *format, int fd)
{
	uint64_t began = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct sink sink;
	void *writer;

	sink_init_fd(&sink, fd);
	writer = format->begin(&sink, EXPORT_ALL_COLUMNS);
	if (writer == NULL)
		fail("out of memory");
	format->process(writer, process);
	for (uint32_t at = 0; at < kept->rows; at += KEPT_BATCH) {
		struct op_batch batch = { .words = export_words() };

		batch.rows = kept->rows - at < KEPT_BATCH ? kept->rows - at : KEPT_BATCH;
		for (unsigned int i = 0; i < OP_RECORD_WORDS; i++)
			batch.column[i] = kept->columns[i] + at;
		format->batch(writer, &batch);
	}
	if (format->end(writer) != OK)
		fail("cannot write");
	sink_release(&sink);
	return clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - began;
}

static void measure_writing(const struct recording *recording, int64_t rounds)
{
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	uint64_t best = UINT64_MAX;
	struct kept kept = { .rows = 0 };

	for (unsigned int i = 0; i < OP_RECORD_WORDS; i++) {
		kept.columns[i] = calloc(KEPT_ROWS, sizeof(uint64_t));
		if (kept.columns[i] == NULL)
			fail("out of memory");
	}
	for (size_t i = 0; i < recording->count && kept.rows < KEPT_ROWS; i++)
		recording_each_batch(recording->processes[i], export_words(), keep, &kept, NULL);
	for (int64_t i = 0; i < rounds; i++) {
		uint64_t ns = write_kept(&kept, recording->processes[0], &export_parquet, nowhere);

		best = ns < best ? ns : best;
	}
	printf("parquet_write_rows_per_second %.0f\n", (double)kept.rows * 1e9 / (double)best);
	for (unsigned int i = 0; i < OP_RECORD_WORDS; i++)
		free(kept.columns[i]);
	close(nowhere);
}

/* ---- reading and writing ----------------------------------------------------------------------- */

static void measure(const struct recording *recording, const char *name,
		    const struct export_format *format, int64_t rounds)
{
	struct task task = { .format = format };
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	uint64_t best = UINT64_MAX;
	FILE *file = tmpfile();

	if (file == NULL || nowhere == -1)
		fail(strerror(errno));
	for (int64_t i = 0; i < rounds; i++) {
		uint64_t ns = run(recording, &task, nowhere);

		best = ns < best ? ns : best;
	}
	printf("%s_rows_per_second %.0f\n", name, (double)task.rows * 1e9 / (double)best);
	if (format != NULL) {
		run(recording, &task, fileno(file));
		printf("%s_bytes_per_row %.1f\n", name,
		       (double)lseek(fileno(file), 0, SEEK_END) / (double)task.rows);
	}
	fclose(file);
	close(nowhere);
}

int main(int argc, char **argv)
{
	struct recording recording;
	int64_t rounds = 3;

	if (argc < 2 || (argc > 2 && text_number(argv[2], 1, 1000, &rounds) != OK))
		fail("usage: perf_parquet PATH [ROUNDS [write]]");
	recording_init(&recording);
	if (recording_add(&recording, argv[1], 0) != OK || recording_finish(&recording) != OK ||
	    recording.count == 0)
		fail("no recordings found");
	measure_writing(&recording, rounds);
	if (argc <= 3) {
		measure(&recording, "read", NULL, rounds);
		measure(&recording, "parquet", &export_parquet, rounds);
		measure(&recording, "csv", &export_csv, 1);
		measure(&recording, "jsonl", &export_jsonl, 1);
	}
	recording_release(&recording);
	return 0;
}
