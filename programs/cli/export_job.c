/*
 * One file for everything, or a directory with files for each process. A process's rows go to one
 * file after the other when they are many; processes of the same job, host and rank (one that was
 * started again) share a directory and count its files on.
 */
#include "programs/cli/export_job.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "analysis/filter.h"
#include "common/text.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_output.h"
#include "programs/cli/cli_process.h"
#include "programs/cli/cli_progress.h"
#include "view/export_columns.h"

enum { EXPORT_NAME_BYTES = 4096, EXPORT_BATCH_ROWS = 1024 };
#define EXPORT_FORMAT_VERSION "1"

/* What the recorders of a file's processes say. */
struct told {
	uint64_t rows;
	uint64_t read;
	uint64_t issued;
	uint64_t lost;
	uint64_t damaged;
};

/* While it is being done. */
struct doing {
	struct export_job *job;
	struct cli_progress progress;
	struct cli_tree tree;
	struct cli_output output;
	void *writer; /* NULL: no file is open */
	const struct recording_process *process;
	struct told file;
	uint64_t process_rows; /* read */
	struct job *who;       /* NULL: no filter */
	struct filter_rows chosen;
	uint64_t *room;			   /* for rows that pass, of EXPORT_BATCH_ROWS each word */
	char directory[EXPORT_NAME_BYTES]; /* of the file before */
	unsigned int part;
	bool is_stopped; /* the format or its file has failed; told when the file ends */
	bool is_failed;	 /* and it was told */
};

/* ---- files ----------------------------------------------------------------------------------- */

static void put_number(struct doing *doing, const char *key, uint64_t number)
{
	char text[24];

	text_format(text, sizeof(text), "%" PRIu64, number);
	doing->job->format->fact(doing->writer, key, text);
}

static void put_facts(struct doing *doing)
{
	const struct export_job *job = doing->job;

	job->format->fact(doing->writer, "ringside.format", EXPORT_FORMAT_VERSION);
	job->format->fact(doing->writer, "ringside.version", RINGSIDE_VERSION);
	put_number(doing, "ringside.operations", doing->file.rows);
	if (doing->who != NULL)
		put_number(doing, "ringside.read", doing->file.read);
	put_number(doing, "ringside.issued", doing->file.issued);
	put_number(doing, "ringside.lost", doing->file.lost);
	put_number(doing, "ringside.damaged", doing->file.damaged);
	if (!job->is_directory)
		return;
	/* What the directory's names say, for a file that was taken out of it. */
	job->format->fact(doing->writer, "ringside.job", doing->process->job);
	job->format->fact(doing->writer, "ringside.host", doing->process->host);
	if (doing->process->rank >= 0)
		put_number(doing, "ringside.rank", (uint64_t)doing->process->rank);
}

static void fail(struct doing *doing)
{
	doing->is_failed = true;
	cli_progress_hide(&doing->progress);
}

/* The file is open: the format's beginning. */
static void begin(struct doing *doing)
{
	uint64_t columns = EXPORT_ALL_COLUMNS;

	if (doing->job->is_directory)
		columns &= ~EXPORT_PARTITION_COLUMNS;
	doing->file = (struct told){ 0 };
	doing->writer = doing->job->format->begin(&doing->output.sink, columns);
	if (doing->writer == NULL) {
		fail(doing);
		cli_error("cannot write %s: no memory", doing->output.path);
		cli_output_discard(&doing->output);
	}
}

/* As the format calls it. Another process of that name, in another container say, gets a number. */
static bool name_own_file(const struct doing *doing, char *name, size_t size)
{
	const struct export_format *format = doing->job->format;
	char own[512], path[PATH_MAX];
	size_t stem;

	format->file_name(own, sizeof(own), doing->process);
	stem = strlen(own) - strlen(format->suffix);
	text_copy(name, size, own);
	for (unsigned int i = 2;
	     text_format(path, sizeof(path), "%s/%s", doing->tree.temporary, name) &&
	     access(path, F_OK) == 0;
	     i++)
		if (!text_format(name, size, "%.*s-%u%s", (int)stem, own, i, format->suffix))
			return false;
	return true;
}

/* Files of one directory are numbered; another one begins with 0 again. */
static bool name_file(struct doing *doing, char *name, size_t size)
{
	const struct export_format *format = doing->job->format;
	char *slash;

	if (format->file_name != NULL)
		return name_own_file(doing, name, size);
	if (!export_partition_name(name, size, doing->process, 0, ""))
		return false;
	slash = strrchr(name, '/');
	*slash = '\0';
	doing->part = strcmp(name, doing->directory) == 0 ? doing->part + 1 : 0;
	text_copy(doing->directory, sizeof(doing->directory), name);
	return export_partition_name(name, size, doing->process, doing->part, format->suffix);
}

/* By the recorder's own counters; false where they are not known. */
static bool count_issued(const struct recording_process *process, uint64_t *issued)
{
	bool is_known = process->has_counts;

	*issued = op_lost_unseen(process->lost);
	for (size_t i = 0; i < process->comm_count; i++) {
		is_known &= process->comms[i].has_counts;
		*issued += process->comms[i].counts.issued;
	}
	return is_known;
}

/* The file has rows of this process from now on. */
static void enter(struct doing *doing)
{
	uint64_t issued;

	count_issued(doing->process, &issued);
	doing->file.issued += issued;
	doing->file.lost += cli_process_lost(doing->process);
	doing->job->format->process(doing->writer, doing->process);
}

/* The next file of a directory. */
static void begin_next(struct doing *doing)
{
	char name[EXPORT_NAME_BYTES];

	if (!name_file(doing, name, sizeof(name))) {
		fail(doing);
		cli_error("%s: the name of its file is too long", doing->process->host);
	} else if (cli_tree_file(&doing->tree, &doing->output, name) != 0) {
		fail(doing);
	} else {
		begin(doing);
	}
	if (!doing->is_failed)
		enter(doing);
}

static uint64_t bytes_of(struct cli_output *output)
{
	struct stat st;

	if (sink_flush(&output->sink) == OK && fstat(output->fd, &st) == 0 && S_ISREG(st.st_mode))
		return (uint64_t)st.st_size;
	return 0;
}

/* The format's end, and the file's. */
static void end(struct doing *doing)
{
	enum status status;

	if (doing->writer == NULL)
		return;
	put_facts(doing);
	status = doing->job->format->end(doing->writer);
	doing->writer = NULL;
	if (status != OK && doing->output.sink.status == OK) {
		fail(doing);
		cli_error("cannot write %s: %s", doing->output.path, status_text(status));
	}
	doing->job->bytes += bytes_of(&doing->output);
	doing->job->files++;
	if (doing->is_failed) {
		cli_output_discard(&doing->output);
	} else if (cli_output_commit(&doing->output, 0) != 0) {
		fail(doing);
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Those of up to EXPORT_BATCH_ROWS rows from `at` on that pass the filter. */
static struct op_batch choose(struct doing *doing, const struct op_batch *from, uint32_t at)
{
	struct op_batch some = { .rows = from->rows - at, .words = from->words };
	uint32_t places[EXPORT_BATCH_ROWS], count;

	some.rows = some.rows < EXPORT_BATCH_ROWS ? some.rows : EXPORT_BATCH_ROWS;
	for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
		if (from->column[word] != NULL)
			some.column[word] = from->column[word] + at;
	if (doing->who == NULL)
		return some;
	count = filter_rows_choose(&doing->chosen, &some, places);
	for (unsigned int word = 0; count < some.rows && word < OP_RECORD_WORDS; word++) {
		uint64_t *to = doing->room + (size_t)word * EXPORT_BATCH_ROWS;

		for (uint32_t i = 0; some.column[word] != NULL && i < count; i++)
			to[i] = some.column[word][places[i]];
		some.column[word] = some.column[word] != NULL ? to : NULL;
	}
	some.rows = count;
	return some;
}

static void count_timed(struct export_job *job, const struct op_batch *batch)
{
	const uint64_t *states = batch->column[OP_WORD_STATE];

	for (uint32_t i = 0; i < batch->rows; i++) {
		bool is_captured = op_state_state(states[i]) == OP_CAPTURED;

		job->captured += is_captured;
		job->timed += !is_captured && op_state_source(states[i]) != OP_TIME_NONE;
	}
}

static void put_rows(struct doing *doing, const struct op_batch *batch)
{
	for (uint32_t at = 0; at < batch->rows && !doing->is_stopped; at += EXPORT_BATCH_ROWS) {
		struct op_batch some = choose(doing, batch, at);

		if (some.rows > 0)
			doing->is_stopped = doing->job->format->batch(doing->writer, &some) != OK;
		count_timed(doing->job, &some);
		doing->file.rows += some.rows;
		doing->job->rows += some.rows;
	}
	doing->file.read += batch->rows;
	doing->process_rows += batch->rows;
	doing->job->read += batch->rows;
}

static bool take_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct doing *doing = context;

	(void)place;
	if (doing->writer == NULL)
		begin_next(doing);
	if (doing->is_failed)
		return false;
	put_rows(doing, batch);
	cli_progress_at(&doing->progress, doing->job->read);
	if (doing->job->is_directory && doing->job->format->file_name == NULL &&
	    doing->file.rows >= doing->job->file_rows)
		end(doing);
	return !doing->is_stopped && !doing->is_failed;
}

/* Trouble with the reading, in a line. */
static int complain(struct doing *doing, enum status status, const struct recording_walk *walk)
{
	char who[CLI_PROCESS_TEXT];
	int error = errno;

	if (status == OK && walk->refused == 0)
		return 0;
	cli_progress_hide(&doing->progress);
	cli_process_text(doing->process, who);
	if (status != OK)
		return cli_error("%s: %s", who,
				 status == ERR_SYSTEM ? strerror(error) : status_text(status));
	return cli_error("%s: %" PRIu64 " records are damaged (%s); 'ringside verify' says more",
			 who, walk->refused, walk->problem ? walk->problem : "?");
}

static int export_process(struct doing *doing, uint32_t number,
			  const struct recording_process *process)
{
	struct export_job *job = doing->job;
	struct recording_walk walk = { 0 };
	uint64_t issued;
	bool is_known = count_issued(process, &issued);
	enum status status;

	if (doing->who != NULL &&
	    !filter_rows_start(&doing->chosen, job->filter, doing->who, number))
		return 0;
	job->processes++;
	doing->process = process;
	doing->process_rows = 0;
	/* One without operations has a file, too: that it has none is worth knowing. */
	if (job->is_directory)
		begin_next(doing);
	else
		enter(doing);
	if (doing->is_failed)
		return CLI_EXIT_TROUBLE;
	status = recording_each_batch(process, export_words(), take_batch, doing, &walk);
	doing->file.damaged += walk.refused;
	job->issued += issued;
	job->lost += cli_process_lost(process);
	job->damaged += walk.refused;
	job->is_complete &= is_known && issued == doing->process_rows && walk.damages == 0;
	if (job->is_directory)
		end(doing);
	return complain(doing, status, &walk);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static uint64_t count_expected(const struct recording *recording)
{
	uint64_t expected = 0;

	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		for (size_t k = 0; k < process->file_count; k++)
			expected += process->files[k].records;
		if (process->file_count == 0)
			expected += process->recorded;
	}
	return expected;
}

static int open_output(struct doing *doing)
{
	struct export_job *job = doing->job;

	if (!job->is_directory) {
		if (cli_output_open(&doing->output, job->path) != 0)
			return CLI_EXIT_TROUBLE;
		begin(doing);
		return doing->is_failed ? CLI_EXIT_TROUBLE : 0;
	}
	if (cli_tree_open(&doing->tree, job->path, job->is_forced ? CLI_OUTPUT_FORCE : 0) != 0)
		return CLI_EXIT_TROUBLE;
	doing->tree.replaces = job->format->file_name ? NULL : "part-";
	return 0;
}

static void set_up_filter(struct doing *doing, const struct recording *recording)
{
	doing->who = cli_realloc(NULL, sizeof(*doing->who));
	doing->room = cli_realloc(NULL, sizeof(uint64_t) * OP_RECORD_WORDS * EXPORT_BATCH_ROWS);
	if (job_make(doing->who, recording) != OK)
		cli_no_memory();
}

static void release_filter(struct doing *doing)
{
	if (doing->who != NULL)
		job_release(doing->who);
	free(doing->who);
	free(doing->room);
}

int export_job_run(struct export_job *job, const struct cli_input *input)
{
	const struct recording *recording = &input->recording;
	struct doing doing = { .job = job };
	int exit_code = 0;

	job->is_complete = true;
	if (open_output(&doing) != 0)
		return CLI_EXIT_TROUBLE;
	if (job->filter != NULL && !filter_is_empty(job->filter))
		set_up_filter(&doing, recording);
	cli_progress_start(&doing.progress, "export", "operations", count_expected(recording));
	/* The rows are seen; a line among them would only be in their way. */
	if (cli_output_is_terminal(job->path))
		cli_progress_end(&doing.progress);
	for (uint32_t i = 0; i < recording->count && !doing.is_stopped && !doing.is_failed; i++)
		exit_code |= export_process(&doing, i, recording->processes[i]);
	end(&doing);
	cli_progress_end(&doing.progress);
	release_filter(&doing);
	if (doing.is_failed) {
		cli_tree_discard(&doing.tree);
		job->files = 0;
		return CLI_EXIT_TROUBLE;
	}
	return job->is_directory ? cli_tree_commit(&doing.tree, exit_code) : exit_code;
}
