/* Wrong values: defects D9, D12 to D15, D26 and D28 of docs/HACKING.md. */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "common/op.h"
#include "plugin/abi_v6.h"
#include "tests/support/plugin_host.h"
#include "tests/unit/plugin/stamp_play.h"
#include "tests/tap.h"

/* ---- a wall clock that steps ------------------------------------------------------------------ */

static int64_t step_ns;
static unsigned int wall_readings;

/* Replaces libc's: the wall clock is off by step_ns, and calls are counted. */
int clock_gettime(clockid_t id, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, id, time);

	if (result == 0 && id == CLOCK_REALTIME) {
		time->tv_sec += step_ns / (int64_t)STAMP_S;
		wall_readings++;
	}
	return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	time->tv_sec = now.tv_sec;
	time->tv_usec = now.tv_nsec / 1000;
	return 0;
}

/* ---- D9 -------------------------------------------------------------------------------------- */

static void an_unknown_type_has_no_size(void)
{
	void *context = play_init(1, 2, 4, 0);
	struct region_total *totals = recorder.region.totals;
	uint64_t summed = 0;

	for (int i = 0; i < 4; i++)
		play_issue(context, i == 3 ? "AllGather" : "AllReduce", 1000,
			   i == 0   ? "Unknown"
			   : i == 2 ? NULL
				    : "ncclInt128",
			   1);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D9: NCCL's Unknown is uint8: its size is its count",
		    play_record(4)->bytes == 1000 && play_record(4)->datatype == OP_UINT8);
	for (uint64_t i = 2; i <= 3; i++)
		EXPECT_THAT("D9: the size of an unknown datatype is unknown, not a number",
			    play_record(i)->bytes == OP_BYTES_UNKNOWN &&
				    play_record(i)->count == 1000);
	EXPECT_THAT("D9: where NCCL counts bytes the size is still known",
		    play_record(1)->bytes == UINT64_C(4) * 4000);
	for (uint32_t i = 0; i < recorder.region.total_count; i++)
		summed += totals[i].bytes;
	EXPECT_THAT("D9: and no total is affected", summed == 17000);
}

/* A count larger than any buffer: the product must not wrap. */
static void an_absurd_count_has_no_size(void)
{
	void *context = play_init(2, 2, 4, 0);

	play_issue(context, "AllReduce", SIZE_MAX / 2, "ncclFloat32", 1);
	play_issue(context, "ReduceScatter", SIZE_MAX / 8, "ncclFloat32", 1);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D9: a size past 64 bits is unknown",
		    play_record(1)->bytes == OP_BYTES_UNKNOWN &&
			    play_record(2)->bytes == OP_BYTES_UNKNOWN);
}

/* ---- D12 to D15 ------------------------------------------------------------------------------- */

static void staggered_channels_are_one_span(void)
{
	void *context = play_init(3, 1, 2, 0), *kernels[4];
	struct play_op op = stamp_call(context, 4, stamp_plan(context));
	uint64_t gpu = stamp_gpu(stamp_now_ns + 10000);

	/* Each takes 1000 and starts when the previous one stops. */
	for (uint8_t i = 0; i < 4; i++) {
		stamp_move(15000);
		kernels[i] = play_kernel_start(context, op.task, i, gpu + 1000 * i);
		play_kernel_stop(kernels[i], gpu + 1000 * i + 1000);
	}
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D12: staggered channels: from the first start to the last stop",
		    op_duration_ns(play_record(1)) == 4000);
	EXPECT_THAT("D12: and how far they are apart",
		    play_record(1)->start_spread_ns == 3000 &&
			    play_record(1)->stop_spread_ns == 3000);
}

static void short_operations_have_a_time(void)
{
	static const uint64_t durations[] = { 900, 32, 1 };

	for (size_t i = 0; i < ARRAY_LENGTH(durations); i++) {
		void *context = play_init(4, 1, 2, 0);
		struct stamp_op op = stamp_issue(context, 1, 10000, durations[i]);

		stamp_report(context, &op, 1, 2000);
		ncclProfiler_v5.finalize(context);
		EXPECT_THAT("D13: an operation of less than a microsecond has its time",
			    play_record(1)->time_source == OP_TIME_KERNEL_GPU &&
				    op_duration_ns(play_record(1)) == durations[i]);
	}
}

/* Stamps that are seconds old, as for broadcasts when the counters of host and device differ. */
static void drifted_broadcasts_are_no_times(void)
{
	void *context = play_init(5, 1, 2, 0), *kernel;
	struct stamp_op old = stamp_good(context);
	struct play_op op;

	stamp_move(5 * STAMP_S);
	op = play_issue(context, "Broadcast", 1024, "ncclFloat32", 1);
	stamp_move(20000);
	kernel = play_kernel_start(context, op.task, 0, stamp_gpu(old.start_ns));
	play_kernel_stop(kernel, stamp_gpu(stamp_now_ns));
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D14: a start from seconds ago gives no duration of seconds",
		    play_record(1)->flags & OP_FLAG_STAMP_STALE &&
			    op_duration_ns(play_record(1)) < STAMP_S);
	context = play_init(6, 1, 2, 0);
	stamp_good(context);
	op = play_issue(context, "Broadcast", 1024, "ncclFloat32", 1);
	stamp_move(20000);
	kernel = play_kernel_start(context, op.task, 0, stamp_gpu(stamp_now_ns - 5000));
	play_kernel_stop(kernel, stamp_gpu(stamp_now_ns - 3 * STAMP_S));
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D14: a stop before its start gives none either",
		    play_record(1)->flags & OP_FLAG_STAMP_REVERSED &&
			    play_record(1)->time_source != OP_TIME_KERNEL_GPU);
}

static void an_overrun_is_no_time(void)
{
	enum { WORKS = 80 };
	void *context = play_init(7, 1, 2, 0), *kernel;
	struct stamp_op works[WORKS];

	stamp_good(context);
	for (int i = 0; i < WORKS; i++)
		works[i] = stamp_issue(context, 1, 10000 + (uint64_t)i * 30000, 20000);
	stamp_move(works[WORKS - 1].stop_ns + STAMP_MS - stamp_now_ns);
	/* The first one's slot has the stamps of the 65th by now. */
	kernel = play_kernel_start(context, works[0].op.task, 0, stamp_gpu(works[64].start_ns));
	play_kernel_stop(kernel, stamp_gpu(works[64].stop_ns));
	EXPECT_THAT("D15: 80 works later, a stamp from a ring of 64 is rejected",
		    live_find(handle_decode(recorder.salt, works[0].op.task))->op.flags &
			    OP_FLAG_STAMP_OVERRUN);
	ncclProfiler_v5.finalize(context);
}

/* ---- D26 ------------------------------------------------------------------------------------- */

static void a_stepping_wall_clock_changes_nothing(void)
{
	static const int64_t steps_s[] = { -3600, 7200, -86400 * 365 };

	recorder.clock = (struct clock_source){ .kind = CLOCK_KIND_SYSTEM };
	for (size_t i = 0; i < ARRAY_LENGTH(steps_s); i++) {
		void *context = play_init(8, 2, 2, 0);
		struct play_op op;
		void *proxy, *step;
		const struct op_record *record;

		wall_readings = 0;
		op = play_issue(context, "AllReduce", 1024, "ncclFloat32", 1);
		proxy = play_proxy_start(context, op.task, getpid(), 0, 1, true);
		step = play_step_start(context, proxy, 0);
		play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
		step_ns += steps_s[i] * (int64_t)STAMP_S;
		play_state(step, ABI_STEP_SEND_PEER_WAIT, 0);
		play_state(step, ABI_STEP_SEND_WAIT, 4096);
		play_stop(step);
		play_stop(proxy);
		EXPECT_THAT("D26: no call reads the wall clock", wall_readings == 0);
		ncclProfiler_v5.finalize(context);
		record = play_record(1);
		EXPECT_THAT("D26: the wall clock steps during an operation: its time is right",
			    record->time_source == OP_TIME_PROXY &&
				    op_duration_ns(record) < 1800 * STAMP_S &&
				    record->wait_ns[OP_WAIT_SEND_GPU] < 1800 * STAMP_S);
		EXPECT_THAT("D26: and so is its order",
			    record->issue_ns <= record->active_ns &&
				    record->active_ns <= record->done_ns);
	}
	step_ns = 0;
	stamp_move(0);
}

/* ---- D28 ------------------------------------------------------------------------------------- */

static void copy_engines_and_all_names_are_known(void)
{
	static const enum op_function functions[] = { OP_ALL_GATHER, OP_ALL_TO_ALL, OP_GATHER,
						      OP_SCATTER };

	for (size_t i = 0; i < ARRAY_LENGTH(functions); i++) {
		void *context = NULL, *handle;
		struct abi_descr_v6 descr = { .type = ABI_COLL_API };
		int mask;

		ncclProfiler_v6.init(&context, 9, &mask, NULL, 1, 4, 0, NULL);
		descr.coll_api.function = op_function_name((uint8_t)functions[i]);
		descr.coll_api.count = 100;
		descr.coll_api.datatype = "ncclFloat32";
		ncclProfiler_v6.start_event(context, &handle, &descr);
		ncclProfiler_v6.stop_event(handle);
		descr = (struct abi_descr_v6){ .type = ABI_CE_COLL, .parent = handle };
		descr.ce_coll.function = op_function_name((uint8_t)functions[i]);
		descr.ce_coll.count = 100;
		descr.ce_coll.datatype = "ncclFloat32";
		descr.ce_coll.sync_strategy = "MC";
		ncclProfiler_v6.start_event(context, &handle, &descr);
		ncclProfiler_v6.stop_event(handle);
		ncclProfiler_v6.finalize(context);
		EXPECT_THAT("D28: a copy-engine collective is recorded under its name",
			    play_record(1)->function == functions[i] &&
				    play_record(1)->flags & OP_FLAG_COPY_ENGINE &&
				    play_record(1)->algorithm == OP_COPY_ENGINE &&
				    play_record(1)->bytes == 1600);
	}
}

/* Without its API event the count is NCCL's, in bytes, and the datatype is not the user's. */
static void a_copy_engine_counts_in_bytes(void)
{
	struct abi_descr_v6 descr = { .type = ABI_CE_COLL };
	void *context = NULL, *handle;
	int mask;

	ncclProfiler_v6.init(&context, 9, &mask, NULL, 1, 4, 0, NULL);
	descr.ce_coll.function = "AllGather";
	descr.ce_coll.count = 400;
	descr.ce_coll.datatype = "ncclInt8";
	ncclProfiler_v6.start_event(context, &handle, &descr);
	ncclProfiler_v6.stop_event(handle);
	ncclProfiler_v6.finalize(context);
	EXPECT_THAT("D28: a size in bytes is right, and no datatype is invented",
		    play_record(1)->bytes == 1600 &&
			    play_record(1)->datatype == OP_DATATYPE_UNKNOWN);
}

static void every_name_of_nccl_is_known(void)
{
	static const char *const names[] = {
		"AllGather", "AllReduce", "Broadcast", "Reduce",     "ReduceScatter",
		"Send",	     "Recv",	  "SendRecv",  "AlltoAll",   "Gather",
		"Scatter",   "PutSignal", "Signal",    "WaitSignal",
	};
	void *context = play_init(10, 1, 2, 0);
	uint64_t interned = recorder.region.header->names_used;
	uint32_t id;

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		play_issue(context, names[i], 8, "ncclFloat32", 1);
	play_issue(context, "Invalid", 8, "ncclFloat32", 1);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("D28: no name that NCCL uses is new",
		    recorder.region.header->names_used == interned);
	id = (uint32_t)recorder.region.header->comms_made;
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strcmp(op_function_name(stamp_record(id, i + 1)->function), names[i]) != 0)
			EXPECT_THAT(names[i], false);
	EXPECT_THAT("D28: what NCCL itself calls invalid is recorded as such",
		    stamp_record(id, ARRAY_LENGTH(names) + 1)->function == OP_FUNCTION_INVALID);
}

int main(void)
{
	play_setup("flight");
	ncclProfiler_v5.finalize(play_init(0, 1, 1, 0));
	an_unknown_type_has_no_size();
	an_absurd_count_has_no_size();
	stamp_move(0);
	staggered_channels_are_one_span();
	short_operations_have_a_time();
	drifted_broadcasts_are_no_times();
	an_overrun_is_no_time();
	a_stepping_wall_clock_changes_nothing();
	copy_engines_and_all_names_are_known();
	a_copy_engine_counts_in_bytes();
	every_name_of_nccl_is_known();
	return tap_done();
}
