/* Operations that the GPU was seen not to finish: from a region, its snapshot, and a trace. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/attributes.h"
#include "format/trace_write.h"
#include "recording/recording.h"
#include "tests/support/sample_region.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define MOMENT_NS (100 * SECOND)
#define LAUNCH_NS (50 * SECOND)

static struct sample sample;

/* Slot 1 is launched with CUDA events around it, and the GPU was asked later. */
static struct region_live *timed(void)
{
	struct region_live *live;

	free(sample.bytes);
	sample = sample_region();
	live = sample_slot(&sample, REGION_LIVE, 1);
	live->word = UINT64_C(3) << 32 | 1;
	live->op.flags = OP_FLAG_CUDA_EVENT;
	live->op.state = OP_LAUNCHED;
	live->op.launch_ns = LAUNCH_NS;
	live->op.gpu_start_ns = live->op.gpu_stop_ns = live->op.done_ns = 0;
	live->op.kernels_started = live->op.kernels_stopped = 0;
	sample_head(&sample)->last_anchor.clock_ns = MOMENT_NS;
	sample_head(&sample)->times_read_ns = LAUNCH_NS + SECOND;
	return live;
}

static struct recording_process *load(struct recording *recording)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/region", scratch_dir.path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd == -1 || write(fd, sample.bytes, sample.size) != (ssize_t)sample.size ||
	    close(fd) == -1)
		abort();
	recording_init(recording);
	if (recording_add(recording, path, 0) != OK || recording_finish(recording) != OK ||
	    recording->count != 1)
		abort();
	return recording->processes[0];
}

static bool is_open_in(const struct recording_process *process)
{
	return process->flight_count > 0 && process->flights[0].op.flags & OP_FLAG_SEEN_OPEN;
}

static bool is_open(void)
{
	struct recording recording;
	bool is_open = is_open_in(load(&recording));

	recording_release(&recording);
	return is_open;
}

static void test_rule(void)
{
	timed();
	EXPECT_THAT("asked a second after the launch, and no end: it was open", is_open());
	timed();
	sample_head(&sample)->times_read_ns--;
	EXPECT_THAT("asked earlier: nothing is known", !is_open());
	timed()->op.flags = 0;
	EXPECT_THAT("without events around it the answer is not about it", !is_open());
	timed()->op.flags = OP_FLAG_SEEN_OPEN;
	EXPECT_THAT("whatever the region says", !is_open());
	timed()->op.gpu_stop_ns = LAUNCH_NS + 7;
	EXPECT_THAT("it has ended", !is_open());
	timed()->op.state = OP_DONE;
	EXPECT_THAT("it is done", !is_open());
	timed()->op.state = OP_ISSUED;
	EXPECT_THAT("it was not launched", !is_open());
	timed()->word--;
	EXPECT_THAT("no answer is awaited: its events were given up", !is_open());
	timed()->op.state = OP_RUNNING;
	EXPECT_THAT("the GPU has reached it", is_open());
}

static void test_times(void)
{
	struct region_live *live = timed();

	live->op.launch_ns = 0;
	live->op.task_ns = LAUNCH_NS;
	EXPECT_THAT("by its task, if the launch is unknown", is_open());
	live->op.task_ns = LAUNCH_NS + 1;
	EXPECT(!is_open());
	live->op.task_ns = 0;
	live->op.issue_ns = LAUNCH_NS;
	EXPECT_THAT("by its call, if that is unknown, too", is_open());
	live->op.issue_ns = LAUNCH_NS + 1;
	EXPECT(!is_open());
	live->op.issue_ns = 0;
	EXPECT_THAT("without any time nothing is known", !is_open());
	timed()->op.launch_ns = UINT64_MAX;
	EXPECT_THAT("a launch at the end of time was not asked about", !is_open());
	timed();
	sample_head(&sample)->times_read_ns = MOMENT_NS;
	EXPECT_THAT("asked right now", is_open());
	sample_head(&sample)->times_read_ns = MOMENT_NS + 1;
	EXPECT_THAT("a GPU that will be asked in the future was not", !is_open());
	sample_head(&sample)->times_read_ns = UINT64_MAX;
	EXPECT(!is_open());
	sample_head(&sample)->times_read_ns = 0;
	EXPECT_THAT("it was never asked", !is_open());
}

static void load_memory(struct recording *recording, const void *bytes, size_t length)
{
	recording_init(recording);
	if (recording_add_memory(recording, "memory", bytes, length, 0) != OK ||
	    recording_finish(recording) != OK || recording_find_flights(recording) != OK ||
	    recording->count != 1)
		abort();
}

static void test_snapshot(void)
{
	struct recording recording, again;
	struct recording_process *process;
	unsigned char *bytes;
	size_t length;

	for (int is_finished = 0; is_finished < 2; is_finished++) {
		timed();
		process = load(&recording);
		/* As if someone had changed it. */
		if (is_finished)
			process->flights[0].op.gpu_stop_ns = LAUNCH_NS + 7;
		if (recording_snapshot(process, 3, 0, &bytes, &length) != OK)
			abort();
		load_memory(&again, bytes, length);
		EXPECT_THAT("a snapshot keeps what was seen, but not of what is over",
			    is_open_in(again.processes[0]) == !is_finished);
		EXPECT_THAT("and when the GPU was asked",
			    again.processes[0]->times_read_ns == LAUNCH_NS + SECOND);
		recording_release(&again);
		recording_release(&recording);
		free(bytes);
	}
	timed();
	sample_head(&sample)->times_read_ns = 0;
	if (recording_snapshot(load(&recording), 3, 0, &bytes, &length) != OK)
		abort();
	load_memory(&again, bytes, length);
	EXPECT_THAT("or that it never was", again.processes[0]->times_read_ns == 0);
	recording_release(&again);
	recording_release(&recording);
	free(bytes);
}

/* What it is in a trace that a simulation of a hung job ends with. */
static bool is_open_in_trace(uint32_t flags, uint8_t state, uint32_t *open_children)
{
	struct trace_writer writer = { .fd = -1 };
	struct op_record op = sample_op(2);
	struct comm_info comm = sample_comm(op.comm);
	struct recording recording;
	unsigned char *bytes;
	size_t length;
	bool is_open;

	op.flags = flags;
	op.state = state;
	op.time_source = OP_TIME_NONE;
	op.kernels_started = op.kernels_stopped = 0;
	op.gpu_start_ns = op.gpu_stop_ns = op.done_ns = 0;
	if (trace_writer_open_memory(&writer, SECOND) != OK ||
	    trace_write_text(&writer, TRACE_PROCESS, "host=a\nrank=0\n", 14) != OK ||
	    trace_write_records(&writer, TRACE_COMM, &comm, sizeof(comm), 1) != OK ||
	    trace_write_ops(&writer, &op, 1) != OK)
		abort();
	bytes = trace_writer_take(&writer, &length);
	trace_writer_close(&writer);
	load_memory(&recording, bytes, length);
	is_open = is_open_in(recording.processes[0]);
	*open_children = recording.processes[0]->flight_count > 0
				 ? recording.processes[0]->flights[0].open_children
				 : 99;
	recording_release(&recording);
	free(bytes);
	return is_open;
}

static void test_trace(void)
{
	const uint32_t both = OP_FLAG_CUDA_EVENT | OP_FLAG_SEEN_OPEN;
	uint32_t children;

	EXPECT_THAT("a trace may say so", is_open_in_trace(both, OP_LAUNCHED, &children));
	EXPECT_THAT("its second event is open, as in a region", children == 1);
	EXPECT(is_open_in_trace(both, OP_RUNNING, &children) && children == 1);
	EXPECT_THAT("not of what is done",
		    !is_open_in_trace(both, OP_DONE, &children) && children == 0);
	EXPECT_THAT("nor of what has no events",
		    !is_open_in_trace(OP_FLAG_SEEN_OPEN, OP_LAUNCHED, &children) && children == 0);
	EXPECT_THAT("nor if it does not say so",
		    !is_open_in_trace(OP_FLAG_CUDA_EVENT, OP_LAUNCHED, &children) && children == 0);
}

/* Whether the GPU was asked before or after is read before the operation itself, and again with it. */
static void test_refresh(void)
{
	struct region_live *live = timed();
	struct recording recording;
	struct recording_process *process;
	char path[512];
	int fd;

	sample_head(&sample)->times_read_ns = 0;
	process = load(&recording);
	EXPECT(!is_open_in(process) && process->times_read_ns == 0);
	sample_head(&sample)->times_read_ns = LAUNCH_NS + 2 * SECOND;
	snprintf(path, sizeof(path), "%s/region", scratch_dir.path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd == -1 || pwrite(fd, sample.bytes, sample.size, 0) != (ssize_t)sample.size)
		abort();
	EXPECT_EQUAL(recording_refresh(process, 0), OK);
	EXPECT_THAT("a scan sees that the GPU was asked",
		    is_open_in(process) && process->times_read_ns == LAUNCH_NS + 2 * SECOND);
	live->op.gpu_stop_ns = live->op.gpu_start_ns = LAUNCH_NS + SECOND;
	live->op.state = OP_DONE;
	live->word--;
	if (pwrite(fd, sample.bytes, sample.size, 0) != (ssize_t)sample.size)
		abort();
	EXPECT_EQUAL(recording_refresh(process, 0), OK);
	EXPECT_THAT("and that it has ended since", !is_open_in(process));
	close(fd);
	recording_release(&recording);
}

int main(void)
{
	scratch_make();
	test_rule();
	test_times();
	test_snapshot();
	test_trace();
	test_refresh();
	free(sample.bytes);
	return tap_done();
}
