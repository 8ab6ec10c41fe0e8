/* The fake CUDA driver: what it returns was read from a real one. The recorder's tests rely on it. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/order.h"
#include "tests/fake_gpu/fake_control.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"
#include "tests/unit/plugin/gpu_play.h"

static struct cuda cuda;
static struct cuda_driver driver;
static struct {
#define MEMBER(member, symbol, parameters) int(*member) parameters;
	CUDA_MORE_FUNCTIONS(MEMBER)
#undef MEMBER
} more;
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
#define FIND(member, symbol, parameters) *(void **)&more.member = dlsym(library, #symbol);
	CUDA_MORE_FUNCTIONS(FIND)
#undef FIND
	gpu_play_driver(library, &driver);
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

/* ---- events ---------------------------------------------------------------------------------- */

static struct CUevent_st *event_recorded(void)
{
	struct CUevent_st *event = event_new();

	(void)cuda.event_record(event, stream);
	(void)cuda.stream_wait(stream);
	return event;
}

static void an_event_has_a_time_once_it_was_recorded(void)
{
	struct CUevent_st *never = event_new(), *event = event_recorded(), *untimed;
	float ms = -1;

	EXPECT_THAT("an event that was never recorded is over, and has no time",
		    driver.event_query(never) == 0 &&
			    driver.event_elapsed(&ms, never, event) == CUDA_INVALID_HANDLE &&
			    driver.event_elapsed(&ms, event, never) == CUDA_INVALID_HANDLE);
	EXPECT_EQUAL(driver.event_create(&untimed, CUDA_EVENT_DISABLE_TIMING), 0);
	EXPECT_EQUAL(driver.event_record(untimed, stream), 0);
	EXPECT_EQUAL(cuda.stream_wait(stream), 0);
	EXPECT_EQUAL(driver.event_elapsed(&ms, event, untimed), CUDA_INVALID_HANDLE);
	EXPECT_THAT("nothing was written", ms == -1);
	EXPECT_EQUAL(driver.event_record_with_flags(event, stream, CUDA_RECORD_EXTERNAL), 401);
	EXPECT_EQUAL(driver.event_record_with_flags(event, stream, 2), 1);
	EXPECT_EQUAL(driver.event_query(NULL), CUDA_INVALID_HANDLE);
	EXPECT_EQUAL(driver.event_record(NULL, stream), CUDA_INVALID_HANDLE);
	EXPECT_EQUAL(driver.event_record(event, (struct CUstream_st *)0x1000), CUDA_INVALID_HANDLE);
	control.hold(stream);
	driver.event_record(event, stream);
	EXPECT_EQUAL(driver.event_query(event), CUDA_NOT_READY);
	control.release(stream);
	cuda.stream_wait(stream);
	EXPECT_EQUAL(driver.event_query(event), 0);
}

static void a_stream_waits_for_an_event_of_another(void)
{
	struct CUevent_st *event = event_new(), *last = event_new();
	struct CUstream_st *other;

	cuda.stream_create(&other, CUDA_STREAM_NON_BLOCKING);
	control.hold(stream);
	cuda.event_record(event, stream);
	EXPECT_EQUAL(more.stream_wait_event(other, event, 0), 0);
	cuda.event_record(last, other);
	EXPECT_EQUAL(driver.event_query(last), CUDA_NOT_READY);
	control.release(stream);
	EXPECT_EQUAL(cuda.stream_wait(other), 0);
	EXPECT_EQUAL(driver.event_query(last), 0);
	cuda.stream_destroy(other);
	EXPECT_EQUAL(driver.event_record(last, other), 201);
}

static void an_error_of_a_kernel_stays(void)
{
	struct CUevent_st *event;
	struct CUstream_st *own;
	struct CUctx_st *context;

	EXPECT_EQUAL(more.context_create(&context, 0, 1), 0);
	cuda.stream_create(&own, 0);
	event = event_new();
	control.fault(own, 700);
	driver.event_record(event, own);
	EXPECT_EQUAL(cuda.stream_wait(own), 700);
	EXPECT_EQUAL(driver.event_query(event), 700);
	EXPECT_EQUAL(more.context_destroy(context), 0);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void *without_context(void *arg)
{
	struct CUevent_st *event = arg, *made;
	struct CUctx_st *context = (struct CUctx_st *)event;
	unsigned long long id;
	float ms;
	int number = -1;

	EXPECT_THAT("a new thread has no context",
		    driver.ctx_get_current(&context) == 0 && context == NULL);
	EXPECT_EQUAL(driver.ctx_get_device(&number), 201);
	EXPECT_EQUAL(driver.ctx_get_id(NULL, &id), 201);
	EXPECT_EQUAL(driver.event_create(&made, 0), 201);
	EXPECT_EQUAL(driver.event_record(event, NULL), 201);
	EXPECT_EQUAL(driver.stream_get_ctx(NULL, &context), 201);
	EXPECT_THAT("and needs none for events and streams that exist",
		    driver.event_record(event, stream) == 0 && cuda.stream_wait(stream) == 0 &&
			    driver.event_query(event) == 0 &&
			    driver.event_elapsed(&ms, event, event) == 0 &&
			    driver.stream_get_ctx(stream, &context) == 0 && context != NULL);
	return NULL;
}

static void events_need_no_current_context(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, without_context, event_recorded());
	pthread_join(thread, NULL);
}

static void events_belong_to_a_context(void)
{
	struct CUctx_st *first, *second, *third, *found;
	struct CUevent_st *event = event_recorded(), *foreign;
	struct CUstream_st *other;
	unsigned long long id, next;
	float ms;

	EXPECT_EQUAL(driver.ctx_get_current(&first), 0);
	EXPECT_EQUAL(more.context_create(&second, 0, 0), 0);
	EXPECT_THAT("a new context is current",
		    driver.ctx_get_current(&found) == 0 && found == second);
	cuda.stream_create(&other, 0);
	foreign = event_new();
	EXPECT_EQUAL(driver.event_record(foreign, other), 0);
	EXPECT_EQUAL(driver.event_record(event, other), CUDA_INVALID_HANDLE);
	EXPECT_EQUAL(driver.event_record(foreign, stream), CUDA_INVALID_HANDLE);
	EXPECT_THAT("streams 0, 1 and 2 are those of the current context",
		    driver.event_record(foreign, NULL) == 0 &&
			    driver.event_record(event, NULL) == CUDA_INVALID_HANDLE &&
			    driver.event_record(event, (struct CUstream_st *)2) ==
				    CUDA_INVALID_HANDLE &&
			    driver.stream_get_ctx((struct CUstream_st *)1, &found) == 0 &&
			    found == second);
	cuda.stream_wait(NULL);
	EXPECT_EQUAL(driver.event_elapsed(&ms, event, foreign), CUDA_INVALID_HANDLE);
	EXPECT_THAT("a stream knows its context",
		    driver.stream_get_ctx(stream, &found) == 0 && found == first);
	EXPECT_EQUAL(driver.ctx_get_id(second, &id), 0);
	control.clear();
	EXPECT_EQUAL(more.context_destroy(second), 0);
	EXPECT_THAT("the one before is current again",
		    driver.ctx_get_current(&found) == 0 && found == first);
	EXPECT_EQUAL(driver.ctx_get_id(second, &next), 709);
	EXPECT_EQUAL(control.stale_uses(), 0);
	EXPECT_EQUAL(driver.event_query(foreign), 709);
	EXPECT_EQUAL(driver.stream_get_ctx(other, &found), 709);
	EXPECT_EQUAL(control.stale_uses(), 2);
	more.context_create(&third, 0, 0);
	EXPECT_THAT("an address is used again, an id is not",
		    third == second && driver.ctx_get_id(third, &next) == 0 && next > id);
	EXPECT_EQUAL(more.context_destroy(third), 0);
}

/* As cudaDeviceReset() does. */
static void a_reset_ends_events_and_streams(void)
{
	struct CUctx_st *primary, *again;
	struct CUevent_st *event, *made;
	struct CUstream_st *own;
	unsigned long long id, next;
	unsigned int flags;
	int is_active = -1;
	float ms;

	EXPECT_EQUAL(cuda.primary_retain(&primary, 1), 0);
	EXPECT_EQUAL(driver.ctx_set_current(primary), 0);
	EXPECT_EQUAL(driver.ctx_get_id(primary, &id), 0);
	cuda.stream_create(&own, 0);
	event = event_new();
	control.hold(own);
	driver.event_record(event, own);
	control.clear();
	EXPECT_EQUAL(more.primary_reset(1), 0);
	EXPECT_THAT("the context is not active",
		    driver.primary_ctx_get_state(1, &flags, &is_active) == 0 && is_active == 0);
	EXPECT_EQUAL(driver.ctx_get_id(primary, &next), 709);
	EXPECT_EQUAL(driver.event_create(&made, 0), 709);
	EXPECT_THAT("it is still current, and can be made so",
		    driver.ctx_get_current(&again) == 0 && again == primary &&
			    driver.ctx_set_current(primary) == 0);
	EXPECT_EQUAL(control.stale_uses(), 0);
	EXPECT_EQUAL(driver.event_query(event), 709);
	EXPECT_EQUAL(driver.event_elapsed(&ms, event, event), 709);
	EXPECT_EQUAL(driver.event_record(event, own), 709);
	EXPECT_EQUAL(control.stale_uses(), 3);
	EXPECT_EQUAL(cuda.primary_retain(&again, 1), 0);
	EXPECT_THAT("it comes back at the same address with another id",
		    again == primary && driver.ctx_get_id(again, &next) == 0 && next > id);
	EXPECT_EQUAL(driver.event_query(event), 709);
	EXPECT_EQUAL(driver.event_create(&made, 0), 0);
	EXPECT_EQUAL(cuda.primary_release(1), 0);
	EXPECT_EQUAL(driver.event_query(made), 709);
	EXPECT_EQUAL(cuda.primary_release(1), 201);
	EXPECT_EQUAL(driver.primary_ctx_get_state(9, &flags, &is_active), 101);
	cuda.primary_retain(&again, 0);
	EXPECT_EQUAL(driver.ctx_set_current(again), 0);
}

int main(void)
{
	if (!driver_open())
		return 1;
	calls_are_counted_and_fail_as_told();
	a_blocked_call_returns_when_it_is_let_go();
	a_test_decides_when_the_gpu_reaches_an_event();
	an_event_has_a_time_once_it_was_recorded();
	a_stream_waits_for_an_event_of_another();
	an_error_of_a_kernel_stays();
	events_need_no_current_context();
	events_belong_to_a_context();
	a_reset_ends_events_and_streams();
	return tap_done();
}
