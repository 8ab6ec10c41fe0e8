#include "programs/cli/cli_progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"

enum { PROGRESS_LINE = 160 };
#define PROGRESS_FIRST_NS UINT64_C(1000000000)
#define PROGRESS_AGAIN_NS UINT64_C(200000000)

/* A line must fit the terminal, or it is written anew below itself. */
static size_t terminal_width(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void put(struct cli_progress *progress, const char *text, size_t length)
{
	/* A terminal that is gone is no reason to stop, nor to try again. */
	if (write(progress->fd, text, length) != (ssize_t)length)
		progress->is_on = false;
}

void cli_progress_start(struct cli_progress *progress, const char *what, const char *unit,
			uint64_t total)
{
	const char *terminal = getenv("TERM");

	*progress = (struct cli_progress){
		.what = what, .unit = unit, .total = total, .fd = STDERR_FILENO
	};
	progress->began_ns = clock_system_ns(CLOCK_MONOTONIC);
	progress->next_ns = progress->began_ns + PROGRESS_FIRST_NS;
	progress->is_on = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

/* "  export  43 %  12 of 28 operations, 7 s left" */
static void write_line(char *line, size_t size, const struct cli_progress *progress,
		       uint64_t now_ns)
{
	uint64_t passed = now_ns - progress->began_ns, seconds;
	char done[UNITS_TEXT], total[UNITS_TEXT], left[UNITS_TEXT];
	double part;

	units_count(done, progress->done);
	if (progress->total == 0 || progress->done > progress->total) {
		text_format(line, size, "  %s  %s %s", progress->what, done, progress->unit);
		return;
	}
	part = (double)progress->done / (double)progress->total;
	text_format(line, size, "  %s  %2.0f %%  %s of %s %s", progress->what, part * 100, done,
		    units_count(total, progress->total), progress->unit);
	if (progress->done == 0)
		return;
	/* Whole seconds: more would only flicker. */
	seconds = (uint64_t)((double)passed / part - (double)passed) / 1000000000 + 1;
	if (seconds < 60)
		text_format(left, sizeof(left), "%d s", (int)seconds);
	else
		units_duration(left, seconds * 1000000000);
	text_format(line + strlen(line), size - strlen(line), ", %s left", left);
}

void cli_progress_at_time(struct cli_progress *progress, uint64_t done, uint64_t now_ns)
{
	char line[PROGRESS_LINE], text[PROGRESS_LINE + 8];
	size_t width;

	progress->done = done;
	if (!progress->is_on || now_ns < progress->next_ns)
		return;
	progress->next_ns = now_ns + PROGRESS_AGAIN_NS;
	write_line(line, sizeof(line), progress, now_ns);
	width = terminal_width(progress->fd);
	if (strlen(line) >= width)
		line[width - 1] = '\0';
	text_format(text, sizeof(text), "\r%s\033[K", line);
	progress->is_shown = true;
	put(progress, text, strlen(text));
}

void cli_progress_at(struct cli_progress *progress, uint64_t done)
{
	if (progress->is_on)
		cli_progress_at_time(progress, done, clock_system_ns(CLOCK_MONOTONIC));
}

bool cli_progress_fraction(double fraction, void *context)
{
	struct cli_progress *progress = context;

	cli_progress_at(progress, (uint64_t)(fraction * (double)progress->total));
	return true;
}

void cli_progress_hide(struct cli_progress *progress)
{
	static const char clear[] = "\r\033[K";

	if (progress->is_shown && progress->is_on)
		put(progress, clear, sizeof(clear) - 1);
	progress->is_shown = false;
}

void cli_progress_end(struct cli_progress *progress)
{
	cli_progress_hide(progress);
	progress->is_on = false;
}
