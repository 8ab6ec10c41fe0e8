/*
 * A log is read once for each process in it, usually once. Facts that are known only at the end (identity of the
 * process, what is missing) are written last: blocks of a trace file may be in any order.
 */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "format/trace_write.h"
#include "import/foreign.h"
#include "output/json.h"

/* Converts a log of another tool to trace files, one per process. */

/* Totals of all logs. */
struct import_totals {
	size_t logs;
	size_t files; /* written */
	uint64_t bytes;
	uint64_t operations;
	uint64_t details;
	uint64_t comms;
	uint64_t dropped;      /* reported by the recorder */
	uint64_t not_recorded; /* counted by NCCL but not in the log */
	uint64_t dropped_details;
	uint64_t skipped_details; /* on another clock */
	uint64_t untimed;
	uint64_t coarse;
	uint64_t damaged;
	uint64_t ignored;
	bool is_inspector; /* among the logs */
	bool is_comma;
	bool is_without_algorithms; /* among the operations */
};

struct import {
	struct cli_tree *tree;
	struct cli_progress *progress;
	struct import_totals totals;
	void *names; /* of files and communicators so far: a tree of texts, see tsearch() */
};

enum { TOLD_OF_A_LOG = 5, COMMS_AT_ONCE = 256 };

struct importing {
	struct import *import;
	const char *path; /* of the log */
	struct foreign_log log;
	struct trace_writer writer;
	char *output; /* of the trace file; NULL: none yet */
	struct op_record *ops;
	struct op_detail *details;
	uint32_t op_count;
	uint32_t detail_count;
	enum status status; /* first write error */
	int error;
	size_t told;
	bool is_first; /* damage is reported and counted only then */
};

static void keep_status(struct importing *importing, enum status status)
{
	if (importing->status != OK || status == OK)
		return;
	importing->status = status;
	importing->error = errno;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* host-pid4711.ringside: other characters of a host name become '_'. */
static void file_name(const struct foreign_process *process, unsigned int again, char *name,
		      size_t size)
{
	char host[128], suffix[16] = "";

	text_copy(host, sizeof(host), process->host[0] != '\0' ? process->host : "host");
	for (char *at = host; *at != '\0'; at++)
		if (!((*at >= '0' && *at <= '9') || ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z') ||
		      *at == '-' || *at == '_' || (*at == '.' && at != host)))
			*at = '_';
	if (again > 0)
		text_format(suffix, sizeof(suffix), "-%u", again + 1);
	if (process->pid >= 0)
		text_format(name, size, "%s-pid%lld%s.ringside", host, (long long)process->pid,
			    suffix);
	else
		text_format(name, size, "%s%s.ringside", host, suffix);
}

static int compare_names(const void *one, const void *other)
{
	return strcmp(one, other);
}

/* False: the name is already used. */
static bool take_name(struct import *import, const char *name)
{
	char *own = strdup(name);
	void **found = own != NULL ? tsearch(own, &import->names, compare_names) : NULL;

	if (found == NULL)
		cli_no_memory();
	if (*found == own)
		return true;
	free(own);
	return false;
}

/* After the last log. */
static void import_release(struct import *import)
{
	tdestroy(import->names, free);
	import->names = NULL;
}

/* Two logs can belong to the same or to unknown processes: the second file gets another name. */
static void open_file(struct importing *importing, const struct foreign_process *process)
{
	unsigned int again = 0;
	char name[192];

	do {
		file_name(process, again, name, sizeof(name));
	} while (!take_name(importing->import, name) && ++again != 0);
	importing->output = cli_tree_path(importing->import->tree, name);
	if (importing->output == NULL)
		importing->status = ERR_GONE;
	else
		keep_status(importing, trace_writer_open_at(&importing->writer, importing->output,
							    0600, 0, process->first_ns));
}

static void flush_ops(struct importing *importing)
{
	if (importing->op_count > 0 && importing->status == OK)
		keep_status(importing, trace_write_ops(&importing->writer, importing->ops,
						       importing->op_count));
	importing->op_count = 0;
}

static void flush_details(struct importing *importing)
{
	if (importing->detail_count > 0 && importing->status == OK)
		keep_status(importing, trace_write_details(&importing->writer, importing->details,
							   importing->detail_count));
	importing->detail_count = 0;
}

static bool take_op(const struct op_record *op, uint32_t process, void *context)
{
	struct importing *importing = context;
	struct import *import = importing->import;

	if (importing->output == NULL)
		open_file(importing, &importing->log.processes[process]);
	importing->ops[importing->op_count++] = *op;
	import->totals.is_without_algorithms |= op->algorithm == 0 && op->peer == OP_NOBODY;
	import->totals.operations++;
	if (importing->op_count == TRACE_OPS_PER_BLOCK) {
		flush_ops(importing);
		cli_progress_at(import->progress, import->totals.operations);
	}
	return importing->status == OK;
}

static bool take_detail(const struct op_detail *detail, uint32_t process, void *context)
{
	struct importing *importing = context;

	if (importing->output == NULL)
		open_file(importing, &importing->log.processes[process]);
	importing->details[importing->detail_count++] = *detail;
	importing->import->totals.details++;
	if (importing->detail_count == TRACE_OPS_PER_BLOCK)
		flush_details(importing);
	return importing->status == OK;
}

static void take_damage(const struct foreign_damage *damage, void *context)
{
	struct importing *importing = context;

	if (!importing->is_first)
		return;
	importing->import->totals.damaged++;
	cli_progress_hide(importing->import->progress);
	if (importing->told++ >= TOLD_OF_A_LOG)
		return;
	if (damage->line == 0)
		cli_error("%s: at byte %llu: %s", importing->path,
			  (unsigned long long)damage->offset, damage->what);
	else if (damage->missing > 0)
		cli_error("%s:%llu: %s, %llu records are missing", importing->path,
			  (unsigned long long)damage->line, damage->what,
			  (unsigned long long)damage->missing);
	else
		cli_error("%s:%llu: skipped: %s", importing->path, (unsigned long long)damage->line,
			  damage->what);
}

/* ---- facts known at the end ------------------------------------------------------------------ */

static void write_comms(struct importing *importing, const struct foreign_process *process)
{
	struct comm_info infos[COMMS_AT_ONCE];
	uint32_t count = 0;

	for (uint32_t i = 0; i < process->comm_count && importing->status == OK; i++) {
		infos[count++] = importing->log.comms[process->comms[i]].info;
		if (count < COMMS_AT_ONCE && i + 1 < process->comm_count)
			continue;
		keep_status(importing, trace_write_records(&importing->writer, TRACE_COMM, infos,
							   sizeof(infos[0]), count));
		count = 0;
	}
}

/* Only as many communicators as fit into one block have their own counts. */
static void write_counts(struct importing *importing, uint32_t number)
{
	const struct foreign_process *process = &importing->log.processes[number];
	const uint32_t most = (TRACE_BLOCK_PAYLOAD_MAX - sizeof(struct trace_counts)) /
			      sizeof(struct trace_comm_counts);
	struct trace_counts counts = { .clock_ns = process->last_ns,
				       .trace_records = process->records,
				       .ring_head = process->records +
						    foreign_dropped(&importing->log, number),
				       .comms = process->comm_count };
	struct trace_comm_counts *comms;

	if (counts.comms > most)
		counts.comms = most;
	counts.lost[LOST_RING_OVERRUN] = foreign_dropped(&importing->log, number);
	counts.lost[LOST_OFF] = foreign_not_recorded(&importing->log, number);
	counts.lost[LOST_DETAIL_OVERRUN] = foreign_dropped_details(&importing->log, number);
	counts.odd[ODD_FOREIGN_PROCESS] = process->foreign_ops;
	comms = cli_realloc(NULL, (counts.comms + 1) * sizeof(*comms));
	for (uint64_t i = 0; i < counts.comms; i++) {
		const struct foreign_comm *comm = &importing->log.comms[process->comms[i]];

		comms[i].id = comm->info.id;
		foreign_comm_counts(comm, &comms[i].counts);
	}
	keep_status(importing, trace_write_counts(&importing->writer, TRACE_CLOSE, &counts, comms));
	free(comms);
}

static void write_end(struct importing *importing, uint32_t number)
{
	const struct foreign_process *process = &importing->log.processes[number];
	const struct clock_anchor anchor = { .clock_ns = process->first_ns,
					     .wall_ns = process->first_ns };
	char text[2048];

	flush_ops(importing);
	flush_details(importing);
	foreign_info_text(&importing->log, number, importing->path, text, sizeof(text));
	if (importing->status == OK)
		keep_status(importing, trace_write_text(&importing->writer, TRACE_PROCESS, text,
							strlen(text)));
	write_comms(importing, process);
	if (importing->status == OK && foreign_is_wall(process->first_ns))
		keep_status(importing, trace_write_records(&importing->writer, TRACE_ANCHOR,
							   &anchor, sizeof(anchor), 1));
	if (importing->status == OK)
		write_counts(importing, number);
}

/* A communicator is the same in the logs of all its ranks. */
static uint64_t count_new_comms(struct importing *importing, const struct foreign_process *process)
{
	uint64_t count = 0;
	char name[32];

	for (uint32_t i = 0; i < process->comm_count; i++) {
		uint64_t hash = importing->log.comms[process->comms[i]].info.hash;

		text_format(name, sizeof(name), "%llx", (unsigned long long)hash);
		count += hash == 0 || take_name(importing->import, name);
	}
	return count;
}

static void add_totals(struct importing *importing, uint32_t number)
{
	const struct foreign_process *process = &importing->log.processes[number];
	struct import_totals *totals = &importing->import->totals;

	totals->comms += count_new_comms(importing, process);
	totals->dropped += foreign_dropped(&importing->log, number);
	totals->not_recorded += foreign_not_recorded(&importing->log, number);
	totals->dropped_details += foreign_dropped_details(&importing->log, number);
	totals->untimed += process->untimed;
	totals->coarse += process->coarse;
	totals->files += importing->output != NULL;
	if (!importing->is_first)
		return;
	totals->logs++;
	totals->bytes += importing->log.bytes;
	totals->ignored += importing->log.ignored;
	totals->skipped_details += importing->log.skipped_details;
	totals->is_inspector |= importing->log.format == FOREIGN_INSPECTOR;
	totals->is_comma |= importing->log.format == FOREIGN_COMMA;
}

/* ---- a log ----------------------------------------------------------------------------------- */

static int import_complain_log(const struct importing *importing, enum status status)
{
	if (importing->status == ERR_GONE)
		return CLI_EXIT_UNKNOWN; /* already reported */
	if (importing->status != OK)
		return cli_error("cannot write %s: %s", importing->output,
				 importing->status == ERR_SYSTEM ? strerror(importing->error)
								 : status_text(importing->status));
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return cli_error("cannot read %s: %s", importing->path, status_reason(status));
}

/* The process with this index; the number of processes in *count. */
static int import_process(struct importing *importing, int fd, uint32_t number, uint32_t *count)
{
	const struct foreign_request request = { .process = number,
						 .visit_op = take_op,
						 .visit_detail = take_detail,
						 .visit_damage = take_damage,
						 .context = importing };
	enum status status;
	int exit_code = 0;

	importing->is_first = number == 0;
	importing->writer = (struct trace_writer){ .fd = -1 };
	foreign_log_init(&importing->log);
	status = foreign_read(&importing->log, fd, &request);
	if (status == OK && importing->output != NULL)
		write_end(importing, number);
	if (status != OK || importing->status != OK)
		exit_code = import_complain_log(importing, status);
	else if (importing->log.process_count > number)
		add_totals(importing, number);
	*count = importing->log.process_count;
	trace_writer_close(&importing->writer);
	foreign_log_release(&importing->log);
	free(importing->output);
	importing->output = NULL;
	return exit_code;
}

/*
 * Reports the first damaged lines on stderr and counts all. Returns 0, or CLI_EXIT_UNKNOWN after a read or write
 * error was reported.
 */
static int import_log(struct import *import, const char *path)
{
	struct importing importing = { .import = import, .path = path };
	int fd = file_open(AT_FDCWD, path, true);
	uint32_t count = 1;
	int exit_code = 0;

	if (fd == -1)
		return cli_error("cannot read %s: %s", path, file_error_text(errno));
	importing.ops = cli_realloc(NULL, TRACE_OPS_PER_BLOCK * sizeof(*importing.ops));
	importing.details = cli_realloc(NULL, TRACE_OPS_PER_BLOCK * sizeof(*importing.details));
	for (uint32_t i = 0; i < count && exit_code == 0; i++)
		exit_code = import_process(&importing, fd, i, &count);
	if (importing.told > TOLD_OF_A_LOG)
		cli_error("%s: %zu more lines are skipped", path, importing.told - TOLD_OF_A_LOG);
	free(importing.ops);
	free(importing.details);
	close(fd);
	return exit_code;
}

struct request {
	struct cli_input input;
	const char *output;
	bool is_forced;
	bool is_strict;
	bool is_json;
};

static const struct cli_option options[] = {
	{ 'o', "output", "DIR", "directory for the trace files; created if missing",
	  CLI_TEXT(struct request, output) },
	{ 0, "force", NULL, "write into a non-empty directory and replace files",
	  CLI_FLAG(struct request, is_forced) },
	{ 0, "strict", NULL, "write nothing if any line or file cannot be read",
	  CLI_FLAG(struct request, is_strict) },
	CLI_OPTION_JSON(struct request),
	CLI_OPTION_QUIET,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside import nccl-inspector-4711/ -o traces/", "NCCL Inspector's logs of a job" },
	{ "ringside import node*/latency-*.txt.gz -o traces/", "what CoMMA wrote, packed" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "import",
	.operands = "PATH...",
	.about = "Converts logs of other tools to trace files, one per process, which all commands "
		 "read: NCCL Inspector (v4.0 to v4.4) and CoMMA latency files, plain or gzip. The "
		 "format is recognized by content. Commands also read such logs directly; trace "
		 "files are smaller and faster. docs/IMPORT.md explains the conversion and what "
		 "these logs lack.\n"
		 "PATH is a log or a directory of logs. Lines that cannot be read are reported and "
		 "skipped; the exit code is then 3.\n",
	.options = options,
	CLI_OPERANDS(struct request, input, cli_input_take),
	.examples = examples,
};

/* ---- what was done --------------------------------------------------------------------------- */

static void say_json(struct sink *sink, const struct request *request,
		     const struct import_totals *totals)
{
	struct json json;

	json_begin(&json, sink);
	json_put_string(&json, "output", request->output);
	json_put_unsigned(&json, "logs", totals->logs);
	json_put_unsigned(&json, "files", totals->files);
	json_put_unsigned(&json, "bytes", totals->bytes);
	json_put_unsigned(&json, "communicators", totals->comms);
	json_put_unsigned(&json, "operations", totals->operations);
	json_put_unsigned(&json, "details", totals->details);
	json_put_unsigned(&json, "dropped_operations", totals->dropped);
	json_put_unsigned(&json, "not_recorded_operations", totals->not_recorded);
	json_put_unsigned(&json, "dropped_details", totals->dropped_details);
	json_put_unsigned(&json, "skipped_details", totals->skipped_details);
	json_put_unsigned(&json, "untimed_operations", totals->untimed);
	json_put_unsigned(&json, "coarse_operations", totals->coarse);
	json_put_unsigned(&json, "damaged_lines", totals->damaged);
	json_put_unsigned(&json, "ignored_lines", totals->ignored);
	json_finish(&json);
}

static void say_if(struct sink *sink, uint64_t count, const char *what)
{
	char text[UNITS_TEXT];

	if (count > 0)
		sink_format(sink, "  %s %s\n", units_count(text, count), what);
}

static void say_text(struct sink *sink, const struct request *request,
		     const struct import_totals *totals)
{
	char operations[UNITS_TEXT], comms[UNITS_TEXT];

	sink_format(sink, "%s %s of %zu %s, %s %s, from %zu %s to %s\n",
		    units_count(operations, totals->operations),
		    text_which(totals->operations, "operation", "operations"), totals->files,
		    text_which(totals->files, "process", "processes"),
		    units_count(comms, totals->comms),
		    text_which(totals->comms, "communicator", "communicators"), totals->logs,
		    text_which(totals->logs, "log", "logs"), request->output);
	say_if(sink, totals->details, "details of channels and transfers");
	say_if(sink, totals->dropped, "operations are missing: their recorder dropped them");
	say_if(sink, totals->not_recorded,
	       "operations are missing: NCCL counted them, their recorder did not write them (too "
	       "small, not finished, or lost)");
	say_if(sink, totals->dropped_details, "details are missing: their recorder dropped them");
	say_if(sink, totals->skipped_details,
	       "details were left out: they are on another clock than their operations");
	say_if(sink, totals->untimed, "operations have no duration");
	say_if(sink, totals->coarse,
	       "operations have no exact end time; they ended before they were written");
	say_if(sink, totals->damaged, "lines could not be read");
	say_if(sink, totals->ignored, "lines are not about operations");
	sink_format(sink, "  not known: %swhen they were %s; datatypes, counts, roots%s\n",
		    totals->is_without_algorithms ? "algorithms and protocols; " : "",
		    totals->is_inspector ? "issued" : "done on the GPU",
		    totals->is_comma ? "; how many ranks communicators have" : "");
}

/* ---- the command ----------------------------------------------------------------------------- */

static int import_all(const struct cli_input *input, const struct request *request,
		      struct cli_tree *tree, struct import_totals *totals)
{
	const struct recording *recording = &input->recording;
	struct cli_progress progress;
	struct import import = { .tree = tree, .progress = &progress };
	int exit_code = 0;

	cli_progress_start(&progress, "import", "operations", 0);
	for (size_t i = 0; i < recording->foreign_path_count && exit_code == 0; i++)
		exit_code = import_log(&import, recording->foreign_paths[i]);
	cli_progress_end(&progress);
	import_release(&import);
	*totals = import.totals;
	if (exit_code != 0)
		return exit_code;
	if (totals->damaged > 0 && request->is_strict)
		return cli_error("nothing written: %llu lines cannot be read",
				 (unsigned long long)totals->damaged);
	if (totals->operations == 0)
		return cli_error("nothing written: these files have no operations");
	return 0;
}

/* Only real problems are reported: a directory without our own recordings is normal here. */
static bool import_complain_input(const struct cli_input *input)
{
	const struct recording *recording = &input->recording;

	for (size_t i = 0; i < recording->trouble_count; i++)
		if (cli_input_is_trouble(input, &recording->troubles[i]))
			return cli_input_complain(input, true);
	return false;
}

static int import_input(void *context)
{
	const struct request *request = context;
	const struct cli_input *input = &request->input;
	bool is_trouble = import_complain_input(input);
	struct import_totals totals;
	struct cli_tree tree;
	struct sink sink;
	int exit_code;

	if (input->recording.foreign_path_count == 0)
		return is_trouble ? CLI_EXIT_UNKNOWN
				  : cli_error("no log of another tool found: nothing to import");
	if (is_trouble && request->is_strict)
		return cli_error("nothing written: not all files can be read");
	exit_code =
		cli_tree_open(&tree, request->output, request->is_forced ? CLI_OUTPUT_FORCE : 0);
	if (exit_code != 0)
		return exit_code;
	exit_code = import_all(input, request, &tree, &totals);
	if (exit_code != 0) {
		cli_tree_discard(&tree);
		return exit_code;
	}
	exit_code = totals.damaged > 0 || is_trouble ? CLI_EXIT_UNKNOWN : CLI_EXIT_DONE;
	if (cli_tree_commit(&tree, 0) != 0)
		return CLI_EXIT_UNKNOWN;
	sink_init_fd(&sink, STDOUT_FILENO);
	if (request->is_json)
		say_json(&sink, request, &totals);
	else
		say_text(&sink, request, &totals);
	return cli_finish(&sink, exit_code);
}

static int import_check(void *context)
{
	const struct request *request = context;

	if (request->input.path_count == 0)
		return cli_usage(&page, "no log: pass a PATH");
	if (request->output == NULL)
		return cli_usage(&page, "no output directory: use -o DIR");
	return CLI_GO_ON;
}

int cmd_import(int argc, char **argv)
{
	struct request request = { .output = NULL };

	return cli_input_command(&page, &request, RECORDING_LIST_FOREIGN | RECORDING_TRACES_ALONE,
				 import_check, import_input, argc, argv);
}
