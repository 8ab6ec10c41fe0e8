/* On a terminal: colors, the pager, the width of lines, progress. The terminal is one of our own. */
#include <sys/ioctl.h>

#include "cli/cli.h"
#include "tests/support/command_play.h"
#include "tests/tap.h"

/* Its other end is the master. */
static int master;

static int open_terminal(unsigned short rows, unsigned short columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };
	int slave;

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master == -1 || grantpt(master) != 0 || unlockpt(master) != 0)
		return -1;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	if (slave != -1)
		ioctl(slave, TIOCSWINSZ, &size);
	return slave;
}

/* What was written to it, with ESC for the character of that name. */
static void note_terminal(const char *heading)
{
	char bytes[4096];
	ssize_t length;

	sink_format(&command_play.text, "=== %s\n", heading);
	fcntl(master, F_SETFL, O_NONBLOCK);
	while ((length = read(master, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < length; i++) {
			if (bytes[i] == '\033')
				sink_text(&command_play.text, "ESC");
			else if (bytes[i] != '\r')
				sink_byte(&command_play.text, bytes[i]);
			else if (i + 1 == length || bytes[i + 1] != '\n')
				sink_text(&command_play.text, "<CR>");
		}
	close(master);
}

/* A command whose standard output is the terminal. */
static void on_terminal(const char *line, unsigned short rows, unsigned short columns)
{
	int slave = open_terminal(rows, columns), status = 0;
	char *copy = strdup(line), *words[COMMAND_WORDS + 1] = { (char[]){ "ringside" } };
	int count = command_split(copy, words + 1) + 1;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		command_redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
		command_redirect(STDERR_FILENO, "/dev/null", O_WRONLY);
		if (dup2(slave, STDOUT_FILENO) == -1 || chdir(scratch_dir.path) != 0)
			_exit(99);
		exit(cmds_main(count, words));
	}
	if (waitpid(child, &status, 0) != child)
		abort();
	note_terminal(line);
	close(slave);
	sink_format(&command_play.text, "exit %d\n", WEXITSTATUS(status));
	free(copy);
}

static void commands_on_a_terminal(void)
{
	command_make("lossy");
	setenv("TERM", "xterm", 1);
	setenv("RINGSIDE_PAGER", "sed s/^/paged:/", 1);
	on_terminal("ls lossy", 4, 100);
	on_terminal("ls lossy", 3, 100);
	on_terminal("ls lossy", 0, 100);
	on_terminal("ls --no-pager lossy", 2, 70);
	on_terminal("ls --color never lossy", 2, 100);
	setenv("RINGSIDE_PAGER", "", 1);
	on_terminal("ls lossy", 2, 100);
	setenv("RINGSIDE_PAGER", "cat", 1);
	on_terminal("ls lossy", 2, 100);
	setenv("RINGSIDE_PAGER", "/no/such/pager", 1);
	on_terminal("ls lossy", 2, 100);
	setenv("RINGSIDE_PAGER", "true", 1);
	on_terminal("ls lossy", 2, 100);
	/* Ctrl-C in the pager. */
	setenv("RINGSIDE_PAGER", "kill -INT $PPID; sed s/^/still:/", 1);
	on_terminal("ls lossy", 2, 100);
	unsetenv("RINGSIDE_PAGER");
	setenv("PAGER", "sed s/^/other:/", 1);
	on_terminal("ls lossy", 2, 100);
	setenv("PAGER", "cat", 1);
	setenv("NO_COLOR", "1", 1);
	on_terminal("ls lossy", 9, 100);
	setenv("NO_COLOR", "", 1);
	on_terminal("ls lossy", 9, 100);
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	on_terminal("ls lossy", 9, 100);
	on_terminal("export lossy -f parquet -o -", 9, 100);
	on_terminal("bundle lossy -o -", 9, 100);
	EXPECT_THAT("commands on a terminal", command_expected("tests/unit/cli/expected/terminal"));
}

/* Of work that began at 0; standard error is the terminal. */
static void progress_is_one_line(void)
{
	int slave = open_terminal(24, 60), before = dup(STDERR_FILENO);
	struct cli_progress progress, other;
	uint64_t second = UINT64_C(1000000000);

	setenv("TERM", "xterm", 1);
	dup2(slave, STDERR_FILENO);
	cli_progress_start(&progress, "export", "operations", 2000);
	other = progress;
	EXPECT(progress.is_on && progress.next_ns == progress.began_ns + second);
	progress.began_ns = 0;
	progress.next_ns = second;
	cli_progress_at_time(&progress, 10, second - 1);
	EXPECT(!progress.is_shown && progress.done == 10);
	cli_progress_at_time(&progress, 500, second);
	EXPECT(progress.is_shown && progress.next_ns == second + second / 5);
	cli_progress_at_time(&progress, 501, second + second / 5 - 1);
	cli_progress_at_time(&progress, 1000, 2 * second);
	cli_progress_at_time(&progress, 0, 3 * second);
	cli_progress_at_time(&progress, 20, 4 * second);
	cli_progress_at_time(&progress, 200, 6600 * second / 1000);
	cli_progress_at_time(&progress, 2000, 7 * second);
	cli_progress_at_time(&progress, 2001, 8 * second);
	cli_progress_hide(&progress);
	cli_progress_hide(&progress);
	progress.total = 0;
	cli_progress_at_time(&progress, 12345678, 9 * second);
	progress.unit = "operations of a kind whose name is far too long for this line";
	cli_progress_at_time(&progress, 7, 10 * second);
	cli_progress_end(&progress);
	cli_progress_at_time(&progress, 8, 11 * second);
	/* Of this one, the time passes: it is not shown to anybody. */
	other.next_ns = 0;
	other.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	EXPECT(cli_progress_fraction(0.25, &other) && other.done == 500 && other.is_shown);
	close(other.fd);
	setenv("TERM", "dumb", 1);
	cli_progress_start(&other, "export", "operations", 2000);
	EXPECT(!other.is_on);
	unsetenv("TERM");
	cli_progress_start(&other, "export", "operations", 2000);
	EXPECT(!other.is_on);
	dup2(before, STDERR_FILENO);
	close(before);
	setenv("TERM", "xterm", 1);
	note_terminal("progress");
	close(slave);
	sink_text(&command_play.text, "\n");
	EXPECT_THAT("progress", command_expected("tests/unit/cli/expected/progress"));
}

int main(void)
{
	int slave;

	command_begin();
	slave = open_terminal(24, 80);
	if (slave == -1)
		return tap_skip_all("no terminals here");
	close(slave);
	close(master);
	commands_on_a_terminal();
	progress_is_one_line();
	return tap_done();
}
