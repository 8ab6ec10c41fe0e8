/* The fake CUDA driver: what it returns was read from a real one. The recorder's tests rely on it. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench_gpu.h"
#include "common/order.h"
#include "tests/fake_gpu/fake_control.h"
#include "tests/tap.h"
#include "tests/unit/plugin/gpu_play.h"

static struct cuda cuda;
static struct fake_control control;
static struct CUstream_st *stream;

static bool driver_open(void)
{
	void *library;

	setenv("FAKE_GPUS", "2", 1);
	setenv("FAKE_GPU_CLOCK", "model", 1);
	library = gpu_play_library();
	if (!gpu_play_use(library, 0) || !fake_control_open(&control, library))
		return false;
#define FIND(member, symbol, parameters) *(void **)&cuda.member = dlsym(library, #symbol);
	CUDA_FUNCTIONS(FIND)
#undef FIND
	return cuda.stream_create(&stream, CUDA_STREAM_NON_BLOCKING) == 0;
}

static struct CUevent_st *event_new(void)
{
	struct CUevent_st *event = NULL;

	(void)cuda.event_create(&event, CUDA_EVENT_DEFAULT);
	return event;
}

/* ---- controls -------------------------------------------------------------------------------- */

static void calls_are_counted_and_fail_as_told(void)
{
	struct CUevent_st *event;

	control.clear();
	control.fail("cuEventCreate", 2, 2);
	EXPECT_EQUAL(cuda.event_create(&event, 0), 0);
	EXPECT_EQUAL(cuda.event_create(&event, 0), 2);
	EXPECT_EQUAL(cuda.event_create(&event, 0), 0);
	EXPECT_EQUAL(control.calls("cuEventCreate"), 3);
	EXPECT_EQUAL(control.calls("*"), 3);
	EXPECT_EQUAL(control.last_thread("cuEventCreate"), gettid());
	EXPECT_EQUAL(control.calls_by(gettid()), 3);
	EXPECT_EQUAL(control.last_thread("cuEventRecord"), 0);
	control.fail("*", 0, 719);
	EXPECT_EQUAL(cuda.event_record(event, stream), 719);
	EXPECT_EQUAL(cuda.stream_query(stream), 719);
	control.clear();
	control.shut_down(true);
	EXPECT_THAT("after the driver has shut down nothing works",
		    cuda.event_record(event, stream) == 4 && cuda.init(0) == 4);
	control.clear();
	EXPECT_EQUAL(cuda.event_record(event, stream), 0);
	EXPECT_THAT("an event recorded without flags is one call",
		    control.calls("cuEventRecord") == 1 &&
			    control.calls("cuEventRecordWithFlags") == 0);
}

static int has_returned;

static void *query_once(void *arg)
{
	(void)arg;
	(void)cuda.stream_query(stream);
	store_relaxed(&has_returned, 1);
	return NULL;
}

static void a_blocked_call_returns_when_it_is_let_go(void)
{
	pthread_t thread;

	control.block("cuStreamQuery", true);
	pthread_create(&thread, NULL, query_once, NULL);
	while (control.blocked("cuStreamQuery") == 0)
		usleep(100);
	EXPECT_THAT("others are not blocked", cuda.init(0) == 0);
	EXPECT_EQUAL(load_relaxed(&has_returned), 0);
	control.block("cuStreamQuery", false);
	pthread_join(thread, NULL);
	EXPECT_EQUAL(load_relaxed(&has_returned), 1);
}

static void a_test_decides_when_the_gpu_reaches_an_event(void)
{
	struct CUevent_st *before = event_new(), *after = event_new();
	float ms = 0;

	EXPECT_EQUAL(control.hold(stream), 0);
	EXPECT_EQUAL(cuda.event_record(before, stream), 0);
	EXPECT_EQUAL(control.kernel(stream, 3000000), 0);
	EXPECT_EQUAL(cuda.event_record(after, stream), 0);
	EXPECT_EQUAL(cuda.event_elapsed(&ms, before, after), CUDA_NOT_READY);
	EXPECT_THAT("up to an event", control.step_to(stream, before));
	EXPECT_THAT("which is one step",
		    cuda.event_elapsed(&ms, before, before) == 0 &&
			    cuda.event_elapsed(&ms, before, after) == CUDA_NOT_READY);
	EXPECT_EQUAL(control.step(stream, 1), 1);
	EXPECT_EQUAL(cuda.event_elapsed(&ms, before, after), CUDA_NOT_READY);
	EXPECT_EQUAL(control.step(stream, 5), 1);
	EXPECT_EQUAL(cuda.event_elapsed(&ms, before, after), 0);
	EXPECT_THAT("the time is the kernel's", ms == 3);
	EXPECT_EQUAL(cuda.event_record(before, stream), 0);
	EXPECT_EQUAL(control.release(stream), 0);
	EXPECT_EQUAL(cuda.stream_wait(stream), 0);
	EXPECT_EQUAL(cuda.event_elapsed(&ms, after, before), 0);
	EXPECT_THAT("an event that is not there is not reached",
		    control.step_to(stream, before) && control.step(stream, 1) == 0);
}

int main(void)
{
	if (!driver_open())
		return 1;
	calls_are_counted_and_fail_as_told();
	a_blocked_call_returns_when_it_is_let_go();
	a_test_decides_when_the_gpu_reaches_an_event();
	return tap_done();
}
