/* Frames on their way out: kept until the reader takes them, so that slow readers hold up no transfer. */
#ifndef FETCH_OUT_H
#define FETCH_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct fetch_out {
	int fd;
	struct fetch_out_part *first;
	struct fetch_out_part *last;
	size_t waiting; /* bytes not yet written */
};

void fetch_out_init(struct fetch_out *out, int fd);

/* One frame. `bytes` (malloc'd, may be NULL) is freed when it was written. ERR_NO_SPACE: freed at once. */
enum status fetch_out_add(struct fetch_out *out, uint32_t id, int status, char *bytes,
			  size_t length);

/* As much as the reader takes now. ERR_SYSTEM: nobody reads. */
enum status fetch_out_write(struct fetch_out *out);

#endif
