/*
 * A profiler plugin that does nothing, for every NCCL since 2.27: NCCL's own cost of a plugin. It requests the
 * events in EMPTY_PLUGIN_MASK (a number; none if unset).
 */
#include <stdint.h>
#include <stdlib.h>

/* Function pointers of every interface version from 4 to 7, with room after them for forks that have more. */
struct plugin {
	const char *name;
	void *init;
	int (*start_event)(void *context, void **handle, void *description);
	int (*stop_event)(void *handle);
	int (*record_event_state)(void *handle, int state, void *arguments);
	int (*finalize)(void *context);
	void *room[4];
};

static int ask(void **context, int *mask)
{
	const char *text = getenv("EMPTY_PLUGIN_MASK");

	*context = mask;
	*mask = text ? (int)strtol(text, NULL, 0) : 0;
	return 0;
}

static int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
		   int rank, void *log)
{
	(void)name, (void)hash, (void)nodes, (void)ranks, (void)rank, (void)log;
	return ask(context, mask);
}

static int init_v5(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks,
		   int rank, void *log)
{
	(void)name, (void)hash, (void)nodes, (void)ranks, (void)rank, (void)log;
	return ask(context, mask);
}

static int start_event(void *context, void **handle, void *description)
{
	(void)description;
	*handle = context;
	return 0;
}

static int stop_event(void *handle)
{
	(void)handle;
	return 0;
}

static int record_event_state(void *handle, int state, void *arguments)
{
	(void)handle, (void)state, (void)arguments;
	return 0;
}

static int finalize(void *context)
{
	(void)context;
	return 0;
}

#define PLUGIN(version, init_function)                                                            \
	struct plugin ncclProfiler_v##version = {                                                 \
		"empty",  (void *)(init_function),   start_event, stop_event, record_event_state, \
		finalize, { NULL, NULL, NULL, NULL }                                              \
	}

PLUGIN(4, init_v4);
PLUGIN(5, init_v5);
PLUGIN(6, init_v5);
PLUGIN(7, init_v5);
