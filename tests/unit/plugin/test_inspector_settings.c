/* How NCCL Inspector's variables are interpreted. */
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "plugin/settings.h"
#include "tests/tap.h"

static const char *const names[] = {
	"NCCL_INSPECTOR_ENABLE",
	"NCCL_INSPECTOR_ENABLE_P2P",
	"NCCL_INSPECTOR_DUMP_THREAD_ENABLE",
	"NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS",
	"NCCL_INSPECTOR_DUMP_DIR",
	"NCCL_INSPECTOR_DUMP_VERBOSE",
	"NCCL_INSPECTOR_PROM_DUMP",
	"NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES",
	"NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING",
	"NCCL_INSPECTOR_DUMP_COLL_RING_SIZE",
	"NCCL_INSPECTOR_POOL_GROW",
	"SLURM_JOB_ID",
	"SLURM_JOBID",
	"RINGSIDE_JOB",
	"RINGSIDE_QUOTA",
};

static struct settings settings;

/* Inspector is on, and up to two variables are set. */
static const struct inspector_settings *with(const char *name, const char *value,
					     const char *second, const char *second_value)
{
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		unsetenv(names[i]);
	setenv("NCCL_INSPECTOR_ENABLE", "1", 1);
	if (name != NULL)
		setenv(name, value, 1);
	if (second != NULL)
		setenv(second, second_value, 1);
	settings_read(&settings);
	return &settings.inspector;
}

static unsigned int complaints(void)
{
	unsigned int count = 0;

	for (const char *at = settings.complaints; *at != '\0'; at++)
		count += *at == '\n';
	return count;
}

static void test_switches(void)
{
	unsetenv("NCCL_INSPECTOR_ENABLE");
	settings_read(&settings);
	EXPECT_THAT("nothing is on without the switch", !settings.inspector.is_on);
	EXPECT(!with("NCCL_INSPECTOR_ENABLE", "0", NULL, NULL)->is_on);
	EXPECT(with("NCCL_INSPECTOR_ENABLE", "2", NULL, NULL)->is_on && complaints() == 0);
	EXPECT(!with("NCCL_INSPECTOR_ENABLE", "true", NULL, NULL)->is_on && complaints() == 1);
	EXPECT(!with("NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL, NULL)->is_on);
	EXPECT(with("NCCL_INSPECTOR_PROM_DUMP", "1", NULL, NULL)->is_prom);
	EXPECT(with("NCCL_INSPECTOR_DUMP_VERBOSE", "1", NULL, NULL)->is_verbose);
	EXPECT(with("NCCL_INSPECTOR_ENABLE_P2P", "0", NULL, NULL)->filter.is_without_p2p);
	EXPECT(with("NCCL_INSPECTOR_ENABLE_P2P", "", NULL, NULL)->is_on &&
	       !settings.inspector.filter.is_without_p2p && complaints() == 0);
	EXPECT(with("NCCL_INSPECTOR_DUMP_COLL_RING_SIZE", "64", "NCCL_INSPECTOR_POOL_GROW", "0")
		       ->is_on &&
	       complaints() == 0);
}

static void test_what_is_written(void)
{
	const struct inspector_settings *own = with(NULL, NULL, NULL, NULL);

	EXPECT_THAT("D27: by default every size", own->filter.least_bytes == 0);
	EXPECT_THAT("and every measured time",
		    !own->filter.is_kernel_gpu_only && own->filter.is_without_bounds);
	EXPECT(with("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "8192", NULL, NULL)->filter.least_bytes ==
	       8192);
	EXPECT(with("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "0x2000", NULL, NULL)
		       ->filter.least_bytes == 8192);
	EXPECT(with("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "99999999999999999999", NULL, NULL)
		       ->filter.least_bytes == 0);
	EXPECT(with("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "8k", NULL, NULL)->filter.least_bytes ==
		       0 &&
	       complaints() == 1);
	EXPECT(with("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "0", NULL, NULL)->filter.least_bytes ==
		       0 &&
	       complaints() == 0);
	EXPECT(with("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "-1", NULL, NULL)->filter.least_bytes ==
		       0 &&
	       complaints() == 1);
	own = with("NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "1", NULL, NULL);
	EXPECT(own->filter.is_kernel_gpu_only && own->filter.is_without_bounds);
	own = with("NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "0", NULL, NULL);
	EXPECT_THAT("on request, bounds too",
		    !own->filter.is_kernel_gpu_only && !own->filter.is_without_bounds);
	own = with("NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "0", "NCCL_INSPECTOR_PROM_DUMP", "1");
	EXPECT_THAT("but not as metrics", own->filter.is_without_bounds);
}

static void test_interval(void)
{
	static const char name[] = "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS";

	EXPECT_THAT("D4: the default writes", with(NULL, NULL, NULL, NULL)->interval_us > 0);
	EXPECT(with(name, "-1", NULL, NULL)->interval_us == INSPECTOR_AT_END);
	EXPECT(with(name, "0", NULL, NULL)->interval_us == 0);
	EXPECT(with(name, "500", NULL, NULL)->interval_us == 500);
	EXPECT_THAT("D5: no minimum interval for metrics",
		    with(name, "500", "NCCL_INSPECTOR_PROM_DUMP", "1")->interval_us == 500);
	EXPECT(with(name, "-1", "NCCL_INSPECTOR_PROM_DUMP", "1")->interval_us == 15000000);
	EXPECT(with(name, "9223372036854775807", NULL, NULL)->interval_us == 100000 &&
	       complaints() == 1);
	EXPECT(with(name, "1s", NULL, NULL)->interval_us == 100000 && complaints() == 1);
	EXPECT(with(name, "86400000000", NULL, NULL)->interval_us == 86400000000 &&
	       complaints() == 0);
	EXPECT(with(name, "86400000001", NULL, NULL)->interval_us == 100000 && complaints() == 1);
}

/* D34. */
static void test_places(void)
{
	char longest[600];

	EXPECT(strcmp(with(NULL, NULL, NULL, NULL)->dir, "nccl-inspector-unknown-jobid") == 0 &&
	       settings.inspector.job[0] == '\0');
	EXPECT(strcmp(with("SLURM_JOBID", "12", NULL, NULL)->dir, "nccl-inspector-12") == 0);
	EXPECT_THAT("D34: both names of a Slurm job, in directory and label",
		    strcmp(with("SLURM_JOB_ID", "13", "SLURM_JOBID", "12")->dir,
			   "nccl-inspector-13") == 0 &&
			    strcmp(settings.inspector.job, "13") == 0);
	EXPECT(strcmp(with("SLURM_JOBID", "12", NULL, NULL)->job, "12") == 0);
	EXPECT(strcmp(with("SLURM_JOB_ID", "../x", NULL, NULL)->dir,
		      "nccl-inspector-unknown-jobid") == 0);
	EXPECT(strcmp(with("RINGSIDE_JOB", "mine", NULL, NULL)->job, "mine") == 0);
	EXPECT(strcmp(with("NCCL_INSPECTOR_DUMP_DIR", "/a/b", "SLURM_JOBID", "1")->dir, "/a/b") ==
	       0);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	EXPECT(strcmp(with("NCCL_INSPECTOR_DUMP_DIR", longest, NULL, NULL)->dir,
		      "nccl-inspector-unknown-jobid") == 0 &&
	       complaints() == 1);
	EXPECT(!(with(NULL, NULL, NULL, NULL), settings.has_quota));
	EXPECT((with("RINGSIDE_QUOTA", "1MiB", NULL, NULL), settings.has_quota));
}

int main(void)
{
	test_switches();
	test_what_is_written();
	test_interval();
	test_places();
	return tap_done();
}
