/*
 * What ringside-fetch and its caller say to each other. The caller writes one line per request and closes;
 * the program writes one frame per request, in the order of completion.
 *
 *	request   ID URL[ SOCKET]\n          SOCKET: the path of a Unix socket to go through
 *	frame     ID STATUS LENGTH\n         and LENGTH bytes
 *
 * STATUS is HTTP's, the bytes are the answer's body; or 0, and they are one line that says what went wrong.
 */
#ifndef FETCH_FRAMES_H
#define FETCH_FRAMES_H

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

#endif
