/* Adds the doctor's verdicts and the README, and prints the summary. */
#include "cmds/bundle_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "common/clock.h"
#include "common/text.h"
#include "doctor/doctor.h"
#include "output/json.h"
#include "output/recorded.h"

enum { DOCTOR_SECONDS = 300, DOCTOR_MOST = 16 * 1024 * 1024 };

/* ---- the doctor ------------------------------------------------------------------------------- */

/* Replace the path of the descriptor, which means nothing to readers. */
static void name_source(struct cli_capture *got)
{
	static const char from[] = "/proc/self/fd/3", to[] = "snapshots/";
	char *at = got->bytes;

	while (at && (at = strstr(at, from)) != NULL) {
		memcpy(at, to, sizeof(to) - 1);
		memmove(at + sizeof(to) - 1, at + sizeof(from) - 1,
			strlen(at + sizeof(from) - 1) + 1);
		got->length -= sizeof(from) - sizeof(to);
	}
}

/*
 * Runs the doctor as a child process on the snapshots alone, so that it sees the same as readers of the archive.
 * That something could not be judged is a result, too.
 */
static void ask_doctor(struct bundle_archive *archive, const char *name, const char *about,
		       const char *how, uint64_t hang_ns, int snapshots)
{
	char hang[40];
	const char *words[] = {
		"/proc/self/exe", "doctor", how, "/proc/self/fd/3", NULL, NULL, NULL
	};
	struct cli_capture got;

	text_format(hang, sizeof(hang), "%" PRIu64 "ms", hang_ns / 1000000);
	if (hang_ns > 0) {
		words[4] = "--hang";
		words[5] = hang;
	}
	if (cli_capture(&got, words, snapshots, DOCTOR_SECONDS, DOCTOR_MOST) == OK &&
	    (got.exit_code == 0 || got.exit_code == 1 || got.exit_code == CLI_EXIT_UNKNOWN) &&
	    got.length > 0) {
		name_source(&got);
		bundle_add(archive, name, about, got.bytes, got.length);
	} else {
		bundle_gap(archive, name, "%s", got.why[0] ? got.why : "no output");
	}
	if (got.is_cut)
		bundle_gap(archive, name, "truncated after %d MiB", DOCTOR_MOST / 1024 / 1024);
	free(got.bytes);
}

/* The doctor's verdicts on the snapshots, as text and as JSON. */
static void bundle_doctor(struct bundle_archive *archive, const struct bundle_request *request,
			  int snapshots)
{
	if (snapshots == -1)
		return;
	ask_doctor(archive, "doctor.txt", "the doctor's verdicts on the snapshots", "--all",
		   request->hang_ns, snapshots);
	ask_doctor(archive, "doctor.json", "the same as JSON", "--json", request->hang_ns,
		   snapshots);
}

/* ---- stacks ----------------------------------------------------------------------------------- */

/*
 * Before the snapshots, so that these have them. The file has one line for each process; what is not known about it is
 * there, too.
 */
static void bundle_stacks(struct bundle_archive *archive, struct recording *recording,
			  const struct bundle_request *request)
{
	const struct stacks_options options = { .may_stop = request->has_native,
						.any_user = request->has_any_user };
	struct sink sink;

	if (request->is_remote || request->has_no_stacks || stacks_are_off())
		return;
	if (stacks_of_recording(recording, NULL, NULL, &options) == 0)
		return;
	sink_init_memory(&sink);
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		if (process->stack == NULL)
			continue;
		recorded_process_here(&sink, process);
		sink_format(&sink, ": %s\n", process->stack);
	}
	bundle_add_sink(archive, "stacks.txt", "where processes of this host are in their program",
			&sink);
}

/* ---- README.txt ------------------------------------------------------------------------------- */

static void write_files(struct sink *sink, const struct bundle_lines *files)
{
	char bytes[UNITS_TEXT];

	sink_text(sink, "Files\n\n");
	for (size_t i = 0; i < files->count; i++)
		sink_format(sink, "  %s (%s)\n      %s\n", files->list[i].name,
			    units_bytes(bytes, files->list[i].bytes), files->list[i].text);
}

static void write_gaps(struct sink *sink, const struct bundle_lines *gaps)
{
	sink_text(sink, "\nMissing, and why\n\n");
	for (size_t i = 0; i < gaps->count; i++)
		sink_format(sink, "  %s\n      %s\n", gaps->list[i].name, gaps->list[i].text);
	if (gaps->count == 0)
		sink_text(sink, "  Nothing.\n");
}

/* README.txt: the files, and what is missing. */
static void bundle_readme(struct bundle_archive *archive, const struct bundle_request *request,
			  const struct recording *recording)
{
	char host[256] = "?", time[UNITS_TEXT];
	const char *slash = strrchr(request->path, '/');
	const char *name = slash ? slash + 1 : request->path;
	struct sink sink;

	gethostname(host, sizeof(host) - 1);
	sink_init_memory(&sink);
	sink_format(&sink,
		    "A bundle of ringside " RINGSIDE_VERSION ", made on %s at %s.\n"
		    "It covers %zu recorded %s: operations in flight and the last %zu operations "
		    "of each,\n"
		    "the doctor's verdicts, and the state of this machine.\n\n",
		    host, units_wall_time(time, clock_system_ns(CLOCK_REALTIME)), recording->count,
		    text_which(recording->count, "process", "processes"), request->operations);
	if (strcmp(name, "-") == 0)
		name = "FILE";
	sink_format(&sink,
		    "Read it with\n\n  ringside doctor %s     diagnose hangs and stragglers\n"
		    "  ringside ps %s         list operations in flight\n"
		    "  ringside report %s     summarize the time of the last operations\n\n",
		    name, name, name);
	write_files(&sink, &archive->files);
	write_gaps(&sink, &archive->gaps);
	sink_text(
		&sink,
		"\nThis bundle contains names of hosts, jobs, communicators and network "
		"interfaces, process IDs and file paths,\nand the environment variables listed in "
		"environment.txt, except those whose name or value looks like a\nsecret, and "
		"names of files and functions of the program. It contains\nno communicated data, "
		"no command lines and no values of variables.\n");
	bundle_add_sink(archive, "README.txt", "this file", &sink);
}

enum { BUNDLE_OPERATIONS = 20000 };
#define BUNDLE_MOST (UINT64_C(256) << 20)

struct command_line {
	struct cli_input input;
	struct report_filter chosen;
	struct bundle_request request;
	enum bundle_packing packing;
	struct bundle_agents agents;
	bool has_agents;
	bool is_json;
};

static int take_ras(const struct cli_said *said)
{
	struct command_line *line = said->target;

	if (said->value != NULL && said->value[0] == '\0')
		return cli_usage(said->page, "--ras '' is not HOST:PORT");
	line->request.ras = said->value ? said->value : "";
	return 0;
}

/* Passed on to the doctor, which parses it. */
static int take_for_agents(const struct cli_said *said)
{
	static const char *const words[] = { "--agents", "--timeout", "--auth", "--cacert",
					     "--insecure" };
	struct command_line *line = said->target;

	line->has_agents |= strcmp(said->option->name, "agents") == 0;
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		if (strcmp(words[i] + 2, said->option->name) == 0)
			bundle_agents_say(&line->agents, words[i], said->value);
	return 0;
}

static const struct cli_option options[] = {
	{ 'o', "output", "FILE",
	  "archive to write: .tar, .tar.gz or .tar.zst; - for standard output",
	  CLI_TEXT(struct command_line, request.path) },
	{ 0, "operations", "N", "include the last N operations of each process (default 20000)",
	  CLI_U64(struct command_line, request.operations, 0, 10000000) },
	{ 0, "most", "SIZE",
	  "total size limit of trace files and regions, newest first (default 256MiB)",
	  CLI_SIZE(struct command_line, request.most), .like = "is not a size like 256MiB" },
	{ 0, "regions", NULL, "include the raw regions",
	  CLI_FLAG(struct command_line, request.has_regions) },
	{ 0, "no-traces", NULL, "leave trace files out",
	  CLI_CLEAR(struct command_line, request.has_traces) },
	{ 0, "hang", "TIME",
	  "doctor: report a hang after this long without progress (default 20s, "
	  "or RINGSIDE_HANG_AFTER of the job)",
	  CLI_TIME(struct command_line, request.hang_ns, 1, 0),
	  .like = "is not a time like 30s or 5m" },
	{ 0, "ras", "ADDRESS",
	  "host:port of NCCL's RAS (default NCCL_RAS_ADDR, else localhost:28028)",
	  CLI_CALL_ALL(take_ras) },
	{ 0, "no-ras", NULL, "do not query NCCL's RAS", CLI_CALL_ALL(take_ras) },
	{ 0, "ras-diagnostics", NULL,
	  "let NCCL 2.31 and later also check GPUs, links and NICs of all its ranks",
	  CLI_FLAG(struct command_line, request.has_ras_diagnostics) },
	{ 0, "agents", "LIST",
	  "query these agents: host[:port], URLs, ranges like node[001-064], @FILE with one per "
	  "line",
	  CLI_CALL_ALL(take_for_agents) },
	{ 0, "timeout", "TIME", "timeout per agent (default 5s)", CLI_CALL_ALL(take_for_agents) },
	{ 0, "auth", "FILE", "credentials file with one line: basic NAME:PASSWORD or bearer TOKEN",
	  CLI_CALL_ALL(take_for_agents) },
	{ 0, "cacert", "FILE", "CA certificates to trust instead of the system's",
	  CLI_CALL_ALL(take_for_agents) },
	{ 0, "insecure", NULL, "accept any certificate", CLI_CALL_ALL(take_for_agents) },
	{ 0, "no-stacks", NULL, "do not look where processes are in their program",
	  CLI_FLAG(struct command_line, request.has_no_stacks) },
	{ 0, "native", NULL,
	  "also show native frames of processes (eu-stack or gdb); stops each for up to 100 ms",
	  CLI_FLAG(struct command_line, request.has_native) },
	{ 0, "any-user", NULL, "as root, also look where processes of other users are",
	  CLI_FLAG(struct command_line, request.has_any_user) },
	CLI_OPTIONS_PROCESSES(struct command_line),
	CLI_OPTION_JSON(struct command_line),
	CLI_OPTION_QUIET,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside bundle -o hang.tar.zst", "everything about the jobs on this host" },
	{ "ringside bundle traces/ -o job.tar.gz", "a job that left trace files" },
	{ "sudo ringside bundle --regions -o hang.tar.gz", "all users' jobs, with raw regions" },
	{ "ringside bundle --agents node[001-064] -o hang.tar.zst",
	  "a job on many nodes, through their agents" },
	{ "ringside doctor hang.tar.zst", "diagnose it anywhere" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "bundle",
	.operands = "[PATH...]",
	.about =
		"Packs everything about a job into one archive for a ticket: a snapshot of each "
		"process, the doctor's verdicts, trace files, the environment without secrets, "
		"versions, kernel and network counters, and the state that NCCL's RAS reports. Its "
		"README describes each file, and what could not be read and why. The job is not "
		"touched. docs/EXPORT.md has the details.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	CLI_OPERANDS(struct command_line, input, cli_input_take),
	.examples = examples,
};

static int bundle_check(struct command_line *line)
{
	const char *path = line->request.path;

	if (path == NULL || path[0] == '\0')
		return cli_usage(&page, "no output file: use -o FILE.tar.gz");
	if (!bundle_packing_of(path, &line->packing))
		return cli_usage(
			&page, "unknown archive format '%s': use .tar, .tar.gz or .tar.zst", path);
	if (line->has_agents && line->input.path_count > 0)
		return cli_usage(&page, "PATH and --agents are two sources: give one");
	if (!line->has_agents && line->agents.count > 0)
		return cli_usage(&page, "%s is for agents: also pass --agents LIST",
				 line->agents.words[0]);
	line->request.is_remote = line->has_agents;
	line->request.has_traces &= !line->has_agents;
	line->request.has_regions &= !line->has_agents;
	if (cli_output_is_terminal(path))
		return cli_usage(&page, "an archive is not for a terminal: use -o FILE.tar.gz");
	return 0;
}

/* ---- what was done --------------------------------------------------------------------------- */

static void write_lines(struct json *json, const char *key, const struct bundle_lines *lines,
			bool is_gaps)
{
	json_put_array(json, key);
	for (size_t i = 0; i < lines->count; i++) {
		json_object(json);
		json_put_string(json, is_gaps ? "what" : "name", lines->list[i].name);
		json_put_string(json, is_gaps ? "why" : "about", lines->list[i].text);
		if (!is_gaps)
			json_put_unsigned(json, "bytes", lines->list[i].bytes);
		json_end(json);
	}
	json_end(json);
}

static void write_json(struct sink *sink, const struct command_line *line,
		       const struct bundle_archive *archive, size_t processes)
{
	struct json json;

	json_begin(&json, sink);
	json_put_string(&json, "path", line->request.path);
	json_put_unsigned(&json, "processes", processes);
	json_put_unsigned(&json, "bytes", archive->bytes);
	write_lines(&json, "files", &archive->files, false);
	write_lines(&json, "missing", &archive->gaps, true);
	json_finish(&json);
}

static void write_text(struct sink *sink, const struct command_line *line,
		       const struct bundle_archive *archive, size_t processes)
{
	char bytes[UNITS_TEXT];

	sink_format(sink, "%zu files about %zu %s in %s (%s before packing)\n",
		    archive->files.count, processes, text_which(processes, "process", "processes"),
		    line->request.path, units_bytes(bytes, archive->bytes));
	if (archive->gaps.count > 0)
		sink_format(sink, "%zu %s missing; see " BUNDLE_PREFIX "README.txt.\n",
			    archive->gaps.count,
			    text_which(archive->gaps.count, "thing is", "things are"));
}

static int bundle_summary(const struct command_line *line, const struct bundle_archive *archive,
			  size_t processes, int exit_code)
{
	struct sink sink;

	/* Standard output has the archive. */
	if (strcmp(line->request.path, "-") == 0)
		return exit_code;
	sink_init_fd(&sink, STDOUT_FILENO);
	if (line->is_json)
		write_json(&sink, line, archive, processes);
	else
		write_text(&sink, line, archive, processes);
	return cli_finish(&sink, exit_code);
}

/* ---------------------------------------------------------------------------------------------- */

/* Every process that hangs or was killed leaves a truncated trace file: all of it is included. */
static bool is_gap(const struct recording_trouble *trouble)
{
	const struct recording_process *process = trouble->process;

	if (trouble->kind != RECORDING_CUT || process == NULL)
		return true;
	for (size_t i = 0; i < process->file_count; i++)
		if (strcmp(process->files[i].path, trouble->path) == 0)
			return process->files[i].is_snapshot;
	return true;
}

static void bundle_fill(struct bundle_archive *archive, const struct command_line *line,
			struct cli_input *input)
{
	struct recording *recording = &input->recording;
	bool *clean = cli_realloc(NULL, (recording->count + 1) * sizeof(*clean));
	int snapshots = -1;

	for (size_t i = 0; i < recording->trouble_count; i++)
		if (is_gap(&recording->troubles[i]))
			bundle_gap(archive, recording->troubles[i].path, "%s",
				   recording->troubles[i].what);
	bundle_stacks(archive, recording, &line->request);
	if (!line->has_agents && line->input.path_count == 0)
		bundle_facts(archive, recording);
	bundle_snapshots(archive, recording, &line->request, clean, &snapshots);
	bundle_doctor(archive, &line->request, snapshots);
	bundle_environment(archive, recording);
	bundle_node(archive, recording);
	bundle_ras(archive, line->request.ras, line->request.has_ras_diagnostics);
	bundle_raw(archive, recording, &line->request, clean);
	bundle_readme(archive, &line->request, recording);
	if (snapshots != -1)
		close(snapshots);
	free(clean);
}

static int bundle_run(struct command_line *line)
{
	struct cli_input *input = &line->input;
	int complaint = CLI_EXIT_DONE, exit_code;
	struct bundle_archive archive;

	/* The state of the node is useful even if nothing was recorded. */
	if (input->path_count > 0 || input->recording.trouble_count > 0)
		complaint = cli_input_complain(input, false);
	if (input->recording.count == 0 && input->path_count > 0)
		return complaint;
	exit_code = cli_input_choose_processes(input, &line->chosen, &page);
	if (exit_code != 0)
		return exit_code;
	exit_code = bundle_open(&archive, line->request.path, line->packing);
	if (exit_code != 0)
		return exit_code;
	if (line->has_agents) {
		exit_code = bundle_read_agents(&archive, &line->agents, line->request.operations,
					       &input->recording);
		if (exit_code != 0) {
			bundle_release(&archive);
			return exit_code;
		}
		exit_code = cli_input_choose_processes(input, &line->chosen, &page);
		if (exit_code != 0) {
			bundle_release(&archive);
			return exit_code;
		}
	}
	bundle_fill(&archive, line, input);
	exit_code = bundle_commit(&archive, complaint);
	/* A failure was reported already. */
	if (exit_code == complaint)
		exit_code = bundle_summary(line, &archive, input->recording.count, exit_code);
	bundle_release(&archive);
	return exit_code;
}

int cmd_bundle(int argc, char **argv)
{
	struct command_line line = { .request = { .operations = BUNDLE_OPERATIONS,
						  .most = BUNDLE_MOST,
						  .has_traces = true } };
	int exit_code;

	cli_input_init(&line.input);
	exit_code = cli_parse(&page, &line, argc, argv);
	if (exit_code == CLI_GO_ON) {
		exit_code = bundle_check(&line);
		if (exit_code == 0 && !line.has_agents)
			exit_code = cli_input_read(&line.input, RECORDING_WITH_TRACES);
		if (exit_code == 0)
			exit_code = bundle_run(&line);
	}
	cli_input_release(&line.input);
	return exit_code;
}
