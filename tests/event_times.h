/* What tests/event_times_plugin.c has found: exported as `event_times`. */
#ifndef EVENT_TIMES_H
#define EVENT_TIMES_H

#include <stdbool.h>

#include "common/cuda_driver.h"

enum { EVENT_TIMES_MAX = 16 };

struct event_times_launch {
	struct CUstream_st *stream;
	struct CUevent_st *before;
	struct CUevent_st *after;
	int state; /* of the capture */
	int waits; /* event nodes that the launch depends on */
	int records;
	int thread;
	bool is_stopped;
};

struct event_times {
	struct cuda_driver driver;
	unsigned int count;
	struct event_times_launch launches[EVENT_TIMES_MAX];
};

#endif
