#include "programs/cli/bench_recall.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench_read.h"
#include "bench/run_inside.h"
#include "cmds/cli.h"

enum { RECALL_STEP = 1 << 20, RECALL_MOST = 1 << 30 };

/* NULL after the reason was told. */
static char *read_all(const char *path, size_t *length)
{
	int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0, room = 0;
	char *text = NULL;
	ssize_t got = -1;

	while (fd != -1) {
		if (room - used < RECALL_STEP) {
			room = room * 2 + RECALL_STEP;
			text = cli_realloc(text, room);
		}
		got = read(fd, text + used, RECALL_STEP);
		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0 || used + (size_t)got > RECALL_MOST)
			break;
		used += (size_t)got;
	}
	if (got != 0) {
		cli_error("%s: %s", path, got > 0 ? "larger than 1 GiB" : strerror(errno));
		free(text);
		text = NULL;
	}
	if (fd > STDIN_FILENO)
		close(fd);
	*length = used;
	return text;
}

static int tell(const char *path, enum status status, const struct bench_read_problem *problem)
{
	switch (status) {
	case ERR_UNKNOWN:
		return cli_error("%s: not a result of 'ringside bench ... --json'", path);
	case ERR_VERSION:
		return cli_error("%s: written by a newer version: %s", path, problem->text);
	case ERR_NO_SPACE:
		cli_no_memory();
	default:
		return cli_error("%s, line %" PRIu64 ": %s", path, problem->line,
				 problem->text[0] != '\0' ? problem->text
							  : "damaged, or no measurement in it");
	}
}

int bench_recall(struct bench_run *run, const char *path)
{
	struct bench_read_problem problem = { .line = 1 };
	enum status status;
	const char *at;
	size_t length, size;
	char *text;

	bench_run_init(run);
	text = read_all(path, &length);
	if (text == NULL)
		return CLI_EXIT_TROUBLE;
	status = run_inside(text, length, &at, &size);
	if (status == OK)
		status = bench_read(run, at, size, &problem);
	free(text);
	return status == OK ? 0 : tell(path, status, &problem);
}

int bench_recall_check(const struct cli_page *page, const char *from, int measuring)
{
	const char *name = NULL;

	if (from == NULL || measuring == 0)
		return 0;
	for (const struct cli_option *option = page->options; option->name != NULL; option++)
		if (option->id == measuring)
			name = option->name;
	return cli_usage(page, "%s%s does not go with --from: nothing is measured then",
			 name != NULL ? "--" : "", name != NULL ? name : "a function");
}
