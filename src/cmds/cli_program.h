/* The plugin and the programs beside the tool: where they are, becoming or running one. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

#define CLI_PLUGIN_FILE "libnccl-profiler-ringside.so"

/* Beside this program, or where `make install` and packages put it relative to it. False when it
 * is in none of these; `looked` then lists them. Both are absolute paths. */
bool cli_plugin_find(char *path, size_t size, char *looked, size_t looked_size);

/* Would the loader find this very file by its name alone, without any help? */
bool cli_plugin_is_on_path(const char *path);

/* Is there another file of that name in LD_LIBRARY_PATH, which the loader would take instead? */
bool cli_plugin_is_hidden(const char *path);

/* Commands that are programs of their own: they need libraries that the tool does without, or are not wanted
 * on every node. */

/* The program of this name that lies beside this one, or where packages put such. False: there is none, and
 * *path is the directory of this one. */
bool cli_become_find(const char *program, char *path, size_t size);

/* Becomes the program of this name that lies beside this one, or where packages put such; argv[0]
 * is replaced. Comes back only when that fails, after one line, with the exit code; `lacks` is the
 * library without which it is not built, NULL where there is none. */
int cli_become(const char *program, const char *lacks, char **argv);

/* Running a program and keeping what it says, for a limited time and up to a limited size. */

struct cli_capture {
	char *bytes; /* standard output, terminated; the caller's to free(). NULL: it did not run */
	size_t length;
	bool is_cut;   /* there was more */
	int exit_code; /* -1: it was ended by a signal, or by us */
	char why[300]; /* when it did not run or did not end well: in words */
};

/*
 * words[0] is looked up in PATH. It reads nothing (/dev/null); `fd` is its descriptor 3 when that is not -1, and it
 * has no other. The first line on standard error goes to why. OK: it ran and ended by itself, whatever its code.
 * ERR_SYSTEM: it could not be started, or took longer and was killed; one that cannot be is left behind after a
 * second. Prints nothing.
 */
enum status cli_capture(struct cli_capture *capture, const char *const *words, int fd,
			unsigned int timeout_s, size_t most_bytes);

#endif
