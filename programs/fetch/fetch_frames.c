#include "programs/fetch/fetch_frames.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"

void fetch_frames_init(struct fetch_frames *frames, size_t limit)
{
	*frames = (struct fetch_frames){ .limit = limit };
}

void fetch_frames_release(struct fetch_frames *frames)
{
	free(frames->bytes);
	*frames = (struct fetch_frames){ .is_broken = true };
}

/* Frames that were taken make room for those that come. */
static void move_down(struct fetch_frames *frames)
{
	if (frames->at == 0)
		return;
	frames->used -= frames->at;
	memmove(frames->bytes, frames->bytes + frames->at, frames->used);
	frames->at = 0;
}

enum status fetch_frames_add(struct fetch_frames *frames, const void *bytes, size_t length)
{
	size_t needed;

	if (frames->is_broken)
		return ERR_FORMAT;
	move_down(frames);
	needed = frames->used + length;
	if (needed > frames->room) {
		size_t room = needed < frames->room * 2 ? frames->room * 2 : needed;
		char *grown = realloc(frames->bytes, room);

		if (grown == NULL)
			return ERR_NO_SPACE;
		frames->bytes = grown;
		frames->room = room;
	}
	if (length > 0)
		memcpy(frames->bytes + frames->used, bytes, length);
	frames->used += length;
	return OK;
}

/* Digits and what must follow them; NULL: that is not what is there. */
static const char *take_number(const char *at, const char *end, char after, uint64_t most,
			       uint64_t *number)
{
	const char *first = at;

	*number = 0;
	while (at < end && *at >= '0' && *at <= '9') {
		*number = *number * 10 + (uint64_t)(*at - '0');
		if (*number > most)
			return NULL;
		at++;
	}
	if (at == first || at == end || *at != after)
		return NULL;
	return at + 1;
}

enum status fetch_frames_next(struct fetch_frames *frames, struct fetch_frame *frame)
{
	size_t left = frames->used - frames->at;
	const char *at = frames->bytes + frames->at;
	const char *end = left == 0 ? NULL : memchr(at, '\n', left);
	uint64_t id = 0, status = 0, length = 0;

	if (frames->is_broken)
		return ERR_FORMAT;
	if (end == NULL && left < FETCH_HEADER_MAX)
		return ERR_GONE;
	frames->is_broken = true;
	if (end == NULL || end - at >= FETCH_HEADER_MAX)
		return ERR_FORMAT;
	end++;
	at = take_number(at, end, ' ', FETCH_REQUESTS_MAX - 1, &id);
	at = at ? take_number(at, end, ' ', 999, &status) : NULL;
	at = at ? take_number(at, end, '\n', frames->limit, &length) : NULL;
	if (at != end)
		return ERR_FORMAT;
	frames->is_broken = false;
	if ((size_t)(frames->bytes + frames->used - at) < length)
		return ERR_GONE;
	*frame = (struct fetch_frame){ (uint32_t)id, (int)status, at, (size_t)length };
	frames->at = (size_t)(at - frames->bytes) + (size_t)length;
	return OK;
}

size_t fetch_frame_header(char header[static FETCH_HEADER_MAX], uint32_t id, int status,
			  size_t length)
{
	text_format(header, FETCH_HEADER_MAX, "%u %d %zu\n", id, status, length);
	return strlen(header);
}

/* ---- requests -------------------------------------------------------------------------------- */

bool fetch_url_is_good(const char *url)
{
	const char *host;

	if (strncmp(url, "http://", 7) == 0)
		host = url + 7;
	else if (strncmp(url, "https://", 8) == 0)
		host = url + 8;
	else
		return false;
	/* What stands before an '@' is a password that everybody sees in the list of processes. */
	if (strcspn(host, "/?#") == 0 || memchr(host, '@', strcspn(host, "/?#")))
		return false;
	for (; *url != '\0'; url++)
		if ((unsigned char)*url <= ' ' || *url == 0x7f)
			return false;
	return true;
}

enum status fetch_request_parse(struct fetch_request *request, char *line)
{
	char *url = strchr(line, ' '), *socket;
	int64_t id;

	if (url == NULL)
		return ERR_FORMAT;
	*url++ = '\0';
	socket = strchr(url, ' ');
	if (socket)
		*socket++ = '\0';
	if (text_number(line, 0, FETCH_REQUESTS_MAX - 1, &id) != OK || !fetch_url_is_good(url) ||
	    (socket && socket[0] != '/'))
		return ERR_FORMAT;
	*request = (struct fetch_request){ (uint32_t)id, url, socket };
	return OK;
}
