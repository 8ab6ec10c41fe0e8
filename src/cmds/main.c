/* The program `ringside`: finds the command, or the program that has it; help and version. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/pages.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/file_opener.h"
#include "common/text.h"
#include "output/sink.h"
#include "output/verdict_show.h"

/* Help for a program that may not be installed. CLI_GO_ON: run the program. */
static int explain(const struct cli_page *page, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			return cli_page_help(page);
		if (strcmp(argv[i], CLI_LIST_OPTIONS) == 0)
			return cli_page_list(page);
	}
	return CLI_GO_ON;
}

/*
 * Separate programs, so that ringside itself needs neither an HTTP library nor ncurses, and because most nodes of a
 * cluster need neither the benchmark nor the simulator. One that may not be installed has its help here.
 */
static int cmd_program(int argc, char **argv)
{
	static const struct {
		const char *name;
		const char *program;
		bool is_mode;		     /* its name is the program's first argument */
		const struct cli_page *page; /* NULL: the program explains itself */
	} programs[] = {
		{ "agent", "ringside-agent", false, &agent_page },
		{ "hub", "ringside-agent", true, &hub_page },
		{ "top", "ringside-top", false, &top_page },
		{ "bench", "ringside-bench", false, NULL },
		{ "model", "ringside-bench", true, NULL },
		{ "sim", "ringside-sim", false, NULL },
	};
	size_t i = 0;
	char **words;
	int code = CLI_GO_ON;

	while (strcmp(programs[i].name, argv[0]) != 0)
		i++;
	if (programs[i].page != NULL)
		code = explain(programs[i].page, argc, argv);
	if (code != CLI_GO_ON)
		return code;
	words = cli_realloc(NULL, ((size_t)argc + 2) * sizeof(*words));
	memcpy(words + 1, argv, ((size_t)argc + 1) * sizeof(*words));
	code = cli_become(programs[i].program, words + !programs[i].is_mode);
	free(words);
	return code;
}

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* NULL: not listed */
} commands[] = {
	{ "run", cmd_run, "run a job with the recorder enabled" },
	{ "env", cmd_env, "print the environment that enables the recorder, for job scripts" },
	{ "ls", cmd_ls, "list recorded processes" },
	{ "ps", cmd_ps, "list operations in flight and what they wait for" },
	{ "stacks", cmd_stacks, "show where processes are in their program" },
	{ "record", cmd_record, "time every operation of running processes for a while" },
	{ "top", cmd_program, "watch the jobs on this host live" },
	{ "report", cmd_report, "summarize communication time and flag problems" },
	{ "doctor", cmd_doctor, "diagnose hangs, stragglers and misconfiguration" },
	{ "diff", cmd_diff, "compare two runs and show what got slower" },
	{ "baseline", cmd_baseline, "save a job's speed as a baseline for later comparison" },
	{ "dump", cmd_dump, "write recorded operations as JSON lines" },
	{ "trace", cmd_trace, "write a timeline for a trace viewer" },
	{ "export", cmd_export, "export operations as a table: Parquet, CSV, JSON lines" },
	{ "import", cmd_import, "convert logs of other tools to trace files" },
	{ "bundle", cmd_bundle, "pack a job's recordings into one archive for a ticket" },
	{ "verify", cmd_verify, "check that recordings are complete and readable" },
	{ "self-check", cmd_self_check, "check that this machine is ready to record jobs" },
	{ "agent", cmd_program, "serve metrics and a live page of the jobs on this host" },
	{ "hub", cmd_program, "one verdict and one page for the jobs of a whole cluster" },
	{ "bench", cmd_program,
	  "benchmark NCCL; check health, find crossovers, compare profilers" },
	{ "model", cmd_program, "predict how long a collective should take" },
	{ "sim", cmd_program, "simulate an NCCL job (no GPU needed)" },
	{ "help", cmd_help, "explain a command or a runbook" },
	{ "version", cmd_version, "print the version" },
	{ "completions", cmd_completions, NULL },
};

/* Unlisted ones come last. */
const char *command_name(size_t number)
{
	return number < ARRAY_LENGTH(commands) && commands[number].summary ? commands[number].name
									   : NULL;
}

const char *command_summary(size_t number)
{
	return number < ARRAY_LENGTH(commands) ? commands[number].summary : NULL;
}

static int unknown_command(const char *name)
{
	const char *names[ARRAY_LENGTH(commands)];
	const char *nearest;

	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
		names[i] = commands[i].name;
	nearest = cli_nearest(name, names, ARRAY_LENGTH(names));
	if (nearest)
		cli_error("unknown command '%s', did you mean '%s'? See 'ringside help'", name,
			  nearest);
	else
		cli_error("unknown command '%s'; see 'ringside help'", name);
	return CLI_EXIT_USAGE;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int show_overview(void)
{
	struct sink sink;

	sink_init_fd(&sink, STDOUT_FILENO);
	sink_text(&sink, "usage: ringside COMMAND [OPTION...] [ARGUMENT...]\n\n"
			 "Flight recorder and diagnostics for NCCL.\n\n"
			 "commands:\n");
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
		if (commands[i].summary != NULL)
			sink_format(&sink, "  %-12s%s\n", commands[i].name, commands[i].summary);
	sink_text(&sink,
		  "\nexit codes:\n"
		  "  0  done; nothing is wrong\n"
		  "  1  trouble found\n"
		  "  2  wrong usage\n"
		  "  3  could not tell: nothing recorded, input unreadable, no GPU, no answer\n"
		  "\n'ringside help COMMAND' explains a command, with examples.\n");
	return cli_finish(&sink, CLI_EXIT_DONE);
}

/* ---- runbooks -------------------------------------------------------------------------------- */

static int show_runbook(const char *text, size_t length)
{
	struct sink sink;

	sink_init_fd(&sink, STDOUT_FILENO);
	sink_write(&sink, text, length);
	return cli_finish(&sink, CLI_EXIT_DONE);
}

/* ---- help ------------------------------------------------------------------------------------ */

static int cmd_help(int argc, char **argv)
{
	const struct command *command;
	char help_option[] = "--help";
	const char *runbook;
	size_t length;
	char **words;

	if (argc < 2 || argv[1][0] == '-')
		return show_overview();
	command = find_command(argv[1]);
	if (command == NULL) {
		runbook = runbook_find(argv[1], &length);
		return runbook ? show_runbook(runbook, length) : unknown_command(argv[1]);
	}
	if (command->run == cmd_help || command->run == cmd_version)
		return show_overview();
	/* "help bench health" is "bench health --help". */
	words = cli_realloc(NULL, ((size_t)argc + 1) * sizeof(*words));
	memcpy(words, argv + 1, ((size_t)argc - 1) * sizeof(*words));
	words[argc - 1] = help_option;
	words[argc] = NULL;
	return command->run(argc, words);
}

static const struct cli_option version_options[] = { CLI_OPTION_END };

static const struct cli_page version_page = {
	.name = "version",
	.operands = "",
	.about = "Prints the version.\n",
	.options = version_options,
};

static int cmd_version(int argc, char **argv)
{
	int code = cli_parse(&version_page, NULL, argc, argv);
	struct sink sink;

	if (code != CLI_GO_ON)
		return code;
	sink_init_fd(&sink, STDOUT_FILENO);
	sink_text(&sink, "ringside " RINGSIDE_VERSION "\n");
	return cli_finish(&sink, CLI_EXIT_DONE);
}

/*
 * A closed standard descriptor would be reused by the next socket or file, which would then receive output. The
 * replacement fails like a closed one.
 */
static void hold_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return;
}

int main(int argc, char **argv)
{
	const struct file_opener_settings patient = { .patience_ns = 2 * SECOND_NS };
	const struct command *command;

	hold_standard_descriptors();
	file_opener_begin(&patient);
	if (argc < 2) {
		cli_error("no command given; try 'ringside help'");
		return CLI_EXIT_USAGE;
	}
	if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
		return show_overview();
	if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0)
		return cmd_version(1, argv);
	command = find_command(argv[1]);
	if (command == NULL)
		return unknown_command(argv[1]);
	return command->run(argc - 1, argv + 1);
}
