#include "programs/fetch/fetch_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/fetch/fetch_frames.h"

struct fetch_out_part {
	struct fetch_out_part *next;
	char header[FETCH_HEADER_MAX];
	char *bytes;
	size_t header_length;
	size_t length;
	size_t at; /* of header and bytes together: what is written */
};

void fetch_out_init(struct fetch_out *out, int fd)
{
	*out = (struct fetch_out){ .fd = fd };
}

enum status fetch_out_add(struct fetch_out *out, uint32_t id, int status, char *bytes,
			  size_t length)
{
	struct fetch_out_part *part = calloc(1, sizeof(*part));

	if (part == NULL) {
		free(bytes);
		return ERR_NO_SPACE;
	}
	part->bytes = bytes;
	part->length = length;
	part->header_length = fetch_frame_header(part->header, id, status, length);
	if (out->last)
		out->last->next = part;
	else
		out->first = part;
	out->last = part;
	out->waiting += part->header_length + length;
	return OK;
}

static ssize_t write_some(int fd, const struct fetch_out_part *part)
{
	if (part->at < part->header_length)
		return write(fd, part->header + part->at, part->header_length - part->at);
	return write(fd, part->bytes + part->at - part->header_length,
		     part->header_length + part->length - part->at);
}

static void drop_first(struct fetch_out *out)
{
	struct fetch_out_part *part = out->first;

	out->first = part->next;
	if (out->first == NULL)
		out->last = NULL;
	free(part->bytes);
	free(part);
}

enum status fetch_out_write(struct fetch_out *out)
{
	while (out->first) {
		struct fetch_out_part *part = out->first;
		ssize_t written;

		if (part->at == part->header_length + part->length) {
			drop_first(out);
			continue;
		}
		written = write_some(out->fd, part);
		if (written == -1 && errno == EINTR)
			continue;
		if (written == -1)
			return errno == EAGAIN ? OK : ERR_SYSTEM;
		part->at += (size_t)written;
		out->waiting -= (size_t)written;
	}
	return OK;
}
