#include "format/trace_code.h"

#include "tests/tap.h"

static void test_numbers(void)
{
	EXPECT(trace_zigzag(0) == 0 && trace_zigzag(UINT64_MAX) == 1 && trace_zigzag(1) == 2);
	EXPECT(trace_unzigzag(trace_zigzag(UINT64_C(1) << 63)) == UINT64_C(1) << 63);
	EXPECT(trace_unzigzag(UINT64_MAX) == UINT64_C(1) << 63);
	EXPECT_EQUAL(trace_packed_bytes(9, 7), 8);
	EXPECT_EQUAL(trace_packed_bytes(TRACE_ROWS_MAX, 64), 8 * TRACE_ROWS_MAX);
	EXPECT(trace_presence_bytes(32) == 4 && trace_presence_bytes(10) == 2);
	EXPECT(trace_index_width(1) == 0 && trace_index_width(2) == 1 && trace_index_width(3) == 2);
	EXPECT(trace_index_width(128) == 7 && trace_index_width(255) == 8);
	EXPECT(trace_width_mask(0) == 0 && trace_width_mask(56) == (UINT64_C(1) << 56) - 1 &&
	       trace_width_mask(64) == UINT64_MAX);
}

/* What the recorder computes is predicted if the communicator's last signature is known. */
static void test_signatures(void)
{
	struct trace_signatures signatures = { { 0 } };
	struct trace_signature_run run = { .place = 0 };
	const uint64_t kind = 3 | (uint64_t)OP_ALL_GATHER << 32 | (uint64_t)OP_FLOAT16 << 40;
	const uint64_t send = 3 | (uint64_t)OP_SEND << 32;
	const uint64_t ends = UINT64_MAX,
		       first = op_signature(0, OP_ALL_GATHER, 256 | OP_FLOAT16, OP_NOBODY, 77);

	EXPECT(trace_signature_guess(0, kind, 77, ends, 0) == first);
	EXPECT(trace_signature_guess(first, kind, 78, ends, 0) ==
	       op_signature(first, OP_ALL_GATHER, 256 | OP_FLOAT16, OP_NOBODY, 78));
	EXPECT_THAT("neither Sends nor replays have one",
		    trace_signature_guess(first, send, 78, ends, 0) == 0 &&
			    trace_signature_guess(first, kind, 78, ends, OP_FLAG_REPLAY) == 0);
	run.last = first;
	trace_signature_turn(&signatures, &run, 5);
	EXPECT_THAT("another communicator has another", run.last == 0);
	run.last = 9;
	trace_signature_turn(&signatures, &run, 5);
	EXPECT(run.last == 9);
	trace_signature_turn(&signatures, &run, TRACE_SIGNATURE_PLACES);
	EXPECT_THAT("unless they share a place", run.last == first);
}

static void test_checksum(void)
{
	unsigned char bytes[8] = { 0 };
	struct trace_block block = { .type = TRACE_OPS, .payload_bytes = 8, .records = 2 };
	uint64_t sum = trace_block_checksum(&block, bytes);

	block.records = 3;
	EXPECT_THAT("the checksum covers the number of records",
		    trace_block_checksum(&block, bytes) != sum);
	block.records = 2;
	block.type = TRACE_DETAILS;
	EXPECT_THAT("and the type", trace_block_checksum(&block, bytes) != sum);
	block.type = TRACE_OPS;
	block.payload_bytes = 7;
	EXPECT_THAT("and the length", trace_block_checksum(&block, bytes) != sum);
	block.payload_bytes = 8;
	bytes[7] = 1;
	EXPECT_THAT("and the payload", trace_block_checksum(&block, bytes) != sum);
}

int main(void)
{
	test_numbers();
	test_signatures();
	test_checksum();
	return tap_done();
}
