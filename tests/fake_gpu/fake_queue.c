/* A stream is a queue with a thread, so enqueued work is really asynchronous. See fake_stream.h for time. */
#include "tests/fake_gpu/fake_queue.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/order.h"
#include "tests/fake_gpu/fake_control.h"

enum { QUERY_NS = 1000000 };

static _Thread_local int captures;

bool fake_is_thread_capturing(void)
{
	return captures > 0;
}

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

struct fake_node *fake_node_new(const struct fake_work *work, void (*issue)(void *arg))
{
	struct fake_node *node = malloc(sizeof(*node));

	if (node != NULL)
		*node = (struct fake_node){ .work = *work, .issue = issue, .references = 1 };
	return node;
}

void fake_node_drop(struct fake_node *node)
{
	/* The last one sees the writes of all others. Pairs with itself. */
	if (__atomic_sub_fetch(&node->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (node->work.release != NULL)
		node->work.release(node->work.arg);
	free(node);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void stream_free(struct CUstream_st *stream)
{
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->changed);
	pthread_cond_destroy(&stream->idle);
	free(stream);
}

/* Under the lock. */
static bool may_run(const struct CUstream_st *stream)
{
	return stream->first != NULL && (!stream->is_held || stream->let_past > 0);
}

static struct fake_node *stream_take(struct CUstream_st *stream)
{
	struct fake_item *item;
	struct fake_node *node;

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
	struct fake_node *node;

	while ((node = stream_take(stream)) != NULL) {
		cuda_result error = load_relaxed(&stream->error);

		/* After an error nothing runs anymore. */
		if (error == 0)
			error = node->work.run(node->work.arg, stream);
		fake_node_drop(node);
		store_relaxed(&stream->error, error);
	}
	stream_free(stream);
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

cuda_result cuStreamCreate(struct CUstream_st **stream, unsigned int flags)
{
	struct CUstream_st *made;

	FAKE_ENTER(true);
	if (flags > CUDA_STREAM_NON_BLOCKING)
		return FAKE_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return FAKE_OUT_OF_MEMORY;
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->changed, NULL);
	pthread_cond_init(&made->idle, NULL);
	made->last = &made->first;
	made->clock_ns = fake_clock();
	if (thread_start(made) != 0) {
		stream_free(made);
		return FAKE_OUT_OF_MEMORY;
	}
	*stream = made;
	return 0;
}

/* Like CUDA: returns at once, enqueued work still runs. */
cuda_result cuStreamDestroy_v2(struct CUstream_st *stream)
{
	FAKE_ENTER(true);
	if (stream == NULL)
		return FAKE_INVALID_HANDLE;
	pthread_mutex_lock(&stream->lock);
	stream->is_ending = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

cuda_result fake_stream_push(struct CUstream_st *stream, struct fake_node *node)
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

cuda_result fake_stream_put(struct CUstream_st *stream, struct fake_node *node)
{
	if (stream->capture != NULL)
		return fake_graph_add(stream->capture, node);
	return fake_stream_push(stream, node);
}

int fake_stream_add(struct CUstream_st *stream, const struct fake_work *work)
{
	struct fake_node *node;
	cuda_result result;

	if (stream == NULL)
		return FAKE_INVALID_HANDLE;
	node = fake_node_new(work, NULL);
	if (node == NULL)
		return FAKE_OUT_OF_MEMORY;
	result = fake_stream_put(stream, node);
	if (result != 0)
		free(node);
	return result;
}

static bool is_over(const struct CUstream_st *stream)
{
	return stream->first == NULL && !stream->is_busy;
}

cuda_result cuStreamSynchronize(struct CUstream_st *stream)
{
	FAKE_ENTER(true);
	if (stream == NULL)
		return FAKE_INVALID_HANDLE;
	if (stream->capture != NULL)
		return FAKE_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&stream->lock);
	while (!is_over(stream))
		pthread_cond_wait(&stream->idle, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return load_relaxed(&stream->error);
}

/* Whoever asks, asks again: the answer waits a little, or the question would take the processor that the work needs. */
cuda_result cuStreamQuery(struct CUstream_st *stream)
{
	struct timespec until;
	cuda_result result;

	FAKE_ENTER(true);
	if (stream == NULL)
		return FAKE_INVALID_HANDLE;
	if (stream->capture != NULL)
		return FAKE_CAPTURE_UNSUPPORTED;
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

static int stream_hold(struct CUstream_st *stream, bool is_held)
{
	if (stream == NULL)
		return FAKE_INVALID_HANDLE;
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

unsigned int fake_stream_step(struct CUstream_st *stream, unsigned int n)
{
	unsigned int left;

	if (stream == NULL)
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
};

static int timed_run(void *arg, struct CUstream_st *stream)
{
	const struct timed *timed = arg;

	fake_stream_pass(stream, fake_clock(), timed->duration_ns);
	return 0;
}

int fake_stream_kernel(struct CUstream_st *stream, uint64_t duration_ns)
{
	struct timed *timed = malloc(sizeof(*timed));
	struct fake_work work = { .run = timed_run, .release = free, .arg = timed };
	cuda_result result;

	if (timed == NULL)
		return FAKE_OUT_OF_MEMORY;
	timed->duration_ns = duration_ns;
	result = fake_stream_add(stream, &work);
	if (result != 0)
		free(timed);
	return result;
}

/* ---- capture --------------------------------------------------------------------------------- */

bool fake_stream_is_capturing(struct CUstream_st *stream)
{
	return stream != NULL && stream->capture != NULL;
}

cuda_result cuStreamBeginCapture_v2(struct CUstream_st *stream, int mode)
{
	FAKE_ENTER(true);
	if (stream == NULL || stream->capture != NULL || mode < 0 || mode > 2)
		return FAKE_INVALID_VALUE;
	stream->capture = calloc(1, sizeof(*stream->capture));
	if (stream->capture == NULL)
		return FAKE_OUT_OF_MEMORY;
	captures++;
	return 0;
}

cuda_result cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph)
{
	FAKE_ENTER(true);
	if (stream == NULL || stream->capture == NULL)
		return FAKE_INVALID_VALUE;
	*graph = stream->capture;
	stream->capture = NULL;
	captures--;
	return 0;
}
