/*
 * GPU times from CUDA events, on a driver that plays on the CPU and does what the test says. Each scene has its own
 * process: the plugin reads its settings once, and a context whose driver failed is never timed again.
 */
#include <sys/wait.h>

#include "common/attributes.h"
#include "common/op.h"
#include "plugin/process_info.h"
#include "tests/tap.h"
#include "tests/unit/plugin/times_play.h"

/* The recorder's clock is converted to the system's and back. */
enum { CLOCKS_NS = 1000 * 1000 };

/* ---- scenes ------------------------------------------------------------------------------------ */

static bool a_launch_has_the_time_of_its_kernel(void)
{
	void *context = begin("all");

	collective(context, 3 * MS);
	collective(context, 7 * MS);
	return SAYS(until(all_are_taken)) && is_timed(1, 3 * MS) && is_timed(2, 7 * MS) &&
	       SAYS(header()->sampling == SAMPLING_ACTIVE) && SAYS(header()->times_taken == 2) &&
	       SAYS(header()->times_read_ns != 0) &&
	       SAYS(recorder.region.comms[0].info.gpu_offset_ns == 0) &&
	       SAYS(recorder.region.comms[0].info.gpu_offset_at_ns != 0) &&
	       SAYS(recorder.region.comms[0].info.place_error_ns != 0) &&
	       SAYS(recorder.region.comms[0].counts.timed == 2) &&
	       SAYS(!(op_of(1).flags & OP_FLAG_SHARED_TIME));
}

static bool calls_of_one_launch_share_its_time(void)
{
	void *context = begin("all");
	struct launch made = call(context, 3);

	launch(context, &made, stream, 5 * MS);
	tasks(context, &made, 3);
	for (uint64_t number = 1; number <= 3; number++)
		if (!SAYS(until(all_are_taken)) || !is_timed(number, 5 * MS) ||
		    !SAYS(op_of(number).flags & OP_FLAG_SHARED_TIME))
			return false;
	return true;
}

/* The sum of all totals. */
static struct region_total all_totals(void)
{
	struct region_total sum = { .key = 0 };

	for (uint32_t i = 0; i < recorder.region.total_count; i++) {
		const struct region_total *total = &recorder.region.totals[i];

		sum.count += total->count;
		sum.bytes += total->bytes;
		sum.timed += total->timed;
		sum.timed_bytes += total->timed_bytes;
		sum.sum_ns += total->sum_ns;
		sum.shared += total->shared;
		sum.shared_ns += total->shared_ns;
		for (unsigned int b = 0; b < HISTOGRAM_BUCKETS; b++)
			sum.buckets[0] += total->buckets[b];
	}
	return sum;
}

/* Three calls in one launch, two alone: bandwidth is that of the two. */
static bool a_shared_time_is_no_bandwidth(void)
{
	void *context = begin("all");
	struct launch made = call(context, 3);
	struct region_total sum;
	struct op_record op;

	launch(context, &made, stream, 9 * MS);
	tasks(context, &made, 3);
	collective(context, 3 * MS);
	collective(context, 3 * MS);
	if (!SAYS(until(all_are_taken)))
		return false;
	op = op_of(5);
	ncclProfiler_v5.finalize(context);
	sum = all_totals();
	return SAYS(sum.count == 5) && SAYS(sum.bytes == 5 * op.bytes) && SAYS(sum.timed == 2) &&
	       SAYS(sum.timed_bytes == 2 * op.bytes) && SAYS(sum.buckets[0] == 2) &&
	       SAYS(sum.shared == 3) && SAYS(sum.sum_ns > 5 * MS && sum.sum_ns < 7 * MS) &&
	       SAYS(sum.shared_ns / 3 > 8 * MS && sum.shared_ns / 3 < 10 * MS);
}

static bool inspector_times_all(const char *is_prom)
{
	void *context;

	setenv("NCCL_INSPECTOR_ENABLE", "1", 1);
	setenv("NCCL_INSPECTOR_DUMP_DIR", scratch_make(), 1);
	setenv("NCCL_INSPECTOR_PROM_DUMP", is_prom, 1);
	context = begin("auto");
	for (int i = 0; i < 40; i++)
		collective(context, 1000);
	return SAYS(until(all_are_taken)) && SAYS(header()->timed_launches == 40) &&
	       SAYS(header()->untimed_launches == 0);
}

/* By default only the second to the eighth of so many in quick succession. */
static bool in_inspectors_place_every_launch_is_timed(void)
{
	return inspector_times_all("0");
}

static bool for_its_metrics_too(void)
{
	return inspector_times_all("1");
}

static bool a_task_after_the_answer_gets_it(void)
{
	void *context = begin("all");
	struct launch made = call(context, 1);

	launch(context, &made, stream, 2 * MS);
	if (!SAYS(until(all_are_taken)))
		return false;
	tasks(context, &made, 1);
	return is_timed(1, 2 * MS);
}

static bool is_running(void)
{
	return op_of(1).active_ns != 0;
}

static bool the_gpu_is_seen_to_reach_and_to_finish_it(void)
{
	void *context = begin("all");
	struct op_record op;

	gpu.hold(stream);
	collective(context, 2 * MS);
	for (int i = 0; i < 30; i++)
		collective(context, MS);
	usleep(700 * 1000);
	ask_again();
	op = op_of(1);
	if (!SAYS(op.state == OP_LAUNCHED && op.active_ns == 0 && op.gpu_stop_ns == 0) ||
	    !SAYS(op.flags & OP_FLAG_CUDA_EVENT) || !SAYS(header()->times_read_ns > op.launch_ns))
		return false;
	gpu.step(stream, 1);
	if (!SAYS(until(is_running)) || !SAYS(op_of(1).state == OP_RUNNING) ||
	    !SAYS(op_of(1).gpu_stop_ns == 0) || !SAYS(op_of(2).active_ns == 0))
		return false;
	gpu.release(stream);
	return SAYS(until(all_are_taken)) && is_timed(1, 2 * MS) && is_timed(31, MS) &&
	       SAYS(header()->ring_head == 31);
}

/* The second event of the first launch fires after it was asked in vain, however long ago it was recorded. */
static bool a_launch_far_ahead_of_the_gpu_has_its_place(void)
{
	void *context = begin("all");
	uint64_t open_ns;

	gpu.hold(stream);
	collective(context, 2 * MS);
	usleep(600 * 1000);
	open_ns = recorder_now();
	if (!SAYS(ask_again()))
		return false;
	gpu.release(stream);
	return SAYS(until(all_are_taken)) && is_timed(1, 2 * MS) &&
	       SAYS(op_of(1).gpu_stop_ns + CLOCKS_NS > open_ns);
}

static bool a_capture_is_left_alone(void)
{
	void *context = begin("all");
	struct CUgraph_st *graph = NULL;

	for (int mode = 0; mode <= 2; mode++) {
		if (!SAYS(cuda.capture_begin(stream, mode) == 0))
			return false;
		collective(context, MS);
		ask_again();
		if (!SAYS(cuda.capture_end(stream, &graph) == 0))
			return false;
	}
	collective(context, MS);
	return SAYS(until(all_are_taken)) && is_timed(4, MS) &&
	       SAYS(header()->timed_launches == 1) && SAYS(gpu.calls("cuEventRecord") == 2) &&
	       SAYS(header()->sampling == SAMPLING_ACTIVE);
}

/* Reading while others capture in global mode must not break the capture. */
static bool reading_does_not_break_a_capture(void)
{
	struct CUstream_st *other;
	struct CUgraph_st *graph;
	void *context = begin("all");
	bool is_good = SAYS(cuda.stream_create(&other, CUDA_STREAM_NON_BLOCKING) == 0);

	gpu.hold(stream);
	collective(context, MS);
	is_good = is_good && SAYS(cuda.capture_begin(other, 0) == 0);
	ask_again();
	gpu.release(stream);
	is_good = is_good && SAYS(until(all_are_taken));
	return is_good && SAYS(cuda.capture_end(other, &graph) == 0) && is_timed(1, MS);
}

static bool a_foreign_stream_is_not_timed(void)
{
	void *context = begin("all");
	struct CUstream_st *foreign;
	struct launch made;

	if (!gpu_play_use(library, 1) ||
	    !SAYS(cuda.stream_create(&foreign, CUDA_STREAM_NON_BLOCKING) == 0) ||
	    !gpu_play_use(library, 0))
		return false;
	made = call(context, 1);
	launch(context, &made, foreign, MS);
	tasks(context, &made, 1);
	collective(context, MS);
	return SAYS(until(all_are_taken)) && SAYS(header()->timed_launches == 1) && is_untimed(1) &&
	       is_timed(2, MS) && SAYS(gpu.stale_uses() == 0);
}

static bool more_than_the_events_are_counted(void)
{
	enum { LAUNCHES = 3 * TIMES_PAIRS };
	void *context = begin("all");

	gpu.hold(stream);
	for (int i = 0; i < LAUNCHES; i++)
		collective(context, MS);
	if (!SAYS(header()->timed_launches == TIMES_PAIRS) ||
	    !SAYS(header()->untimed_launches == LAUNCHES - TIMES_PAIRS))
		return false;
	gpu.release(stream);
	if (!SAYS(until(all_are_taken)) || !is_timed(TIMES_PAIRS, MS) ||
	    !is_untimed(TIMES_PAIRS + 1))
		return false;
	collective(context, MS);
	return SAYS(until(all_are_taken)) && is_timed(LAUNCHES + 1, MS);
}

/* The reader is blocked in the driver: nothing waits for it. */
static bool nobody_waits_for_the_reader(void)
{
	void *context = begin("all");
	uint64_t read_ns;

	gpu.block("cuEventQuery", true);
	collective(context, MS);
	for (int i = 0; i < PATIENCE_MS && gpu.blocked("cuEventQuery") == 0; i++)
		usleep(1000);
	read_ns = load_relaxed(&header()->times_read_ns);
	for (int i = 0; i < 40; i++)
		collective(context, MS);
	if (!SAYS(gpu.blocked("cuEventQuery") == 1) || !SAYS(op_of(41).number == 41))
		return false;
	ncclProfiler_v5.finalize(context);
	for (uint64_t number = 1; number <= 41; number++)
		if (!is_untimed(number))
			return false;
	return SAYS(load_relaxed(&header()->times_read_ns) == read_ns) &&
	       SAYS(header()->times_dropped == 41) && SAYS(header()->ring_head == 41) &&
	       SAYS(recorder.region.comms[0].counts.abandoned == 0);
}

/* What is pending when the context goes is dropped, and nothing is asked about its events. */
static bool a_reset_device_ends_timing(void)
{
	void *context = begin("all");
	int (*reset)(int);

	find(&reset, "cuDevicePrimaryCtxReset_v2");
	gpu.hold(stream);
	collective(context, MS);
	if (!SAYS(reset(0) == 0))
		return false;
	ask_again();
	ask_again();
	return SAYS(gpu.stale_uses() == 0) && SAYS(header()->sampling == SAMPLING_BY_CUDA) &&
	       is_untimed(1) && SAYS(header()->times_dropped == 1);
}

static bool a_second_context_has_its_own_events(void)
{
	void *first = begin("all"), *second;
	struct CUstream_st *other;
	struct launch made;

	if (!gpu_play_use(library, 1) ||
	    !SAYS(cuda.stream_create(&other, CUDA_STREAM_NON_BLOCKING) == 0))
		return false;
	second = play_init(0xbeef, 1, 8, 1);
	made = call(second, 1);
	launch(second, &made, other, 4 * MS);
	tasks(second, &made, 1);
	collective(first, 2 * MS);
	return SAYS(until(all_are_taken)) && SAYS(header()->times_taken == 2) &&
	       SAYS(recorder.timing.pools_used == 2) && SAYS(header()->ring_head == 2) &&
	       SAYS(recorder.region.comms[0].counts.timed == 1) &&
	       SAYS(recorder.region.comms[1].counts.timed == 1);
}

/* Only these, and only there: the law inside the job. */
static bool launching_threads_call_four_functions(void)
{
	static const char *const theirs[] = { "cuEventRecord", "cuStreamIsCapturing",
					      "cuStreamGetCtx" };
	void *context = begin("all");
	uint64_t before = gpu.calls_by(gettid()), expected = before;

	for (int i = 0; i < 10; i++)
		collective(context, MS);
	if (!SAYS(until(all_are_taken)))
		return false;
	for (size_t i = 0; i < ARRAY_LENGTH(theirs); i++)
		expected += gpu.calls(theirs[i]);
	return SAYS(gpu.calls_by(gettid()) == expected) && SAYS(expected - before == 40) &&
	       SAYS(gpu.last_thread("cuEventQuery") != gettid()) &&
	       SAYS(gpu.last_thread("cuEventElapsedTime") != gettid()) &&
	       SAYS(gpu.last_thread("cuThreadExchangeStreamCaptureMode") != gettid());
}

static bool off_calls_nothing(void)
{
	void *context = begin("off");
	uint64_t before = gpu.calls("*");

	for (int i = 0; i < 20; i++)
		collective(context, MS);
	usleep(100 * 1000);
	return SAYS(gpu.calls("*") == before) && SAYS(header()->timed_launches == 0) &&
	       SAYS(gpu.calls("cuEventCreate") == 0) && SAYS(header()->sampling == SAMPLING_NONE);
}

/* From the second launch of a kind on, and a share of them later. */
static bool a_share_is_timed_by_default(void)
{
	void *context = begin("auto");
	struct op_record first;

	for (int i = 0; i < 3000; i++)
		collective(context, MS);
	first = op_of(1);
	return SAYS(until(all_are_taken)) && is_timed(2, MS) && is_timed(8, MS) &&
	       SAYS(first.time_source == OP_TIME_NONE) && SAYS(first.flags & OP_FLAG_NOT_SAMPLED) &&
	       SAYS(header()->timed_launches >= 7) && SAYS(header()->timed_launches < 2000);
}

static bool a_request_times_every_launch(void)
{
	void *context = begin("auto");
	uint64_t before;

	for (int i = 0; i < 2000; i++)
		collective(context, MS);
	store_relaxed(&recorder.region.header->kernel_request, UINT64_C(1) << 32 | 60);
	for (int i = 0; i < 2 * 256; i++)
		collective(context, MS);
	if (!SAYS(until(all_are_taken)) ||
	    !SAYS(header()->kernel_answer == (UINT64_C(1) << 32 | 60)))
		return false;
	before = header()->timed_launches;
	for (int i = 0; i < 20; i++)
		collective(context, MS);
	return SAYS(header()->timed_launches == before + 20);
}

static bool a_forked_child_leaves_the_driver_alone(void)
{
	void *context = begin("all");
	int status = 1;
	pid_t child;

	collective(context, MS);
	child = fork();
	if (child == 0) {
		uint64_t before = gpu.calls("*");

		play_init(1, 1, 2, 0);
		_exit(gpu.calls("*") == before ? 0 : 1);
	}
	return SAYS(waitpid(child, &status, 0) == child) && SAYS(status == 0) &&
	       SAYS(until(all_are_taken)) && is_timed(1, MS);
}

/* Each function fails with each code, at its first or a later call: one line of the region, and the job goes on. */
static const char *failing;
static int failing_code;
static unsigned int failing_call;

static bool a_failing_driver_ends_timing_once(void)
{
	void *context;
	uint64_t calls;

	begin_gpu();
	setenv("RINGSIDE_TIMES", "all", 1);
	play_setup("flight");
	gpu.clear();
	gpu.fail(failing, failing_call, failing_code);
	context = play_init(0x5eed, 1, 8, 0);
	for (int i = 0; i < 40; i++) {
		collective(context, MS);
		if (i % 10 == 0)
			ask_again();
	}
	ask_again();
	if (!SAYS(all_are_taken()) || !SAYS(header()->sampling != SAMPLING_ACTIVE))
		return false;
	calls = gpu.calls(failing);
	for (int i = 0; i < 40; i++)
		collective(context, MS);
	ask_again();
	ncclProfiler_v5.finalize(context);
	return SAYS(gpu.calls(failing) == calls) && SAYS(header()->ring_head == 80) &&
	       is_untimed(80);
}

/* The process ends while the reader is inside the driver. */
static bool the_exit_does_not_wait(void)
{
	void *context = begin("all");

	gpu.block("cuEventQuery", true);
	collective(context, MS);
	for (int i = 0; i < PATIENCE_MS && gpu.blocked("cuEventQuery") == 0; i++)
		usleep(1000);
	return SAYS(gpu.blocked("cuEventQuery") == 1);
}

static void failures(void)
{
	static const struct {
		const char *function;
		unsigned int calls[3]; /* 0: every call */
	} functions[] = {
		{ "cuCtxGetCurrent", { 1 } },	    { "cuEventCreate", { 1, 77 } },
		{ "cuEventRecord", { 1, 2, 7 } },   { "cuEventQuery", { 1, 3 } },
		{ "cuEventElapsedTime", { 1, 2 } }, { "cuStreamIsCapturing", { 1, 5 } },
		{ "cuStreamGetCtx", { 1, 5 } },	    { "cuDevicePrimaryCtxGetState", { 1, 2 } },
		{ "cuCtxGetDevice", { 0 } },	    { "cuThreadExchangeStreamCaptureMode", { 0 } },
		{ "cuCtxSetCurrent", { 1 } },
	};
	static const int codes[] = { 1, 4, 201, 400, 700, 719, 999 };

	for (size_t f = 0; f < ARRAY_LENGTH(functions); f++)
		for (size_t n = 0; n < 3 && (n == 0 || functions[f].calls[n] != 0); n++) {
			char sentence[120];

			failing = functions[f].function;
			failing_call = functions[f].calls[n];
			failing_code = codes[(f + n) % ARRAY_LENGTH(codes)];
			snprintf(sentence, sizeof(sentence),
				 "call %u of %s returns %d: timing ends, the job goes on",
				 failing_call, failing, failing_code);
			EXPECT_THAT(sentence, play_scene(a_failing_driver_ends_timing_once));
		}
}

int main(void)
{
	unsetenv("RINGSIDE_EVENTS");
	EXPECT(play_scene(a_launch_has_the_time_of_its_kernel));
	EXPECT(play_scene(calls_of_one_launch_share_its_time));
	EXPECT(play_scene(a_shared_time_is_no_bandwidth));
	EXPECT(play_scene(in_inspectors_place_every_launch_is_timed));
	EXPECT(play_scene(for_its_metrics_too));
	EXPECT(play_scene(a_task_after_the_answer_gets_it));
	EXPECT(play_scene(the_gpu_is_seen_to_reach_and_to_finish_it));
	EXPECT(play_scene(a_launch_far_ahead_of_the_gpu_has_its_place));
	EXPECT(play_scene(a_capture_is_left_alone));
	EXPECT(play_scene(reading_does_not_break_a_capture));
	EXPECT(play_scene(a_foreign_stream_is_not_timed));
	EXPECT(play_scene(more_than_the_events_are_counted));
	EXPECT(play_scene(nobody_waits_for_the_reader));
	EXPECT(play_scene(a_reset_device_ends_timing));
	EXPECT(play_scene(a_second_context_has_its_own_events));
	EXPECT(play_scene(launching_threads_call_four_functions));
	EXPECT(play_scene(off_calls_nothing));
	EXPECT(play_scene(a_share_is_timed_by_default));
	EXPECT(play_scene(a_request_times_every_launch));
	EXPECT(play_scene(a_forked_child_leaves_the_driver_alone));
	EXPECT(play_scene(the_exit_does_not_wait));
	failures();
	return tap_done();
}
