/*
 * A helper process that opens files, because a file system may never answer: its server is dead, or a user serves it and
 * does not want to. Who asks it anything then waits in the kernel, and cannot even be killed. The helper waits instead, and
 * is left behind.
 *
 * file_open() and its relatives use it once it has begun; nothing else changes for their callers, but that errno may be
 * ETIMEDOUT.
 */
#ifndef FILE_OPENER_H
#define FILE_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_opener_settings {
	uint64_t patience_ns; /* how long a file has for an answer */
	/* Nobody who did not answer is asked again before that, nor while a helper still waits for them; 0: never. */
	uint64_t penalty_ns;
	bool only_texts; /* other questions are not for the helper */
	/* What answers may take in a second, those of a user or directory and all together: slow ones add up, too. 0: no limit. */
	uint64_t each_ns, all_ns;
};

void file_opener_begin(const struct file_opener_settings *settings);
/* Ends the helper; the next question starts another one. */
void file_opener_rest(void);

/* Is nothing asked of this user at present? */
bool file_opener_avoids(uint32_t uid);

/* Users and directories of which nothing is asked at present. */
struct file_opener_silent {
	bool is_user;
	uint32_t uid;
};
size_t file_opener_silent(struct file_opener_silent *list, size_t most);

#endif
