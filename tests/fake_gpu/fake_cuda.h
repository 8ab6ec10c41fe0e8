/*
 * A CUDA driver on the CPU: libcuda.so.1 for tests on hosts without a GPU. Device memory is host memory, a stream
 * is a thread with a queue, a kernel is a C function of the same name. docs/HACKING.md lists the settings.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>

#include "bench/bench_gpu.h"
#include "common/attributes.h"
#include "tests/fake_gpu/fake_point.h"

enum fake_cuda_error {
	FAKE_INVALID_VALUE = 1,
	FAKE_OUT_OF_MEMORY = 2,
	FAKE_NOT_INITIALIZED = 3,
	FAKE_NO_DEVICE = 100,
	FAKE_INVALID_DEVICE = 101,
	FAKE_INVALID_CONTEXT = 201,
	FAKE_INVALID_PTX = 218,
	FAKE_INVALID_HANDLE = 400,
	FAKE_NOT_FOUND = 500,
	FAKE_ILLEGAL_ADDRESS = 700,
	FAKE_LAUNCH_FAILED = 719,
	FAKE_CAPTURE_UNSUPPORTED = 900,
	FAKE_ILLEGAL_STATE = 401,
};

#define FAKE_DECLARE(member, symbol, parameters) EXPORTED cuda_result symbol parameters;
CUDA_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE
/* The recorder calls this one if a driver is loaded. */
EXPORTED cuda_result cuCtxGetDevice(cuda_device *device);

/*
 * Called before every function except cuInit: checks for an injected failure, for cuInit and, if needed, for a
 * current context. 0: continue.
 */
cuda_result fake_enter(const char *function, bool needs_context);
#define FAKE_ENTER(needs_context)                                            \
	do {                                                                 \
		cuda_result entered = fake_enter(__func__, (needs_context)); \
		if (entered != 0)                                            \
			return entered;                                      \
	} while (0)

/*
 * The part of fake_enter() that tests control (fake_control.h): counts the call, waits while it is blocked, returns the
 * code to fail with or 0.
 */
cuda_result fake_control_enter(const char *function);
/* Counts the use of a handle whose object is gone; returns `result`. */
cuda_result fake_stale(cuda_result result);

/* Whether this thread captures a stream. CUDA then refuses calls that would wait. */
bool fake_is_thread_capturing(void);

#endif
