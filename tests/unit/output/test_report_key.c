#include "output/report.h"

#include <string.h>

#include "common/op.h"
#include "tests/tap.h"

/* Two communicators with the same name, one without a name. */
static struct job_comm comms[] = {
	{ .name = "tp", .label = "tp 0x01", .nranks = 8, .nnodes = 1, .kind = JOB_COMM_NVLINK },
	{ .name = "tp", .label = "tp 0x02", .nranks = 8, .nnodes = 1, .kind = JOB_COMM_NVLINK },
	{ .name = "", .label = "0x03", .nranks = 4, .nnodes = 4, .kind = JOB_COMM_NET },
	{ .name = "", .label = "0x04" },
};
static struct job_rank ranks[] = { { .label = "3 (start 2)", .rank = 3 } };
static struct job_host hosts[] = { { .name = "node, with \"quotes\"" } };
static struct job_group groups[] = { { .name = "" }, { .name = "77" } };
static const struct timeline_report report = {
	.job = { .comms = comms,
		 .comm_count = 4,
		 .ranks = ranks,
		 .rank_count = 1,
		 .hosts = hosts,
		 .host_count = 1,
		 .groups = groups,
		 .group_count = 2 },
};

static int says(struct tally_key key, uint32_t by, const char *wanted)
{
	char text[REPORT_KEY_TEXT];

	report_key_text(&report, &key, (unsigned int)__builtin_ctz(by), text);
	if (strcmp(text, wanted) != 0)
		printf("# got '%s', wanted '%s'\n", text, wanted);
	return strcmp(text, wanted) == 0;
}

static void test_texts(void)
{
	EXPECT(says((struct tally_key){ .comm = 1 }, TALLY_BY_COMM, "tp 0x02"));
	EXPECT(says((struct tally_key){ .comm = 1 }, TALLY_BY_COMM_NAME, "tp"));
	EXPECT(says((struct tally_key){ .comm = 2 }, TALLY_BY_COMM_NAME, "(4 ranks, 4 nodes)"));
	EXPECT(says((struct tally_key){ .comm = 3 }, TALLY_BY_COMM_NAME, "(no name)"));
	EXPECT(says((struct tally_key){ .comm = 9 }, TALLY_BY_COMM_NAME, "-"));
	EXPECT(says((struct tally_key){ .kind = JOB_COMM_NET }, TALLY_BY_KIND, "net-only"));
	EXPECT(says((struct tally_key){ .kind = JOB_COMM_UNKNOWN }, TALLY_BY_KIND, "-"));
	EXPECT(says((struct tally_key){ .function = OP_ALL_REDUCE }, TALLY_BY_FUNCTION,
		    "AllReduce"));
	EXPECT(says((struct tally_key){ .algorithm = 0 }, TALLY_BY_ALGORITHM, "-"));
	EXPECT(says((struct tally_key){ .rank = 0 }, TALLY_BY_RANK, "3 (start 2)"));
	EXPECT(says((struct tally_key){ .rank = 1 }, TALLY_BY_RANK, "-"));
	EXPECT(says((struct tally_key){ .tag = UINT64_MAX }, TALLY_BY_TAG, "18446744073709551615"));
	EXPECT(says((struct tally_key){ .group = 0 }, TALLY_BY_GROUP, "(no name)"));
	EXPECT(says((struct tally_key){ .group = 1 }, TALLY_BY_GROUP, "77"));
}

static void test_sizes(void)
{
	char text[REPORT_KEY_TEXT];

	EXPECT(strcmp(report_size_text(0, text), "-") == 0);
	EXPECT(strcmp(report_size_text(1, text), "0 B") == 0);
	EXPECT(strcmp(report_size_text(2, text), "1 B") == 0);
	EXPECT(strcmp(report_size_text(op_size_class(3000), text), "2 KiB - 4 KiB") == 0);
	EXPECT(strcmp(report_size_text(65, text), "8 EiB and more") == 0);
}

static void test_families(void)
{
	char text[REPORT_KEY_TEXT], lengthy[2 * REPORT_KEY_TEXT];

	report_family_name(text, "tp-17");
	EXPECT(strcmp(text, "tp-*") == 0);
	report_family_name(text, "2d_mesh_003:x4");
	EXPECT(strcmp(text, "*d_mesh_*:x*") == 0);
	report_family_name(text, "world");
	EXPECT(strcmp(text, "world") == 0);
	report_family_name(text, "");
	EXPECT(strcmp(text, "") == 0);
	memset(lengthy, 'x', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	report_family_name(text, lengthy);
	EXPECT(strlen(text) == REPORT_KEY_TEXT - 1);
}

static void test_json(void)
{
	const struct tally_key key = { .comm = 0, .size_class = 12, .protocol = 0, .tag = 5 };
	struct sink sink;
	struct json json;

	sink_init_memory(&sink);
	json_init(&json, &sink);
	json_object(&json);
	report_key_json(&json, &report, &key,
			TALLY_BY_COMM | TALLY_BY_SIZE | TALLY_BY_PROTOCOL | TALLY_BY_HOST |
				TALLY_BY_TAG);
	json_end(&json);
	EXPECT_THAT("every part has its key, unknown ones are null",
		    strcmp(sink_string(&sink),
			   "{\"comm\":\"tp 0x01\",\"comm_index\":0,\"size\":\"1 KiB - 2 KiB\","
			   "\"size_least\":1024,\"size_most\":2047,\"protocol\":null,"
			   "\"host\":\"node, with \\\"quotes\\\"\",\"host_index\":0,\"tag\":5}") ==
			    0);
	sink_release(&sink);
}

int main(void)
{
	test_texts();
	test_sizes();
	test_families();
	test_json();
	return tap_done();
}
