/* ringside stacks: every form of its output, of stacks that are played. The file is included for that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cli_input.h"
#include "cmds/commands.h"
#include "doctor/doctor.h"

static void play_take(struct stacks_target *targets, size_t count,
		      const struct stacks_options *how);
static int play_command(const struct cli_page *page_of, void *context, unsigned int flags,
			int (*check)(void *request), int (*run)(void *request), int argc,
			char **argv);
static int play_choose(struct cli_input *input, const struct report_filter *chosen,
		       const struct cli_page *page_of);
static int play_complain(const struct cli_input *input, bool is_brief);

#define cmd_stacks shown_included_stacks
#define stacks_take play_take
#define cli_input_command play_command
#define cli_input_choose_processes play_choose
#define cli_input_complain play_complain
#include "cmds/cmd_stacks.c"
#undef cmd_stacks
#undef stacks_take
#undef cli_input_command
#undef cli_input_choose_processes
#undef cli_input_complain

#include "tests/support/command_play.h"
#include "tests/tap.h"

static struct {
	size_t processes; /* recorded */
	int choose_code;
} play;

static struct recording_process processes[] = {
	{ .job = "train", .rank = 3, .pid_here = 41, .life = RECORDING_ALIVE, .start_ticks = 7 },
	{ .job = "", .rank = -1, .pid_here = 42, .life = RECORDING_ALIVE, .start_ticks = 8 },
	{ .job = "train", .rank = 5, .pid_here = 43, .life = RECORDING_KILLED },
	{ .job = "train", .rank = 6, .pid_here = -1, .life = RECORDING_ALIVE },
	{ .job = "train", .rank = 0, .pid_here = 44, .life = RECORDING_ALIVE },
};

static struct stack_frame frames[] = {
	{ "train.py", "step", 88, true },
	{ "", "pthread_cond_wait", 0, false },
	{ "loop.c", "run", 12, false },
};
static struct stack_frame odd_frames[] = { { "loop.c", "", 13, false } };

/* Threads of the first process; the others have fewer. */
static const struct stack_thread threads[] = {
	{ .tid = 41,
	  .name = "python",
	  .is_main = true,
	  .owns_gil = true,
	  .frames = frames,
	  .frame_count = 3,
	  .state = 'S',
	  .syscall = "futex",
	  .waits_on = -1,
	  .kernel = "futex_wait",
	  .cpu_percent = 0,
	  .is_python = true },
	{ .tid = 45,
	  .name = "worker",
	  .state = 'R',
	  .waits_on = -1,
	  .kernel = "not shown",
	  .cpu_percent = 99,
	  .is_in_user_code = true },
	{ .tid = 0, .name = "", .waits_on = -1, .cpu_percent = -1 },
	{ .tid = 0,
	  .name = "nameless",
	  .state = 'D',
	  .syscall = "read",
	  .waits_on = 3,
	  .waits_for = "a pipe",
	  .frames = odd_frames,
	  .frame_count = 1,
	  .cpu_percent = -1 },
};

/* 41 has all threads, 42 one and a reason, 43 one and some that were left out, 44 only a reason, others nothing. */
static void play_take(struct stacks_target *targets, size_t count, const struct stacks_options *how)
{
	fprintf(stderr, "%zu processes, %s, %s\n", count, how->may_stop ? "may stop" : "no stop",
		how->any_user ? "any user" : "own");
	for (size_t i = 0; i < count; i++) {
		struct stacks_target *target = &targets[i];
		size_t of = target->pid == 41			     ? ARRAY_LENGTH(threads)
			    : target->pid == 42 || target->pid == 43 ? 1
								     : 0;

		target->stack.threads = calloc(of + 1, sizeof(threads[0]));
		if (target->stack.threads == NULL)
			abort();
		memcpy(target->stack.threads, threads, of * sizeof(threads[0]));
		target->stack.thread_count = of;
		target->stack.has_python = true;
		target->stack.threads_left_out = target->pid == 43 ? 2 : 0;
		for (size_t t = 0; t < of; t++) {
			target->stack.threads[t].frames = NULL;
			if (threads[t].frame_count == 0)
				continue;
			target->stack.threads[t].frames =
				calloc(threads[t].frame_count, sizeof(frames[0]));
			memcpy(target->stack.threads[t].frames, threads[t].frames,
			       threads[t].frame_count * sizeof(frames[0]));
		}
		if (target->pid == 42 || target->pid == 44)
			text_copy(target->why, sizeof(target->why), "py-spy is not installed");
	}
}

static int play_command(const struct cli_page *page_of, void *context, unsigned int flags,
			int (*check)(void *request), int (*run)(void *request), int argc,
			char **argv)
{
	static struct recording_process *list[ARRAY_LENGTH(processes)];
	struct request *request = context;
	int code = cli_parse(page_of, request, argc, argv);

	if (code != CLI_GO_ON)
		return code;
	if (flags != 0 || check != NULL)
		abort();
	for (size_t i = 0; i < ARRAY_LENGTH(processes); i++)
		list[i] = &processes[i];
	request->input.recording.processes = list;
	request->input.recording.count = play.processes;
	return run(context);
}

static int play_choose(struct cli_input *input, const struct report_filter *chosen,
		       const struct cli_page *page_of)
{
	(void)input, (void)chosen, (void)page_of;
	return play.choose_code;
}

static int play_complain(const struct cli_input *input, bool is_brief)
{
	(void)input;
	fprintf(stderr, "nothing is recorded%s\n", is_brief ? ", in brief" : "");
	return 0;
}

static int program(int argc, char **argv)
{
	return shown_included_stacks(argc - 1, argv + 1);
}

int main(void)
{
	static const char *const lines[] = {
		"stacks",
		"stacks --brief",
		"stacks --json",
		"stacks --json --brief",
		"stacks @43 @41",
		"stacks 44 --json",
		"stacks @44",
		"stacks --no-stop --any-user @7",
		NULL,
	};
	char many[4096] = "stacks --brief";

	command_begin();
	command_play.program = program;
	play.processes = ARRAY_LENGTH(processes);
	command_each(lines);
	play.choose_code = 2;
	command("stacks");
	play.choose_code = 0;
	play.processes = 0;
	command("stacks");
	/* Neither runs on this host. */
	processes[0].life = RECORDING_ENDED;
	play.processes = 1;
	command("stacks");
	EXPECT_THAT("every form", command_expected("tests/unit/cmds/expected/stacks"));
	for (int i = 0; i < 60; i++)
		text_append(many, sizeof(many), " @7");
	command_run(program, "ringside", many);
	EXPECT_THAT("many processes",
		    command_play.code == 3 && strncmp(command_play.err, "60 ", 3) == 0);
	return tap_done();
}
