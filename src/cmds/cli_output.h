/* Output files and directories of commands. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>

#include "output/sink.h"

struct cli_pending; /* a path to remove if the command ends early */

/*
 * Output files are complete or absent.
 *
 * Until it is complete and on disk, a file has no name (O_TMPFILE), so nothing is left behind even after SIGKILL or a
 * power cut; then it replaces the old file in one step. If the file system does not support that (NFS) or fails to
 * name the file, and in directories of files, it has a temporary name in the same directory (".ringside-PID-N.part"),
 * which is removed on Ctrl-C, SIGTERM, SIGHUP, SIGQUIT, exit() or an error, but not after SIGKILL or a power cut.
 * Single-threaded.
 *
 *	if (cli_output_open(&output, path) != 0)
 *		return CLI_EXIT_UNKNOWN;
 *	sink_text(&output.sink, ...);
 *	return cli_output_commit(&output, exit_code);
 *
 * These functions report each failure once, in one line.
 */

struct cli_output {
	struct sink sink; /* write here */
	char *path;	  /* final name; "-": standard output */
	const struct cli_pending *pending;
	int fd;
	bool is_own_fd;
	bool is_in_tree;  /* moved with its tree */
	bool is_nameless; /* no name until it is complete */
};

/*
 * Begins a file. "-" is standard output, which is only flushed at the end; pipes, the terminal, /dev/null and /dev/full
 * are written directly, too. A symbolic link is followed and its target replaced. A read-only file is rejected even if
 * its directory is writable. Refused are files and pipes of another user, links that another user can change, and
 * devices. Returns 0, or after an error was reported CLI_EXIT_USAGE (refused) or CLI_EXIT_UNKNOWN; then *output needs no
 * release.
 */
int cli_output_open(struct cli_output *output, const char *path);

/* The same for text: "-" is cli_text(). */
int cli_output_open_text(struct cli_output *output, const char *path);

/*
 * Checks that it can be written, for commands that work long before they write. Leaves nothing behind. Returns as
 * cli_output_open().
 */
int cli_output_check(const char *path);

/*
 * Moves the complete file into place. Returns exit_code, or CLI_EXIT_UNKNOWN after an error was reported. Always
 * releases *output.
 */
int cli_output_commit(struct cli_output *output, int exit_code);

/* Discards the file silently. Allowed after a failed open or a commit. */
void cli_output_discard(struct cli_output *output);

/* Is this standard output on a terminal? Then binary formats are rejected and no progress is shown. */
bool cli_output_is_terminal(const char *path);

/*
 * A directory of files. They are written into a temporary directory next to it, which replaces it at the end. It may
 * exist if it is empty. If it is not and CLI_OUTPUT_FORCE is given, the new files are moved into it one by one: files
 * of the same name are replaced, others stay. It never contains a partial file, but briefly a mix of old and new
 * ones.
 */
enum cli_output_flag { CLI_OUTPUT_FORCE = 1u << 0 };

struct cli_tree {
	char *path;	 /* as given, without trailing '/' */
	char *temporary; /* the directory to write to */
	const struct cli_pending *pending;
	bool is_merged; /* at the end, move files one by one */
	/*
	 * Set by the caller, borrowed; NULL: none. When files are moved one by one, older files with this prefix are
	 * removed from directories that get new files.
	 */
	const char *replaces;
};

/*
 * Returns 0, or after an error was reported CLI_EXIT_USAGE (a directory of another user) or CLI_EXIT_UNKNOWN (not empty,
 * not a directory, cannot be created).
 */
int cli_tree_open(struct cli_tree *tree, const char *path, unsigned int flags);

/*
 * The path to write a file to, such as "job=7/rank=0/part-0.parquet": its directories are created, and it is moved or
 * removed with the tree. Flushing it to disk is up to the caller. NULL after an error was reported. The caller frees
 * it.
 */
char *cli_tree_path(struct cli_tree *tree, const char *name);

/* The same, opened; ended by cli_output_commit(). Errors show its final name. */
int cli_tree_file(struct cli_tree *tree, struct cli_output *output, const char *name);

/* As for files. */
int cli_tree_commit(struct cli_tree *tree, int exit_code);
void cli_tree_discard(struct cli_tree *tree);

#endif
