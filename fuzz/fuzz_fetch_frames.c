/*
 * What ringside-fetch sends, what it is asked, and lists of agents: any bytes, in pieces of any
 * size.
 */
#include <stdlib.h>
#include <string.h>

#include "fetch/fetch.h"
#include "fuzz/fuzz_main.h"

enum { LIMIT = 4096 };

static void take_frames(const uint8_t *data, size_t size)
{
	struct fetch_frames frames;
	struct fetch_frame frame;
	enum status status = ERR_GONE;
	size_t at = 1;

	fetch_frames_init(&frames, LIMIT);
	while (at < size && status == ERR_GONE) {
		size_t piece = 1 + (size_t)data[0] % 64;

		if (piece > size - at)
			piece = size - at;
		if (fetch_frames_add(&frames, data + at, piece) != OK)
			break;
		at += piece;
		while ((status = fetch_frames_next(&frames, &frame)) == OK) {
			unsigned int sum = 0;

			if (frame.length > LIMIT || frame.status < 0 || frame.status > 999 ||
			    frame.id >= FETCH_REQUESTS_MAX)
				abort();
			for (size_t i = 0; i < frame.length; i++)
				sum += (unsigned char)frame.bytes[i];
			if (sum > 255 * LIMIT)
				abort();
		}
	}
	/* An error is permanent. */
	if (status == ERR_FORMAT && fetch_frames_add(&frames, "0 200 0\n", 8) == OK)
		abort();
	fetch_frames_release(&frames);
}

static void check_target(const struct fetch_target *target)
{
	if (!fetch_url_is_good(target->url) || target->name[0] == '\0' ||
	    target->url[strlen(target->url) - 1] == '/')
		abort();
}

static void take_text(char *text)
{
	struct fetch_options options = { .parallel = 1 };
	struct fetch_request request;
	struct fetch_targets targets;
	char why[200] = "";
	enum status status;

	fetch_options_secret(&options, text);
	fetch_targets_init(&targets);
	status = fetch_targets_add(&targets, text, 9749, why, sizeof(why));
	if (targets.count > FETCH_TARGETS_MAX || (status == ERR_FORMAT && why[0] == '\0'))
		abort();
	for (size_t i = 0; i < targets.count; i++)
		check_target(&targets.list[i]);
	fetch_targets_release(&targets);
	text[strcspn(text, "\n")] = '\0';
	if (fetch_request_parse(&request, text) == OK && !fetch_url_is_good(request.url))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	/* A range of many numbers is many names: short texts suffice. */
	text = malloc(size);
	if (text == NULL)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	take_frames(data, size);
	if (size < 200)
		take_text(text);
	free(text);
	return 0;
}
