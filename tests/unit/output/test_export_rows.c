#include "output/export.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum { ROWS_MAX = 5000 };

static struct op_record records[ROWS_MAX];
static uint64_t words[OP_RECORD_WORDS][ROWS_MAX];

static struct op_batch batch_of(uint32_t rows)
{
	struct op_batch batch = { .rows = rows, .words = OP_WORDS_ALL };

	for (unsigned int word = 0; word < OP_RECORD_WORDS; word++) {
		for (uint32_t i = 0; i < rows; i++)
			memcpy(&words[word][i], (const char *)&records[i] + 8 * word, 8);
		batch.column[word] = words[word];
	}
	return batch;
}

static struct op_record make_op(uint64_t number)
{
	struct op_record op = { .sequence = number,
				.comm = 1,
				.function = OP_ALL_REDUCE,
				.number = number,
				.root = OP_NOBODY,
				.peer = OP_NOBODY,
				.state = OP_DONE,
				.issue_ns = 1000,
				.done_ns = 1500,
				.time_source = OP_TIME_HOST };

	return op;
}

static struct recording_comm comm = { .info = { .id = 1,
						.interface = 5,
						.hash = 0xabc,
						.rank = 0,
						.nranks = 4,
						.nnodes = 2,
						.gpu = -1,
						.name = "tp" } };
static struct clock_anchor anchors[] = { { 1000, 5000 }, { 2000, 7000 } };
static struct recording_process process = { .job = "j",
					    .rank = -1,
					    .pid = 7,
					    .comms = &comm,
					    .comm_count = 1,
					    .anchors = anchors,
					    .anchor_count = 2 };

static const struct export_cell *cell(const struct export_rows *rows,
				      const struct export_frame *frame,
				      enum export_column_id column, uint32_t row)
{
	return export_cell(rows, column, frame->entry[export_columns[column].group][row]);
}

static int is_text(const struct export_rows *rows, const struct export_frame *frame,
		   enum export_column_id column, uint32_t row, const char *wanted)
{
	const char *text = cell(rows, frame, column, row)->text;

	return text != NULL && strcmp(text, wanted) == 0;
}

static void test_cells(struct export_rows *rows)
{
	struct export_frame frame;
	struct op_batch batch;

	records[0] = make_op(1);
	records[0].flags = OP_FLAG_REPLAY | OP_FLAG_STAMP_ZERO | 1u << 30;
	records[1] = make_op(2);
	records[1].comm = 9;
	records[1].function = OP_FUNCTION_UNKNOWN;
	records[1].peer = 3;
	records[1].kernels_stopped = 8;
	batch = batch_of(2);
	export_rows_process(rows, &process);
	EXPECT_EQUAL(export_rows_take(rows, &batch, 0, &frame), 2);
	EXPECT(is_text(rows, &frame, EXPORT_JOB, 0, "j"));
	EXPECT_THAT("an unknown host is null", cell(rows, &frame, EXPORT_HOST, 0)->is_null);
	EXPECT_THAT("an unknown rank is null", cell(rows, &frame, EXPORT_RANK, 0)->is_null);
	EXPECT(cell(rows, &frame, EXPORT_PID, 0)->number == 7);
	EXPECT(is_text(rows, &frame, EXPORT_COMM_HASH, 0, "0x0000000000000abc"));
	EXPECT(is_text(rows, &frame, EXPORT_COMM_KIND, 0, "mixed"));
	EXPECT(is_text(rows, &frame, EXPORT_FUNCTION, 0, "AllReduce"));
	EXPECT(is_text(rows, &frame, EXPORT_FLAGS, 0, "replay,stamp_zero,bit30"));
	EXPECT(cell(rows, &frame, EXPORT_IS_REPLAY, 0)->number == 1);
	EXPECT_THAT("no peer is null", cell(rows, &frame, EXPORT_PEER, 0)->is_null);
	EXPECT_THAT("an unknown communicator still has its number",
		    cell(rows, &frame, EXPORT_COMM_ID, 1)->number == 9 &&
			    cell(rows, &frame, EXPORT_COMM_HASH, 1)->is_null &&
			    cell(rows, &frame, EXPORT_COMM_KIND, 1)->is_null &&
			    cell(rows, &frame, EXPORT_COMM_RANK, 1)->is_null);
	EXPECT(cell(rows, &frame, EXPORT_FUNCTION, 1)->is_null);
	EXPECT(cell(rows, &frame, EXPORT_PEER, 1)->number == 3);
	EXPECT(cell(rows, &frame, EXPORT_KERNELS_STOPPED, 1)->number == 8);
	EXPECT(is_text(rows, &frame, EXPORT_FLAGS, 1, ""));
}

static void test_times(struct export_rows *rows)
{
	static const struct recording_process timeless = { .pid = 7 };
	struct export_frame frame;
	struct op_batch batch;

	records[0] = make_op(1);
	records[1] = make_op(2);
	records[1].issue_ns = 2100;
	records[1].done_ns = 2000;
	records[2] = make_op(3);
	records[2].issue_ns = 0;
	records[2].active_ns = 3000;
	records[2].done_ns = 3500;
	records[2].time_source = OP_TIME_PROXY;
	records[2].flags |= OP_FLAG_TOOL_TIME;
	records[0].gpu_start_ns = 100;
	records[0].gpu_stop_ns = 600;
	records[3] = make_op(4);
	records[3].issue_ns = 1999;
	records[3].done_ns = 2500;
	records[4] = make_op(5);
	records[4].issue_ns = 10;
	records[4].time_source = OP_TIME_NONE;
	batch = batch_of(5);
	export_rows_process(rows, &process);
	EXPECT_EQUAL(export_rows_take(rows, &batch, 0, &frame), 5);
	EXPECT_THAT("wall time uses the previous anchor",
		    frame.values[EXPORT_ISSUE_TIME][0] == 5000);
	EXPECT(frame.values[EXPORT_ISSUE_TIME][1] == 7100);
	EXPECT_THAT("an unknown time is null",
		    frame.values[EXPORT_ISSUE_TIME][2] == EXPORT_NULL_SIGNED);
	EXPECT_THAT("then the next anchor applies", frame.values[EXPORT_ACTIVE_TIME][2] == 8000);
	EXPECT_THAT("all times of an operation use the same anchor",
		    frame.values[EXPORT_DONE_TIME][3] - frame.values[EXPORT_ISSUE_TIME][3] == 501);
	EXPECT_THAT("before all anchors the first one applies",
		    frame.values[EXPORT_ISSUE_TIME][4] == 4010);
	EXPECT(frame.values[EXPORT_CLOCK_OFFSET][0] == 4000);
	EXPECT(frame.values[EXPORT_CLOCK_OFFSET][1] == 5000);
	EXPECT_THAT("a bound by the host's clock is no duration",
		    frame.values[EXPORT_DURATION][0] == EXPORT_NULL_SIGNED);
	EXPECT_THAT("no duration if it ends before it starts",
		    frame.values[EXPORT_DURATION][1] == EXPORT_NULL_SIGNED);
	EXPECT_EQUAL(frame.values[EXPORT_DURATION][2], 500); /* of another tool */
	EXPECT_THAT("without GPU timestamps the spread is null, not 0",
		    frame.values[EXPORT_START_SPREAD][2] == EXPORT_NULL_SIGNED &&
			    frame.values[EXPORT_STOP_SPREAD][2] == EXPORT_NULL_SIGNED &&
			    frame.values[EXPORT_START_SPREAD][0] != EXPORT_NULL_SIGNED);
	EXPECT_THAT("no source, no duration",
		    frame.values[EXPORT_DURATION][4] == EXPORT_NULL_SIGNED);
	export_rows_process(rows, &timeless);
	export_rows_take(rows, &batch, 0, &frame);
	EXPECT_THAT("without an anchor, times are the recorder's and the offset is unknown",
		    frame.values[EXPORT_ISSUE_TIME][0] == 1000 &&
			    frame.values[EXPORT_CLOCK_OFFSET][0] == EXPORT_NULL_SIGNED);
}

/* In the record it is a time by the GPU, with a flag. */
static void test_cuda_events(struct export_rows *rows)
{
	struct export_frame frame;
	struct op_batch batch;

	for (unsigned int i = 0; i < 3; i++) {
		records[i] = make_op(i + 1);
		records[i].time_source = i < 2 ? OP_TIME_KERNEL_GPU : OP_TIME_HOST;
		records[i].flags = i == 1 || i == 2 ? OP_FLAG_CUDA_EVENT : 0;
		records[i].gpu_start_ns = 1100;
		records[i].gpu_stop_ns = 1400;
	}
	batch = batch_of(3);
	export_rows_process(rows, &process);
	EXPECT_EQUAL(export_rows_take(rows, &batch, 0, &frame), 3);
	EXPECT(is_text(rows, &frame, EXPORT_TIME_SOURCE, 0, "kernel_gpu"));
	EXPECT(is_text(rows, &frame, EXPORT_TIME_SOURCE, 1, "cuda_event"));
	EXPECT_THAT("recorded events may not be its time",
		    is_text(rows, &frame, EXPORT_TIME_SOURCE, 2, "host"));
	EXPECT_EQUAL(frame.values[EXPORT_DURATION][1], 300);
	EXPECT(frame.values[EXPORT_DURATION][2] == EXPORT_NULL_SIGNED);
	EXPECT_THAT("they do not show channels",
		    frame.values[EXPORT_START_SPREAD][0] == 0 &&
			    frame.values[EXPORT_START_SPREAD][1] == EXPORT_NULL_SIGNED &&
			    frame.values[EXPORT_STOP_SPREAD][1] == EXPORT_NULL_SIGNED);
}

static void test_processes(struct export_rows *rows)
{
	static const struct recording_process other = { .job = "k", .rank = 3, .pid = 8 };
	struct export_frame frame;
	struct op_batch batch;

	records[0] = make_op(1);
	batch = batch_of(1);
	export_rows_process(rows, &other);
	export_rows_take(rows, &batch, 0, &frame);
	EXPECT_THAT("communicator numbers are per process",
		    is_text(rows, &frame, EXPORT_JOB, 0, "k") &&
			    cell(rows, &frame, EXPORT_COMM_HASH, 0)->is_null);
	export_rows_process(rows, &process);
	export_rows_take(rows, &batch, 0, &frame);
	EXPECT(is_text(rows, &frame, EXPORT_JOB, 0, "j"));
}

static void test_full(struct export_rows *rows)
{
	uint32_t taken = 0, forgotten = 0;
	struct export_frame frame;
	int is_right = 1;

	export_rows_forget(rows);
	for (uint32_t round = 0; round < 8; round++) {
		struct op_batch batch;

		for (uint32_t i = 0; i < ROWS_MAX; i++) {
			records[i] = make_op(i + 1);
			records[i].peer = (int32_t)(round * ROWS_MAX + i);
		}
		batch = batch_of(ROWS_MAX);
		for (uint32_t at = 0; at < ROWS_MAX; at += frame.rows) {
			export_rows_take(rows, &batch, at, &frame);
			for (uint32_t i = 0; i < frame.rows; i++)
				is_right &= cell(rows, &frame, EXPORT_PEER, i)->number ==
					    round * ROWS_MAX + at + i;
			taken += frame.rows;
			forgotten += rows->is_full;
			if (rows->is_full)
				export_rows_forget(rows);
		}
	}
	EXPECT_EQUAL(taken, 8 * ROWS_MAX);
	EXPECT_EQUAL(forgotten, 8 * ROWS_MAX / EXPORT_ENTRIES_MAX);
	EXPECT_THAT("more values than a group holds", is_right);
}

static void test_strings(void)
{
	struct export_string *strings = NULL;
	const char *good = "gr\xc3\xbc\xc3\x9f";

	EXPECT_THAT("valid UTF-8 is not copied", export_string_clean(&strings, good) == good);
	EXPECT(strcmp(export_string_clean(&strings, "a\xff\xc3z\xed\xa0\x80"),
		      "a\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd") == 0);
	export_string_free(&strings);
	EXPECT(strings == NULL);
}

int main(void)
{
	struct export_rows *rows = export_rows_new();

	if (rows == NULL)
		return 1;
	test_cells(rows);
	test_times(rows);
	test_cuda_events(rows);
	test_processes(rows);
	test_full(rows);
	test_strings();
	export_rows_free(rows);
	return tap_done();
}
