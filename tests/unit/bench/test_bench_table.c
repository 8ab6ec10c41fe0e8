/* The table, byte by byte; and our reader of nccl-tests output finds the measurements in it. */
#include "bench/bench_result.h"

#include <math.h>
#include <string.h>

#include "import/expected.h"
#include "tests/support/bench_sample.h"
#include "tests/tap.h"

static const char plain[] =
	"# ringside bench nccl-library=22809 cuda-driver=13000\n"
	"# Command: ringside bench --ranks 2\n"
	"#\n"
	"# Collective test starting: all_reduce_perf\n"
	"# nThread 1 nGpus 1 minBytes 1024 maxBytes 1048576 warmup iters: 5 iters: 4 agg iters: 1 "
	"validation: 1 graph: 0\n"
	"# Mode: blocking; time: mean of the calls, each the mean over ranks, by CUDA events\n"
	"# Using devices\n"
	"#  Rank  0 Group  0 Pid   4711 on     node01 device  0 [0000:1b:00] NVIDIA H200\n"
	"#  Rank  1 Group  0 Pid   4712 on     node01 device  1 [0000:1c:00] NVIDIA H200\n"
	"#\n"
	"#                                                             out-of-place              "
	"         in-place\n"
	"#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
	"time   algbw   busbw  #wrong\n"
	"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
	"(us)  (GB/s)  (GB/s)        \n"
	"        1024           256     float     sum      -1    20.36    0.05    0.05       0    "
	"19.35    0.05    0.05       0\n"
	"       32768          8192     float     sum      -1    22.38    1.46    1.46       0    "
	"21.36    1.53    1.53       0\n"
	"     1048576        262144     float     sum      -1    86.82   12.08   12.08       0    "
	"85.80   12.22   12.22       0\n"
	"# Out of bounds values : 0 OK\n"
	"# Avg bus bandwidth    : 4.56657\n"
	"#\n"
	"# Collective test concluded: all_reduce_perf\n";

static char *table_of(const struct bench_run *run, const struct bench_table_options *options)
{
	struct sink sink;
	char *text;

	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_table_write(&sink, run, options), OK);
	text = strdup(sink_string(&sink));
	sink_release(&sink);
	return text;
}

/* Prints where they differ. */
static int is_same(const char *got, const char *wanted)
{
	size_t at = 0;

	while (got[at] != '\0' && got[at] == wanted[at])
		at++;
	if (got[at] == wanted[at])
		return 1;
	printf("#   at byte %zu: got \"%.40s\"\n#   wanted \"%.40s\"\n", at, got + at, wanted + at);
	return 0;
}

/* ---- read again -------------------------------------------------------------------------------- */

static void test_read(const char *sentence, const char *text, double *time_ns)
{
	struct expected_value value = { 0 };
	struct expected expected;

	expected_init(&expected);
	EXPECT_THAT(sentence, expected_add_memory(&expected, text, strlen(text), 0) == OK);
	EXPECT_EQUAL(expected.damaged, 0);
	expected_finish(&expected);
	EXPECT_EQUAL(expected.count, 3);
	EXPECT_THAT("of two ranks",
		    expected_find(&expected, OP_ALL_REDUCE, 1 << 20, 2, &value) && value.how == 0);
	*time_ns = value.time_ns;
	expected_release(&expected);
}

static void test_blocks(void)
{
	static const struct bench_table_options options = { .has_percentiles = true };
	struct expected_value value = { 0 };
	struct expected expected;
	struct bench_run run;
	char *text;

	sample_everything(&run);
	text = table_of(&run, &options);
	expected_init(&expected);
	EXPECT_EQUAL(expected_add_memory(&expected, text, strlen(text), 0), OK);
	expected_finish(&expected);
	EXPECT_THAT("each block has its function and the ranks of the run",
		    expected_find(&expected, OP_ALL_TO_ALL, 1 << 20, 2, &value) && value.how == 0 &&
			    fabs(value.time_ns - 50750) < 100);
	EXPECT_THAT("a place that was not measured has no time",
		    expected_find(&expected, OP_ALL_REDUCE, 4096, 2, &value) && value.how == 0 &&
			    fabs(value.time_ns - 7110) < 20);
	EXPECT_THAT("a forced algorithm is not used",
		    !expected_find(&expected, OP_ALL_GATHER, 1 << 20, 2, &value));
	EXPECT_THAT("wrong results are skipped",
		    !expected_find(&expected, OP_BROADCAST, 4096, 2, &value));
	EXPECT_THAT("and reported", strstr(text, "# Out of bounds values : 1 FAILED\n") != NULL);
	EXPECT_THAT("unchecked results are reported",
		    strstr(text, "# Not checked          : 1 measurements\n") != NULL);
	EXPECT_THAT("a forced algorithm is reported",
		    strstr(text, "algorithm RING, protocol LL128") != NULL);
	EXPECT_THAT("pairs are listed", strstr(text, "# Pairs: 0-1\n") != NULL);
	EXPECT_THAT("a cell without calls has no time",
		    strstr(text, "# Without a time       : 1 measurements\n") != NULL);
	EXPECT_THAT("notes are printed",
		    strstr(text, "# Note: another note: ") != NULL &&
			    strstr(text, "# Note: 3 more did not fit\n") != NULL);
	EXPECT_THAT("a loop has no percentiles",
		    strstr(text, "100.00   10.49    5.24     N/A      N/A      N/A      N/A") !=
			    NULL);
	expected_release(&expected);
	bench_run_release(&run);
	free(text);
}

/* Text from outside must not start a line of its own. */
static void test_control(void)
{
	static const struct bench_table_options options = { .is_median = true };
	struct bench_run run;
	char *text;

	sample_plain(&run);
	text_copy(run.command, sizeof(run.command), "a\n 1024 256 float");
	text_copy(run.ranks[1].host, sizeof(run.ranks[1].host), "b\nc");
	text = table_of(&run, &options);
	EXPECT_THAT("line breaks in texts are replaced",
		    strstr(text, "# Command: a? 1024 256 float\n") &&
			    strstr(text, " b?c device") != NULL);
	EXPECT_THAT("the head says median", strstr(text, "; time: median of the calls") != NULL);
	bench_run_release(&run);
	free(text);
}

static void test_names(void)
{
	for (uint8_t function = 1; function < OP_FUNCTIONS; function++) {
		const char *name = bench_table_test(function);

		if (strcmp(name, "unknown") != 0)
			EXPECT_EQUAL(expected_function(name, strlen(name)), function);
	}
	EXPECT_THAT("every datatype has a name",
		    strcmp(bench_table_type(OP_FLOAT32), "float") == 0 &&
			    strcmp(bench_table_type(OP_INT32), "int32") == 0);
}

static void test_repeats(void)
{
	static const struct bench_table_options options = { 0 };
	struct bench_run run;
	size_t rows = 0;
	char *text;

	sample_start(&run, SAMPLE_RANKS);
	for (int i = 0; i < 3; i++)
		sample_add(&run, OP_REDUCE_SCATTER, BENCH_BLOCKING, 4096, false, 9000);
	sample_add(&run, OP_REDUCE_SCATTER, BENCH_BLOCKING, 4096, true, 9000);
	text = table_of(&run, &options);
	for (const char *at = text; (at = strstr(at, "\n        4096")) != NULL; at++)
		rows++;
	EXPECT_THAT("three measurements have three rows", rows == 3);
	bench_run_release(&run);
	free(text);
}

int main(void)
{
	static const struct bench_table_options mean = { 0 };
	struct bench_table_options wide = { .has_percentiles = true };
	double time_ns = 0, wide_ns = 0, model_ns[6] = { 20000, 0, NAN, 20000, 20000, 80000 };
	struct bench_run run;
	char *text;

	sample_plain(&run);
	text = table_of(&run, &mean);
	EXPECT_THAT("the table is unchanged", is_same(text, plain));
	test_read("nccl-tests' reader reads it", text, &time_ns);
	EXPECT_EQUAL(time_ns, 85800);
	free(text);
	wide.model_ns = model_ns;
	text = table_of(&run, &wide);
	test_read("also with percentiles and a model", text, &wide_ns);
	EXPECT_THAT("the same", time_ns == wide_ns);
	EXPECT_THAT("missing percentiles are reported once",
		    strstr(text, "     N/A") != NULL &&
			    strstr(text, "# Too few calls        : ") != NULL &&
			    strstr(text, "percentiles; p90 needs 10 calls, p99 100\n") != NULL);
	EXPECT_THAT("the model and its error", strstr(text, "   80.00   -6.76\n") != NULL);
	free(text);
	bench_run_release(&run);
	test_blocks();
	test_control();
	test_names();
	test_repeats();
	sample_start(&run, 1);
	text = table_of(&run, &mean);
	EXPECT_THAT("a run without measurements says so",
		    strstr(text, "# Nothing was measured\n") != NULL);
	free(text);
	bench_run_release(&run);
	return tap_done();
}
