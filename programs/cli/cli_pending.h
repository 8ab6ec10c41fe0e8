/*
 * What must not stay when the command ends early: paths that are removed by ^C, SIGTERM, SIGHUP,
 * SIGQUIT, SIGPIPE and exit(). For cli_output.h; others want that one.
 */
#ifndef CLI_PENDING_H
#define CLI_PENDING_H

#include <stdbool.h>

struct cli_pending {
	struct cli_pending *next;	/* older */
	const struct cli_pending *tree; /* the directory it goes with; NULL: none */
	bool is_directory;
	char path[];
};

/* From now on signals remove what is pending, and a limit on file sizes ends nothing. Done with the first path;
 * for those who have none yet. */
void cli_pending_guard(void);

/* Before it is made: a moment later would be too late. */
struct cli_pending *cli_pending_add(const char *path, bool is_directory,
				    const struct cli_pending *tree);

/* It may stay, or is removed now; and with a tree all that belongs to it. NULL is fine. */
void cli_pending_drop(const struct cli_pending *pending, bool is_removed);

/* All paths, the newest first. */
const struct cli_pending *cli_pending_first(void);

/* A name that nothing has yet, in the directory of `path`. The caller frees it. */
char *cli_pending_name(const char *path);

/* The first `length` bytes of `first`, then the others. The caller frees it. */
char *cli_path_join(const char *first, int length, const char *between, const char *last);

#endif
