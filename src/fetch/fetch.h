/*
 * What ringside-fetch and its caller say to each other. The caller writes one line per request and closes;
 * the program writes one frame per request, in the order of completion.
 *
 *	request   ID URL[ SOCKET]\n          SOCKET: the path of a Unix socket to go through
 *	frame     ID STATUS LENGTH\n         and LENGTH bytes
 *
 * STATUS is HTTP's, the bytes are the answer's body; or 0, and they are one line that says what went wrong.
 */
#ifndef FETCH_H
#define FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum {
	FETCH_HEADER_MAX = 48,
	FETCH_REQUESTS_MAX = 65536, /* ids are 0 .. one less */
	FETCH_LINE_MAX = 16384,	    /* of a request */
	FETCH_WHY_MAX = 300,	    /* of an error's text */
};

struct fetch_frame {
	uint32_t id;
	int status;
	const char *bytes; /* valid until the next call */
	size_t length;
};

/* Frames as they come out of a pipe. Nothing in it is trusted. */
struct fetch_frames {
	char *bytes;
	size_t used;
	size_t room;
	size_t at; /* the next frame */
	size_t limit;
	bool is_broken;
};

/* No frame may have more than `limit` bytes. */
void fetch_frames_init(struct fetch_frames *frames, size_t limit);
void fetch_frames_release(struct fetch_frames *frames);

/* Take more bytes. ERR_NO_SPACE (memory); ERR_FORMAT: what came before was no frame. */
enum status fetch_frames_add(struct fetch_frames *frames, const void *bytes, size_t length);
/* OK; ERR_GONE: not yet whole, add more; ERR_FORMAT: no frame, or too long: nothing more will come. */
enum status fetch_frames_next(struct fetch_frames *frames, struct fetch_frame *frame);

/* The line before a frame's bytes; its length. */
size_t fetch_frame_header(char header[static FETCH_HEADER_MAX], uint32_t id, int status,
			  size_t length);

/* One request out of a line without its end. The line is changed: url and socket point into it; socket is NULL
 * for none. ERR_FORMAT. */
struct fetch_request {
	uint32_t id;
	char *url;
	char *socket;
};
enum status fetch_request_parse(struct fetch_request *request, char *line);

/* May this be asked for? http and https alone, no user or password in it, no blanks, no control bytes. */
bool fetch_url_is_good(const char *url);

/* Frames on their way out: kept until the reader takes them, so that slow readers hold up no transfer. */

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

/*
 * A list of agents as people write it: hosts, ranges of hosts, URLs, sockets.
 *
 *	node12  node12:9750  node[001-064,070]  rack[1-4]-gpu[0-7]:9749  [::1]:9749
 *	http://node12:9749  https://node12/ringside  unix:/run/ringside.sock
 */

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

/* The command line of ringside-fetch, and the file with what it shows to servers. */

struct fetch_options {
	unsigned int parallel; /* requests under way at a time */
	uint64_t timeout_ms;   /* for one request, from its start to its last byte */
	uint64_t connect_ms;   /* of that, until it is connected */
	uint64_t limit_bytes;  /* of one answer, unpacked */
	uint64_t total_bytes;  /* of all answers */
	const char *ca_file;   /* NULL: the system's */
	bool is_insecure;      /* any certificate will do */
	char user[512];	       /* "name:password"; "" none */
	char bearer[4096];     /* "" none */
};

/* -1: go on; else the exit code, after help or an error was told. */
int fetch_options_parse(struct fetch_options *options, int argc, char **argv);

/* The first line of such a file: "basic NAME:PASSWORD" or "bearer TOKEN". False: it is neither. */
bool fetch_options_secret(struct fetch_options *options, const char *text);

#endif
