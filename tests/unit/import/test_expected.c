#include "common/op.h"
#include "import/expected.h"

#include <math.h>

#include "common/op_layout.h"
#include "tests/support/foreign_play.h"
#include "tests/tap.h"

static struct expected expected;
static enum status status;

static void read_data(const char *name, uint8_t function)
{
	char path[256];
	int fd;

	expected_release(&expected);
	expected_init(&expected);
	snprintf(path, sizeof(path), "tests/foreign/data/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	status = expected_add_fd(&expected, fd, function);
	close(fd);
	expected_finish(&expected);
}

static bool is_near(double got, double wanted)
{
	if (fabs(got - wanted) <= 1e-9 * fabs(wanted))
		return true;
	printf("# got %.12g, wanted %.12g\n", got, wanted);
	return false;
}

static void test_table(void)
{
	struct expected_value value;

	read_data("nccl-tests-all-reduce.txt", 0);
	EXPECT_EQUAL(status, OK);
	EXPECT_EQUAL(expected.damaged, 0);
	EXPECT_THAT("in place and out of place make one row", expected.count == 5);
	EXPECT(expected.rows[0].function == OP_ALL_REDUCE && expected.rows[0].nranks == 8 &&
	       expected.rows[0].bytes == 1024 && expected.rows[0].datatype == OP_FLOAT32);
	EXPECT_THAT("the faster one",
		    expected.rows[0].time_ns == 11290 && expected.rows[0].is_in_place);
	EXPECT(expected_find(&expected, OP_ALL_REDUCE, 33554432, 8, &value));
	EXPECT(value.how == 0 && value.nranks == 8 && is_near(value.time_ns, 245980) &&
	       is_near(value.algbw, 33554432 / 245980.0) &&
	       is_near(value.busbw, 33554432 / 245980.0 * 1.75));
	EXPECT(!expected_find(&expected, OP_ALL_GATHER, 1024, 8, &value));
}

static void test_between(void)
{
	const struct expected_row *low = &expected.rows[2], *high = &expected.rows[3];
	struct expected_value value;

	EXPECT(expected_find(&expected, OP_ALL_REDUCE, 5931642, 8, &value));
	/* The geometric mean of both sizes has that of both times. */
	EXPECT_EQUAL(value.how, EXPECTED_BETWEEN);
	EXPECT(fabs(value.time_ns - sqrt((double)low->time_ns * (double)high->time_ns)) <
	       value.time_ns * 1e-4);
	EXPECT(expected_find(&expected, OP_ALL_REDUCE, 8, 8, &value));
	EXPECT(value.how == EXPECTED_BELOW && is_near(value.time_ns, 11290));
	EXPECT(expected_find(&expected, OP_ALL_REDUCE, UINT64_C(1) << 40, 8, &value));
	EXPECT(value.how == EXPECTED_ABOVE && is_near(value.busbw, expected.rows[4].busbw));
	EXPECT(expected_find(&expected, OP_ALL_REDUCE, 0, 8, &value));
	EXPECT(value.how == EXPECTED_BELOW && value.algbw == 0);
}

static void test_ranks(void)
{
	struct expected_value value;

	EXPECT(expected_find(&expected, OP_ALL_REDUCE, 33554432, 64, &value));
	EXPECT_THAT("with other ranks the bus bandwidth stays",
		    value.how == EXPECTED_OTHER_RANKS && value.nranks == 8 &&
			    is_near(value.busbw, 33554432 / 245980.0 * 1.75) &&
			    is_near(value.algbw, value.busbw / (2 * 63.0 / 64)) &&
			    is_near(value.time_ns, 33554432 / value.algbw));
}

static void test_old_table(void)
{
	struct expected_value value;

	read_data("nccl-tests-old.txt", 0);
	EXPECT_THAT("before 2.17.3 the output does not name the test",
		    status == ERR_FORMAT && expected.damaged == 2 && expected.damaged_line == 25 &&
			    strstr(expected.problem, "all_reduce_perf.txt") != NULL);
	read_data("nccl-tests-old.txt", OP_ALL_GATHER);
	EXPECT_EQUAL(status, OK);
	EXPECT_EQUAL(expected.count, 2);
	EXPECT_THAT("columns are identified by name, and mpirun's tags are skipped",
		    expected.rows[1].nranks == 16 && expected.rows[1].bytes == 8388608 &&
			    expected.rows[1].time_ns == 110000 &&
			    expected.rows[1].datatype == OP_FLOAT16);
	EXPECT(expected_find(&expected, OP_ALL_GATHER, 8192, 16, &value) && value.how == 0);
}

static void test_other_columns(void)
{
	struct expected_value value;

	read_data("nccl-tests-per-iteration.txt", 0);
	EXPECT_EQUAL(status, OK);
	EXPECT_EQUAL(expected.count, 4);
	EXPECT(expected.rows[0].function == OP_SEND_RECV && expected.rows[0].time_ns == 9000 &&
	       expected.rows[0].nranks == 2);
	EXPECT_THAT("wrong results and invalid times are left out and reported",
		    expected.damaged == 2 && expected.damaged_line == 12 &&
			    expected.rows[2].time_ns == 11000 && expected.rows[3].time_ns == 13000);
	EXPECT_THAT("Send and Recv are both halves of it",
		    expected_find(&expected, OP_SEND, 1024, 2, &value) &&
			    is_near(value.time_ns, 9000) && value.busbw == value.algbw);
}

static void test_json(void)
{
	read_data("nccl-tests.json", 0);
	EXPECT_EQUAL(status, OK);
	EXPECT_EQUAL(expected.count, 2);
	EXPECT(expected.rows[0].function == OP_REDUCE_SCATTER && expected.rows[0].bytes == 65536 &&
	       expected.rows[0].time_ns == 19250 && expected.rows[0].datatype == OP_BFLOAT16);
	EXPECT_THAT("a device is a process's first", expected.rows[0].nranks == 8);
	EXPECT(is_near(expected.rows[0].busbw, 65536 / 19250.0 * 7 / 8));
	EXPECT_EQUAL(expected.rows[1].time_ns, 80000);
}

static void test_own(void)
{
	static const char newer[] =
		"{\"format\":\"ringside-expected\",\"version\":2,\"results\":[{\"function\":"
		"\"AllReduce\",\"bytes\":1,\"time_ns\":1}]}";

	read_data("expected.json", 0);
	EXPECT_EQUAL(status, OK);
	EXPECT_EQUAL(expected.count, 2);
	EXPECT_EQUAL(expected.damaged, 1);
	EXPECT(expected.rows[0].function == OP_ALL_REDUCE && expected.rows[0].nranks == 8 &&
	       expected.rows[0].time_ns == 30000);
	EXPECT(expected.rows[1].function == OP_ALL_TO_ALL && expected.rows[1].nranks == 16);
	EXPECT_EQUAL(expected_add_memory(&expected, newer, strlen(newer), 0), ERR_VERSION);
	EXPECT_EQUAL(expected.count, 2);
}

static void test_cut(void)
{
	static const char text[] =
		"{\"version\":3,\"start_time\":\"x\",\"args\":[\"all_reduce_perf\"],\"config\":{"
		"\"nthreads\":1,\"ngpus\":2,\"devices\":[{\"rank\":0}]},\"results\":[{\"size\":64,"
		"\"type\":\"float\",\"out_of_place\":{\"time\":5.0},\"in_place\":{\"time\":4.0}},"
		"{\"size\":12";

	expected_release(&expected);
	expected_init(&expected);
	EXPECT_EQUAL(expected_add_memory(&expected, text, strlen(text), 0), OK);
	expected_finish(&expected);
	EXPECT_THAT("a truncated file gives everything before the cut",
		    expected.count == 1 && expected.damaged == 1 && expected.rows[0].nranks == 2);
	EXPECT_EQUAL(expected_add_memory(&expected, "hello", 5, 0), ERR_UNKNOWN);
}

static void test_names(void)
{
	EXPECT_EQUAL(expected_function("all_reduce_perf", 15), OP_ALL_REDUCE);
	EXPECT_EQUAL(expected_function("alltoall", 8), OP_ALL_TO_ALL);
	EXPECT_EQUAL(expected_function("hypercube_perf", 14), 0);
	EXPECT_EQUAL(expected_function("_perf", 5), 0);
	EXPECT(is_near(op_bus_factor(OP_ALL_REDUCE, 4), 1.5));
	EXPECT(op_bus_factor(OP_ALL_REDUCE, 0) == 0 && op_bus_factor(OP_SEND, 0) == 1);
}

int main(void)
{
	test_table();
	test_between();
	test_ranks();
	test_old_table();
	test_other_columns();
	test_json();
	test_own();
	test_cut();
	test_names();
	expected_release(&expected);
	return tap_done();
}
