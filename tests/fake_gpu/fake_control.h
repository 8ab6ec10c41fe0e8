/*
 * How a test controls the fake CUDA driver and sees what was called: exported by its libcuda.so.1, found with dlsym.
 * A function is named as in CUDA ("cuEventQuery"); "*" means all of them.
 *
 *	struct fake_control control;
 *
 *	if (fake_control_open(&control, library))
 *		control.fail("cuEventCreate", 3, 2);
 */
#ifndef FAKE_CONTROL_H
#define FAKE_CONTROL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;

/* X(type, member, symbol, parameters) */
#define FAKE_CONTROL_FUNCTIONS(X)                                                                 \
	/* Forgets counts, failures and delays, and lets go of blocked calls. */                  \
	X(void, clear, fake_cuda_clear, (void))                                                   \
	/* The nth call from now returns `code`; 0: every call. Code 0: none anymore. */          \
	X(void, fail, fake_cuda_fail, (const char *function, unsigned int nth, int code))         \
	/* Calls do not return until it is called again with false. */                            \
	X(void, block, fake_cuda_block, (const char *function, bool is_blocked))                  \
	/* Threads that are blocked in it now. */                                                 \
	X(unsigned int, blocked, fake_cuda_blocked, (const char *function))                       \
	/* Each call takes this long. */                                                          \
	X(void, delay, fake_cuda_delay, (const char *function, unsigned int milliseconds))        \
	/* The driver has shut down, as while a process exits: every call returns 4. */           \
	X(void, shut_down, fake_cuda_shut_down, (bool is_down))                                   \
	X(uint64_t, calls, fake_cuda_calls, (const char *function))                               \
	/* Calls of all functions by a thread (gettid). */                                        \
	X(uint64_t, calls_by, fake_cuda_calls_by, (int thread))                                   \
	/* The thread that called it last; 0: none. */                                            \
	X(int, last_thread, fake_cuda_last_thread, (const char *function))                        \
	/* Calls with a handle whose object or context no longer exists. CUDA may crash. */       \
	X(uint64_t, stale_uses, fake_cuda_stale_uses, (void))                                     \
	/* The GPU starts nothing new on this stream ... */                                       \
	X(int, hold, fake_stream_hold, (struct CUstream_st * stream))                             \
	/* ... but so many: kernels, copies, records. Returns how many there were, when they   \
	 * are over.                                                                           \
	 */  \
	X(unsigned int, step, fake_stream_step, (struct CUstream_st * stream, unsigned int n))    \
	/* ... but what comes until this event is reached. False: it is not on the stream. */     \
	X(bool, step_to, fake_stream_step_to,                                                     \
	  (struct CUstream_st * stream, struct CUevent_st * event))                               \
	X(int, release, fake_stream_release, (struct CUstream_st * stream))                       \
	/* Launches a kernel that takes this long; captured like any other. */                    \
	X(int, kernel, fake_stream_kernel, (struct CUstream_st * stream, uint64_t duration_ns))   \
	/* A kernel that ends with this error, after which nothing in its context works. */       \
	X(int, fault, fake_stream_fault, (struct CUstream_st * stream, int code))                 \
	/* Adds a conditional node, which runs its body once; a body may not have event nodes. */ \
	X(int, conditional, fake_graph_conditional,                                               \
	  (struct CUgraph_st * graph, struct CUgraph_st * *body))

#define FAKE_CONTROL_MEMBER(type, member, symbol, parameters) type(*member) parameters;
struct fake_control {
	FAKE_CONTROL_FUNCTIONS(FAKE_CONTROL_MEMBER)
};
#undef FAKE_CONTROL_MEMBER

/* False: this is not the fake driver. */
static inline bool fake_control_open(struct fake_control *control, void *library)
{
	bool is_found = true;

#define FAKE_CONTROL_FIND(type, member, symbol, parameters)   \
	*(void **)&control->member = dlsym(library, #symbol); \
	is_found = is_found && control->member != NULL;
	FAKE_CONTROL_FUNCTIONS(FAKE_CONTROL_FIND)
#undef FAKE_CONTROL_FIND
	return is_found;
}

#endif
