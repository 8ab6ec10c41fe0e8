/* The client side of the RAS protocol: a state machine over received bytes. */
#include "import/ras_talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/text.h"

static void ask(struct ras_talk *talk, const char *request)
{
	size_t used = strlen(talk->request);

	/* At most four short requests, however early the answers come. */
	snprintf(talk->request + used, sizeof(talk->request) - used, "%s\n", request);
}

void ras_talk_init(struct ras_talk *talk, enum ras_request request, unsigned int timeout_s)
{
	*talk = (struct ras_talk){ .request_kind = request,
				   .is_json = request == RAS_JSON,
				   .timeout_s = timeout_s };
	ask(talk, "client protocol 2");
}

void ras_talk_release(struct ras_talk *talk)
{
	free(talk->answer);
	talk->answer = NULL;
	talk->answer_length = talk->answer_room = 0;
}

static enum status fail(struct ras_talk *talk, const char *what)
{
	talk->state = RAS_FAILED;
	text_format(talk->why, sizeof(talk->why), "%s: %.80s", what, talk->line);
	return ERR_FORMAT;
}

/* ---- lines before the answer ------------------------------------------------------------------ */

static enum status greeted(struct ras_talk *talk)
{
	static const char begins[] = "SERVER PROTOCOL ";
	char request[32];

	if (strncasecmp(talk->line, begins, sizeof(begins) - 1) != 0)
		return fail(talk, "not NCCL's RAS; the peer says");
	talk->protocol = (int)strtol(talk->line + sizeof(begins) - 1, NULL, 10);
	talk->state = RAS_SETS_TIME;
	text_format(request, sizeof(request), "timeout %u", talk->timeout_s);
	ask(talk, request);
	return OK;
}

static enum status take_line(struct ras_talk *talk)
{
	bool is_fine = strcasecmp(talk->line, "OK") == 0;

	switch (talk->state) {
	case RAS_GREETS:
		return greeted(talk);
	case RAS_SETS_TIME:
		if (!is_fine)
			return fail(talk, "it rejects the timeout");
		talk->state = talk->is_json ? RAS_SETS_FORMAT : RAS_ANSWERS;
		ask(talk, talk->is_json				  ? "set format json"
			  : talk->request_kind == RAS_DIAGNOSTICS ? "diagnostics"
								  : "verbose status");
		return OK;
	case RAS_SETS_FORMAT:
		/* Releases before 2.28.7 do not know this command. */
		talk->is_json = is_fine;
		talk->state = RAS_ANSWERS;
		ask(talk, "verbose status");
		return OK;
	default:
		return fail(talk, "its answer is too long");
	}
}

static enum status take_byte_of_line(struct ras_talk *talk, char byte)
{
	enum status status;

	if (byte == '\n') {
		talk->line[talk->line_used] = '\0';
		talk->line_used = 0;
		status = take_line(talk);
		talk->line[0] = '\0';
		return status;
	}
	if (talk->line_used == sizeof(talk->line) - 1) {
		talk->line[talk->line_used] = '\0';
		return fail(talk, "not NCCL's RAS; the peer sends an endless line");
	}
	if (byte != '\r')
		talk->line[talk->line_used++] =
			(unsigned char)byte < 0x20 || (unsigned char)byte >= 0x7f ? '?' : byte;
	return OK;
}

/* ---- the answer ------------------------------------------------------------------------------- */

static enum status make_room(struct ras_talk *talk, size_t length)
{
	size_t wanted = talk->answer_length + length + 1;
	size_t room = talk->answer_room ? talk->answer_room : 4096;
	char *more;

	if (wanted <= talk->answer_room)
		return OK;
	while (room < wanted)
		room *= 2;
	more = realloc(talk->answer, room);
	if (more == NULL)
		return ERR_NO_SPACE;
	talk->answer = more;
	talk->answer_room = room;
	return OK;
}

static enum status take_answer(struct ras_talk *talk, const char *bytes, size_t length)
{
	size_t left = RAS_ANSWER_MAX - talk->answer_length;
	enum status status;

	talk->is_cut = talk->is_cut || length > left;
	if (length > left)
		length = left;
	status = make_room(talk, length);
	if (status != OK)
		return status;
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte >= 0x7f;

		if (byte != '\r')
			talk->answer[talk->answer_length++] = is_control ? '?' : (char)byte;
	}
	talk->answer[talk->answer_length] = '\0';
	/* After an error the connection stays open for another command. */
	if ((strncmp(talk->answer, "ERROR: ", 7) == 0 || strncmp(talk->answer, "BUSY: ", 6) == 0) &&
	    strchr(talk->answer, '\n') != NULL) {
		text_format(talk->line, sizeof(talk->line), "%.*s",
			    (int)strcspn(talk->answer, "\n"), talk->answer);
		return fail(talk, "it rejects the request");
	}
	return talk->is_cut ? ERR_RANGE : OK;
}

enum status ras_talk_take(struct ras_talk *talk, const char *bytes, size_t length)
{
	enum status status = OK;
	size_t at = 0;

	while (at < length && talk->state < RAS_ANSWERS && status == OK)
		status = take_byte_of_line(talk, bytes[at++]);
	if (status != OK || talk->state == RAS_FAILED)
		return status != OK ? status : ERR_FORMAT;
	return at < length ? take_answer(talk, bytes + at, length - at) : OK;
}

enum status ras_talk_end(struct ras_talk *talk)
{
	if (talk->state == RAS_FAILED)
		return ERR_FORMAT;
	if (talk->state != RAS_ANSWERS || talk->answer_length == 0) {
		talk->state = RAS_FAILED;
		text_format(talk->why, sizeof(talk->why),
			    "the connection was closed without an answer");
		return ERR_FORMAT;
	}
	return OK;
}
