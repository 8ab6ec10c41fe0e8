#include "common/op.h"

#include <string.h>

#include "tests/support/sample_trace.h"
#include "tests/tap.h"

/* A record that is valid except for one field. */
#define EXPECT_BAD(field, value)                                                        \
	do {                                                                            \
		struct op_record op = sample_op(1);                                     \
		op.field = (value);                                                     \
		EXPECT_THAT(#field " = " #value " is rejected", op_check(&op) != NULL); \
	} while (0)

#define EXPECT_GOOD(field, value)                                                   \
	do {                                                                        \
		struct op_record op = sample_op(1);                                 \
		op.field = (value);                                                 \
		EXPECT_THAT(#field " = " #value " is fine", op_check(&op) == NULL); \
	} while (0)

static void test_ranges(void)
{
	struct op_record live = sample_op(1);

	EXPECT_BAD(sequence, 0);
	EXPECT_BAD(sequence, UINT64_C(1) << 63);
	EXPECT_BAD(comm, 0);
	EXPECT_BAD(number, 0);
	EXPECT_BAD(function, OP_FUNCTIONS);
	EXPECT_BAD(function, OP_NAME_INTERNED - 1);
	EXPECT_BAD(function, OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX);
	EXPECT_BAD(datatype, OP_DATATYPES);
	EXPECT_BAD(algorithm, OP_ALGORITHMS);
	EXPECT_BAD(protocol, OP_PROTOCOLS);
	EXPECT_BAD(protocol, 255);
	EXPECT_BAD(state, OP_STATE_NONE);
	EXPECT_BAD(state, OP_STATES);
	EXPECT_BAD(time_source, OP_TIME_SOURCES);
	EXPECT_GOOD(function, OP_NAME_INTERNED);
	EXPECT_GOOD(datatype, OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX - 1);
	EXPECT_GOOD(peer, INT32_MIN);
	EXPECT_GOOD(root, INT32_MAX);
	EXPECT_GOOD(flags, UINT32_MAX);
	EXPECT_GOOD(bytes, OP_BYTES_UNKNOWN);
	EXPECT_GOOD(channels, 255);
	live.sequence = 0;
	EXPECT_THAT("a live one has no sequence yet", op_check_live(&live) == NULL);
}

static void test_time(void)
{
	struct op_record op = sample_op(1);

	EXPECT(op_check_time(&op) && op.time_source == OP_TIME_KERNEL_GPU);
	op.gpu_stop_ns = op.gpu_start_ns;
	EXPECT_THAT("no time at all is acceptable", op_check_time(&op));
	op.gpu_stop_ns--;
	EXPECT_THAT("a stop before the start makes the source none",
		    !op_check_time(&op) && op.time_source == OP_TIME_NONE);
	EXPECT(op_check_time(&op));
	op = sample_op(1);
	op.time_source = OP_TIME_PROXY;
	EXPECT_THAT("proxy needs its first activity", !op_check_time(&op));
	op.time_source = OP_TIME_PROXY;
	op.active_ns = op.done_ns - 1;
	EXPECT(op_check_time(&op));
	op.time_source = OP_TIME_HOST;
	op.done_ns = op.issue_ns - 1;
	EXPECT(!op_check_time(&op));
	op.time_source = OP_TIME_HOST;
	op.done_ns = op.issue_ns;
	EXPECT_THAT("the host's time runs from call to end",
		    op_check_time(&op) && op.time_source == OP_TIME_HOST);
	op.issue_ns = 0;
	EXPECT_THAT("without a call there is none",
		    !op_check_time(&op) && op.time_source == OP_TIME_NONE);
}

int main(void)
{
	struct op_detail detail = sample_detail(1);
	struct comm_info comm = sample_comm(1);

	test_ranges();
	test_time();
	EXPECT(op_check_detail(&detail) == NULL);
	detail.kind = 0;
	EXPECT(op_check_detail(&detail) != NULL);
	detail = sample_detail(3);
	detail.sequence = 0;
	EXPECT(op_check_detail(&detail) != NULL);
	EXPECT(op_check_comm(&comm) == NULL);
	comm.nranks = -1;
	EXPECT(op_check_comm(&comm) != NULL);
	comm.nranks = 0;
	comm.nnodes = 0;
	EXPECT_THAT("an unknown size is none", op_check_comm(&comm) == NULL);
	comm.nnodes = -1;
	EXPECT(op_check_comm(&comm) != NULL);
	comm = sample_comm(0);
	EXPECT(op_check_comm(&comm) != NULL);
	return tap_done();
}
