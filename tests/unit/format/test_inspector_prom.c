/*
 * Inspector's metrics as text: labels, size classes, file names. tests/inspector shows that a real
 * node-exporter accepts them.
 */
#include "format/inspector_write.h"

#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static char text[INSPECTOR_SAMPLE_BYTES];

static const struct inspector_labels labels = {
	.job = "4711",
	.node = "node01",
	.gpu_uuid = "GPU-12345678-1234-1234-1234-123456789abc",
	.gpu = 3,
	.process = 1,
	.comm_name = "DP Group 0",
	.nnodes = 2,
	.nranks = 16,
	.function = "AllReduce",
	.size = 24,
	.algorithm = "RING",
	.protocol = "LL128",
};

static void test_samples(void)
{
	struct inspector_labels second = labels;
	size_t length = inspector_metric_sample(text, INSPECTOR_BUS_BANDWIDTH, &labels, 678.263);

	EXPECT(length == strlen(text) &&
	       strcmp(text, "nccl_bus_bandwidth_gbs{version=\"v5.1\",slurm_job_id=\"4711\","
			    "node=\"node01\",gpu=\"GPU3\",comm_name=\"DP Group 0\",n_nodes=\"2\","
			    "nranks=\"16\",collective=\"AllReduce\",message_size=\"4-8GB\","
			    "algo_proto=\"RING_LL128\",gpu_uuid=\"GPU-12345678-1234-1234-1234-"
			    "123456789abc\"} 678.263000\n") == 0);
	second.process = 2;
	second.function = "Send";
	inspector_metric_sample(text, INSPECTOR_P2P_EXEC_TIME, &second, 12);
	EXPECT(strcmp(text,
		      "nccl_p2p_exec_time_microseconds{version=\"v5.1\","
		      "slurm_job_id=\"4711\",node=\"node01\",gpu=\"GPU3\","
		      "comm_name=\"DP Group 0\",n_nodes=\"2\",nranks=\"16\","
		      "p2p_operation=\"Send\",message_size=\"4-8GB\",gpu_uuid=\"GPU-"
		      "12345678-1234-1234-1234-123456789abc\",process=\"2\"} 12.000000\n") == 0);
	length = inspector_metric_head(text, INSPECTOR_P2P_BUS_BANDWIDTH);
	EXPECT(length == strlen(text) &&
	       strncmp(text, "# HELP nccl_p2p_bus_bandwidth_gbs ", 34) == 0 &&
	       strstr(text, "\n# TYPE nccl_p2p_bus_bandwidth_gbs gauge\n") != NULL);
}

/* D23. */
static void test_values_that_break_out(void)
{
	struct inspector_labels evil = labels;
	char longest[300];

	evil.comm_name = "a\"} 1\n# b\\ \xc3\xa9 \xff \x01";
	inspector_metric_sample(text, INSPECTOR_EXEC_TIME, &evil, 1);
	EXPECT_THAT("D23: quotes, line breaks and invalid UTF-8 in a name",
		    strstr(text, "comm_name=\"a\\\"} 1\\n# b\\\\ \xc3\xa9 ? ?\",") != NULL &&
			    strchr(text, '\n') == text + strlen(text) - 1);
	memset(longest, '"', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	evil = (struct inspector_labels){ .job = longest,
					  .node = longest,
					  .gpu_uuid = longest,
					  .gpu = -1,
					  .comm_name = longest,
					  .function = "ReduceScatter",
					  .algorithm = longest,
					  .protocol = longest };
	inspector_metric_sample(text, INSPECTOR_BUS_BANDWIDTH, &evil, 1e300);
	EXPECT_THAT("the longest line fits", strstr(text, "} 0.000000\n") != NULL);
	EXPECT(strstr(text, "gpu=\"unknown\"") != NULL);
	evil = (struct inspector_labels){ .gpu = -1, .function = "Reduce", .gpu_uuid = "" };
	inspector_metric_sample(text, INSPECTOR_BUS_BANDWIDTH, &evil, 1);
	EXPECT_THAT("what is not known is \"unknown\"",
		    strstr(text, "slurm_job_id=\"unknown\",node=\"unknown\"") != NULL &&
			    strstr(text, "algo_proto=\"unknown_unknown\",gpu_uuid=\"unknown\"") !=
				    NULL);
}

static bool size_is(uint64_t bytes, const char *wanted)
{
	char got[INSPECTOR_SIZE_BYTES];

	inspector_size_text(got, inspector_size_class(bytes));
	if (strcmp(got, wanted) == 0)
		return true;
	printf("# %llu: %s, wanted %s\n", (unsigned long long)bytes, got, wanted);
	return false;
}

/* D24. */
static void test_sizes(void)
{
	unsigned int before = 0;
	bool is_rising = true;

	EXPECT(size_is(0, "0B") && size_is(1, "1-1024B") && size_is(1023, "1-1024B"));
	EXPECT(size_is(1024, "1-2KB") && size_is(2047, "1-2KB") && size_is(2048, "2-4KB") &&
	       size_is(1048575, "512-1024KB") && size_is(1048576, "1-2MB"));
	EXPECT(size_is(UINT64_C(512) << 20, "512-1024MB") && size_is(UINT64_C(4) << 30, "4-8GB") &&
	       size_is(UINT64_C(63) << 30, "32-64GB") && size_is(UINT64_C(64) << 30, "64-1024GB") &&
	       size_is(UINT64_C(1) << 40, "1-1024TB") && size_is(UINT64_MAX, "1-1024TB"));
	for (unsigned int power = 0; power < 64; power++) {
		unsigned int now = inspector_size_class(UINT64_C(1) << power);

		is_rising &= now >= before && now < INSPECTOR_SIZES;
		before = now;
	}
	EXPECT_THAT("D24: at most 30 size classes", is_rising && INSPECTOR_SIZES <= 30);
}

static void test_names(void)
{
	char name[INSPECTOR_PROM_NAME_BYTES];

	inspector_prom_name(name, labels.gpu_uuid, 1);
	EXPECT(strcmp(name, "nccl_inspector_metrics_12345678-1234-1234-1234-123456789abc.prom") ==
	       0);
	inspector_prom_name(name, labels.gpu_uuid, 3);
	EXPECT(strcmp(name, "nccl_inspector_metrics_12345678-1234-1234-1234-123456789abc_3.prom") ==
	       0);
	inspector_prom_name(name, "", 1);
	EXPECT(strcmp(name, "nccl_inspector_metrics_unknown.prom") == 0);
	inspector_prom_name(name, "GPU-../../etc/x", 1);
	EXPECT_THAT("a UUID cannot change the directory", strchr(name, '/') == NULL);
}

/* A job may have set a locale in which numbers have commas. */
static void test_locale(void)
{
	char number[INSPECTOR_NUMBER_BYTES];
	bool has_commas = setlocale(LC_ALL, "de_DE.UTF-8") != NULL ||
			  setlocale(LC_ALL, "fr_FR.UTF-8") != NULL;

	printf("# %s locale with commas\n", has_commas ? "a" : "no");
	EXPECT(strcmp(inspector_number(number, 1234.5678901), "1234.567890") == 0);
	EXPECT(strcmp(inspector_number(number, 0.0000004), "0.000000") == 0);
	EXPECT(strcmp(inspector_number(number, -1), "0.000000") == 0);
	EXPECT(strcmp(inspector_number(number, 1e11), "100000000000.000000") == 0);
	setlocale(LC_ALL, "C");
}

int main(void)
{
	test_samples();
	test_values_that_break_out();
	test_sizes();
	test_names();
	test_locale();
	return tap_done();
}
