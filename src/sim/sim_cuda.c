/*
 * Most launches are not timed, so a launch costs two stores in memory of its thread until an event is recorded in it.
 * Then it becomes an object that the host reports to and events refer to. One lock guards all objects: only timed launches
 * take it.
 */
#include "sim/sim_cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
	GPUS = 16, /* contexts; the recorder has pools for as many */
	CUDA_INVALID_VALUE = 1,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_INVALID_CONTEXT = 201,
	CUDA_CAPTURE_UNSUPPORTED = 900,
	NODES = 8, /* events of a captured launch */
};

/* The events of a captured launch. */
struct nodes {
	struct CUevent_st *events[NODES];
	bool is_after[NODES];
	unsigned int count;
};

/* A launch around which events were recorded. */
struct launch {
	unsigned int holders; /* the host, as long as it has parts, and events */
	unsigned int parts;   /* not over yet */
	bool is_lost;	      /* it never ends */
	uint64_t reached_ns;  /* 0: not yet */
	uint64_t last_ns;     /* the last part so far */
	uint64_t over_ns;     /* 0: not yet */
	struct nodes nodes;   /* of a replay: these are recorded when it is reached */
};

struct CUgraphNode_st {
	int type;
};

struct CUevent_st {
	struct launch *launch; /* NULL: fired at once, or never recorded */
	bool is_after;
	uint64_t fired_ns; /* without a launch; 0: never recorded */
};

struct CUctx_st {
	int gpu;
};

/* What a thread is doing. */
struct thread_state {
	struct CUctx_st *current;
	int capture_mode;
	bool is_launching, is_enqueued;
	uint64_t capture;      /* 0: none */
	struct launch *launch; /* NULL: no event was recorded in it */
	struct nodes *nodes;   /* the same of one that is captured */
};

static struct CUctx_st contexts[GPUS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct thread_state own;

/* NCCL lets a captured launch wait for its launches outside graphs. */
static struct CUgraphNode_st wait_of_nccl = { CUDA_NODE_EVENT_WAIT };
static struct CUgraphNode_st *const nodes_of_nccl[] = { &wait_of_nccl };

/* ---- what the host tells ---------------------------------------------------------------------- */

static void use(int gpu)
{
	struct CUctx_st *context = &contexts[(unsigned int)gpu % GPUS];

	pthread_mutex_lock(&lock);
	context->gpu = (int)((unsigned int)gpu % GPUS);
	pthread_mutex_unlock(&lock);
	own.current = context;
}

static void begin(void *stream, uint64_t capture)
{
	(void)stream;
	own.is_launching = true;
	own.is_enqueued = false;
	own.capture = capture;
	own.launch = NULL;
	own.nodes = NULL;
}

static void enqueue(void)
{
	own.is_enqueued = true;
}

static void *end(void)
{
	void *made = own.capture != 0 ? (void *)own.nodes : (void *)own.launch;

	own.is_launching = false;
	own.capture = 0;
	own.launch = NULL;
	own.nodes = NULL;
	return made;
}

static void *replay(const void *nodes)
{
	struct launch *launch = calloc(1, sizeof(*launch));

	if (launch == NULL)
		return NULL;
	launch->holders = launch->parts = 1;
	launch->nodes = *(const struct nodes *)nodes;
	return launch;
}

static void forget(void *nodes)
{
	free(nodes);
}

/* The caller holds the lock. */
static void let_go(struct launch *launch)
{
	if (launch != NULL && --launch->holders == 0)
		free(launch);
}

static void take(void *watched)
{
	struct launch *launch = watched;

	pthread_mutex_lock(&lock);
	launch->parts++;
	pthread_mutex_unlock(&lock);
}

/* The caller holds the lock. */
static void record_nodes(struct launch *launch)
{
	for (unsigned int i = 0; i < launch->nodes.count; i++) {
		struct CUevent_st *event = launch->nodes.events[i];

		let_go(event->launch);
		event->launch = launch;
		event->is_after = launch->nodes.is_after[i];
		launch->holders++;
	}
	launch->nodes.count = 0;
}

static void reach(void *watched, uint64_t ns)
{
	struct launch *launch = watched;

	pthread_mutex_lock(&lock);
	if (launch->reached_ns == 0 || ns < launch->reached_ns)
		launch->reached_ns = ns;
	record_nodes(launch);
	pthread_mutex_unlock(&lock);
}

/* The caller holds the lock. */
static void part_over(struct launch *launch)
{
	if (--launch->parts > 0)
		return;
	if (!launch->is_lost)
		launch->over_ns = launch->last_ns;
	let_go(launch);
}

static void leave(void *watched, uint64_t ns)
{
	struct launch *launch = watched;

	pthread_mutex_lock(&lock);
	if (ns > launch->last_ns)
		launch->last_ns = ns;
	part_over(launch);
	pthread_mutex_unlock(&lock);
}

static void drop(void *watched)
{
	struct launch *launch = watched;

	pthread_mutex_lock(&lock);
	launch->is_lost = true;
	part_over(launch);
	pthread_mutex_unlock(&lock);
}

const struct host_watcher sim_cuda_watcher = {
	.use = use,
	.begin = begin,
	.enqueue = enqueue,
	.end = end,
	.replay = replay,
	.forget = forget,
	.take = take,
	.reach = reach,
	.leave = leave,
	.drop = drop,
};

/* ---- contexts and streams --------------------------------------------------------------------- */

int cuCtxGetCurrent(struct CUctx_st **context)
{
	*context = own.current;
	return CUDA_OK;
}

int cuCtxSetCurrent(struct CUctx_st *context)
{
	own.current = context;
	return CUDA_OK;
}

int cuCtxGetDevice(int *device)
{
	if (own.current == NULL)
		return CUDA_INVALID_CONTEXT;
	*device = own.current->gpu;
	return CUDA_OK;
}

int cuCtxGetId(struct CUctx_st *context, unsigned long long *id)
{
	if (context == NULL)
		context = own.current;
	if (context == NULL)
		return CUDA_INVALID_CONTEXT;
	*id = (unsigned long long)(context - contexts) + 1;
	return CUDA_OK;
}

int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *is_active)
{
	if (device < 0 || device >= GPUS)
		return CUDA_INVALID_VALUE;
	*flags = 0;
	*is_active = 1;
	return CUDA_OK;
}

int cuStreamGetCtx(struct CUstream_st *stream, struct CUctx_st **context)
{
	(void)stream;
	*context = own.current;
	return own.current != NULL ? CUDA_OK : CUDA_INVALID_CONTEXT;
}

int cuStreamIsCapturing(struct CUstream_st *stream, int *state)
{
	(void)stream;
	*state = own.capture != 0 ? CUDA_CAPTURE_ACTIVE : CUDA_CAPTURE_NONE;
	return CUDA_OK;
}

int cuStreamGetCaptureInfo_v2(struct CUstream_st *stream, int *state, uint64_t *id,
			      struct CUgraph_st **graph, struct CUgraphNode_st *const **nodes,
			      size_t *count)
{
	(void)stream;
	*state = own.capture != 0 ? CUDA_CAPTURE_ACTIVE : CUDA_CAPTURE_NONE;
	if (own.capture == 0)
		return CUDA_OK;
	*id = own.capture;
	*graph = NULL;
	*nodes = nodes_of_nccl;
	*count = 1;
	return CUDA_OK;
}

int cuGraphNodeGetType(struct CUgraphNode_st *node, int *type)
{
	*type = node->type;
	return CUDA_OK;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = own.capture_mode;

	own.capture_mode = *mode;
	*mode = before;
	return CUDA_OK;
}

/* ---- events ----------------------------------------------------------------------------------- */

int cuEventCreate(struct CUevent_st **event, unsigned int flags)
{
	struct CUevent_st *made = calloc(1, sizeof(*made));

	(void)flags;
	if (made == NULL)
		return CUDA_OUT_OF_MEMORY;
	*event = made;
	return CUDA_OK;
}

/* The launch of this thread, as an object. NULL: out of memory. */
static struct launch *launch_of_thread(void)
{
	if (own.launch != NULL)
		return own.launch;
	own.launch = calloc(1, sizeof(*own.launch));
	if (own.launch != NULL)
		own.launch->holders = own.launch->parts = 1; /* the launching thread's */
	return own.launch;
}

int cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
	struct launch *launch = NULL;

	(void)stream;
	if (own.capture != 0)
		return CUDA_CAPTURE_UNSUPPORTED;
	if (own.is_launching) {
		launch = launch_of_thread();
		if (launch == NULL)
			return CUDA_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&lock);
	let_go(event->launch);
	event->launch = launch;
	event->is_after = own.is_enqueued;
	event->fired_ns = host_clock_ns();
	if (launch != NULL)
		launch->holders++;
	pthread_mutex_unlock(&lock);
	return CUDA_OK;
}

int cuEventRecordWithFlags(struct CUevent_st *event, struct CUstream_st *stream, unsigned int flags)
{
	if (own.capture == 0)
		return cuEventRecord(event, stream);
	if (flags != CUDA_RECORD_EXTERNAL)
		return CUDA_CAPTURE_UNSUPPORTED;
	if (own.nodes == NULL)
		own.nodes = calloc(1, sizeof(*own.nodes));
	if (own.nodes == NULL || own.nodes->count == NODES)
		return CUDA_OUT_OF_MEMORY;
	own.nodes->events[own.nodes->count] = event;
	own.nodes->is_after[own.nodes->count++] = own.is_enqueued;
	return CUDA_OK;
}

/* When it fired; 0: it has not, or was never recorded. The caller holds the lock. */
static uint64_t fired_ns(const struct CUevent_st *event)
{
	if (event->launch == NULL)
		return event->fired_ns;
	return event->is_after ? event->launch->over_ns : event->launch->reached_ns;
}

int cuEventQuery(struct CUevent_st *event)
{
	bool is_open;

	pthread_mutex_lock(&lock);
	is_open = event->launch != NULL && fired_ns(event) == 0;
	pthread_mutex_unlock(&lock);
	return is_open ? CUDA_NOT_READY : CUDA_OK;
}

int cuEventElapsedTime(float *ms, struct CUevent_st *start, struct CUevent_st *stop)
{
	bool is_recorded;
	uint64_t from, to;

	pthread_mutex_lock(&lock);
	is_recorded = (start->launch != NULL || start->fired_ns != 0) &&
		      (stop->launch != NULL || stop->fired_ns != 0);
	from = fired_ns(start);
	to = fired_ns(stop);
	pthread_mutex_unlock(&lock);
	if (!is_recorded)
		return CUDA_INVALID_HANDLE;
	if (from == 0 || to == 0)
		return CUDA_NOT_READY;
	*ms = (float)((double)(int64_t)(to - from) / 1e6);
	return CUDA_OK;
}
