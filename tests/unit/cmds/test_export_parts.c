/*
 * What an export passes to its format, and the files it makes, with a format of the test that writes down everything.
 * The file is included for that.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define cmd_export export_included_command
#include "cmds/cmd_export.c"
#undef cmd_export

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- the format ------------------------------------------------------------------------------- */

static struct {
	bool has_no_memory;
	enum status batch, end;
	int good_batches; /* before the bad one */
	bool has_own_names;
} play;
static struct sink happened;
static struct sink *file_sink;

static void *play_begin(struct sink *sink, uint64_t columns)
{
	file_sink = sink;
	sink_format(&happened, "begin, %s\n",
		    columns == EXPORT_ALL_COLUMNS ? "all columns" : "without those of its path");
	return play.has_no_memory ? NULL : &play;
}

static void play_process(void *writer, const struct recording_process *of)
{
	if (writer != &play)
		abort();
	sink_format(&happened, "process %lld\n", (long long)of->pid);
}

static enum status play_batch(void *writer, const struct op_batch *from)
{
	(void)writer;
	sink_text(&happened, "rows");
	for (uint32_t i = 0; i < from->rows; i++)
		sink_format(&happened, " %llu",
			    (unsigned long long)from->column[OP_WORD_NCCL_SEQUENCE][i]);
	sink_text(&happened, "\n");
	sink_format(file_sink, "%u rows\n", from->rows);
	if (play.batch == OK || play.good_batches-- > 0)
		return OK;
	/* As formats do, it says so again in the end. */
	play.end = play.batch;
	return play.batch;
}

static void play_fact(void *writer, const char *key, const char *value)
{
	(void)writer;
	if (strcmp(key, "ringside.version") != 0)
		sink_format(&happened, "%s=%s\n", key, value);
}

static enum status play_end(void *writer)
{
	(void)writer;
	sink_text(&happened, "end\n");
	return play.end;
}

static void play_name(char *name, size_t size, const struct recording_process *of)
{
	(void)of;
	snprintf(name, size, "same.play");
}

static struct export_format play_format = { .name = "play",
					    .suffix = ".play",
					    .begin = play_begin,
					    .process = play_process,
					    .batch = play_batch,
					    .fact = play_fact,
					    .end = play_end };

/* ---- exports ---------------------------------------------------------------------------------- */

static int by_place(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static void list_files(const char *directory)
{
	struct dirent **names;
	int count = scandir(command_path(directory), &names, NULL, by_place);

	for (int i = 0; i < count; i++) {
		char path[450];

		snprintf(path, sizeof(path), "%s/%s", directory, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && names[i]->d_type == DT_DIR)
			list_files(path);
		else if (names[i]->d_name[0] != '.')
			sink_format(&happened, "file %s\n", path);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

static void run(const char *heading, const char *from, const char *more, uint64_t file_rows,
		const struct filter *filter)
{
	struct cli_input input;
	struct export_job job = { .format = &play_format,
				  .path = file_rows ? "out" : "out.play",
				  .is_directory = file_rows > 0,
				  .file_rows = file_rows,
				  .filter = filter };
	struct sink text;
	int code;

	sink_format(&happened, "=== %s\n", heading);
	play_format.file_name = play.has_own_names ? play_name : NULL;
	nftw("out", scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	unlink("out.play");
	cli_input_init(&input);
	cli_input_path(&input, from);
	if (more)
		cli_input_path(&input, more);
	if (cli_input_read(&input, RECORDING_WITH_TRACES) != 0)
		abort();
	code = export_job_run(&job, &input);
	sink_format(&happened, "code %d, %llu rows, %llu timed, %llu captured, %llu read\n", code,
		    (unsigned long long)job.rows, (unsigned long long)job.timed,
		    (unsigned long long)job.captured, (unsigned long long)job.read);
	sink_format(&happened,
		    "%llu processes, %llu files, %llu bytes, %llu issued, %llu lost, %llu damaged, "
		    "%s\n",
		    (unsigned long long)job.processes, (unsigned long long)job.files,
		    (unsigned long long)job.bytes, (unsigned long long)job.issued,
		    (unsigned long long)job.lost, (unsigned long long)job.damaged,
		    job.is_complete ? "complete" : "not complete");
	sink_init_memory(&text);
	write_text(&text, &job);
	sink_text(&happened, sink_string(&text));
	sink_release(&text);
	list_files("out");
	if (access("out.play", F_OK) == 0)
		sink_text(&happened, "file out.play\n");
	cli_input_release(&input);
	memset(&play, 0, sizeof(play));
}

static void exports(void)
{
	struct filter filter = { .ranks = { { 1, 1 } }, .range_count = 1 };

	run("one file", "traces", NULL, 0, NULL);
	run("a directory", "traces", NULL, 1000, NULL);
	run("files that are full at once", "stuck", NULL, 1, NULL);
	/* Of the same rank: it was started again. */
	run("two processes of a rank", "traces", "again", 1000, &filter);
	run("one rank", "traces", NULL, 0, &filter);
	filter.range_count = 0;
	filter.functions[filter.function_count++] = "AllReduce";
	run("one function", "traces", "lossy", 0, &filter);
	run("what is in flight", "stuck", NULL, 1000, NULL);
	play.has_own_names = true;
	run("files with names of their own", "traces", NULL, 2, NULL);
	play.has_no_memory = true;
	run("no memory", "traces", NULL, 0, NULL);
	play.has_no_memory = true;
	run("no memory for a file of a directory", "traces", NULL, 5, NULL);
	play.batch = ERR_SYSTEM;
	run("the first rows fail", "traces", NULL, 0, NULL);
	play.batch = ERR_NO_SPACE;
	play.good_batches = 1;
	run("rows of the second process fail", "traces", NULL, 1000, NULL);
	play.end = ERR_NO_SPACE;
	run("the end fails", "traces", NULL, 0, NULL);
	play.end = ERR_NO_SPACE;
	run("the end of a file fails", "traces", NULL, 1000, NULL);
}

static void partitions(void)
{
	static const struct {
		const char *job, *host;
		int64_t rank;
		unsigned int part;
	} cases[] = {
		{ "77", "node1", 3, 0 },
		{ "", "", -1, 12 },
		{ "a/b", "n%1:x", 0, 1 },
		{ "azAZ09-_.+,@~ ", "`{[@^/:", 0, 0 },
		{ "\xc3\xa9\xff!", "\xf0\x9f\x98\x80\x80", 0, 0 },
	};
	char name[200];

	sink_text(&happened, "=== names\n");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct recording_process of = { .rank = cases[i].rank };

		text_copy(of.job, sizeof(of.job), cases[i].job);
		text_copy(of.host, sizeof(of.host), cases[i].host);
		EXPECT(export_partition_name(name, sizeof(name), &of, cases[i].part, ".csv"));
		sink_format(&happened, "%s\n", name);
		EXPECT(!export_partition_name(name, strlen(name), &of, cases[i].part, ".csv"));
	}
	EXPECT(format_of_file("x.csv") == &export_csv && format_of_file(".csv") == NULL);
	EXPECT(format_of_file("x.log") == &export_inspector && format_of_file("csv") == NULL);
	EXPECT(find_format("inspector") == &export_inspector && find_format("xls") == NULL);
	EXPECT(is_directory("x/") && is_directory("traces") && !is_directory("nowhere"));
	EXPECT(!is_directory("") && !is_directory("errors"));
}

static void summaries(void)
{
	static const struct export_job jobs[] = {
		{ .rows = 1, .processes = 1, .timed = 1, .is_complete = true },
		{ .rows = 5,
		  .processes = 2,
		  .timed = 3,
		  .captured = 2,
		  .bytes = 7,
		  .is_complete = true },
		{ .rows = 5,
		  .processes = 2,
		  .timed = 2,
		  .captured = 2,
		  .is_directory = true,
		  .files = 1,
		  .bytes = 2048,
		  .is_complete = true },
		{ .rows = 5,
		  .processes = 2,
		  .timed = 5,
		  .is_directory = true,
		  .files = 2,
		  .lost = 1 },
		{ .rows = 0, .lost = 2 },
		{ .rows = 2, .format = &export_inspector },
	};
	struct sink text;

	sink_text(&happened, "=== summaries\n");
	for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++) {
		struct export_job job = jobs[i];

		job.path = "x";
		sink_init_memory(&text);
		write_text(&text, &job);
		sink_text(&happened, sink_string(&text));
		sink_release(&text);
	}
}

/* States of rows: captured ones need no time. */
static void times(void)
{
	const struct op_record ops[] = {
		{ .state = OP_DONE, .time_source = OP_TIME_NONE },
		{ .state = OP_DONE, .time_source = OP_TIME_KERNEL_GPU },
		{ .state = OP_CAPTURED, .time_source = OP_TIME_NONE },
		{ .state = OP_CAPTURED, .time_source = OP_TIME_KERNEL_GPU },
		{ .state = OP_RUNNING, .time_source = OP_TIME_KERNEL_GPU }
	};
	uint64_t states[ARRAY_LENGTH(ops)], words[OP_RECORD_WORDS];
	struct op_batch some = { .rows = ARRAY_LENGTH(ops) };
	struct export_job job = { .rows = 0 };

	for (size_t i = 0; i < ARRAY_LENGTH(ops); i++) {
		memcpy(words, &ops[i], sizeof(words));
		states[i] = words[OP_WORD_STATE];
	}
	some.column[OP_WORD_STATE] = states;
	count_timed(&job, &some);
	EXPECT_EQUAL(job.captured, 2);
	EXPECT_EQUAL(job.timed, 2);
}

int main(void)
{
	struct command_sample sample = { 1, "trace", "", "on", "" };
	int before = dup(STDERR_FILENO), fd;
	struct sink tidy;
	size_t length;
	char *errors;

	command_begin();
	command_make("traces");
	command_make("lossy");
	command_make("stuck");
	command_directory("again");
	command_ticks = 4243;
	command_write_trace(command_path("again"), &sample, 0, true);
	sink_init_memory(&happened);
	fd = open(command_path("errors"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	if (chdir(scratch_dir.path) != 0)
		abort();
	exports();
	partitions();
	summaries();
	times();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	if (chdir(command_play.root) != 0)
		abort();
	errors = command_read(command_path("errors"), &length);
	sink_format(&happened, "=== errors\n%s", errors);
	free(errors);
	sink_init_memory(&tidy);
	command_tidy(&tidy, sink_string(&happened));
	sink_release(&happened);
	EXPECT_THAT("parts of an export",
		    expected_text(&tidy, "tests/unit/cmds/expected/export-parts"));
	return tap_done();
}
