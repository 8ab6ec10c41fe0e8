/* Files and directories that a command writes. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>

#include "output/sink.h"

struct cli_pending; /* something that has to be removed when the command ends early */

/*
 * Files that a command writes: whole or not at all.
 *
 * Until it is whole, and on the disk, a file has no name at all (O_TMPFILE), so whatever ends the command, SIGKILL
 * and a power cut, too, leaves nothing; then it takes the place of what was there, in one step. Where the file
 * system has no such files (NFS), or gives them no name in the end, and in directories of files, it has a
 * temporary name beside its place (".ringside-PID-N.part"), which ^C, SIGTERM, SIGHUP, SIGQUIT, exit() or an error
 * remove; SIGKILL and a power cut leave it behind. For one thread.
 *
 *	if (cli_output_open(&output, path) != 0)
 *		return CLI_EXIT_UNKNOWN;
 *	sink_text(&output.sink, ...);
 *	return cli_output_commit(&output, exit_code);
 *
 * What fails is reported once, in one line, by these functions.
 */

struct cli_output {
	struct sink sink; /* write here */
	char *path;	  /* the name it will have; "-": standard output */
	const struct cli_pending *pending;
	int fd;
	bool is_own_fd;
	bool is_in_tree;  /* moved when its tree is */
	bool is_nameless; /* until it is whole */
};

/*
 * Begin a file. "-" is standard output, which is flushed at the end and nothing else; a device or a
 * pipe is written directly, too. A link is followed: what it leads to is replaced. A file that may
 * not be written is refused although its directory would allow it. 0, or CLI_EXIT_UNKNOWN after the
 * reason was reported; *output then needs no release.
 */
int cli_output_open(struct cli_output *output, const char *path);

/* The same for text that people read: "-" is cli_text(). */
int cli_output_open_text(struct cli_output *output, const char *path);

/* Could it be written? For those who work long before they write. Nothing is left of the trial. 0, or
 * CLI_EXIT_UNKNOWN after the reason was reported. */
int cli_output_check(const char *path);

/* All is written: put the file in its place. Returns exit_code, or CLI_EXIT_UNKNOWN after it
 * was reported why the file is not there. Releases *output in every case. */
int cli_output_commit(struct cli_output *output, int exit_code);

/* Give up: nothing of it stays. Tells nothing. Fine after a failed open or a commit. */
void cli_output_discard(struct cli_output *output);

/* Is this standard output, and a terminal at that? Binary formats refuse, progress stays away. */
bool cli_output_is_terminal(const char *path);

/*
 * A directory of files. They are written into a temporary directory beside it, which takes its place
 * at the end. The directory may exist when it is empty. When it is not, and CLI_OUTPUT_FORCE is
 * given, the new files are moved into it one by one: those of the same name are replaced, the
 * others stay. So it never has a half file, but for a moment it has old ones and new ones.
 */
enum cli_output_flag { CLI_OUTPUT_FORCE = 1u << 0 };

struct cli_tree {
	char *path;	 /* as asked for, without '/' at its end */
	char *temporary; /* the directory to write below */
	const struct cli_pending *pending;
	bool is_merged; /* at the end, move files one by one */
	/* To be set by the caller, borrowed; NULL: nothing. Where files are moved one by one: older
	 * files whose name begins so go, in the directories that get new files. */
	const char *replaces;
};

/* 0, or CLI_EXIT_UNKNOWN after the reason was reported: not empty, no directory, cannot be made. */
int cli_tree_open(struct cli_tree *tree, const char *path, unsigned int flags);

/* Where to write the file of this name, like "job=7/rank=0/part-0.parquet": its directories are
 * made, it will be removed and moved with the tree, however it is written; whether it is on the disk before that is its
 * writer's business. NULL after an error was reported. The caller frees it. */
char *cli_tree_path(struct cli_tree *tree, const char *name);

/* The same, opened; cli_output_commit() ends it. Errors name it as it will be. */
int cli_tree_file(struct cli_tree *tree, struct cli_output *output, const char *name);

/* As for a file. */
int cli_tree_commit(struct cli_tree *tree, int exit_code);
void cli_tree_discard(struct cli_tree *tree);

#endif
