/*
 * A trace of torch.profiler: the input as is, and inside an event of a valid one, in pieces of any length. What is read
 * must not depend on where the pieces end.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_main.h"
#include "import/kineto.h"

struct pieces {
	const char *text;
	size_t length;
	size_t at;
	size_t each; /* bytes of a piece */
};

struct sums {
	uint64_t events;
	uint64_t hash;
};

static long next_piece(void *source, char *to, size_t room)
{
	struct pieces *pieces = source;
	size_t length = pieces->length - pieces->at;

	if (length > pieces->each)
		length = pieces->each;
	if (length > room)
		length = room;
	memcpy(to, pieces->text + pieces->at, length);
	pieces->at += length;
	return (long)length;
}

static bool add_event(const struct kineto_event *event, void *context)
{
	struct sums *sums = context;

	if (strlen(event->name) >= KINETO_NAME || strlen(event->label) >= KINETO_GROUP_NAME)
		abort();
	if (event->phase == KINETO_SLICE && event->start_ns + event->duration_ns < event->start_ns)
		abort();
	if (event->args != NULL && (event->args_length < 2 || event->args[0] != '{'))
		abort();
	sums->events++;
	sums->hash = sums->hash * 31 + event->start_ns + event->duration_ns * 7 +
		     event->correlation * 3 + (uint64_t)event->kind + strlen(event->name);
	return true;
}

static enum status read_text(const char *text, size_t length, size_t each, struct sums *sums)
{
	struct pieces pieces = { text, length, 0, each };
	struct kineto_about about;
	enum status status;

	*sums = (struct sums){ .events = 0 };
	status = kineto_parse(next_piece, &pieces, &about, add_event, sums);
	if ((status == ERR_FORMAT || status == ERR_TRUNCATED) && about.problem == NULL)
		abort();
	if (about.offset > length || sums->events > about.events)
		abort();
	return status;
}

static void read_both(const char *before, const uint8_t *data, size_t size, const char *after)
{
	size_t length = strlen(before) + size + strlen(after);
	/* Of the exact size, so that reads past the end are caught. */
	char *text = malloc(length + !length);
	struct sums whole, pieces;

	memcpy(text, before, strlen(before));
	if (size > 0)
		memcpy(text + strlen(before), data, size);
	memcpy(text + strlen(before) + size, after, strlen(after));
	if (read_text(text, length, length + 1, &whole) != read_text(text, length, 3, &pieces) ||
	    whole.events != pieces.events || whole.hash != pieces.hash)
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_both("", data, size, "");
	read_both("{\"baseTimeNanoseconds\":17,\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\","
		  "\"name\":\"ncclDevKernel_AllReduce\",\"pid\":0,\"tid\":7,\"ts\":1.5,\"dur\":",
		  data, size, "}]}");
	read_both("[{\"ph\":\"X\",\"args\":{", data, size, "}}]");
	return 0;
}
