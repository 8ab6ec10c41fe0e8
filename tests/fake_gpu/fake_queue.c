/* A stream is a queue with a thread, so enqueued work is really asynchronous. See fake_stream.h for time. */
#include "tests/fake_gpu/fake_queue.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/order.h"
#include "tests/fake_gpu/fake_control.h"

enum { QUERY_NS = 1000000, STREAMS_MAX = 1 << 12 };

/* Their memory is not used again, so that a use after the end is an error and not a crash. */
static struct CUstream_st streams[STREAMS_MAX];
static uint32_t stream_count;
static pthread_mutex_t special_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct CUstream_st *own_streams[FAKE_CONTEXTS_MAX];

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t fake_clock(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_model_time(void)
{
	const char *clock = getenv("FAKE_GPU_CLOCK");

	return clock != NULL && strcmp(clock, "model") == 0;
}

uint64_t fake_stream_time(const struct CUstream_st *stream)
{
	return is_model_time() ? stream->clock_ns : fake_clock();
}

void fake_stream_pass(struct CUstream_st *stream, uint64_t begin_ns, uint64_t duration_ns)
{
	uint64_t end_ns = begin_ns + duration_ns;
	struct timespec end = { .tv_sec = (time_t)(end_ns / 1000000000),
				.tv_nsec = (long)(end_ns % 1000000000) };

	stream->clock_ns += duration_ns;
	if (is_model_time() || end_ns <= fake_clock())
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0)
		;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct CUgraphNode_st *fake_node_new(const struct fake_work *work, void (*issue)(void *arg),
				     int type)
{
	struct CUgraphNode_st *node = malloc(sizeof(*node));

	if (node != NULL)
		*node = (struct CUgraphNode_st){
			.work = *work, .issue = issue, .type = type, .references = 1
		};
	return node;
}

void fake_node_drop(struct CUgraphNode_st *node)
{
	/* The last one sees the writes of all others. Pairs with itself. */
	if (__atomic_sub_fetch(&node->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (node->work.release != NULL)
		node->work.release(node->work.arg);
	if (node->body != NULL)
		fake_graph_free(node->body);
	free(node);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Under the lock. */
static bool may_run(const struct CUstream_st *stream)
{
	return stream->first != NULL && (!stream->is_held || stream->let_past > 0);
}

static struct CUgraphNode_st *stream_take(struct CUstream_st *stream)
{
	struct fake_item *item;
	struct CUgraphNode_st *node;

	pthread_mutex_lock(&stream->lock);
	stream->is_busy = false;
	if (!may_run(stream))
		pthread_cond_broadcast(&stream->idle);
	while (!may_run(stream) && !(stream->is_ending && stream->first == NULL))
		pthread_cond_wait(&stream->changed, &stream->lock);
	item = stream->first;
	if (item != NULL) {
		if (stream->is_held)
			stream->let_past--;
		stream->first = item->next;
		if (stream->first == NULL)
			stream->last = &stream->first;
		stream->is_busy = true;
	}
	pthread_mutex_unlock(&stream->lock);
	if (item == NULL)
		return NULL;
	node = item->node;
	free(item);
	return node;
}

static void *stream_main(void *arg)
{
	struct CUstream_st *stream = arg;
	struct CUgraphNode_st *node;

	while ((node = stream_take(stream)) != NULL) {
		cuda_result error = load_relaxed(&stream->error);

		/* After an error nothing runs anymore. */
		if (error == 0)
			error = node->work.run(node->work.arg, stream);
		fake_node_drop(node);
		store_relaxed(&stream->error, error);
		if (error != 0 && fake_home_exists(&stream->home))
			store_relaxed(&stream->home.context->error, error);
	}
	return NULL;
}

static cuda_result thread_start(struct CUstream_st *stream)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int failed;

	/* Signals are handled by the caller's threads. */
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&thread, &attributes, stream_main, stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failed != 0 ? FAKE_OUT_OF_MEMORY : 0;
}

static cuda_result stream_new(struct CUstream_st **stream, bool is_blocking)
{
	uint32_t number = add_relaxed(&stream_count, 1);
	struct CUstream_st *made;

	if (number >= STREAMS_MAX) {
		store_relaxed(&stream_count, STREAMS_MAX);
		return FAKE_OUT_OF_MEMORY;
	}
	made = &streams[number];
	made->home = fake_home_current();
	made->is_blocking = is_blocking;
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->changed, NULL);
	pthread_cond_init(&made->idle, NULL);
	made->last = &made->first;
	made->clock_ns = fake_clock();
	if (thread_start(made) != 0) {
		made->is_ending = true;
		return FAKE_OUT_OF_MEMORY;
	}
	*stream = made;
	return 0;
}

/* Streams 0, 1 and 2 of the current context. */
static cuda_result special_get(bool is_per_thread, struct CUstream_st **stream)
{
	struct CUctx_st *context = fake_context_current();
	struct CUstream_st **place;
	cuda_result result = 0;

	if (context == NULL)
		return FAKE_INVALID_CONTEXT;
	if (load_relaxed(&context->id) == 0)
		return FAKE_CONTEXT_IS_DESTROYED;
	pthread_mutex_lock(&special_lock);
	place = is_per_thread ? &own_streams[fake_context_number(context)] : &context->legacy;
	if (*place == NULL || !fake_home_exists(&(*place)->home))
		result = stream_new(place, true);
	if (result == 0)
		*stream = *place;
	pthread_mutex_unlock(&special_lock);
	return result;
}

cuda_result fake_stream_get(struct CUstream_st *handle, struct CUstream_st **stream)
{
	uintptr_t number = (uintptr_t)handle, offset = number - (uintptr_t)streams;

	if (number < CUDA_STREAMS_WITHOUT_CONTEXT)
		return special_get(number == CUDA_STREAMS_WITHOUT_CONTEXT - 1, stream);
	if (offset >= sizeof(streams) || offset % sizeof(*handle) != 0 ||
	    offset / sizeof(*handle) >= load_relaxed(&stream_count))
		return FAKE_INVALID_HANDLE;
	if (!fake_home_exists(&handle->home))
		return fake_stale(FAKE_CONTEXT_IS_DESTROYED);
	if (load_relaxed(&handle->is_ending))
		return fake_stale(FAKE_INVALID_CONTEXT);
	*stream = handle;
	return 0;
}

cuda_result cuStreamCreate(struct CUstream_st **stream, unsigned int flags)
{
	FAKE_ENTER(true);
	if (flags > CUDA_STREAM_NON_BLOCKING)
		return FAKE_INVALID_VALUE;
	return stream_new(stream, flags == 0);
}

static void stream_end(struct CUstream_st *stream)
{
	pthread_mutex_lock(&stream->lock);
	store_relaxed(&stream->is_ending, true);
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
}

/* Like CUDA: returns at once, enqueued work still runs. */
cuda_result cuStreamDestroy_v2(struct CUstream_st *stream)
{
	struct CUstream_st *found;
	cuda_result result;

	FAKE_ENTER(false);
	if ((uintptr_t)stream < CUDA_STREAMS_WITHOUT_CONTEXT)
		return FAKE_INVALID_HANDLE;
	result = fake_stream_get(stream, &found);
	if (result == 0)
		stream_end(found);
	return result;
}

static void stream_empty(struct CUstream_st *stream)
{
	struct fake_item *item;

	pthread_mutex_lock(&stream->lock);
	item = stream->first;
	stream->first = NULL;
	stream->last = &stream->first;
	stream->is_held = false;
	pthread_mutex_unlock(&stream->lock);
	while (item != NULL) {
		struct fake_item *next = item->next;

		fake_node_drop(item->node);
		free(item);
		item = next;
	}
}

void fake_streams_end(const struct CUctx_st *context, uint64_t id)
{
	for (uint32_t i = 0; i < load_relaxed(&stream_count); i++) {
		if (streams[i].home.context != context || streams[i].home.id != id)
			continue;
		stream_empty(&streams[i]);
		stream_end(&streams[i]);
	}
}

cuda_result cuStreamGetCtx(struct CUstream_st *handle, struct CUctx_st **context)
{
	struct CUstream_st *stream;
	bool is_captured;
	cuda_result result;

	FAKE_ENTER(false);
	result = fake_stream_get(handle, &stream);
	/* On stream 0 this breaks captures like work would. */
	if (result == 0 && stream == stream->home.context->legacy)
		result = fake_capture_use(stream, &is_captured);
	if (result == 0)
		*context = stream->home.context;
	return result;
}

struct CUstream_st *fake_stream_at(uint32_t i)
{
	return i < load_relaxed(&stream_count) ? &streams[i] : NULL;
}

cuda_result fake_stream_push(struct CUstream_st *stream, struct CUgraphNode_st *node)
{
	struct fake_item *item = malloc(sizeof(*item));

	if (item == NULL)
		return FAKE_OUT_OF_MEMORY;
	if (node->issue != NULL)
		node->issue(node->work.arg);
	*item = (struct fake_item){ .node = node };
	pthread_mutex_lock(&stream->lock);
	*stream->last = item;
	stream->last = &item->next;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

cuda_result fake_stream_put(struct CUstream_st *stream, struct CUgraphNode_st *node)
{
	bool is_captured;
	cuda_result result = fake_capture_use(stream, &is_captured);

	if (result != 0)
		return result;
	return is_captured ? fake_capture_add(stream, node) : fake_stream_push(stream, node);
}

cuda_result fake_stream_enqueue(struct CUstream_st *handle, const struct fake_work *work, int type)
{
	struct CUstream_st *stream;
	struct CUgraphNode_st *node;
	cuda_result result;

	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	node = fake_node_new(work, NULL, type);
	if (node == NULL)
		return FAKE_OUT_OF_MEMORY;
	result = fake_stream_put(stream, node);
	if (result != 0)
		free(node);
	return result;
}

int fake_stream_add(struct CUstream_st *handle, const struct fake_work *work)
{
	return fake_stream_enqueue(handle, work, FAKE_NODE_KERNEL);
}

int fake_stream_launch(struct CUstream_st *stream, const struct fake_work *work)
{
	cuda_result result = fake_enter("cuLaunchKernelEx", false);

	return result != 0 ? result : fake_stream_add(stream, work);
}

static bool is_over(const struct CUstream_st *stream)
{
	return stream->first == NULL && !stream->is_busy;
}

cuda_result cuStreamSynchronize(struct CUstream_st *handle)
{
	struct CUstream_st *stream;
	cuda_result result;

	FAKE_ENTER(false);
	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	result = fake_capture_wait_check(stream);
	if (result != 0)
		return result;
	pthread_mutex_lock(&stream->lock);
	while (!is_over(stream))
		pthread_cond_wait(&stream->idle, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return load_relaxed(&stream->error);
}

/* Whoever asks, asks again: the answer waits a little, or the question would take the processor that the work needs. */
cuda_result cuStreamQuery(struct CUstream_st *handle)
{
	struct CUstream_st *stream;
	struct timespec until;
	cuda_result result;

	FAKE_ENTER(false);
	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	result = fake_capture_wait_check(stream);
	if (result != 0)
		return result;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += QUERY_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&stream->lock);
	while (!is_over(stream) &&
	       pthread_cond_timedwait(&stream->idle, &stream->lock, &until) == 0)
		;
	result = is_over(stream) ? load_relaxed(&stream->error) : CUDA_NOT_READY;
	pthread_mutex_unlock(&stream->lock);
	return result;
}

/* ---- for tests ------------------------------------------------------------------------------- */

#define FAKE_DECLARE(type, member, symbol, parameters) EXPORTED type symbol parameters;
FAKE_CONTROL_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

static int stream_hold(struct CUstream_st *handle, bool is_held)
{
	struct CUstream_st *stream;
	cuda_result result = fake_stream_get(handle, &stream);

	if (result != 0)
		return result;
	pthread_mutex_lock(&stream->lock);
	stream->is_held = is_held;
	stream->let_past = 0;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

int fake_stream_hold(struct CUstream_st *stream)
{
	return stream_hold(stream, true);
}

int fake_stream_release(struct CUstream_st *stream)
{
	return stream_hold(stream, false);
}

unsigned int fake_stream_step(struct CUstream_st *handle, unsigned int n)
{
	struct CUstream_st *stream;
	unsigned int left;

	if (fake_stream_get(handle, &stream) != 0)
		return 0;
	pthread_mutex_lock(&stream->lock);
	stream->let_past = n;
	pthread_cond_broadcast(&stream->changed);
	while (may_run(stream) || stream->is_busy)
		pthread_cond_wait(&stream->idle, &stream->lock);
	left = stream->let_past;
	stream->let_past = 0;
	pthread_mutex_unlock(&stream->lock);
	return n - left;
}

bool fake_stream_step_to(struct CUstream_st *stream, struct CUevent_st *event)
{
	while (!fake_event_is_reached(event)) {
		if (fake_stream_step(stream, 1) == 0)
			return false;
	}
	return true;
}

struct timed {
	uint64_t duration_ns;
	int code;
};

static int timed_run(void *arg, struct CUstream_st *stream)
{
	const struct timed *timed = arg;

	fake_stream_pass(stream, fake_clock(), timed->duration_ns);
	return timed->code;
}

static int timed_launch(struct CUstream_st *stream, uint64_t duration_ns, int code)
{
	struct timed *timed = malloc(sizeof(*timed));
	struct fake_work work = { .run = timed_run, .release = free, .arg = timed };
	cuda_result result;

	if (timed == NULL)
		return FAKE_OUT_OF_MEMORY;
	*timed = (struct timed){ .duration_ns = duration_ns, .code = code };
	result = fake_stream_add(stream, &work);
	if (result != 0)
		free(timed);
	return result;
}

int fake_stream_kernel(struct CUstream_st *stream, uint64_t duration_ns)
{
	return timed_launch(stream, duration_ns, 0);
}

int fake_stream_fault(struct CUstream_st *stream, int code)
{
	return timed_launch(stream, 0, code);
}
