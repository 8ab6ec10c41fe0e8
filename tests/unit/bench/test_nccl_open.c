#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_gpu.h"
#include "bench/bench_result.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "tests/tap.h"

static const char *text_of(nccl_result result)
{
	return result == 5 ? "invalid usage" : NULL;
}

static const char *said_last(struct ncclComm *comm)
{
	(void)comm;
	return "no algorithm available\nand more lines";
}

static bool is_one_line(const char *text)
{
	return text[0] != '\0' && strchr(text, '\n') == NULL;
}

static void test_types(void)
{
	struct nccl nccl = { .version = 22809 };

	/* The recorder converts the same numbers in the other direction. */
	for (uint8_t datatype = OP_INT8; datatype < OP_DATATYPES; datatype++)
		EXPECT_EQUAL(op_datatype_from_nccl((uint8_t)nccl_type_of(&nccl, datatype)),
			     datatype);
	EXPECT_EQUAL(nccl_type_of(&nccl, OP_DATATYPE_UNKNOWN), -1);
	EXPECT_EQUAL(nccl_type_of(&nccl, OP_DATATYPES), -1);
	nccl.version = 22304;
	EXPECT_EQUAL(nccl_type_of(&nccl, OP_FLOAT8_E4M3), -1);
	EXPECT_EQUAL(nccl_type_of(&nccl, OP_BFLOAT16), 9);
	nccl.version = 2804; /* 2.8.4: the encoding changed with 2.9 */
	EXPECT_EQUAL(nccl_type_of(&nccl, OP_BFLOAT16), -1);
	EXPECT_EQUAL(nccl_op_of(BENCH_SUM), 0);
	EXPECT_EQUAL(nccl_op_of(BENCH_PROD), 1);
	EXPECT_EQUAL(nccl_op_of(BENCH_MAX), 2);
	EXPECT_EQUAL(nccl_op_of(BENCH_MIN), 3);
	EXPECT_EQUAL(nccl_op_of(BENCH_AVG), 4);
	EXPECT_EQUAL(nccl_op_of(BENCH_REDOPS), -1);
}

int main(void)
{
	struct nccl nccl;
	char problem[512] = "";

	EXPECT(nccl_open(&nccl, "/nowhere/libnccl.so.2", problem, sizeof(problem)) == -1);
	EXPECT(is_one_line(problem) && strstr(problem, "/nowhere/libnccl.so.2") != NULL);
	EXPECT(strstr(problem, "--nccl FILE") != NULL && strstr(problem, "RINGSIDE_NCCL") != NULL);

	setenv("RINGSIDE_NCCL", "libm.so.6", 1);
	EXPECT(nccl_open(&nccl, NULL, problem, sizeof(problem)) == -1);
	EXPECT(is_one_line(problem) && strstr(problem, "has no ncclGetVersion") != NULL);
	EXPECT(nccl.library == NULL);

	nccl = (struct nccl){ .error_text = text_of };
	EXPECT(strcmp(nccl_explain(&nccl, 5, "AllReduce", problem, sizeof(problem)),
		      "AllReduce failed: invalid usage") == 0);
	nccl.last_error = said_last;
	EXPECT(strcmp(nccl_explain(&nccl, 5, "AllReduce", problem, sizeof(problem)),
		      "AllReduce failed: invalid usage; NCCL says: no algorithm available") == 0);
	test_types();
	return tap_done();
}
