#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_options.h"
#include "cmds/cli.h"
#include "cmds/cli_program.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "output/sink.h"
#include "top/top_options.h"

/* A program of its own: the tool runs where there is no HTTP library. */
static int cmd_agent(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			return cli_page_help(&agent_page);
	return cli_become("ringside-agent", "libmicrohttpd", argv);
}

/* A program of its own: the tool runs where there is no ncurses. */
static int cmd_top(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			return cli_page_help(&top_page);
	return cli_become("ringside-top", "ncurses", argv);
}

/* Programs of their own: nodes of a cluster can do without. */
static int cmd_sim(int argc, char **argv)
{
	(void)argc;
	return cli_become("ringside-sim", NULL, argv);
}

static int cmd_bench(int argc, char **argv)
{
	(void)argc;
	return cli_become("ringside-bench", NULL, argv);
}

/* A word of the benchmark's program. */
static int cmd_model(int argc, char **argv)
{
	char **words = cli_realloc(NULL, ((size_t)argc + 2) * sizeof(*words));

	memcpy(words + 1, argv, ((size_t)argc + 1) * sizeof(*words));
	return cli_become("ringside-bench", NULL, words);
}

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{ "run", cmd_run, "run a command with the recorder set up for NCCL" },
	{ "env", cmd_env, "print the lines that set the recorder up in a job script" },
	{ "ls", cmd_ls, "list the recorded processes" },
	{ "ps", cmd_ps, "list the operations in flight and what they wait for" },
	{ "record", cmd_record, "time every operation of running processes for a while" },
	{ "top", cmd_top, "watch the jobs of this machine on a live screen" },
	{ "report", cmd_report, "say where communication time went and what looks wrong" },
	{ "doctor", cmd_doctor, "say who is stuck, who is slow, what is wrong and what to do" },
	{ "diff", cmd_diff, "compare two runs: what became slower" },
	{ "baseline", cmd_baseline, "keep how fast a job was, to compare others with" },
	{ "dump", cmd_dump, "write recorded operations as JSON lines" },
	{ "trace", cmd_trace, "write a timeline for a trace viewer" },
	{ "export", cmd_export, "write recorded operations as a table: Parquet, CSV, JSON lines" },
	{ "import", cmd_import, "turn logs of other tools into trace files" },
	{ "bundle", cmd_bundle, "make one archive of a job for a ticket" },
	{ "verify", cmd_verify, "check that everything was recorded and can be read" },
	{ "agent", cmd_agent, "serve metrics and a live page of the jobs on this machine" },
	{ "bench", cmd_bench, "measure NCCL call by call; health, crossover, profilers compared" },
	{ "model", cmd_model, "say how long a collective should take" },
	{ "sim", cmd_sim, "play a job that behaves as NCCL does" },
	{ "help", cmd_help, "explain a command" },
	{ "version", cmd_version, "print the version" },
};

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
	sink_text(&sink,
		  "usage: ringside COMMAND [OPTION...] [ARGUMENT...]\n\n"
		  "See what NCCL does: record every operation, look at it live and later.\n\n"
		  "commands:\n");
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
		sink_format(&sink, "  %-10s%s\n", commands[i].name, commands[i].summary);
	sink_text(&sink, "\n'ringside help COMMAND' explains one of them, with examples.\n");
	return cli_finish(&sink, CLI_EXIT_DONE);
}

static int cmd_help(int argc, char **argv)
{
	const struct command *command;
	char help_option[] = "--help";
	char *words[3] = { NULL, help_option, NULL };

	if (argc < 2 || argv[1][0] == '-')
		return show_overview();
	command = find_command(argv[1]);
	if (command == NULL)
		return unknown_command(argv[1]);
	if (command->run == cmd_help || command->run == cmd_version)
		return show_overview();
	words[0] = argv[1];
	return command->run(2, words);
}

static int cmd_version(int argc, char **argv)
{
	struct sink sink;

	(void)argv;
	if (argc > 1) {
		cli_error("version takes no arguments");
		return CLI_EXIT_USAGE;
	}
	sink_init_fd(&sink, STDOUT_FILENO);
	sink_text(&sink, "ringside " RINGSIDE_VERSION "\n");
	return cli_finish(&sink, CLI_EXIT_DONE);
}

/* One that was closed would go to the next socket or file, which then is taken for the output. What stands
 * there instead refuses to be read or written, as a closed one does. */
static void hold_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return;
}

int main(int argc, char **argv)
{
	const struct command *command;

	hold_standard_descriptors();
	if (argc < 2) {
		cli_error("which command? See 'ringside help'");
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
