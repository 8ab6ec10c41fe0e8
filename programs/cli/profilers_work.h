/*
 * Where the jobs of a comparison leave their files: a directory on disk and one in memory (for regions, which must not
 * wait for a disk). Both are removed at the end, however that comes: a child that does nothing else waits for it. With
 * --keep the one on disk is the user's and stays, with what was in memory copied into it.
 */
#ifndef PROFILERS_WORK_H
#define PROFILERS_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "programs/bench/bench_keeper.h"

enum { WORK_PATH_BYTES = 3000, WORK_TAIL_LINES = 3 };

struct profilers_work {
	char disk[WORK_PATH_BYTES];
	char memory[WORK_PATH_BYTES];
	bool is_kept;
	struct bench_keeper keeper;
};

/* `keep`: NULL, or a directory that is empty or not there yet. 0, or CLI_EXIT_TROUBLE after the reason was told. */
int profilers_work_open(struct profilers_work *work, const char *keep);
void profilers_work_close(struct profilers_work *work);

/* Make a directory below the one on disk or in memory: its path. 0, or CLI_EXIT_TROUBLE after it was told. */
int profilers_work_make(const char *parent, const char *name, char *path, size_t size);

/* Regular files below `from`, by their names, into `to`. False: not all. */
bool profilers_copy_files(const char *from, const char *to);
/* How many regular files there are below, and their bytes. */
void profilers_count_files(const char *path, size_t *files, uint64_t *bytes);

/* The whole file, terminated; the caller frees it. NULL: errno says why; EFBIG: longer than `most`. */
char *profilers_read_file(const char *path, size_t most, size_t *length);
/* Tell the last lines of a log on stderr, each behind `indent`. */
void profilers_tell_tail(const char *path, const char *indent);

/* The last line that is not empty, without control bytes; false: there is none. */
bool profilers_last_line(const char *path, char *line, size_t size);

#endif
