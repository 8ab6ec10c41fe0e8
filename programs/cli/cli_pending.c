/*
 * The newest path comes first, so that files go before their directories. A signal handler has no
 * other way to the list than a variable of this file; it changes only while those signals are
 * blocked.
 */
#include "programs/cli/cli_pending.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "programs/cli/cli_memory.h"

enum { NAMES_TRIED = 1000 };

static struct cli_pending *newest;
static unsigned int names_given;
static bool is_guarded;

static const int ending_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };

static void remove_one(const struct cli_pending *pending)
{
	if (pending->is_directory)
		rmdir(pending->path);
	else
		unlink(pending->path);
}

/* Also from the signal handler: nothing but system calls. */
static void remove_all(void)
{
	for (const struct cli_pending *at = newest; at != NULL; at = at->next)
		remove_one(at);
}

/* The signal comes again when this returns, with its default action: SA_RESETHAND put it back. */
static void end_early(int signal_number)
{
	int saved = errno;

	remove_all();
	raise(signal_number);
	errno = saved;
}

void cli_pending_guard(void)
{
	struct sigaction action = { .sa_handler = end_early, .sa_flags = (int)SA_RESETHAND };
	struct sigaction before;

	if (is_guarded)
		return;
	is_guarded = true;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_LENGTH(ending_signals); i++) {
		sigaction(ending_signals[i], NULL, &before);
		/* What nohup ignores stays ignored. */
		if (before.sa_handler == SIG_DFL)
			sigaction(ending_signals[i], &action, NULL);
	}
	/* A limit on file sizes is an error of write(), not an end. */
	signal(SIGXFSZ, SIG_IGN);
	atexit(remove_all);
}

static void block_signals(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LENGTH(ending_signals); i++)
		sigaddset(&set, ending_signals[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

struct cli_pending *cli_pending_add(const char *path, bool is_directory,
				    const struct cli_pending *tree)
{
	size_t bytes = strlen(path) + 1;
	struct cli_pending *pending = cli_realloc(NULL, sizeof(*pending) + bytes);
	sigset_t before;

	cli_pending_guard();
	pending->tree = tree;
	pending->is_directory = is_directory;
	memcpy(pending->path, path, bytes);
	block_signals(&before);
	pending->next = newest;
	newest = pending;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pending;
}

void cli_pending_drop(const struct cli_pending *pending, bool is_removed)
{
	struct cli_pending **at = &newest, *gone;
	bool is_over = pending == NULL;
	sigset_t before;

	block_signals(&before);
	/* What belongs to a tree is newer than the tree itself. */
	while (*at != NULL && !is_over) {
		gone = *at;
		is_over = gone == pending;
		if (!is_over && gone->tree != pending) {
			at = &gone->next;
			continue;
		}
		if (is_removed)
			remove_one(gone);
		*at = gone->next;
		free(gone);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

const struct cli_pending *cli_pending_first(void)
{
	return newest;
}

char *cli_path_join(const char *first, int length, const char *between, const char *last)
{
	size_t bytes = (size_t)length + strlen(between) + strlen(last) + 1;
	char *path = cli_realloc(NULL, bytes);

	text_format(path, bytes, "%.*s%s%s", length, first, between, last);
	return path;
}

char *cli_pending_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[64], *whole = NULL;
	struct stat st;

	/* One that was killed may have had the same number: in containers most have. */
	for (int i = 0; i < NAMES_TRIED && (i == 0 || lstat(whole, &st) == 0); i++) {
		free(whole);
		text_format(name, sizeof(name), ".ringside-%d-%u.part", (int)getpid(),
			    names_given++);
		whole = cli_path_join(path, slash ? (int)(slash - path + 1) : 0, "", name);
	}
	return whole;
}
