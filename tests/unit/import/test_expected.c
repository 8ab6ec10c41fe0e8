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

/* One result of `ringside bench`, and why it is no expectation. */
static void test_bench(void)
{
	static const struct {
		const char *result;
		size_t rows;
		const char *problem;
	} cases[] = {
		{ "\"algorithm\":null,\"protocol\":null,\"wrong\":null,\"peers\":[]", 1, NULL },
		{ "\"wrong\":0,\"peers\":null", 1, NULL },
		{ "\"wrong\":1", 0, "a test with wrong results" },
		{ "\"algorithm\":\"RING\"", 0,
		  "an algorithm or protocol that NCCL did not choose" },
		{ "\"protocol\":\"LL\"", 0, "an algorithm or protocol that NCCL did not choose" },
		{ "\"peers\":[1,[2],{\"a\":3}]", 0, "pairs measured alone" },
		{ "\"time_ns\":0", 0, "a result without a time" },
		{ "\"bytes\":0", 0, "a result without function, bytes or time_ns" },
		{ "\"function\":\"What\"", 0, "a result without function, bytes or time_ns" },
		{ "\"other\":{\"time_ns\":5}", 1, NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];

		snprintf(text, sizeof(text),
			 "{\"format\":\"ringside-bench\",\"run\":{\"ranks\":4,\"gpu_shared\":true,"
			 "\"results\":[{\"function\":\"AllReduce\",\"bytes\":1024,\"time_ns\":100,"
			 "\"datatype\":\"half\",\"in_place\":true,%s}]}}",
			 cases[i].result);
		expected_release(&expected);
		expected_init(&expected);
		status = expected_add_memory(&expected, text, strlen(text), 0);
		EXPECT_THAT(cases[i].result,
			    status == (cases[i].rows > 0 ? OK : ERR_FORMAT) &&
				    expected.count == cases[i].rows &&
				    expected.damaged == (cases[i].problem != NULL) &&
				    expected.is_gpu_shared &&
				    (cases[i].problem == NULL ||
				     strcmp(expected.problem, cases[i].problem) == 0));
		if (expected.count == 1)
			EXPECT(expected.rows[0].nranks == 4 && expected.rows[0].is_in_place &&
			       expected.rows[0].datatype == OP_FLOAT16 &&
			       is_near(expected.rows[0].busbw, 1024 / 100.0 * 1.5));
	}
}

/* Ranks of a document: the first of the last process, and all of each. 2^24 are the most. */
static void test_json_ranks(void)
{
	static const struct {
		const char *config;
		int32_t nranks;
	} cases[] = {
		{ "\"nthreads\":1,\"ngpus\":1,\"devices\":[{\"rank\":0}]", 1 },
		{ "\"nthreads\":2,\"ngpus\":3,\"devices\":[{\"rank\":6},{\"rank\":0}]", 12 },
		{ "\"nthreads\":1,\"ngpus\":16777216", 16777216 },
		{ "\"nthreads\":16777216,\"ngpus\":1", 16777216 },
		{ "\"nthreads\":1,\"ngpus\":16777217", 0 },
		{ "\"nthreads\":16777217,\"ngpus\":1", 0 },
		{ "\"nthreads\":1,\"ngpus\":1,\"devices\":[{\"rank\":16777215}]", 16777216 },
		{ "\"nthreads\":1,\"ngpus\":1,\"devices\":[{\"rank\":16777216}]", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];

		snprintf(
			text, sizeof(text),
			"{\"version\":3,\"start_time\":\"x\",\"args\":[\"./all_reduce_perf\"],"
			"\"config\":{%s},\"results\":[{\"size\":64,\"type\":\"float\",\"in_place\":"
			"{\"time\":4.0}}]}",
			cases[i].config);
		expected_release(&expected);
		expected_init(&expected);
		status = expected_add_memory(&expected, text, strlen(text), 0);
		EXPECT_THAT(cases[i].config, status == OK && expected.count == 1 &&
						     expected.rows[0].nranks == cases[i].nranks);
	}
}

/* Measurements of a document: times in microseconds, and those that are none. */
static void test_json_times(void)
{
	static const char unknown_test[] =
		"{\"start_time\":\"x\",\"args\":[\"what_perf\"],\"version\":3,"
		"\"results\":[{\"size\":64,\"in_place\":{\"time\":4}},"
		"{\"size\":32,\"in_place\":{\"time\":3}}]}";
	static const struct {
		const char *result;
		uint64_t time_ns[2]; /* 0: no such row */
		size_t damaged;
	} cases[] = {
		{ "\"size\":64,\"out_of_place\":{\"time\":5},\"in_place\":{\"time\":4.0004}",
		  { 5000, 4000 },
		  0 },
		{ "\"size\":64,\"out_of_place\":{\"cpu_time\":5.0006},\"in_place\":null",
		  { 5001, 0 },
		  0 },
		{ "\"size\":64,\"out_of_place\":{\"time\":5,\"nwrong\":0}", { 5000, 0 }, 0 },
		{ "\"size\":64,\"out_of_place\":{\"time\":5,\"nwrong\":1}", { 0, 0 }, 1 },
		{ "\"size\":64,\"out_of_place\":{\"time\":-5}", { 0, 0 }, 1 },
		{ "\"size\":64,\"out_of_place\":{\"time\":1e12}",
		  { UINT64_C(1000000000000000), 0 },
		  0 },
		{ "\"size\":64,\"out_of_place\":{\"time\":1.1e12}", { 0, 0 }, 1 },
		{ "\"size\":0,\"out_of_place\":{\"time\":5}", { 0, 0 }, 1 },
		{ "\"size\":64,\"out_of_place\":{\"time\":0.0001}", { 0, 0 }, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t rows = (cases[i].time_ns[0] > 0) + (cases[i].time_ns[1] > 0);
		char text[512];

		snprintf(text, sizeof(text),
			 "{\"version\":3,\"start_time\":\"x\",\"args\":[\"all_reduce_perf\"],"
			 "\"results\":"
			 "[{%s}]}",
			 cases[i].result);
		expected_release(&expected);
		expected_init(&expected);
		expected_add_memory(&expected, text, strlen(text), 0);
		EXPECT_THAT(cases[i].result,
			    expected.count == rows && expected.damaged == cases[i].damaged);
		for (size_t row = 0; row < expected.count; row++)
			EXPECT(expected.rows[row].time_ns == cases[i].time_ns[row] &&
			       expected.rows[row].is_in_place == (row == 1));
	}
	expected_release(&expected);
	expected_init(&expected);
	status = expected_add_memory(&expected, unknown_test, strlen(unknown_test), 0);
	EXPECT_THAT("results of an unknown test are dropped and reported",
		    status == ERR_FORMAT && expected.count == 0 && expected.damaged == 2);
}

/* The table of nccl-tests, line by line: which rows it makes. */
static void test_table_lines(void)
{
#define HEAD                                                                       \
	"# nThread 1\n# Collective test starting: all_reduce_perf\n#  Rank  0 x\n" \
	"#  Rank  1 x\n#  size count type time algbw busbw #wrong time algbw busbw #wrong\n"
	static const struct {
		const char *line;
		size_t rows;
		uint64_t time_ns; /* of the last row */
		size_t damaged;
	} cases[] = {
		{ "1024 256 float 10.5 1 1 0 9.5 1 1 0", 1, 9500, 0 },
		{ "1024 256 float 9.5 1 1 0 10.5 1 1 0", 1, 9500, 0 },
		{ "1024 256 float 9.5 1 1 N/A 10.5 1 1 N/A", 1, 9500, 0 },
		{ "1024 256 float N/A 1 1 0 10.5 1 1 0", 1, 10500, 0 },
		{ "1024 256 float 9.5 1 1 3 10.5 1 1 0", 1, 10500, 1 },
		{ "1024 256 float 9.5 1 1 0 10.5 1 1 2", 1, 9500, 1 },
		/* Out-of-place results are blank. */
		{ "1024 256 float 10.5 1 1 0", 1, 10500, 0 },
		{ "1024 256 float 10.5 1 1 4", 0, 0, 1 },
		{ "1024 256 float 0 1 1 0 10.5 1 1 0", 1, 10500, 1 },
		{ "1024 256 float -1 1 1 0 10.5 1 1 0", 1, 10500, 1 },
		{ "1024 256 float what 1 1 0 10.5 1 1 0", 1, 10500, 1 },
		{ "-1024 256 float 10.5 1 1 0 10.5 1 1 0", 0, 0, 0 },
		{ "1024x 256 float 10.5 1 1 0 10.5 1 1 0", 0, 0, 0 },
		{ "99999999999999999999999 256 float 10.5 1 1 0 10.5 1 1 0", 0, 0, 0 },
		{ "0 0 float 10.5 1 1 0 10.5 1 1 0", 0, 0, 0 },
		{ "# NCCL was made to use RING\n1024 256 float 10.5 1 1 0 9.5 1 1 0", 0, 0, 1 },
		{ "# Pairs: 0-1\n1024 256 float 10.5 1 1 0 9.5 1 1 0", 0, 0, 1 },
		{ "# Collective test starting:\n1024 256 float 10.5 1 1 0 9.5 1 1 0", 1, 9500, 0 },
		{ "# Collective test starting: what\n1024 256 float 10.5 1 1 0 9.5 1 1 0", 0, 0,
		  1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[1024];

		snprintf(text, sizeof(text), HEAD "%s\n", cases[i].line);
		expected_release(&expected);
		expected_init(&expected);
		expected_add_memory(&expected, text, strlen(text), 0);
		expected_finish(&expected);
		if (!EXPECT(expected.count == cases[i].rows &&
			    expected.damaged == cases[i].damaged &&
			    (expected.count == 0 ||
			     (expected.rows[0].time_ns == cases[i].time_ns &&
			      expected.rows[0].nranks == 2 && expected.rows[0].bytes == 1024 &&
			      expected.rows[0].function == OP_ALL_REDUCE))))
			printf("# %zu rows, %zu damaged\n", expected.count,
			       (size_t)expected.damaged);
	}
}

/* The nearest number of ranks: twice as many is as far as half as many. An unknown number is far from all. */
static void test_nearest_ranks(void)
{
	static const struct {
		int32_t asked, nearest;
	} cases[] = { { 4, 4 }, { 5, 4 },  { 7, 8 },   { 100, 16 },
		      { 1, 4 }, { 11, 8 }, { 12, 16 }, { 0, 0 } };
	static const char text[] =
		"{\"format\":\"ringside-expected\",\"results\":["
		"{\"function\":\"AllReduce\",\"bytes\":64,\"time_ns\":40,\"ranks\":4},"
		"{\"function\":\"AllReduce\",\"bytes\":64,\"time_ns\":80,\"ranks\":8},"
		"{\"function\":\"AllReduce\",\"bytes\":64,\"time_ns\":160,\"ranks\":16},"
		"{\"function\":\"AllReduce\",\"bytes\":64,\"time_ns\":10}]}";

	expected_release(&expected);
	expected_init(&expected);
	EXPECT_EQUAL(expected_add_memory(&expected, text, strlen(text), 0), OK);
	expected_finish(&expected);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct expected_value value;

		EXPECT(expected_find(&expected, OP_ALL_REDUCE, 64, cases[i].asked, &value) &&
		       value.nranks == cases[i].nearest);
	}
}

int main(void)
{
	test_nearest_ranks();
	test_bench();
	test_json_ranks();
	test_json_times();
	test_table_lines();
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
