#include "common/op.h"

#include <string.h>

#include "common/attributes.h"
#include "common/op_layout.h"
#include "tests/tap.h"

static void messages_are_counted_as_nccl_tests_does(void)
{
	/* 100 elements of 4 bytes, 8 ranks. */
	static const struct {
		enum op_function function;
		uint64_t bytes;
	} known[] = {
		{ OP_ALL_REDUCE, 400 },
		{ OP_BROADCAST, 400 },
		{ OP_REDUCE, 400 },
		{ OP_SEND, 400 },
		{ OP_RECV, 400 },
		{ OP_ALL_GATHER, 3200 },
		{ OP_REDUCE_SCATTER, 3200 },
		{ OP_ALL_TO_ALL, 3200 },
		{ OP_GATHER, 3200 },
		{ OP_SCATTER, 3200 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
		EXPECT_EQUAL(op_message_bytes(known[i].function, 100, 4, 8), known[i].bytes);
	EXPECT_EQUAL(op_message_bytes(OP_ALL_REDUCE, 0, 4, 8), 0);
	EXPECT_EQUAL(op_message_bytes(OP_ALL_REDUCE, 100, 4, 0), 400);
}

static void what_is_not_known_is_not_a_number(void)
{
	EXPECT(op_message_bytes(OP_ALL_REDUCE, 100, 0, 8) == OP_BYTES_UNKNOWN);
	EXPECT(op_message_bytes(OP_ALL_GATHER, 100, 4, 0) == OP_BYTES_UNKNOWN);
	EXPECT(op_message_bytes(OP_ALL_GATHER, 100, 4, -1) == OP_BYTES_UNKNOWN);
	EXPECT(op_message_bytes(OP_FUNCTION_UNKNOWN, 100, 4, 8) == OP_BYTES_UNKNOWN);
	EXPECT(op_message_bytes(OP_ALL_REDUCE, UINT64_MAX / 2, 4, 8) == OP_BYTES_UNKNOWN);
	EXPECT(op_message_bytes(OP_ALL_GATHER, UINT64_MAX / 8, 4, 8) == OP_BYTES_UNKNOWN);
}

static void classes_are_powers_of_two(void)
{
	EXPECT_EQUAL(op_size_class(OP_BYTES_UNKNOWN), 0);
	EXPECT_EQUAL(op_size_class(0), 1);
	EXPECT_EQUAL(op_size_class(1), 2);
	EXPECT_EQUAL(op_size_class(2), 3);
	EXPECT_EQUAL(op_size_class(3), 3);
	EXPECT_EQUAL(op_size_class(4), 4);
	EXPECT_EQUAL(op_size_class(1023), 11);
	EXPECT_EQUAL(op_size_class(1024), 12);
	EXPECT_EQUAL(op_size_class(UINT64_MAX - 1), 65);
}

static void a_class_has_the_sizes_that_fall_into_it(void)
{
	static const uint64_t sizes[] = {
		0, 1, 2, 3, 4, 1023, 1024, 1025, UINT64_C(1) << 40, UINT64_MAX - 1
	};
	uint64_t least, most;

	for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
		unsigned int class = op_size_class(sizes[i]);

		EXPECT(op_size_range(class, &least, &most));
		EXPECT(least <= sizes[i] && sizes[i] <= most);
		EXPECT(op_size_class(least) == class);
		EXPECT(most == UINT64_MAX || op_size_class(most) == class);
	}
	EXPECT(!op_size_range(op_size_class(OP_BYTES_UNKNOWN), &least, &most));
	EXPECT(!op_size_range(66, &least, &most));
}

static void a_class_is_called_by_its_least_size(void)
{
	static const struct {
		unsigned int size_class;
		const char *text;
	} known[] = { { 0, "unknown" }, { 1, "0 B" },	 { 2, "1 B" },	   { 11, "512 B" },
		      { 27, "32 MiB" }, { 65, "8 EiB" }, { 66, "unknown" } };
	char text[16];

	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		op_size_text(text, sizeof(text), known[i].size_class);
		EXPECT_THAT(known[i].text, strcmp(text, known[i].text) == 0);
	}
}

static void only_collectives_join_ranks_by_number(void)
{
	EXPECT(op_is_collective(OP_ALL_REDUCE) && op_is_collective(OP_BROADCAST) &&
	       op_is_collective(OP_ALL_TO_ALL) && op_is_collective(OP_GATHER));
	EXPECT(!op_is_collective(OP_SEND) && !op_is_collective(OP_RECV) &&
	       !op_is_collective(OP_SEND_RECV) && !op_is_collective(OP_PUT_SIGNAL));
}

int main(void)
{
	messages_are_counted_as_nccl_tests_does();
	what_is_not_known_is_not_a_number();
	classes_are_powers_of_two();
	a_class_has_the_sizes_that_fall_into_it();
	a_class_is_called_by_its_least_size();
	only_collectives_join_ranks_by_number();
	return tap_done();
}
