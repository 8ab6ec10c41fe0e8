/* `ringside ls`: recorded processes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/file.h"
#include "common/nccl_interface.h"
#include "common/text.h"
#include "format/region_read.h"
#include "output/json.h"
#include "output/recorded.h"
#include "output/report.h"
#include "output/table.h"
#include "recording/recording.h"

struct request {
	struct cli_input input;
	struct report_filter chosen;
	bool is_json;
};

static const struct cli_option options[] = {
	CLI_OPTION_JSON(struct request),
	CLI_OPTIONS_READING(struct request),
	CLI_OPTIONS_SHOWING,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside ls", "every process recorded on this host, live and dead" },
	{ "ringside ls traces/", "the processes of these trace files" },
	{ "ringside ls --json | jq '.processes[] | select(.lost > 0)'",
	  "processes that lost operations" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "ls",
	.operands = "[PATH...]",
	.about = "Lists recorded processes, live and dead: job, run, rank, host and GPUs, how much "
		 "was "
		 "recorded and lost, when they started, their user and command, where the "
		 "recording is kept, and which operations are "
		 "timed.\n" CLI_INPUT_ABOUT CLI_INPUT_NONE "\n",
	.options = options,
	CLI_OPERANDS(struct request, input, cli_input_take),
	.examples = examples,
};

enum { COMMAND_SHOWN = 60, COMMAND_MOST = 4 << 20 };

/* Path and size of a process's trace, even if it was not read. */
struct trace_place {
	char path[1024];
	uint64_t bytes;
	bool is_there;
	int error; /* why not */
};

static void find_trace(const struct recording_process *process, struct trace_place *trace)
{
	uid_t owner = (uid_t)process->owner;
	struct stat st;

	*trace = (struct trace_place){ .error = ENOENT };
	if (process->file_count > 0) {
		text_copy(trace->path, sizeof(trace->path), process->files[0].path);
		for (size_t i = 0; i < process->file_count; i++)
			trace->bytes += process->files[i].bytes;
		trace->is_there = true;
	} else if (process->foreign) {
		text_copy(trace->path, sizeof(trace->path), process->foreign->path);
		trace->bytes = process->foreign->bytes;
		trace->is_there = true;
	} else if (recording_info_path(process, "trace", trace->path, sizeof(trace->path)) &&
		   trace->path[0]) {
		trace->is_there = file_examine(owner, trace->path, &st);
		trace->error = errno;
		trace->bytes = trace->is_there ? (uint64_t)st.st_size : 0;
	}
}

static uint64_t in_flight(const struct recording_process *process)
{
	uint64_t count = 0;

	for (size_t i = 0; i < process->flight_count; i++)
		count += process->flights[i].op.state != OP_DONE;
	return count;
}

/* By name only on the host where it ran: another host may give the number to someone else. */
static void say_user(const struct recording_process *process, char *text, size_t size)
{
	const struct passwd *user = NULL;
	char uid[16], here[256] = "";

	gethostname(here, sizeof(here) - 1);
	if (!recording_info(process, "uid", uid, sizeof(uid)) || uid[0] == '\0') {
		text_copy(text, size, "-");
		return;
	}
	if (strcmp(here, process->host) == 0)
		user = getpwuid((uid_t)strtoul(uid, NULL, 10));
	text_copy(text, size, user ? user->pw_name : uid);
}

/* The command line is not recorded: it may contain secrets. The system shows it while the process lives. */
static void say_command(const struct recording_process *process, char *text, size_t size)
{
	char path[64], exe[256], *words = NULL;
	const char *name;
	size_t length = 0;
	struct stat st;

	text_format(path, sizeof(path), "/proc/%" PRId64 "/cmdline", process->pid_here);
	if (process->pid_here > 0)
		words = file_text_of((uid_t)process->owner, path, false, COMMAND_MOST, &length,
				     &st);
	for (size_t i = 0; i < length; i++)
		if (words[i] == '\0')
			words[i] = ' ';
	while (length > 0 && words[length - 1] == ' ')
		words[--length] = '\0';
	if (length > 0) {
		text_format(text, size, "%.*s", (int)size - 1, words);
		free(words);
		return;
	}
	free(words);
	recording_info(process, "exe", exe, sizeof(exe));
	name = strrchr(exe, '/') ? strrchr(exe, '/') + 1 : exe;
	text_copy(text, size, name[0] ? name : "-");
}

static void add_row(struct report_grid *grid, const struct recording_process *process,
		    bool has_runs)
{
	char gpus[64], number[UNITS_TEXT], text[COMMAND_SHOWN];
	struct recording_times times;

	recorded_gpus(process, gpus, sizeof(gpus));
	recording_times(process, &times);
	report_grid_cellf(grid, "%" PRId64, recording_pid(process));
	report_grid_cell(grid, recording_life_name(process->life));
	report_grid_cell(grid, process->job[0] ? process->job : "-");
	if (has_runs)
		report_grid_cellf(grid, "%u/%u", process->run, process->runs);
	if (process->rank < 0)
		report_grid_cell(grid, "-");
	else if (process->world_size > 0)
		report_grid_cellf(grid, "%" PRId64 "/%" PRId64, process->rank, process->world_size);
	else
		report_grid_cellf(grid, "%" PRId64, process->rank);
	report_grid_cell(grid, process->host[0] ? process->host : "-");
	report_grid_cell(grid, gpus[0] ? gpus : "-");
	report_grid_cellf(grid, "%zu/%" PRIu64, recorded_live_comms(process),
			  recorded_all_comms(process));
	report_grid_cell(grid, units_count(number, process->recorded + process->flight_count));
	report_grid_cell(grid, units_count(number, recorded_lost(process)));
	report_grid_cell(grid, process->mode[0] ? process->mode : "-");
	report_grid_cell(grid, times.in_effect[0] ? times.in_effect : "-");
	report_grid_cell(grid, process->started_wall_ns > 0
				       ? units_date(number, process->started_wall_ns)
				       : "-");
	say_user(process, text, sizeof(text));
	report_grid_cell(grid, text);
	say_command(process, text, sizeof(text));
	report_grid_cell(grid, text);
}

static void add_notes(struct report_grid *grid, const struct recording_process *process)
{
	char reason[RECORDING_REASON], kind[32], bytes[UNITS_TEXT], region[1024];
	struct recording_times times;
	struct trace_place trace;

	recording_info(process, "region_kind", kind, sizeof(kind));
	recording_info(process, "region", region, sizeof(region));
	recording_info(process, "region_reason", reason, sizeof(reason));
	if (process->region_path)
		report_grid_note(grid, "region: %s%s%s%s%s", process->region_path,
				 kind[0] ? ", " : "", kind, reason[0] ? ", because " : "", reason);
	else if (strcmp(kind, "offline") == 0)
		report_grid_note(grid, "region: none, %s", reason);
	else if (reason[0])
		report_grid_note(grid, "region: gone; was %s, because %s", kind, reason);
	if (process->pid_here > 0 && process->pid_here != process->pid)
		report_grid_note(grid, "in a container%s%s, as pid %" PRId64,
				 process->container_id[0] ? " " : "", process->container_id,
				 process->pid);
	find_trace(process, &trace);
	if (trace.is_there)
		report_grid_note(grid, "%s: %s, %s%s%s%s", process->foreign ? "log" : "trace",
				 trace.path, units_bytes(bytes, trace.bytes),
				 process->foreign ? ", " : "",
				 process->foreign ? process->foreign->format : "",
				 process->file_count > 1 ? ", and more files" : "");
	else if (trace.path[0])
		report_grid_note(grid, "trace: %s (%s)", trace.path,
				 trace.error == ENOENT ? "missing" : file_error_text(trace.error));
	recording_times(process, &times);
	if (strcmp(times.in_effect, "off") == 0)
		report_grid_note(grid, "operations are not timed%s%s", times.reason[0] ? ": " : "",
				 times.reason);
}

static int write_text(const struct cli_input *input, struct sink *sink, bool is_quiet)
{
	const struct recording *recording = &input->recording;
	struct report_grid grid;
	bool has_runs = false;
	enum status status;

	for (size_t i = 0; i < recording->count; i++)
		has_runs |= recording->processes[i]->runs > 1;
	report_grid_init(&grid);
	grid.keeps_empty = true;
	report_grid_column(&grid, "PID", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "STATE", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "JOB", TABLE_LEFT, 6, 0);
	if (has_runs)
		report_grid_column(&grid, "RUN", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "RANK", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "HOST", TABLE_LEFT, 6, 1);
	report_grid_column(&grid, "GPU", TABLE_LEFT, 3, 5);
	report_grid_column(&grid, "COMMS", TABLE_RIGHT, 0, 7);
	report_grid_column(&grid, "OPERATIONS", TABLE_RIGHT, 0, 3);
	report_grid_column(&grid, "LOST", TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "MODE", TABLE_LEFT, 0, 8);
	report_grid_column(&grid, "TIMES", TABLE_LEFT, 0, 9);
	report_grid_column(&grid, "STARTED (UTC)", TABLE_LEFT, 0, 2);
	report_grid_column(&grid, "USER", TABLE_LEFT, 0, 4);
	report_grid_column(&grid, "COMMAND", TABLE_LEFT, 10, 6);
	for (size_t i = 0; i < recording->count; i++) {
		add_row(&grid, recording->processes[i], has_runs);
		if (!is_quiet)
			add_notes(&grid, recording->processes[i]);
	}
	status = report_grid_write(&grid, sink, cli_width(), NULL);
	report_grid_release(&grid);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return 0;
}

static void put_comms(struct json *json, const struct recording_process *process)
{
	json_put_array(json, "communicators");
	for (size_t i = 0; i < process->comm_count; i++) {
		const struct recording_comm *comm = &process->comms[i];

		json_object(json);
		recorded_comm_json(json, comm->info.id, comm);
		json_put_bool(json, "is_finalized", comm->info.flags & COMM_FLAG_FINALIZED);
		json_put_unsigned(json, "interface", comm->info.interface);
		json_put_number_or_null(json, "gpu", comm->info.gpu);
		json_put_text_or_null(json, "gpu_uuid", comm->info.gpu_uuid);
		json_put_text_or_null(json, "gpu_bus", comm->info.gpu_bus);
		if (comm->has_counts)
			json_put_unsigned(json, "issued", comm->counts.issued);
		else
			json_put_null(json, "issued");
		json_end(json);
	}
	json_end(json);
}

static void put_info(struct json *json, const struct recording_process *process, const char *key,
		     const char *info_key)
{
	char value[1024];

	recording_info(process, info_key, value, sizeof(value));
	json_put_text_or_null(json, key, value);
}

/* Recorded environment variables; nothing if there are none. */
static void put_environment(struct json *json, const struct recording_process *process)
{
	char key[128], value[1024];
	bool is_open = false;
	size_t at = 0;

	while (info_next(process->info, process->info_bytes, &at, key, sizeof(key), value,
			 sizeof(value))) {
		if (strncmp(key, "env.", 4) != 0)
			continue;
		if (!is_open)
			json_put_object(json, "environment");
		is_open = true;
		json_put_string(json, key + 4, value);
	}
	if (is_open)
		json_end(json);
}

static void put_process(struct json *json, const struct recording_process *process)
{
	struct trace_place trace;

	find_trace(process, &trace);
	json_object(json);
	recorded_process_json(json, process);
	json_put_number_or_null(json, "pid_here", process->pid_here);
	json_put_text_or_null(json, "container_id", process->container_id);
	json_put_text_or_null(json, "pod_uid", process->pod_uid);
	json_put_number_or_null(json, "local_rank", process->local_rank);
	json_put_number_or_null(json, "world_size",
				process->world_size > 0 ? process->world_size : -1);
	json_put_unsigned(json, "run", process->run);
	json_put_unsigned(json, "runs", process->runs);
	json_put_time_or_null(json, "started_ns", process->started_wall_ns);
	put_info(json, process, "uid", "uid");
	put_info(json, process, "exe", "exe");
	json_put_string(json, "state", recording_life_name(process->life));
	json_put_text_or_null(json, "mode", process->mode);
	json_put_unsigned(json, "interface", process->interface);
	json_put_string(json, "nccl", op_interface_releases(process->interface));
	put_info(json, process, "version", "version");
	json_put_unsigned(json, "recorded", process->recorded);
	json_put_unsigned(json, "in_flight", in_flight(process));
	json_put_unsigned(json, "lost", recorded_lost(process));
	json_put_unsigned(json, "communicators_live", recorded_live_comms(process));
	json_put_unsigned(json, "communicators_all", recorded_all_comms(process));
	json_put_string(json, "region", process->region_path);
	put_info(json, process, "region_kind", "region_kind");
	put_info(json, process, "region_reason", "region_reason");
	recorded_times_json(json, process);
	put_info(json, process, "kernel_events", "kernel_events");
	put_info(json, process, "kernel_events_reason", "kernel_events_reason");
	json_put_text_or_null(json, "trace", trace.path);
	if (trace.is_there)
		json_put_unsigned(json, "trace_bytes", trace.bytes);
	else
		json_put_null(json, "trace_bytes");
	put_environment(json, process);
	put_comms(json, process);
	json_end(json);
}

static void write_json(const struct cli_input *input, struct sink *sink)
{
	struct json json;

	json_begin(&json, sink);
	json_put_array(&json, "processes");
	for (size_t i = 0; i < input->recording.count; i++)
		put_process(&json, input->recording.processes[i]);
	json_end(&json);
	report_json_put_troubles(&json, &input->recording);
	json_finish(&json);
}

static int list_processes(void *context)
{
	struct request *request = context;
	struct cli_input *input = &request->input;
	int complaint = cli_input_complain(input, false), exit_code;
	struct sink sink;

	exit_code = cli_input_choose_processes(input, &request->chosen, &page);
	if (exit_code != 0)
		return exit_code;
	cli_begin(&sink, request->is_json);
	if (request->is_json)
		write_json(input, &sink);
	else if (input->recording.count > 0)
		write_text(input, &sink, cli_is_quiet());
	return cli_finish(&sink, complaint);
}

int cmd_ls(int argc, char **argv)
{
	struct request request = { .is_json = false };

	return cli_input_command(&page, &request, 0, NULL, list_processes, argc, argv);
}
