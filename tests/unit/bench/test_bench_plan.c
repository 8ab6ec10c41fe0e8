#include "bench/bench_plan.h"

#include <string.h>

#include "common/op_layout.h"
#include "tests/tap.h"

static struct bench_plan plan;
static char problem[512];

static int is_problem(const char *first, const char *second)
{
	if (strstr(problem, first) && strstr(problem, second) && strchr(problem, '\n') == NULL)
		return 1;
	printf("#   got \"%s\"\n", problem);
	return 0;
}

static int functions(const char *text)
{
	return plan_functions(&plan, text, problem, sizeof(problem));
}

static int types(const char *text)
{
	return plan_datatypes(&plan, text, problem, sizeof(problem));
}

static int sizes(const char *text)
{
	return plan_sizes(&plan, text, problem, sizeof(problem));
}

static int is_one(const char *text, uint8_t function)
{
	return functions(text) == 0 && plan.function_count == 1 && plan.functions[0] == function;
}

static int is_type(const char *text, uint8_t datatype)
{
	return types(text) == 0 && plan.datatype_count == 1 && plan.datatypes[0] == datatype;
}

static void test_defaults(void)
{
	plan_init(&plan);
	EXPECT(plan.function_count == 1 && plan.functions[0] == OP_ALL_REDUCE);
	EXPECT(plan.datatype_count == 1 && plan.datatypes[0] == OP_FLOAT32);
	EXPECT(plan.redop_count == 1 && plan.redops[0] == BENCH_SUM);
	EXPECT(plan.mode_count == 1 && plan.modes[0] == BENCH_BLOCKING);
	EXPECT(plan.size_count == 9 && plan.sizes[0] == 1024 && plan.sizes[8] == 64 << 20);
	EXPECT(plan.places == PLAN_BOTH_PLACES && plan.is_checked && plan.calls == 20);
}

static void test_functions(void)
{
	EXPECT(is_one("allreduce", OP_ALL_REDUCE) && is_one("AllReduce", OP_ALL_REDUCE));
	EXPECT(is_one("all_reduce_perf", OP_ALL_REDUCE) && is_one("all-reduce", OP_ALL_REDUCE));
	EXPECT(is_one("ncclAllReduce", OP_ALL_REDUCE) && is_one("ALLREDUCE", OP_ALL_REDUCE));
	EXPECT(is_one("reduce_scatter_perf", OP_REDUCE_SCATTER) &&
	       is_one("alltoall", OP_ALL_TO_ALL));
	EXPECT(is_one("AlltoAll", OP_ALL_TO_ALL) && is_one("sendrecv_perf", OP_SEND_RECV));
	EXPECT(is_one("Send/Recv", OP_SEND_RECV) && is_one("bcast", OP_BROADCAST));
	EXPECT(is_one("reduce", OP_REDUCE) && is_one("gather", OP_GATHER) &&
	       is_one("scatter", OP_SCATTER));
	EXPECT(functions("all") == 0 && plan.function_count == 9);
	EXPECT(functions("allgather,all_gather,reduce") == 0 && plan.function_count == 2);
	EXPECT(functions("allreduce,nonsense") == -1 && is_problem("'nonsense'", "reducescatter"));
	EXPECT_THAT("a wrong list changes nothing", plan.function_count == 2);
	EXPECT(functions("") == -1 && is_problem("empty", "allreduce"));
	EXPECT(functions("allreduce,,reduce") == -1 && is_problem("empty", "allreduce"));
	EXPECT(functions(
		       "all_reduce_of_a_word_that_is_much_longer_than_any_word_in_the_table_is") ==
	       -1);
	EXPECT(functions("perf") == -1 && functions("nccl") == -1);
}

static void test_words(void)
{
	EXPECT(is_type("float", OP_FLOAT32) && is_type("ncclFloat32", OP_FLOAT32));
	EXPECT(is_type("half", OP_FLOAT16) && is_type("BF16", OP_BFLOAT16) &&
	       is_type("int", OP_INT32));
	EXPECT(is_type("f8e4m3", OP_FLOAT8_E4M3) && is_type("fp8_e5m2", OP_FLOAT8_E5M2));
	EXPECT(types("all") == 0 && plan.datatype_count == 12);
	EXPECT(types("half,float16,fp16") == 0 && plan.datatype_count == 1);
	EXPECT(types("complex") == -1 && is_problem("type 'complex'", "bfloat16"));
	EXPECT(plan_redops(&plan, "max,min", problem, sizeof(problem)) == 0 &&
	       plan.redop_count == 2);
	EXPECT(plan_redops(&plan, "all", problem, sizeof(problem)) == 0 && plan.redop_count == 5);
	EXPECT(plan_redops(&plan, "mulsum", problem, sizeof(problem)) == -1 &&
	       is_problem("reduction 'mulsum'", "sum, prod, max, min, avg"));
	EXPECT(plan_modes(&plan, "back-to-back,graph", problem, sizeof(problem)) == 0 &&
	       plan.modes[0] == BENCH_BACK_TO_BACK && plan.modes[1] == BENCH_GRAPH);
	EXPECT(plan_modes(&plan, "all", problem, sizeof(problem)) == 0 && plan.mode_count == 4);
	EXPECT(plan_modes(&plan, "slow", problem, sizeof(problem)) == -1 &&
	       is_problem("mode 'slow'", "back-to-back"));
}

static void test_sizes(void)
{
	EXPECT(sizes("1K,32K,1M") == 0 && plan.size_count == 3 && plan.sizes[2] == 1 << 20);
	EXPECT(sizes("1K..1G") == 0 && plan.size_count == 21 && plan.sizes[20] == 1 << 30);
	EXPECT(sizes("1K..1G*4") == 0 && plan.size_count == 11 && plan.sizes[1] == 4096);
	EXPECT(sizes("1M..8M+1M") == 0 && plan.size_count == 8 && plan.sizes[2] == 3 << 20);
	EXPECT(sizes("1M..8M+1M,8M,4096") == 0 && plan.size_count == 9 && plan.sizes[8] == 4096);
	EXPECT(sizes("1K..5K*4") == 0 && plan.size_count == 2);
	EXPECT(sizes("7") == 0 && plan.size_count == 1);
	EXPECT(sizes("1K..4T") == 0 && plan.size_count == 33);
	EXPECT(sizes("much") == -1 && is_problem("'much'", "1K..1G*4"));
	EXPECT_THAT("a wrong list changes nothing", plan.size_count == 33);
	EXPECT(sizes("1K..1Q") == -1 && is_problem("'1Q'", "is not a size"));
	EXPECT(sizes("0") == -1 && is_problem("'0'", "out of range"));
	EXPECT(sizes("8T") == -1 && sizes("99999999999999999999") == -1);
	EXPECT(sizes("1M..1K") == -1 && is_problem("1M..1K", "ends before"));
	EXPECT(sizes("1K..1M*1") == -1 && is_problem("'1'", "factor"));
	EXPECT(sizes("1K..1M*") == -1 && sizes("1K..1M+0") == -1 && sizes("1K..") == -1);
	EXPECT(sizes("1..1M+1") == -1 && is_problem("128", "larger"));
	EXPECT(sizes("") == -1 && sizes("1K,") == -1 && sizes(",1K") == -1 && sizes("-1") == -1);
	EXPECT(sizes("1K..2K..4K") == -1);
}

static void test_cells(void)
{
	plan_init(&plan);
	EXPECT(functions("allreduce,allgather,alltoall") == 0 && sizes("1K,2K,4K") == 0);
	EXPECT(plan_redops(&plan, "sum,max", problem, sizeof(problem)) == 0);
	EXPECT(plan_modes(&plan, "blocking,graph", problem, sizeof(problem)) == 0);
	/* AllReduce with both operations, and AllGather, in and out of place; AlltoAll is never in place. */
	EXPECT_EQUAL(plan_cells(&plan), (2 * 2 + 2 + 1) * 3 * 2);
	plan.places = PLAN_OUT_OF_PLACE;
	EXPECT_EQUAL(plan_cells(&plan), (2 + 1 + 1) * 3 * 2);
}

int main(void)
{
	test_defaults();
	test_functions();
	test_words();
	test_sizes();
	test_cells();
	return tap_done();
}
