/* Finds the plugin and the other programs of ringside; runs programs. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

#define CLI_PLUGIN_FILE "libnccl-profiler-ringside.so"

/*
 * Finds it next to this program, or where `make install` and packages put it. If it is in none of these, returns
 * false and `looked` lists them. Both are absolute paths.
 */
bool cli_plugin_find(char *path, size_t size, char *looked, size_t looked_size);

/* Would the loader find this file by its bare name? */
bool cli_plugin_is_on_path(const char *path);

/* Is there another file of that name in LD_LIBRARY_PATH, which the loader would load instead? */
bool cli_plugin_is_hidden(const char *path);

/* Does a value of NCCL_PROFILER_PLUGIN mean this plugin? */
bool cli_plugin_is_ours(const char *value);

/*
 * The deepest directory of RINGSIDE_DIR that exists; placeholders are not known yet. 0: trace files can be written there;
 * else errno.
 */
int cli_traces_find(const char *pattern, char *found, size_t size);

/* Commands that are separate programs, because they need extra libraries or are not wanted on every node. */

/*
 * Finds a program next to this one, or where packages put it. If there is none, returns false and *path is the
 * directory of this program.
 */
bool cli_become_find(const char *program, char *path, size_t size);

/*
 * Executes that program; argv[0] is replaced. Returns only on failure, with the exit code after one line; `lacks` is
 * the library without which it is not built, or NULL.
 */
int cli_become(const char *program, const char *lacks, char **argv);

/* Runs a program and captures its output, with limits on time and size. */

struct cli_capture {
	char *bytes; /* standard output, terminated; the caller frees it. NULL: it did not run */
	size_t length;
	bool is_cut;   /* output was longer */
	int exit_code; /* -1: killed by a signal or by us */
	char why[300]; /* error message if it did not run or failed */
};

/*
 * words[0] is looked up in PATH. Standard input is /dev/null; `fd` becomes its descriptor 3 unless -1, and it
 * inherits no others. The first line of standard error goes to `why`. OK: it ran and exited by itself, with any code.
 * ERR_SYSTEM: it could not be started, or timed out and was killed; if it cannot be killed it is abandoned after a
 * second. Prints nothing.
 */
enum status cli_capture(struct cli_capture *capture, const char *const *words, int fd,
			unsigned int timeout_s, size_t most_bytes);

#endif
