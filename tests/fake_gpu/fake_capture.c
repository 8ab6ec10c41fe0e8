/*
 * Captures of streams into graphs. A stream joins one by waiting for an event that was recorded inside; each stream
 * has the nodes that its next work depends on. One lock guards all of it: captures are rare.
 */
#include <stdlib.h>
#include <unistd.h>

#include "common/order.h"
#include "tests/fake_gpu/fake_control.h"
#include "tests/fake_gpu/fake_queue.h"

enum { MODE_GLOBAL = 0 };
enum { DEPENDENCIES_ADD = 0, DEPENDENCIES_SET = 1 };

struct fake_capture {
	struct fake_capture *next;
	uint64_t id;
	int mode;
	int thread; /* that began it */
	bool is_invalidated;
	bool is_given; /* the graph is the user's */
	struct CUgraph_st *graph;
	struct CUstream_st *origin;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_capture *captures;
static int capture_count; /* so that no lock is needed without one */
static uint64_t last_id;
static _Thread_local int thread_mode = MODE_GLOBAL;

static bool is_legacy(const struct CUstream_st *stream)
{
	return stream == stream->home.context->legacy;
}

/* Under the lock, like all static functions here. */
static struct fake_capture *capture_find(uint64_t id)
{
	struct fake_capture *capture = captures;

	while (capture != NULL && capture->id != id)
		capture = capture->next;
	return capture;
}

/* Stream 0 waits for all blocking streams, which must not be while one is captured. */
static cuda_result legacy_check(const struct CUstream_st *legacy, bool invalidates)
{
	struct CUstream_st *stream;
	cuda_result result = 0;

	for (uint32_t i = 0; is_legacy(legacy) && (stream = fake_stream_at(i)) != NULL; i++) {
		if (stream->capture == NULL || !stream->is_blocking ||
		    stream->home.id != legacy->home.id)
			continue;
		result = CUDA_CAPTURE_IMPLICIT;
		if (invalidates)
			stream->capture->is_invalidated = true;
	}
	return result;
}

static cuda_result use_check(const struct CUstream_st *stream)
{
	if (stream->capture != NULL && stream->capture->is_invalidated)
		return FAKE_CAPTURE_INVALIDATED;
	return legacy_check(stream, true);
}

/* ---- calls that a capture forbids ------------------------------------------------------------ */

cuda_result cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = thread_mode;

	FAKE_ENTER(false);
	thread_mode = *mode;
	*mode = before;
	return 0;
}

static bool forbids(const struct fake_capture *capture)
{
	if (thread_mode == CUDA_CAPTURE_MODE_RELAXED || capture->mode == CUDA_CAPTURE_MODE_RELAXED)
		return false;
	return capture->thread == (int)gettid() ||
	       (thread_mode == MODE_GLOBAL && capture->mode == MODE_GLOBAL);
}

cuda_result fake_capture_unsafe(void)
{
	cuda_result result = 0;

	if (load_relaxed(&capture_count) == 0)
		return 0;
	pthread_mutex_lock(&lock);
	for (struct fake_capture *capture = captures; capture != NULL; capture = capture->next) {
		if (!forbids(capture))
			continue;
		capture->is_invalidated = true;
		result = FAKE_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

cuda_result fake_capture_wait_check(struct CUstream_st *stream)
{
	cuda_result result = fake_capture_unsafe();

	if (result != 0 || load_relaxed(&capture_count) == 0)
		return result;
	pthread_mutex_lock(&lock);
	if (stream->capture != NULL) {
		stream->capture->is_invalidated = true;
		result = FAKE_CAPTURE_UNSUPPORTED;
	} else {
		result = legacy_check(stream, true);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

cuda_result fake_capture_use(struct CUstream_st *stream, bool *is_captured)
{
	cuda_result result;

	*is_captured = false;
	if (load_relaxed(&capture_count) == 0)
		return 0;
	pthread_mutex_lock(&lock);
	result = use_check(stream);
	*is_captured = stream->capture != NULL;
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

cuda_result fake_capture_add(struct CUstream_st *stream, struct CUgraphNode_st *node)
{
	cuda_result result;

	pthread_mutex_lock(&lock);
	result = stream->capture == NULL ? FAKE_CAPTURE_INVALIDATED : use_check(stream);
	if (result == 0)
		result = fake_graph_add(stream->capture->graph, node);
	if (result == 0)
		stream->tails = (struct fake_tails){ .count = 1, .nodes = { node } };
	pthread_mutex_unlock(&lock);
	return result;
}

static void tails_add(struct fake_tails *tails, struct CUgraphNode_st *node)
{
	for (size_t i = 0; i < tails->count; i++) {
		if (tails->nodes[i] == node)
			return;
	}
	if (tails->count < FAKE_TAILS_MAX)
		tails->nodes[tails->count++] = node;
}

cuda_result cuStreamUpdateCaptureDependencies(struct CUstream_st *handle,
					      struct CUgraphNode_st **nodes, size_t count,
					      unsigned int flags)
{
	struct CUstream_st *stream;
	cuda_result result;

	FAKE_ENTER(false);
	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	if (flags > DEPENDENCIES_SET)
		return FAKE_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	result = stream->capture == NULL ? FAKE_ILLEGAL_STATE : use_check(stream);
	if (result == 0 && flags == DEPENDENCIES_SET)
		stream->tails.count = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		tails_add(&stream->tails, nodes[i]);
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- events ---------------------------------------------------------------------------------- */

cuda_result fake_capture_record(struct CUstream_st *stream, struct fake_mark *mark)
{
	cuda_result result;

	pthread_mutex_lock(&lock);
	result = stream->capture == NULL ? FAKE_CAPTURE_INVALIDATED : use_check(stream);
	if (result == 0)
		*mark = (struct fake_mark){ .capture = stream->capture->id,
					    .tails = stream->tails };
	pthread_mutex_unlock(&lock);
	return result;
}

void fake_capture_forget(struct fake_mark *mark)
{
	pthread_mutex_lock(&lock);
	mark->capture = 0;
	pthread_mutex_unlock(&lock);
}

bool fake_capture_has(const struct fake_mark *mark)
{
	bool has_capture;

	pthread_mutex_lock(&lock);
	has_capture = mark->capture != 0;
	pthread_mutex_unlock(&lock);
	return has_capture;
}

/* The stream continues behind the mark, in the mark's capture. */
static cuda_result join(struct CUstream_st *stream, const struct fake_mark *mark)
{
	struct fake_capture *capture = capture_find(mark->capture);
	cuda_result result = use_check(stream);

	if (result != 0)
		return result;
	if (capture == NULL)
		return FAKE_INVALID_VALUE;
	if (capture->is_invalidated)
		return FAKE_CAPTURE_INVALIDATED;
	if (is_legacy(stream) || (stream->capture != NULL && stream->capture != capture)) {
		capture->is_invalidated = true;
		if (stream->capture != NULL)
			stream->capture->is_invalidated = true;
		return stream->capture != NULL ? FAKE_CAPTURE_MERGE : CUDA_CAPTURE_IMPLICIT;
	}
	stream->capture = capture;
	for (size_t i = 0; i < mark->tails.count; i++)
		tails_add(&stream->tails, mark->tails.nodes[i]);
	return 0;
}

cuda_result fake_capture_join(struct CUstream_st *stream, const struct fake_mark *mark)
{
	cuda_result result;

	pthread_mutex_lock(&lock);
	result = join(stream, mark);
	pthread_mutex_unlock(&lock);
	return result;
}

cuda_result fake_capture_isolation(struct CUstream_st *stream)
{
	pthread_mutex_lock(&lock);
	if (stream->capture != NULL)
		stream->capture->is_invalidated = true;
	pthread_mutex_unlock(&lock);
	return FAKE_CAPTURE_ISOLATION;
}

cuda_result fake_capture_ask(const struct fake_mark *mark, bool invalidates)
{
	struct fake_capture *capture;
	cuda_result result = 0;

	pthread_mutex_lock(&lock);
	if (mark->capture != 0) {
		capture = capture_find(mark->capture);
		result = capture != NULL ? FAKE_CAPTURED_EVENT : FAKE_INVALID_VALUE;
		if (capture != NULL && invalidates)
			capture->is_invalidated = true;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static cuda_result begin(struct CUstream_st *stream, struct CUgraph_st *graph, int mode)
{
	struct fake_capture *capture;

	if (is_legacy(stream))
		return FAKE_CAPTURE_UNSUPPORTED;
	if (stream->capture != NULL)
		return FAKE_ILLEGAL_STATE;
	capture = calloc(1, sizeof(*capture));
	if (capture == NULL)
		return FAKE_OUT_OF_MEMORY;
	*capture = (struct fake_capture){
		.next = captures,
		.id = ++last_id,
		.mode = mode,
		.thread = (int)gettid(),
		.is_given = graph != NULL,
		.graph = graph != NULL ? graph : calloc(1, sizeof(*graph)),
		.origin = stream,
	};
	if (capture->graph == NULL) {
		free(capture);
		return FAKE_OUT_OF_MEMORY;
	}
	captures = capture;
	add_relaxed(&capture_count, 1);
	stream->capture = capture;
	stream->tails.count = 0;
	return 0;
}

cuda_result cuStreamBeginCapture_v2(struct CUstream_st *handle, int mode)
{
	struct CUstream_st *stream;
	cuda_result result;

	FAKE_ENTER(false);
	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	if (mode < 0 || mode > CUDA_CAPTURE_MODE_RELAXED)
		return FAKE_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	result = begin(stream, NULL, mode);
	pthread_mutex_unlock(&lock);
	return result;
}

cuda_result cuStreamBeginCaptureToGraph(struct CUstream_st *handle, struct CUgraph_st *graph,
					struct CUgraphNode_st *const *nodes, const void *edges,
					size_t count, int mode)
{
	struct CUstream_st *stream;
	cuda_result result;

	FAKE_ENTER(false);
	(void)edges;
	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	if (graph == NULL || mode < 0 || mode > CUDA_CAPTURE_MODE_RELAXED)
		return FAKE_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	result = begin(stream, graph, mode);
	for (size_t i = 0; i < count && result == 0; i++)
		tails_add(&stream->tails, nodes[i]);
	pthread_mutex_unlock(&lock);
	return result;
}

/* Returns its graph, or NULL if that is gone. */
static struct CUgraph_st *capture_end(struct fake_capture *capture)
{
	struct fake_capture **link = &captures;
	struct CUgraph_st *graph = capture->graph;
	struct CUstream_st *stream;

	for (uint32_t i = 0; (stream = fake_stream_at(i)) != NULL; i++) {
		if (stream->capture == capture)
			stream->capture = NULL;
	}
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	add_relaxed(&capture_count, -1);
	if (capture->is_invalidated) {
		if (!capture->is_given)
			fake_graph_free(graph);
		graph = NULL;
	}
	free(capture);
	return graph;
}

cuda_result cuStreamEndCapture(struct CUstream_st *handle, struct CUgraph_st **graph)
{
	struct fake_capture *capture;
	struct CUstream_st *stream;
	cuda_result result;

	FAKE_ENTER(false);
	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	pthread_mutex_lock(&lock);
	capture = stream->capture;
	if (capture == NULL) {
		result = FAKE_ILLEGAL_STATE;
	} else if (capture->mode != CUDA_CAPTURE_MODE_RELAXED && capture->thread != (int)gettid()) {
		result = FAKE_CAPTURE_WRONG_THREAD;
	} else if (capture->origin != stream) {
		result = FAKE_CAPTURE_UNMATCHED;
	} else {
		*graph = capture_end(capture);
		result = *graph == NULL ? FAKE_CAPTURE_INVALIDATED : 0;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- questions ------------------------------------------------------------------------------- */

static int state_of(const struct CUstream_st *stream)
{
	if (stream->capture == NULL)
		return CUDA_CAPTURE_NONE;
	return stream->capture->is_invalidated ? CUDA_CAPTURE_INVALIDATED : CUDA_CAPTURE_ACTIVE;
}

/* Invalidates nothing, not even on stream 0. */
cuda_result cuStreamIsCapturing(struct CUstream_st *handle, int *state)
{
	struct CUstream_st *stream;
	cuda_result result;

	FAKE_ENTER(false);
	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	pthread_mutex_lock(&lock);
	result = legacy_check(stream, false);
	if (result == 0)
		*state = state_of(stream);
	pthread_mutex_unlock(&lock);
	return result;
}

cuda_result cuStreamGetCaptureInfo_v2(struct CUstream_st *handle, int *state, uint64_t *id,
				      struct CUgraph_st **graph,
				      struct CUgraphNode_st *const **nodes, size_t *count)
{
	struct CUstream_st *stream;
	cuda_result result;

	FAKE_ENTER(false);
	result = fake_stream_get(handle, &stream);
	if (result != 0)
		return result;
	pthread_mutex_lock(&lock);
	result = legacy_check(stream, false);
	if (result == 0)
		*state = state_of(stream);
	if (result == 0 && *state == CUDA_CAPTURE_ACTIVE) {
		if (id != NULL)
			*id = stream->capture->id;
		if (graph != NULL)
			*graph = stream->capture->graph;
		if (nodes != NULL)
			*nodes = stream->tails.nodes;
		if (count != NULL)
			*count = stream->tails.count;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

bool fake_stream_is_capturing(struct CUstream_st *handle)
{
	struct CUstream_st *stream;
	bool is_captured;

	if (fake_stream_get(handle, &stream) != 0)
		return false;
	pthread_mutex_lock(&lock);
	is_captured = stream->capture != NULL;
	pthread_mutex_unlock(&lock);
	return is_captured;
}

/* ---- what NCCL adds -------------------------------------------------------------------------- */

/* NCCL's own event: nobody waits for it here. */
static int order_run(void *arg, struct CUstream_st *stream)
{
	(void)arg, (void)stream;
	return 0;
}

static struct CUgraphNode_st *order_node(struct CUstream_st *stream, int type)
{
	struct fake_work work = { .run = order_run };
	struct CUgraphNode_st *node = fake_node_new(&work, NULL, type);

	if (node != NULL && fake_graph_add(stream->capture->graph, node) != 0) {
		fake_node_drop(node);
		return NULL;
	}
	return node;
}

void fake_capture_order_before(struct CUstream_st *handle, struct fake_order *order)
{
	struct CUstream_st *stream;
	struct CUgraphNode_st *node;

	if (fake_stream_get(handle, &stream) != 0)
		return;
	pthread_mutex_lock(&lock);
	if (state_of(stream) == CUDA_CAPTURE_ACTIVE) {
		node = order->capture == stream->capture->id
			       ? order->record
			       : order_node(stream, CUDA_NODE_EVENT_WAIT);
		if (node != NULL)
			tails_add(&stream->tails, node);
	}
	pthread_mutex_unlock(&lock);
}

void fake_capture_order_after(struct CUstream_st *handle, struct fake_order *order)
{
	struct CUstream_st *stream;

	if (fake_stream_get(handle, &stream) != 0)
		return;
	pthread_mutex_lock(&lock);
	if (state_of(stream) == CUDA_CAPTURE_ACTIVE) {
		order->capture = stream->capture->id;
		order->record = order_node(stream, CUDA_NODE_EVENT_RECORD);
	}
	pthread_mutex_unlock(&lock);
}
