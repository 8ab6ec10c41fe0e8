/*
 * The doctor's command line and its watch: what options become, which scans a watch makes, and which changes it reports.
 * Scans are played; the file is included for that.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define doctor_options_parse watch_included_parse
#define doctor_options_release watch_included_options_release
#define cmd_doctor watch_included_doctor
#include "cmds/doctor_case.h"

static int play_make(struct doctor_case *look, const struct doctor_options *options,
		     const struct doctor_yardstick *yardstick, int stop_fd);
static void play_release(struct doctor_case *look);
static int play_poll(struct pollfd *fds, nfds_t count, int wait_ms);
static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes);
static void play_watch_open(struct cli_host_watch *watch);
static void play_watch_close(struct cli_host_watch *watch);
static unsigned int play_width(void);

#define doctor_case_make play_make
#define doctor_case_release play_release
#define poll play_poll
#define cli_capture(capture, words, fd, timeout_s, most) \
	play_capture(capture, words, fd, timeout_s, most)
#define cli_host_watch_open play_watch_open
#define cli_host_watch_close play_watch_close
#define cli_width play_width
#include "cmds/cmd_doctor.c"
#undef doctor_case_make
#undef doctor_case_release
#undef poll
#undef cli_capture
#undef cli_host_watch_open
#undef cli_host_watch_close
#undef cli_width

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

static struct {
	int turn, last;
	int code, code_at; /* of a scan */
	int poll_error;
	const char *squeue;
} play;

/* A verdict in each scan, or not: "-". */
struct played_verdict {
	const char *titles[5];
	enum verdict_class class;
	enum verdict_severity severity;
	int64_t rank;
};

static const struct played_verdict verdicts_of[] = {
	{ { "rank 1 is slow", "rank 1 is slow", "rank 1 is slower", "-", "rank 1 is slow" },
	  VERDICT_SLOW_RANK,
	  VERDICT_WARNING,
	  1 },
	{ { "-", "rank 2 hangs", "rank 2 hangs", "rank 2 hangs", "-" },
	  VERDICT_NEVER_ISSUED,
	  VERDICT_ERROR,
	  2 },
	{ { "10% read", "20% read", "30% read", "40% read", "50% read" },
	  VERDICT_BLIND,
	  VERDICT_NOTE,
	  -1 },
	{ { "1 file missing", "2 files missing", "2 files missing", "2 files missing", "-" },
	  VERDICT_BLIND,
	  VERDICT_WARNING,
	  -1 },
};

static int play_make(struct doctor_case *look, const struct doctor_options *options,
		     const struct doctor_yardstick *yardstick, int stop_fd)
{
	*look = (struct doctor_case){ .options = options, .yardstick = yardstick };
	fprintf(stderr, "scan %d%s%s\n", play.turn, stop_fd == -1 ? "" : ", can be stopped",
		yardstick->host ? ", with its host" : "");
	verdicts_init(&look->verdicts);
	look->wall_ns = COMMAND_WALL + (uint64_t)play.turn * 10 * COMMAND_SECOND;
	for (size_t i = 0; i < ARRAY_LENGTH(verdicts_of); i++) {
		const struct played_verdict *from = &verdicts_of[i];
		struct verdict *verdict;

		if (from->titles[play.turn % 5][0] == '-')
			continue;
		verdict = verdicts_add(&look->verdicts, from->class, from->severity);
		verdict->rank = from->rank;
		text_copy(verdict->rule, sizeof(verdict->rule),
			  from->severity == VERDICT_NOTE ? "progress" : "");
		verdict_title(verdict, "%s", from->titles[play.turn % 5]);
	}
	return play.code_at == play.turn ? play.code : 0;
}

static void play_release(struct doctor_case *look)
{
	verdicts_release(&look->verdicts);
}

static int play_poll(struct pollfd *fds, nfds_t count, int wait_ms)
{
	if (count != 1 || fds->events != POLLIN || fds->fd < 0)
		abort();
	fprintf(stderr, "wait %d ms\n", wait_ms);
	errno = play.poll_error;
	if (play.turn++ == play.last)
		return 1;
	return play.poll_error ? -1 : 0;
}

static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes)
{
	*capture = (struct cli_capture){ .bytes = strdup(play.squeue) };
	for (; *words != NULL; words++)
		fprintf(stderr, "%s ", *words);
	fprintf(stderr, "(%d, %u s, %zu MiB%s%s)\n", fd, timeout_s, most_bytes >> 20,
		getenv("SQUEUE_ACCOUNT") ? ", of an account" : "",
		getenv("SQUEUE_USERS") ? ", of users" : "");
	return OK;
}

static void play_watch_open(struct cli_host_watch *watch)
{
	(void)watch;
}

static void play_watch_close(struct cli_host_watch *watch)
{
	(void)watch;
	fprintf(stderr, "host closed\n");
}

static unsigned int play_width(void)
{
	return 80;
}

static int program(int argc, char **argv)
{
	return watch_included_doctor(argc - 1, argv + 1);
}

static void begin(int last)
{
	memset(&play, 0, sizeof(play));
	play.last = last;
	play.code_at = -1;
	play.squeue = "";
}

static void watches(void)
{
	begin(4);
	command("doctor --watch --interval 7s");
	begin(4);
	command("doctor --watch --json");
	begin(1);
	play.poll_error = EINTR;
	command("doctor --watch --agents node1");
	begin(1);
	play.poll_error = EBADF;
	command("doctor --watch --agents node1");
	/* Nothing is recorded yet; then there is. */
	begin(1);
	play.code = CLI_EXIT_UNKNOWN;
	play.code_at = 0;
	command("doctor --watch");
	begin(2);
	play.code = CLI_EXIT_UNKNOWN;
	play.code_at = 1;
	command("doctor --watch");
	begin(2);
	play.code = CLI_EXIT_USAGE;
	play.code_at = 1;
	command("doctor --watch --agents node1");
	begin(2);
	play.code = FETCH_STOPPED;
	play.code_at = 1;
	command("doctor --watch --agents node1");
}

static void once(void)
{
	static const char *const lines[] = { "doctor",
					     "doctor --json",
					     "doctor x",
					     "doctor --agents node1",
					     "doctor --prometheus http://a",
					     "doctor --log x" };

	command_play.most_json = 30;
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		begin(0);
		play.turn = i == 0 ? 1 : 4;
		command(lines[i]);
	}
	begin(0);
	play.code_at = 0;
	play.code = 2;
	command("doctor");
}

/* ---- options ---------------------------------------------------------------------------------- */

static void show_options(const char *line)
{
	char *copy = strdup(line), *words[COMMAND_WORDS + 1] = { "doctor" };
	int count = command_split(copy, words + 1) + 1;
	struct doctor_options options;
	int code = watch_included_parse(&options, count, words);

	sink_format(&command_play.text, "=== %s: %d\n", line, code);
	sink_format(&command_play.text,
		    "paths %zu, logs %zu, agents %d %zu, hang %llu ms%s, peaks %.0f %.0f, job %s\n",
		    options.path_count, options.log_count, options.has_agents,
		    options.targets.count, (unsigned long long)options.hang_ns / 1000000,
		    options.is_hang_fixed ? " fixed" : "", options.peak_nvlink,
		    options.peak_network, options.chosen.job ? options.chosen.job : "any");
	for (size_t i = 0; i < options.path_count; i++)
		sink_format(&command_play.text, "path %s\n", options.paths[i]);
	for (size_t i = 0; i < options.log_count; i++)
		sink_format(&command_play.text, "log %s\n", options.logs[i]);
	for (size_t i = 0; i < options.targets.count && i < 5; i++)
		sink_format(&command_play.text, "agent %s\n", options.targets.list[i].name);
	watch_included_options_release(&options);
	free(copy);
}

static void all_options(void)
{
	static const char *const lines[] = {
		"a b",
		"a --log b c --log d",
		"--peak nvlink=450,net=50",
		"--peak net=0.5",
		"--peak nvlink=1000000",
		"--peak nvlinks=5",
		"--peak ne=5",
		"--peak netx=5",
		"--peak nvlink",
		"--hang 30s",
		"--agents node[1-3],other:80",
	};
	const size_t most = 4 << 20;
	char *text = malloc(most + 1);
	char line[600];

	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++)
		show_options(lines[i]);
	setenv("SQUEUE_ACCOUNT", "x", 1);
	setenv("SQUEUE_USERS", "x", 1);
	play.squeue = "4711+0|4711|RUNNING|node1\n4711+1|4712|RUNNING|node[2-3]\n";
	show_options("--slurm 4711");
	show_options("--slurm 4711 --job mine");
	play.squeue = "4711_3|4714|RUNNING|node1\n4711_4|4715|PENDING|\n";
	show_options("--slurm 4711_3");
	show_options("--slurm 123456789012345678901");
	show_options("--slurm 1234567890123456789012");
	show_options("--slurm 4711_");
	show_options("--slurm _3");
	/* A file of agents has less than 4 MiB. */
	snprintf(line, sizeof(line), "--agents @%s", command_path("list"));
	if (text == NULL)
		abort();
	memset(text, ' ', most + 1);
	memcpy(text, "node7\n", 6);
	for (size_t length = most - 1; length <= most; length++) {
		struct doctor_options of;
		char *words[] = { "doctor", "--agents", line + 9 };

		command_write("list", text, length);
		EXPECT_EQUAL(watch_included_parse(&of, 3, words), length < most ? -1 : 2);
		EXPECT_EQUAL(of.targets.count, length < most);
		watch_included_options_release(&of);
	}
	free(text);
}

int main(void)
{
	int before = dup(STDERR_FILENO), fd;
	size_t length;
	char *errors;

	command_begin();
	command_play.program = program;
	watches();
	once();
	fd = open(command_path("errors"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	all_options();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	errors = command_read(command_path("errors"), &length);
	sink_text(&command_play.text, "=== errors\n");
	command_note(errors);
	free(errors);
	EXPECT_THAT("options and watches",
		    command_expected("tests/unit/cmds/expected/doctor-watches"));
	return tap_done();
}
