/* ringside stacks: every form of its output, of stacks that are played. The file is included for that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/cli.h"
#include "cmds/cli_input.h"
#include "cmds/commands.h"
#include "doctor/doctor.h"

static void play_take(struct stacks_target *targets, size_t count,
		      const struct stacks_options *options);
static int play_command(const struct cli_page *page, void *request, unsigned int flags,
			int (*check)(void *context), int (*run)(void *context), int argc,
			char **argv);
static int play_choose(struct cli_input *input, const struct report_filter *chosen,
		       const struct cli_page *page);
static int play_complain(const struct cli_input *input, bool is_brief);

#define cmd_stacks included_stacks
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
