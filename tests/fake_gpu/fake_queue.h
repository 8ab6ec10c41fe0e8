/* Internals of the fake streams, graphs and events: only included by these. */
#ifndef FAKE_QUEUE_H
#define FAKE_QUEUE_H

#include <pthread.h>

#include "tests/fake_gpu/fake_cuda.h"
#include "tests/fake_gpu/fake_stream.h"

/* CUgraphNodeType, further ones than in cuda_driver.h. */
enum { FAKE_NODE_KERNEL = 0, FAKE_NODE_MEMSET = 2, FAKE_NODE_CONDITIONAL = 13 };

/* Work shared by streams and graphs; lives as long as one of them uses it. */
struct CUgraphNode_st {
	struct fake_work work;
	void (*issue)(void *arg); /* called each time it is enqueued; can be NULL */
	int type;
	int references;
	struct CUgraph_st *body; /* conditional: its own */
};

struct CUgraphNode_st *fake_node_new(const struct fake_work *work, void (*issue)(void *arg),
				     int type);
void fake_node_drop(struct CUgraphNode_st *node);

struct CUgraph_st {
	struct CUgraphNode_st **nodes;
	size_t count;
	size_t room;
};
cuda_result fake_graph_add(struct CUgraph_st *graph, struct CUgraphNode_st *node);
void fake_graph_free(struct CUgraph_st *graph);

/* What the next work that is captured depends on. */
enum { FAKE_TAILS_MAX = 16 };
struct fake_tails {
	size_t count;
	struct CUgraphNode_st *nodes[FAKE_TAILS_MAX];
};
/* Where an event was recorded inside a capture. */
struct fake_mark {
	uint64_t capture; /* 0: the event was recorded outside */
	struct fake_tails tails;
};

struct fake_item {
	struct fake_item *next;
	struct CUgraphNode_st *node;
};

struct CUstream_st {
	struct fake_home home;
	bool is_blocking; /* waits for stream 0, and stream 0 for it: not played, but matters for captures */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* work was added or is let past, or the stream ends */
	pthread_cond_t idle;	/* nothing is left, or nothing may run */
	struct fake_item *first;
	struct fake_item **last;
	bool is_busy; /* executing one that has left the queue */
	bool is_ending;
	bool is_held;	       /* by a test, which lets ... */
	unsigned int let_past; /* ... so many more run */
	cuda_result error;
	struct fake_capture *capture;
	struct fake_tails tails;
	uint64_t clock_ns; /* FAKE_GPU_CLOCK=model; only used by its thread */
};

/* The stream of a handle; 0 and 1: the current context's, 2: the thread's. */
cuda_result fake_stream_get(struct CUstream_st *handle, struct CUstream_st **stream);
/* The caller's reference goes to the stream, or to the graph being captured. */
cuda_result fake_stream_put(struct CUstream_st *stream, struct CUgraphNode_st *node);
/* The same, ignoring a capture. */
cuda_result fake_stream_push(struct CUstream_st *stream, struct CUgraphNode_st *node);

/* The ith stream that was made, or NULL. */
struct CUstream_st *fake_stream_at(uint32_t i);
/* Adds work to a stream, captured or not, with the type of the node. */
cuda_result fake_stream_enqueue(struct CUstream_st *handle, const struct fake_work *work, int type);

/* fake_capture.c: before work is enqueued. An error can be an earlier call's, which invalidated the capture. */
cuda_result fake_capture_use(struct CUstream_st *stream, bool *is_captured);
cuda_result fake_capture_add(struct CUstream_st *stream, struct CUgraphNode_st *node);
/* Before calls that could wait: forbidden while captures go on, unless the thread's mode allows it. */
cuda_result fake_capture_unsafe(void);
/* The same before waiting for a stream. */
cuda_result fake_capture_wait_check(struct CUstream_st *stream);
/* Events within captures. */
cuda_result fake_capture_record(struct CUstream_st *stream, struct fake_mark *mark);
cuda_result fake_capture_join(struct CUstream_st *stream, const struct fake_mark *mark);
void fake_capture_forget(struct fake_mark *mark);
bool fake_capture_has(const struct fake_mark *mark);
cuda_result fake_capture_isolation(struct CUstream_st *stream);
cuda_result fake_capture_ask(const struct fake_mark *mark, bool invalidates);

/* Whether the GPU has reached its latest record. */
bool fake_event_is_reached(const struct CUevent_st *event);

#endif
