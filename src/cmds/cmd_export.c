/* `ringside export`: operations as Parquet, CSV, JSON lines or logs of NCCL Inspector. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/filter.h"
#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/text.h"
#include "format/inspector_write.h"
#include "output/export.h"
#include "output/json.h"
#include "output/recorded.h"
#include "output/sink.h"

/* The request of `ringside export`, and its result. */

struct export_job {
	const struct export_format *format;
	const char *path; /* output file or directory */
	bool is_directory;
	bool is_forced;		     /* the directory may be non-empty */
	uint64_t file_rows;	     /* directory: approximate maximum of rows per file */
	const struct filter *filter; /* which operations; NULL: all */
	/* What was written. */
	uint64_t rows;
	uint64_t timed;	    /* rows with a duration */
	uint64_t captured;  /* rows captured into CUDA graphs, which have no duration */
	uint64_t read;	    /* operations read, before the filter */
	uint64_t processes; /* processes that match the filter */
	uint64_t files;
	uint64_t bytes; /* 0 for standard output, pipes and devices */
	/* What is missing, over all processes. */
	uint64_t issued;  /* by the recorders' counters */
	uint64_t lost;	  /* counted as lost while recording */
	uint64_t damaged; /* records that cannot be read */
	bool is_complete; /* all issued operations were read */
};

/* `ringside export --format inspector`: NCCL Inspector's own JSON lines, v4.0. */

struct inspector_export {
	struct sink *sink;
	const struct recording_process *process;
	uint64_t *p2p; /* per communicator, as process->comms: Sends and Recvs so far */
	size_t room;
	enum status status;
};

static void *inspector_begin(struct sink *sink, uint64_t columns)
{
	struct inspector_export *export = calloc(1, sizeof(*export));

	(void)columns;
	if (export != NULL)
		export->sink = sink;
	return export;
}

static void process(void *writer, const struct recording_process *of)
{
	struct inspector_export *export = writer;
	uint64_t *p2p = calloc(of->comm_count + 1, sizeof(*p2p));

	if (p2p == NULL)
		export->status = ERR_NO_SPACE;
	free(export->p2p);
	export->p2p = p2p;
	export->process = of;
}

/* The fields of a record that a line needs. */
static void record_of(const struct op_batch *batch, uint32_t row, struct op_record *op)
{
	static const uint8_t wanted[] = {
		OP_WORD_KIND,	   OP_WORD_BYTES,    OP_WORD_NCCL_SEQUENCE, OP_WORD_ENDS,
		OP_WORD_STATE,	   OP_WORD_ISSUE,    OP_WORD_ACTIVE,	    OP_WORD_DONE,
		OP_WORD_GPU_START, OP_WORD_GPU_STOP,
	};
	uint64_t words[OP_RECORD_WORDS] = { 0 };

	for (size_t i = 0; i < sizeof(wanted); i++)
		words[wanted[i]] = batch->column[wanted[i]][row];
	memcpy(op, words, sizeof(*op));
}

static void put_op(struct inspector_export *export, const struct op_record *op)
{
	const struct recording_process *of = export->process;
	const struct recording_comm *comm = recording_comm(of, op->comm);
	static const struct inspector_filter timed = { .is_without_bounds = true };
	struct inspector_speaker speaker = { .host = of->host, .pid = of->pid };
	char line[INSPECTOR_LINE_BYTES];
	uint64_t *p2p;

	if (comm == NULL)
		return;
	p2p = &export->p2p[comm - of->comms];
	*p2p += op->function == OP_SEND || op->function == OP_RECV;
	if (inspector_fate(op, &comm->info, &timed) != INSPECTOR_WRITTEN)
		return;
	if (op->done_ns == 0 || !recording_wall_ns(of, op->done_ns, &speaker.wall_ns))
		speaker.wall_ns = 0;
	sink_write(export->sink, line,
		   inspector_line(line, sizeof(line), &speaker, &comm->info, op, *p2p, NULL));
}

static enum status batch(void *writer, const struct op_batch *from)
{
	struct inspector_export *export = writer;
	struct op_record op;

	for (uint32_t i = 0; i < from->rows && export->status == OK; i++) {
		record_of(from, i, &op);
		put_op(export, &op);
	}
	return export->status != OK ? export->status : export->sink->status;
}

static void inspector_fact(void *writer, const char *key, const char *value)
{
	(void)writer, (void)key, (void)value;
}

static enum status inspector_end(void *writer)
{
	struct inspector_export *export = writer;
	enum status status = export->status != OK ? export->status : export->sink->status;

	free(export->p2p);
	free(export);
	return status;
}

static void file_name(char *name, size_t size, const struct recording_process *of)
{
	char own[INSPECTOR_NAME_BYTES];

	inspector_file_name(own, of->host, of->pid);
	text_copy(name, size, own);
}

/* Skips operations without a duration and those that Inspector cannot express. */
static const struct export_format export_inspector = {
	.name = "inspector",
	.suffix = ".log",
	.file_name = file_name,
	.begin = inspector_begin,
	.process = process,
	.batch = batch,
	.fact = inspector_fact,
	.end = inspector_end,
};

/* Hive-style directory names: key=value, one level per key. */

/* Readers convert this to null. */
#define PARTITION_NULL "__HIVE_DEFAULT_PARTITION__"

static bool is_plain(unsigned char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || strchr("-_.+,@~ ", byte) != NULL;
}

/* Valid UTF-8 is kept; invalid bytes become U+FFFD, as in the files. */
static void put_value(struct sink *sink, const char *value)
{
	const unsigned char *at = (const unsigned char *)value;

	if (*at == '\0')
		sink_text(sink, PARTITION_NULL);
	while (*at != '\0') {
		size_t length = json_utf8_length(at);

		if (length > 0)
			sink_write(sink, at, length);
		else if (*at >= 0x80)
			sink_text(sink, "\xef\xbf\xbd");
		else if (is_plain(*at))
			sink_byte(sink, (char)*at);
		else
			sink_format(sink, "%%%02X", *at);
		at += length ? length : 1;
	}
}

/* "job=77/host=node%3A1/rank=3/part-0.parquet"; false if it does not fit. */
static bool export_partition_name(char *name, size_t size, const struct recording_process *process,
				  unsigned int part, const char *suffix)
{
	char rank[24] = "";
	struct sink sink;
	bool fits;

	if (process->rank >= 0)
		text_format(rank, sizeof(rank), "%" PRId64, process->rank);
	sink_init_memory(&sink);
	sink_text(&sink, "job=");
	put_value(&sink, process->job);
	sink_text(&sink, "/host=");
	put_value(&sink, process->host);
	sink_text(&sink, "/rank=");
	put_value(&sink, rank);
	sink_format(&sink, "/part-%u%s", part, suffix);
	fits = text_copy(name, size, sink_string(&sink)) && sink.status == OK;
	sink_release(&sink);
	return fits;
}

/*
 * Writes one file, or a directory with files for each process. Many rows of a process are split into several files;
 * processes of the same job, host and rank (after a restart) share a directory and continue its numbering.
 */

enum { EXPORT_NAME_BYTES = 4096, EXPORT_BATCH_ROWS = 1024 };
#define EXPORT_FORMAT_VERSION "1"

/* Counters of the recorders of a file's processes. */
struct told {
	uint64_t rows;
	uint64_t read;
	uint64_t issued;
	uint64_t lost;
	uint64_t damaged;
};

/* State of a running export. */
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
	uint64_t *room; /* buffer for rows that pass, EXPORT_BATCH_ROWS per word */
	char directory[EXPORT_NAME_BYTES]; /* of the previous file */
	unsigned int part;
	bool is_stopped; /* writing failed; reported when the file ends */
	bool is_failed;	 /* failed and reported */
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
	/* Repeats job, host and rank from the path, for files that are moved elsewhere. */
	job->format->fact(doing->writer, "ringside.job", doing->process->job);
	job->format->fact(doing->writer, "ringside.host", doing->process->host);
	if (doing->process->rank >= 0)
		put_number(doing, "ringside.rank", (uint64_t)doing->process->rank);
}

static void export_fail(struct doing *doing)
{
	doing->is_failed = true;
	cli_progress_hide(&doing->progress);
}

/* Starts the format in the open file. */
static void export_begin_file(struct doing *doing)
{
	uint64_t columns = EXPORT_ALL_COLUMNS;

	if (doing->job->is_directory)
		columns &= ~EXPORT_PARTITION_COLUMNS;
	doing->file = (struct told){ 0 };
	doing->writer = doing->job->format->begin(&doing->output.sink, columns);
	if (doing->writer == NULL) {
		export_fail(doing);
		cli_error("cannot write %s: no memory", doing->output.path);
		cli_output_discard(&doing->output);
	}
}

/*
 * The name of the process in the format. Another process of the same name (in another container, for example) gets a
 * number.
 */
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

/* Files are numbered from 0 in each directory. */
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

/* From the recorder's counters; false if they are unknown. */
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

/* From here on, the file has rows of this process. */
static void export_enter_process(struct doing *doing)
{
	uint64_t issued;

	count_issued(doing->process, &issued);
	doing->file.issued += issued;
	doing->file.lost += recorded_lost(doing->process);
	doing->job->format->process(doing->writer, doing->process);
}

/* Opens the next file of a directory. */
static void begin_next(struct doing *doing)
{
	char name[EXPORT_NAME_BYTES];

	if (!name_file(doing, name, sizeof(name))) {
		export_fail(doing);
		cli_error("%s: the name of its file is too long", doing->process->host);
	} else if (cli_tree_file(&doing->tree, &doing->output, name) != 0) {
		export_fail(doing);
	} else {
		export_begin_file(doing);
	}
	if (!doing->is_failed)
		export_enter_process(doing);
}

static uint64_t bytes_of(struct cli_output *output)
{
	struct stat st;

	if (sink_flush(&output->sink) == OK && fstat(output->fd, &st) == 0 && S_ISREG(st.st_mode))
		return (uint64_t)st.st_size;
	return 0;
}

/* Ends the format and the file. */
static void export_end_file(struct doing *doing)
{
	enum status status;

	if (doing->writer == NULL)
		return;
	put_facts(doing);
	status = doing->job->format->end(doing->writer);
	doing->writer = NULL;
	if (status != OK && doing->output.sink.status == OK) {
		export_fail(doing);
		cli_error("cannot write %s: %s", doing->output.path, status_text(status));
	}
	doing->job->bytes += bytes_of(&doing->output);
	doing->job->files++;
	if (doing->is_failed) {
		cli_output_discard(&doing->output);
	} else if (cli_output_commit(&doing->output, 0) != 0) {
		export_fail(doing);
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Selects rows that pass the filter, from up to EXPORT_BATCH_ROWS rows starting at `at`. */
static struct op_batch export_filter_batch(struct doing *doing, const struct op_batch *from,
					   uint32_t at)
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
		job->timed +=
			!is_captured && op_is_duration(op_shown_source(op_state_source(states[i]),
								       op_state_flags(states[i])));
	}
}

static void put_rows(struct doing *doing, const struct op_batch *batch)
{
	for (uint32_t at = 0; at < batch->rows && !doing->is_stopped; at += EXPORT_BATCH_ROWS) {
		struct op_batch some = export_filter_batch(doing, batch, at);

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
		export_end_file(doing);
	return !doing->is_stopped && !doing->is_failed;
}

/* Reports read errors in one line. */
static int export_complain(struct doing *doing, enum status status,
			   const struct recording_walk *walk)
{
	int error = errno;

	if (status == OK && walk->refused == 0)
		return 0;
	cli_progress_hide(&doing->progress);
	errno = error;
	return cli_walk_complain(doing->process, status, walk);
}

static int export_process(struct doing *doing, uint32_t number,
			  const struct recording_process *process)
{
	struct export_job *job = doing->job;
	struct recording_walk walk = { 0 };
	uint64_t issued;
	bool is_known = count_issued(process, &issued);
	enum status status;
	int error;

	if (doing->who != NULL &&
	    !filter_rows_start(&doing->chosen, job->filter, doing->who, number))
		return 0;
	job->processes++;
	doing->process = process;
	doing->process_rows = 0;
	/* A process without operations has a file, too, to show that it has none. */
	if (job->is_directory)
		begin_next(doing);
	else
		export_enter_process(doing);
	if (doing->is_failed)
		return CLI_EXIT_UNKNOWN;
	status = recording_each_batch(process, export_words(), take_batch, doing, &walk);
	error = errno;
	doing->file.damaged += walk.refused;
	job->issued += issued;
	job->lost += recorded_lost(process);
	job->damaged += walk.refused;
	job->is_complete &= is_known && issued == doing->process_rows && walk.damages == 0;
	if (job->is_directory)
		export_end_file(doing);
	errno = error;
	return export_complain(doing, status, &walk);
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
	int failed;

	if (!job->is_directory) {
		failed = cli_output_open(&doing->output, job->path);
		if (failed != 0)
			return failed;
		export_begin_file(doing);
		return doing->is_failed ? CLI_EXIT_UNKNOWN : 0;
	}
	failed = cli_tree_open(&doing->tree, job->path, job->is_forced ? CLI_OUTPUT_FORCE : 0);
	if (failed != 0)
		return failed;
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

/*
 * Writes rows to the file or directory. Returns an exit code; on failure the error was reported and no output is
 * left.
 */
static int export_job_run(struct export_job *job, const struct cli_input *input)
{
	const struct recording *recording = &input->recording;
	struct doing doing = { .job = job };
	int exit_code = 0, failed;

	job->is_complete = true;
	failed = open_output(&doing);
	if (failed != 0)
		return failed;
	if (job->filter != NULL && !filter_is_empty(job->filter))
		set_up_filter(&doing, recording);
	cli_progress_start(&doing.progress, "export", "operations", count_expected(recording));
	/* Rows are printed on the terminal: progress would disturb them. */
	if (cli_output_is_terminal(job->path))
		cli_progress_end(&doing.progress);
	for (uint32_t i = 0; i < recording->count && !doing.is_stopped && !doing.is_failed; i++)
		exit_code |= export_process(&doing, i, recording->processes[i]);
	export_end_file(&doing);
	cli_progress_end(&doing.progress);
	release_filter(&doing);
	if (doing.is_failed) {
		cli_tree_discard(&doing.tree);
		job->files = 0;
		return CLI_EXIT_UNKNOWN;
	}
	return job->is_directory ? cli_tree_commit(&doing.tree, exit_code) : exit_code;
}

/* About 200 MB per file. */
enum { EXPORT_FILE_ROWS = 4 << 20 };

struct request {
	struct cli_input input;
	struct export_job job;
	struct report_filter chosen;
	const char *format;
	bool is_json;
};

static const struct cli_option options[] = {
	{ 'o', "output", "FILE",
	  "file to write, - for standard output; a name ending in / or an existing directory gets "
	  "files for each job, host and rank",
	  CLI_TEXT(struct request, job.path) },
	{ 'f', "format", "FORMAT",
	  "parquet, csv, jsonl or inspector (default: by the name of the file; parquet for "
	  "directories)",
	  CLI_TEXT(struct request, format) },
	{ 0, "partition", NULL, "write a directory, regardless of its name",
	  CLI_FLAG(struct request, job.is_directory) },
	{ 0, "rows", "N", "directories: start a new file after N operations (default 4194304)",
	  CLI_U64(struct request, job.file_rows, 1, INT64_MAX),
	  .like = "is not a number from 1 on" },
	{ 0, "force", NULL,
	  "write into a non-empty directory; files of the same job, host and rank are replaced",
	  CLI_FLAG(struct request, job.is_forced) },
	REPORT_FILTER_OPTIONS(struct request),
	CLI_OPTION_JSON(struct request),
	CLI_OPTION_QUIET,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside export traces/ -o operations.parquet", "one file, for DuckDB and others" },
	{ "ringside export traces/ -o lake/", "a directory for each job, host and rank" },
	{ "ringside export traces/ -f csv -o - | head", "as text, on standard output" },
	{ "ringside export traces/ --rank 0-7 --op AllReduce --since -5m -o last.parquet",
	  "the AllReduces of eight ranks in the last five minutes" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "export",
	.operands = "[PATH...]",
	.about = "Exports operations as a table, one row per operation: Parquet, CSV or JSON "
		 "lines; or as a log of NCCL Inspector. docs/EXPORT.md explains every column "
		 "and has queries to start with.\n"
		 "A file appears when it is complete and replaces an older one of the same "
		 "name.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	CLI_OPERANDS(struct request, input, cli_input_take),
	.examples = examples,
};

static const struct export_format *const formats[] = {
	&export_parquet,
	&export_csv,
	&export_jsonl,
	&export_inspector,
};

static const struct export_format *find_format(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(formats); i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

static const struct export_format *format_of_file(const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
		size_t suffix = strlen(formats[i]->suffix);

		if (length > suffix && strcmp(path + length - suffix, formats[i]->suffix) == 0)
			return formats[i];
	}
	return NULL;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return path[0] != '\0' &&
	       (path[strlen(path) - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)));
}

static int choose_format(struct request *request)
{
	struct export_job *job = &request->job;

	if (request->format != NULL) {
		job->format = find_format(request->format);
		if (job->format == NULL)
			return cli_usage(&page,
					 "--format %s is not one of parquet, csv, jsonl, inspector",
					 request->format);
		return 0;
	}
	job->format = job->is_directory ? &export_parquet : format_of_file(job->path);
	if (job->format == NULL)
		return cli_usage(&page,
				 "unknown format of '%s': name it .parquet, .csv or .jsonl, or use "
				 "--format",
				 job->path);
	return 0;
}

static int export_check(void *context)
{
	struct request *request = context;
	struct export_job *job = &request->job;

	if (job->path == NULL)
		return cli_usage(&page, "no output file: use -o FILE, -o DIRECTORY/ or -o -");
	if (job->path[0] == '\0')
		return cli_usage(&page, "the file name is empty");
	if (strcmp(job->path, "-") == 0 && job->is_directory)
		return cli_usage(&page,
				 "standard output is not a directory: leave --partition out");
	job->is_directory |= is_directory(job->path);
	if (choose_format(request) != 0)
		return CLI_EXIT_USAGE;
	if (job->format->is_binary && cli_output_is_terminal(job->path))
		return cli_usage(&page, "%s is not for a terminal: use -o FILE", job->format->name);
	return CLI_GO_ON;
}

/* ---- what was done --------------------------------------------------------------------------- */

static void write_json(struct sink *sink, const struct export_job *job)
{
	struct json json;

	json_begin(&json, sink);
	json_put_string(&json, "path", job->path);
	json_put_string(&json, "format", job->format->name);
	json_put_unsigned(&json, "files", job->files);
	json_put_unsigned(&json, "bytes", job->bytes);
	json_put_unsigned(&json, "processes", job->processes);
	json_put_unsigned(&json, "operations", job->rows);
	json_put_unsigned(&json, "timed", job->timed);
	json_put_unsigned(&json, "read", job->read);
	json_put_unsigned(&json, "issued", job->issued);
	json_put_unsigned(&json, "lost", job->lost);
	json_put_unsigned(&json, "damaged", job->damaged);
	json_put_bool(&json, "is_complete", job->is_complete);
	json_finish(&json);
}

static void write_text(struct sink *sink, const struct export_job *job)
{
	char rows[UNITS_TEXT], bytes[UNITS_TEXT], files[UNITS_TEXT], count[UNITS_TEXT];

	sink_format(sink, "%s %s of %s %s in %s", units_count(rows, job->rows),
		    text_which(job->rows, "operation", "operations"),
		    units_count(count, job->processes),
		    text_which(job->processes, "process", "processes"), job->path);
	if (job->is_directory)
		sink_format(sink, " (%s %s, %s)\n", units_count(files, job->files),
			    text_which(job->files, "file", "files"),
			    units_bytes(bytes, job->bytes));
	else if (job->bytes > 0)
		sink_format(sink, " (%s)\n", units_bytes(bytes, job->bytes));
	else
		sink_text(sink, "\n"); /* a device or a pipe */
	if (job->timed + job->captured < job->rows)
		sink_format(sink, "timed: %s of %s operations%s\n", units_count(rows, job->timed),
			    units_count(count, job->rows - job->captured),
			    job->format == &export_inspector ? "; those without a time have no line"
							     : "");
	if (job->is_complete)
		return;
	sink_text(sink, "Not all operations of the job are included");
	if (job->lost > 0)
		sink_format(sink, ", %s %s lost while recording", units_count(count, job->lost),
			    text_which(job->lost, "was", "were"));
	sink_text(sink, ": 'ringside verify' has details.\n");
}

static int export_run(void *context)
{
	struct request *request = context;
	struct cli_input *input = &request->input;
	int complaint = cli_input_complain(input, true);
	struct sink sink;
	int exit_code;

	if (input->recording.count == 0)
		return complaint;
	exit_code = cli_input_choose(input, &request->chosen, &page);
	if (exit_code != 0)
		return exit_code;
	request->job.filter = &request->chosen.filter;
	exit_code = export_job_run(&request->job, input);
	/* No summary if nothing was written, or if the rows went to standard output. */
	if (request->job.files == 0 || strcmp(request->job.path, "-") == 0)
		return cli_exit_join(exit_code, complaint);
	sink_init_fd(&sink, STDOUT_FILENO);
	if (request->is_json)
		write_json(&sink, &request->job);
	else
		write_text(&sink, &request->job);
	return cli_finish(&sink, cli_exit_join(exit_code, complaint));
}

int cmd_export(int argc, char **argv)
{
	struct request request = { .job = { .file_rows = EXPORT_FILE_ROWS } };
	int exit_code = cli_input_command(&page, &request, RECORDING_WITH_TRACES, export_check,
					  export_run, argc, argv);

	report_filter_release(&request.chosen);
	return exit_code;
}
