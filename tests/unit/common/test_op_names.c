#include "common/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op_layout.h"
#include "format/region_layout.h"
#include "tests/tap.h"

static bool find(enum op_name_table table, const char *text, uint8_t wanted)
{
	int is_known = 0;

	return op_name_find(table, text, &is_known) == wanted && is_known;
}

/* NCCL's own spelling, from its sources and not from our tables. */
static void nccl_spells_it_so(void)
{
	EXPECT(find(OP_NAMES_FUNCTION, "AllReduce", OP_ALL_REDUCE));
	EXPECT(find(OP_NAMES_FUNCTION, "AllGather", OP_ALL_GATHER));
	EXPECT(find(OP_NAMES_FUNCTION, "ReduceScatter", OP_REDUCE_SCATTER));
	EXPECT(find(OP_NAMES_FUNCTION, "Broadcast", OP_BROADCAST));
	EXPECT(find(OP_NAMES_FUNCTION, "Reduce", OP_REDUCE));
	EXPECT(find(OP_NAMES_FUNCTION, "SendRecv", OP_SEND_RECV));
	EXPECT(find(OP_NAMES_FUNCTION, "Send", OP_SEND));
	EXPECT(find(OP_NAMES_FUNCTION, "Recv", OP_RECV));
	EXPECT(find(OP_NAMES_FUNCTION, "AlltoAll", OP_ALL_TO_ALL));
	EXPECT(find(OP_NAMES_FUNCTION, "Invalid", OP_FUNCTION_INVALID));
	EXPECT(find(OP_NAMES_DATATYPE, "ncclInt8", OP_INT8));
	EXPECT(find(OP_NAMES_DATATYPE, "ncclFloat16", OP_FLOAT16));
	EXPECT(find(OP_NAMES_DATATYPE, "ncclFloat32", OP_FLOAT32));
	EXPECT(find(OP_NAMES_DATATYPE, "ncclBfloat16", OP_BFLOAT16));
	EXPECT(find(OP_NAMES_DATATYPE, "ncclFloat8e4m3", OP_FLOAT8_E4M3));
	EXPECT(find(OP_NAMES_DATATYPE, "Unknown", OP_DATATYPE_UNKNOWN));
	EXPECT(find(OP_NAMES_ALGORITHM, "RING", OP_RING));
	EXPECT(find(OP_NAMES_ALGORITHM, "TREE", OP_TREE));
	EXPECT(find(OP_NAMES_ALGORITHM, "COLLNET_DIRECT", OP_COLLNET_DIRECT));
	EXPECT(find(OP_NAMES_ALGORITHM, "NVLS_TREE", OP_NVLS_TREE));
	EXPECT(find(OP_NAMES_ALGORITHM, "PAT", OP_PAT));
	EXPECT(find(OP_NAMES_PROTOCOL, "LL128", OP_LL128));
	EXPECT(find(OP_NAMES_PROTOCOL, "SIMPLE", OP_SIMPLE));
	EXPECT(find(OP_NAMES_FUNCTION, NULL, OP_FUNCTION_UNKNOWN));
	EXPECT(find(OP_NAMES_FUNCTION, "", OP_FUNCTION_UNKNOWN));
}

static void other_words_are_not_known(void)
{
	int is_known = 1;

	EXPECT_EQUAL(op_name_find(OP_NAMES_FUNCTION, "Quantum", &is_known), 0);
	EXPECT_EQUAL(is_known, 0);
	EXPECT(!find(OP_NAMES_FUNCTION, "allreduce", OP_ALL_REDUCE));
	EXPECT(!find(OP_NAMES_FUNCTION, "AllReduce2", OP_ALL_REDUCE));
}

/* Match numbers of logs contain the function; nobody wants to read that. */
static void shown_numbers_are_those_of_calls(void)
{
	EXPECT_EQUAL(op_shown_number(3726), 3726);
	EXPECT_EQUAL(op_shown_number(UINT64_C(4) << 48 | 2), 2);
}

/* Names convert both ways, none is used twice, and there is none past the end. */
static void names_are_a_bijection(void)
{
	static const uint8_t sizes[OP_NAME_TABLES] = { OP_FUNCTIONS, OP_DATATYPES, OP_ALGORITHMS,
						       OP_PROTOCOLS };

	for (unsigned int table = 0; table < OP_NAME_TABLES; table++) {
		unsigned int wrong = 0;

		for (uint8_t i = 0; i < sizes[table]; i++) {
			wrong += !find((enum op_name_table)table,
				       op_name((enum op_name_table)table, i), i);
			wrong += !find((enum op_name_table)table,
				       op_name_of_nccl((enum op_name_table)table, i), i);
		}
		EXPECT_EQUAL(wrong, 0);
		EXPECT(op_name((enum op_name_table)table, sizes[table]) == NULL);
		EXPECT(op_name((enum op_name_table)table, 255) == NULL);
	}
	EXPECT(strcmp(op_function_name(255), "?") == 0);
	EXPECT(strcmp(op_state_name(255), "?") == 0);
}

/* ncclDataType_t: 0 int8, 1 uint8, ... 9 bfloat16; sizes as in nccl.h. */
static void datatypes_have_their_sizes(void)
{
	static const unsigned int bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
	unsigned int wrong = 0;

	for (uint8_t i = 0; i < ARRAY_LENGTH(bytes); i++)
		wrong += op_datatype_bytes(op_datatype_from_nccl(i)) != bytes[i];
	EXPECT_EQUAL(wrong, 0);
	EXPECT_EQUAL(op_datatype_bytes(OP_DATATYPE_UNKNOWN), 0);
	EXPECT_EQUAL(op_datatype_bytes(OP_DATATYPES), 0);
	EXPECT_EQUAL(op_datatype_bytes(OP_NAME_INTERNED), 0);
	EXPECT_EQUAL(op_datatype_from_nccl(200), OP_DATATYPE_UNKNOWN);
}

/* ncclFunc_t, NCCL_ALGO_* and NCCL_PROTO_* of NCCL 2.23. */
static void v1_sends_numbers(void)
{
	EXPECT_EQUAL(op_function_from_v1(0), OP_BROADCAST);
	EXPECT_EQUAL(op_function_from_v1(4), OP_ALL_REDUCE);
	EXPECT_EQUAL(op_function_from_v1(7), OP_RECV);
	EXPECT_EQUAL(op_function_from_v1(8), OP_FUNCTION_UNKNOWN);
	EXPECT_EQUAL(op_algorithm_from_v1(0), OP_TREE);
	EXPECT_EQUAL(op_algorithm_from_v1(1), OP_RING);
	EXPECT_EQUAL(op_algorithm_from_v1(6), OP_PAT);
	EXPECT_EQUAL(op_algorithm_from_v1(7), OP_ALGORITHM_UNKNOWN);
	EXPECT_EQUAL(op_protocol_from_v1(0), OP_LL);
	EXPECT_EQUAL(op_protocol_from_v1(2), OP_SIMPLE);
	EXPECT_EQUAL(op_protocol_from_v1(3), OP_PROTOCOL_UNKNOWN);
}

static void reasons_and_modes_have_names(void)
{
	for (unsigned int i = 0; i <= LOST_INSPECTOR; i++)
		EXPECT(op_lost_name(i) != NULL);
	for (unsigned int i = 0; i <= ODD_CHANNEL; i++)
		EXPECT(op_odd_name(i) != NULL);
	EXPECT(op_lost_name(LOST_REASONS) == NULL && op_odd_name(ODD_REASONS) == NULL);
	EXPECT(strcmp(op_mode_name(REGION_MODE_OFF), "off") == 0);
	EXPECT(strcmp(op_mode_name(REGION_MODE_FULL), "full") == 0);
	EXPECT(op_flag_name(0) != NULL && op_flag_name(31) == NULL && op_flag_name(32) == NULL);
}

/* Of details, proxy operations and totals only a part is lost; the operation itself is recorded. */
static void whole_operations_are_lost_for_eight_reasons(void)
{
	static const bool is_whole[LOST_REASONS] = {
		[LOST_NO_COMM] = true, [LOST_RING_BUSY] = true, [LOST_RING_OVERRUN] = true,
		[LOST_QUOTA] = true,   [LOST_NO_SPACE] = true,	[LOST_WRITE_ERROR] = true,
		[LOST_OFF] = true,     [LOST_NOT_SHOWN] = true,
	};
	uint64_t lost[LOST_REASONS];
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		wrong += op_lost_is_whole(i) != is_whole[i];
		lost[i] = UINT64_C(1) << 3 * i;
	}
	EXPECT_EQUAL(wrong, 0);
	EXPECT_THAT("their sum", op_lost_operations(lost) == (01111111 | UINT64_C(1) << 39));
	EXPECT_THAT("those never seen", op_lost_unseen(lost) == (01000001 | UINT64_C(1) << 39));
}

int main(void)
{
	whole_operations_are_lost_for_eight_reasons();
	nccl_spells_it_so();
	other_words_are_not_known();
	shown_numbers_are_those_of_calls();
	names_are_a_bijection();
	datatypes_have_their_sizes();
	v1_sends_numbers();
	reasons_and_modes_have_names();
	return tap_done();
}
