/*
 * A list of agents as people write it: hosts, ranges of hosts, URLs, sockets.
 *
 *	node12  node12:9750  node[001-064,070]  rack[1-4]-gpu[0-7]:9749  [::1]:9749
 *	http://node12:9749  https://node12/ringside  unix:/run/ringside.sock
 */
#ifndef FETCH_TARGETS_H
#define FETCH_TARGETS_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { FETCH_TARGETS_MAX = 16384, FETCH_TARGET_TEXT = 1024 };

struct fetch_target {
	char *name;   /* for people: "node12:9749" */
	char *url;    /* without a '/' at its end: "http://node12:9749" */
	char *socket; /* NULL, or the path of a Unix socket */
};

struct fetch_targets {
	struct fetch_target *list;
	size_t count;
	uint32_t *index; /* by the hash of names: place in the list, from 1; 0 free */
};

void fetch_targets_init(struct fetch_targets *targets);
void fetch_targets_release(struct fetch_targets *targets);

/*
 * Words between commas, blanks and ends of lines; what follows a '#' up to the end of its line is a remark. Names
 * without a scheme get http and, without one, the port. Each target once. ERR_FORMAT: `why` says which
 * word and what about it. ERR_NO_SPACE: too many (why says so) or no memory (why is ""). What was added before
 * stays.
 */
enum status fetch_targets_add(struct fetch_targets *targets, const char *text, unsigned int port,
			      char *why, size_t why_size);

#endif
