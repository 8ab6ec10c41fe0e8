/* For tests of src/import: a file in memory, and everything that reading it returns. */
#ifndef FOREIGN_PLAY_H
#define FOREIGN_PLAY_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "import/foreign.h"

enum { PLAY_MAX = 512 };

struct play {
	struct foreign_log log;
	enum status status;
	struct op_record ops[PLAY_MAX];
	uint32_t op_process[PLAY_MAX];
	size_t op_count;
	struct op_detail details[PLAY_MAX];
	size_t detail_count;
	struct foreign_damage damages[PLAY_MAX];
	size_t damage_count;
};

static inline int play_file(const void *bytes, size_t length)
{
	int fd = memfd_create("play", MFD_CLOEXEC);

	if (fd == -1 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	return fd;
}

static inline bool play_op(const struct op_record *op, uint32_t process, void *context)
{
	struct play *play = context;

	play->ops[play->op_count] = *op;
	play->op_process[play->op_count++] = process;
	return play->op_count < PLAY_MAX;
}

static inline bool play_detail(const struct op_detail *detail, uint32_t process, void *context)
{
	struct play *play = context;

	(void)process;
	play->details[play->detail_count++] = *detail;
	return play->detail_count < PLAY_MAX;
}

static inline void play_damage(const struct foreign_damage *damage, void *context)
{
	struct play *play = context;

	if (play->damage_count < PLAY_MAX)
		play->damages[play->damage_count++] = *damage;
}

/* Released by the next call with the same play, which is static memory. */
static inline void play_fd(struct play *play, int fd)
{
	const struct foreign_request request = { .process = -1,
						 .visit_op = play_op,
						 .visit_detail = play_detail,
						 .visit_damage = play_damage,
						 .context = play };

	foreign_log_release(&play->log);
	memset(play, 0, sizeof(*play));
	play->status = foreign_read(&play->log, fd, &request);
}

static inline void play_text(struct play *play, const char *text)
{
	int fd = play_file(text, strlen(text));

	play_fd(play, fd);
	close(fd);
}

/* A file of tests/foreign/data; tests run in the root of the tree. */
static inline void play_data(struct play *play, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "tests/foreign/data/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	play_fd(play, fd);
	if (fd != -1)
		close(fd);
}

/* Packed by gzip, in members of at most `member` bytes. The caller frees it. */
static inline unsigned char *play_gzip(const char *text, size_t length, size_t member,
				       size_t *packed)
{
	size_t room = length + length / 2 + 4096 + length / (member ? member : 1) * 64;
	unsigned char *to = malloc(room);
	size_t at = 0;

	*packed = 0;
	do {
		z_stream stream = { 0 };
		size_t some = length - at < member ? length - at : member;

		if (deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY))
			abort();
		stream.next_in = (unsigned char *)(uintptr_t)(text + at);
		stream.avail_in = (unsigned int)some;
		stream.next_out = to + *packed;
		stream.avail_out = (unsigned int)(room - *packed);
		if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
			abort();
		*packed += stream.total_out;
		deflateEnd(&stream);
		at += some;
	} while (at < length);
	return to;
}

#endif
