/*
 * The protocol between ringside-fetch and its caller. The caller writes one line per request and closes;
 * the program writes one frame per request, in the order of completion.
 *
 *	request   ID URL[ SOCKET]\n          SOCKET: the path of a Unix socket to connect through
 *	frame     ID STATUS LENGTH\n         and LENGTH bytes
 *
 * STATUS is the HTTP status and the bytes are the body; or 0, and they are one line with the error.
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
	FETCH_WHY_MAX = 300,	    /* of an error message */
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

/* Adds bytes. ERR_NO_SPACE (out of memory); ERR_FORMAT: what came before was not a frame. */
enum status fetch_frames_add(struct fetch_frames *frames, const void *bytes, size_t length);
/* OK; ERR_GONE: incomplete, add more; ERR_FORMAT: not a frame, or too long: nothing more will come. */
enum status fetch_frames_next(struct fetch_frames *frames, struct fetch_frame *frame);

/* The line before a frame's bytes; returns its length. */
size_t fetch_frame_header(char header[static FETCH_HEADER_MAX], uint32_t id, int status,
			  size_t length);

/* Parses one request line without its end. The line is modified: url and socket point into it; socket is
 * NULL for none. ERR_FORMAT. */
struct fetch_request {
	uint32_t id;
	char *url;
	char *socket;
};
enum status fetch_request_parse(struct fetch_request *request, char *line);

/* Is this URL allowed? Only http and https, no user or password in it, no blanks, no control bytes. */
bool fetch_url_is_good(const char *url);

/* Appends text as a value of a query: all but letters, digits and "-._~" as %XX. False: it does not fit, and nothing
 * was appended. */
bool fetch_url_append(char *url, size_t size, const char *text);

/* Outgoing frames: kept until the reader takes them, so that slow readers do not hold up transfers. */

struct fetch_out {
	int fd;
	struct fetch_out_part *first;
	struct fetch_out_part *last;
	size_t waiting; /* bytes not yet written */
};

void fetch_out_init(struct fetch_out *out, int fd);

/* One frame. `bytes` (malloc'd, may be NULL) is freed once written. On ERR_NO_SPACE it is freed at once. */
enum status fetch_out_add(struct fetch_out *out, uint32_t id, int status, char *bytes,
			  size_t length);

/* Writes as much as the reader takes now. ERR_SYSTEM: there is no reader. */
enum status fetch_out_write(struct fetch_out *out);

/*
 * A list of agents as users write it: hosts, ranges of hosts, URLs, sockets.
 *
 *	node12  node12:9750  node[001-064,070]  rack[1-4]-gpu[0-7]:9749  [::1]:9749
 *	http://node12:9749  https://node12/ringside  unix:/run/ringside.sock
 */

enum { FETCH_TARGETS_MAX = 16384, FETCH_TARGET_TEXT = 1024 };

struct fetch_target {
	char *name;   /* for display: "node12:9749" */
	char *url;    /* without a trailing '/': "http://node12:9749" */
	char *socket; /* NULL, or the path of a Unix socket */
};

struct fetch_targets {
	struct fetch_target *list;
	size_t count;
	uint32_t *index; /* by the hash of names: index in the list, from 1; 0 free */
};

void fetch_targets_init(struct fetch_targets *targets);
void fetch_targets_release(struct fetch_targets *targets);

/*
 * Words between commas, blanks and line ends; a '#' starts a comment up to the end of its line. Names
 * without a scheme get http and, without one, the port. Each target once. ERR_FORMAT: `why` says which word
 * and what is wrong. ERR_NO_SPACE: too many (why says so) or out of memory (why is ""). What was added
 * before stays.
 */
enum status fetch_targets_add(struct fetch_targets *targets, const char *text, unsigned int port,
			      char *why, size_t why_size);

/* The command line of ringside-fetch, and its credentials file. */

struct fetch_options {
	unsigned int parallel; /* concurrent requests */
	uint64_t timeout_ms;   /* for one request, from its start to its last byte */
	uint64_t connect_ms;   /* of that, until it is connected */
	uint64_t limit_bytes;  /* of one answer, unpacked */
	uint64_t total_bytes;  /* of all answers */
	const char *ca_file;   /* NULL: the system's */
	bool is_insecure;      /* accept any certificate */
	char user[512];	       /* "name:password"; "" none */
	char bearer[4096];     /* "" none */
};

/* -1: continue; else the exit code, after help or an error was printed. */
int fetch_options_parse(struct fetch_options *options, int argc, char **argv);

/* The first line of such a file: "basic NAME:PASSWORD" or "bearer TOKEN". False: it is neither. */
bool fetch_options_secret(struct fetch_options *options, const char *text);

#endif
