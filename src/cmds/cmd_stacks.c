/* Where processes of this host are in their program: all threads, or one line each. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/text.h"
#include "doctor/doctor.h"
#include "output/json.h"
#include "output/recorded.h"

enum { STACKS_PIDS_MAX = 256 };

struct request {
	struct cli_input input;
	struct report_filter chosen;
	int64_t pids[STACKS_PIDS_MAX];
	size_t pid_count;
	bool has_no_stop;
	bool has_any_user;
	bool is_brief;
	bool is_json;
	struct stacks_target *targets;
	const struct recording_process **processes; /* of each target; NULL: not recorded */
	size_t count;
};

static int take_pid(const struct cli_said *said)
{
	struct request *request = said->target;
	const char *number = said->value + (said->value[0] == '@');
	int64_t pid;

	if (text_number(number, 1, INT32_MAX, &pid) != OK)
		return cli_usage(said->page, "'%s' is not a process: use @PID", said->value);
	if (request->pid_count == STACKS_PIDS_MAX)
		return cli_usage(said->page, "more than %d processes", STACKS_PIDS_MAX);
	request->pids[request->pid_count++] = pid;
	return 0;
}

static const struct cli_option options[] = {
	{ 'b', "brief", NULL, "one line for each process: where its main thread is",
	  CLI_FLAG(struct request, is_brief) },
	{ 0, "no-stop", NULL,
	  "do not stop processes, not even for a moment: no native frames (eu-stack, gdb)",
	  CLI_FLAG(struct request, has_no_stop) },
	{ 0, "any-user", NULL, "as root, also read processes of other users",
	  CLI_FLAG(struct request, has_any_user) },
	CLI_OPTIONS_PROCESSES(struct request),
	CLI_OPTION_JSON(struct request),
	CLI_OPTIONS_SHOWING,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside stacks --brief", "where each recorded process is, one line each" },
	{ "ringside stacks @4711", "all threads of one process, recorded or not" },
	{ "ringside stacks --job llm-7 --rank 5", "one rank of a job" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "stacks",
	.operands = "[@PID...]",
	.about =
		"Shows where processes of this host are in their program: Python frames if py-spy "
		"is installed, native frames if eu-stack or gdb is, and what the kernel says about "
		"each thread: state, CPU time over a second, system call and the file or "
		"connection it waits for. Without @PID, all recorded processes that run here.\n"
		"py-spy does not stop the process; eu-stack and gdb stop it, for at most 100 ms. "
		"Processes of other users are not read. RINGSIDE_STACKS=0 in the environment of a "
		"process forbids it. docs/STACKS.md has the details.\n",
	.options = options,
	CLI_OPERANDS(struct request, input, take_pid),
	.examples = examples,
};

/* ---- output ---------------------------------------------------------------------------------- */

static void write_name(struct sink *sink, const struct request *request, size_t at)
{
	const struct recording_process *process = request->processes[at];

	if (process != NULL)
		recorded_process_here(sink, process);
	else
		sink_format(sink, "pid %" PRId64, request->targets[at].pid);
}

static void write_thread(struct sink *sink, const struct stack_thread *thread)
{
	char state[240];

	stack_say_state(thread, state, sizeof(state));
	if (thread->tid > 0)
		sink_format(sink, "  thread %" PRId64 " %s", thread->tid, thread->name);
	else
		sink_format(sink, "  thread %s", thread->name[0] ? thread->name : "(unknown)");
	sink_format(sink, "%s: %s", thread->is_main ? " (main)" : "", state[0] ? state : "?");
	if (thread->cpu_percent >= 0)
		sink_format(sink, ", %d%% CPU", thread->cpu_percent);
	if (thread->owns_gil)
		sink_text(sink, ", holds the GIL");
	if (thread->kernel[0] != '\0' && thread->state != 'R')
		sink_format(sink, ", kernel: %s", thread->kernel);
	sink_text(sink, "\n");
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct stack_frame *frame = &thread->frames[i];
		const char *function = frame->function[0] ? frame->function : "?";

		if (frame->file[0] != '\0')
			sink_format(sink, "      %s:%u in %s\n", frame->file, frame->line,
				    function);
		else
			sink_format(sink, "      %s\n", function);
	}
}

static void write_text(struct sink *sink, const struct request *request)
{
	for (size_t i = 0; i < request->count; i++) {
		const struct stacks_target *target = &request->targets[i];
		char place[STACK_PLACE];

		stack_say(&target->stack, place, sizeof(place));
		write_name(sink, request, i);
		if (place[0] != '\0')
			sink_format(sink, ": %s\n", place);
		else
			sink_format(sink, ": could not tell%s%s\n", target->why[0] ? ": " : "",
				    target->why);
		if (request->is_brief)
			continue;
		if (place[0] != '\0' && target->why[0] != '\0')
			sink_format(sink, "  (%s)\n", target->why);
		for (size_t t = 0; t < target->stack.thread_count; t++)
			write_thread(sink, &target->stack.threads[t]);
		if (target->stack.threads_left_out > 0)
			sink_format(sink, "  %zu more threads\n", target->stack.threads_left_out);
		if (i + 1 < request->count)
			sink_text(sink, "\n");
	}
}

static void put_thread(struct json *json, const struct stack_thread *thread)
{
	char state[2] = { thread->state, '\0' };

	json_object(json);
	json_put_known_signed(json, "tid", thread->tid > 0, thread->tid);
	json_put_string(json, "name", thread->name);
	json_put_bool(json, "is_main", thread->is_main);
	json_put_bool(json, "owns_gil", thread->owns_gil);
	json_put_text_or_null(json, "state", state);
	json_put_natural_or_null(json, "cpu_percent", thread->cpu_percent);
	json_put_text_or_null(json, "syscall", thread->syscall);
	json_put_text_or_null(json, "waits_for", thread->waits_for);
	json_put_text_or_null(json, "kernel", thread->kernel);
	json_put_array(json, "frames");
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct stack_frame *frame = &thread->frames[i];

		json_object(json);
		json_put_text_or_null(json, "file", frame->file);
		json_put_known(json, "line", frame->line > 0, frame->line);
		json_put_text_or_null(json, "function", frame->function);
		json_put_string(json, "language", frame->is_python ? "python" : "native");
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

static void write_json(struct sink *sink, const struct request *request)
{
	struct json json;

	json_begin(&json, sink);
	json_put_array(&json, "processes");
	for (size_t i = 0; i < request->count; i++) {
		const struct stacks_target *target = &request->targets[i];
		const struct recording_process *process = request->processes[i];
		char place[STACK_PLACE];

		stack_say(&target->stack, place, sizeof(place));
		json_object(&json);
		json_put_signed(&json, "pid", target->pid);
		json_put_unsigned(&json, "start_ticks", target->start_ticks);
		json_put_natural_or_null(&json, "rank", process ? process->rank : -1);
		json_put_text_or_null(&json, "job", process ? process->job : "");
		json_put_text_or_null(&json, "place", place);
		json_put_text_or_null(&json, "problem", target->why);
		json_put_array(&json, "threads");
		for (size_t t = 0; t < target->stack.thread_count && !request->is_brief; t++)
			put_thread(&json, &target->stack.threads[t]);
		json_end(&json);
		json_put_unsigned(&json, "threads_left_out", target->stack.threads_left_out);
		json_end(&json);
	}
	json_end(&json);
	json_finish(&json);
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct recording_process *find_recorded(const struct recording *recording, int64_t pid)
{
	for (size_t i = 0; i < recording->count; i++)
		if (recording->processes[i]->pid_here == pid &&
		    recording->processes[i]->life == RECORDING_ALIVE)
			return recording->processes[i];
	return NULL;
}

static void add_target(struct request *request, int64_t pid,
		       const struct recording_process *process)
{
	size_t count = request->count;

	request->targets = cli_realloc(request->targets, (count + 1) * sizeof(*request->targets));
	request->processes =
		cli_realloc(request->processes, (count + 1) * sizeof(*request->processes));
	stacks_target_init(&request->targets[count], pid, process ? process->start_ticks : 0);
	request->processes[count] = process;
	request->count++;
}

static int choose_targets(struct request *request)
{
	struct recording *recording = &request->input.recording;
	int code;

	for (size_t i = 0; i < request->pid_count; i++)
		add_target(request, request->pids[i], find_recorded(recording, request->pids[i]));
	if (request->pid_count > 0)
		return 0;
	if (recording->count == 0)
		return cli_input_complain(&request->input, false) | CLI_EXIT_UNKNOWN;
	code = cli_input_choose_processes(&request->input, &request->chosen, &page);
	for (size_t i = 0; i < recording->count && code == 0; i++) {
		const struct recording_process *process = recording->processes[i];

		if (process->life == RECORDING_ALIVE && process->pid_here > 0)
			add_target(request, process->pid_here, process);
	}
	if (code == 0 && request->count == 0)
		return cli_error("none of the recorded processes runs on this host");
	return code;
}

static int show(struct request *request)
{
	const struct stacks_options how = { .may_stop = !request->has_no_stop,
					    .any_user = request->has_any_user };
	bool has_any = false;
	struct sink sink;

	stacks_take(request->targets, request->count, &how);
	for (size_t i = 0; i < request->count; i++)
		has_any |= request->targets[i].stack.thread_count > 0;
	cli_begin(&sink, request->is_json);
	if (request->is_json)
		write_json(&sink, request);
	else
		write_text(&sink, request);
	return cli_finish(&sink, has_any ? CLI_EXIT_DONE : CLI_EXIT_UNKNOWN);
}

static int stacks_run(void *context)
{
	struct request *request = context;
	int code = choose_targets(request);

	if (code == 0)
		code = show(request);
	for (size_t i = 0; i < request->count; i++)
		stacks_target_release(&request->targets[i]);
	free(request->targets);
	free(request->processes);
	return code;
}

int cmd_stacks(int argc, char **argv)
{
	struct request request = { .is_json = false };

	return cli_input_command(&page, &request, 0, NULL, stacks_run, argc, argv);
}
