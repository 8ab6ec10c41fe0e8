/* Internals of the fake streams, graphs and events: only included by these. */
#ifndef FAKE_QUEUE_H
#define FAKE_QUEUE_H

#include <pthread.h>

#include "tests/fake_gpu/fake_cuda.h"
#include "tests/fake_gpu/fake_stream.h"

/* Work shared by streams and graphs; lives as long as one of them uses it. */
struct fake_node {
	struct fake_work work;
	void (*issue)(void *arg); /* called each time it is enqueued; can be NULL */
	int references;
};

struct fake_node *fake_node_new(const struct fake_work *work, void (*issue)(void *arg));
void fake_node_drop(struct fake_node *node);

struct CUgraph_st {
	struct fake_node **nodes;
	size_t count;
	size_t room;
};
cuda_result fake_graph_add(struct CUgraph_st *graph, struct fake_node *node);

struct fake_item {
	struct fake_item *next;
	struct fake_node *node;
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
	struct CUgraph_st *capture;
	uint64_t clock_ns; /* FAKE_GPU_CLOCK=model; only used by its thread */
};

/* The stream of a handle; 0 and 1: the current context's, 2: the thread's. */
cuda_result fake_stream_get(struct CUstream_st *handle, struct CUstream_st **stream);
/* The caller's reference goes to the stream, or to the graph being captured. */
cuda_result fake_stream_put(struct CUstream_st *stream, struct fake_node *node);
/* The same, ignoring a capture. */
cuda_result fake_stream_push(struct CUstream_st *stream, struct fake_node *node);

/* Whether the GPU has reached its latest record. */
bool fake_event_is_reached(const struct CUevent_st *event);

#endif
