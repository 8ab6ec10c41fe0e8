#include "capture/inspector_settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "capture/settings.h"

enum {
	LINES_INTERVAL_US = 100 * 1000,
	PROM_INTERVAL_US = 15 * 1000 * 1000, /* how often metrics are usually fetched */
};
#define INTERVAL_MOST_US INT64_C(86400000000)

/* As Inspector reads numbers: decimal, 0x..., 0... But a text behind it is a mistake. */
static bool read_number(const char *text, int64_t *number)
{
	char *end;
	long long found;

	errno = 0;
	found = strtoll(text, &end, 0);
	if (errno != 0 || end == text || *end != '\0')
		return false;
	*number = found;
	return true;
}

/* 0 is off, any other number is on. */
static bool read_switch(struct settings *settings, const char *name, bool standard)
{
	const char *value = settings_variable(name);
	int64_t number;

	if (value == NULL)
		return standard;
	if (read_number(value, &number))
		return number != 0;
	settings_complain(settings, name, value, "0 or 1", standard ? "1" : "0");
	return standard;
}

/*
 * Inspector writes nothing but GPU times unless told otherwise. Here whatever is a time is written, and its
 * source named; bounds only when all is asked for, and never as a metric: they have no bandwidth in them.
 */
static void read_timing(struct settings *settings)
{
	static const char name[] = "NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING";
	struct inspector_settings *inspector = &settings->inspector;
	bool is_set = settings_variable(name) != NULL;

	inspector->filter.is_kernel_gpu_only = read_switch(settings, name, false);
	inspector->filter.is_without_bounds =
		inspector->is_prom || !is_set || inspector->filter.is_kernel_gpu_only;
}

static void read_least_bytes(struct settings *settings)
{
	const char *value = settings_variable("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES");
	int64_t number;

	if (value == NULL)
		return;
	if (read_number(value, &number) && number >= 0)
		settings->inspector.filter.least_bytes = (uint64_t)number;
	else
		settings_complain(settings, "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", value,
				  "a number of bytes", "0");
}

/* Inspector's own default, -1, is documented as writing at the end. Metrics have no end to wait for. */
static void read_interval(struct settings *settings)
{
	static const char name[] = "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS";
	struct inspector_settings *inspector = &settings->inspector;
	const char *value = settings_variable(name);
	int64_t number;

	inspector->interval_us = inspector->is_prom ? PROM_INTERVAL_US : LINES_INTERVAL_US;
	if (value == NULL)
		return;
	if (!read_number(value, &number) || number > INTERVAL_MOST_US)
		settings_complain(settings, name, value, "a number of microseconds, or -1",
				  inspector->is_prom ? "15000000" : "100000");
	else if (number >= 0)
		inspector->interval_us = number;
	else if (!inspector->is_prom)
		inspector->interval_us = INSPECTOR_AT_END;
}

/* Slurm has two names for it, and sets both; some wrappers pass on only one. */
static const char *slurm_job(void)
{
	const char *job = settings_variable("SLURM_JOB_ID");

	return job != NULL ? job : settings_variable("SLURM_JOBID");
}

static void read_job(struct settings *settings)
{
	const char *job = slurm_job();

	text_copy(settings->inspector.job, sizeof(settings->inspector.job),
		  job != NULL ? job : settings->job);
}

static void read_dir(struct settings *settings)
{
	static const char name[] = "NCCL_INSPECTOR_DUMP_DIR";
	struct inspector_settings *inspector = &settings->inspector;
	const char *value = settings_variable(name), *job = slurm_job();
	char standard[64] = "nccl-inspector-unknown-jobid";
	int64_t number;

	if (job != NULL && text_number(job, 0, INT64_MAX, &number) == OK)
		text_format(standard, sizeof(standard), "nccl-inspector-%lld", (long long)number);
	if (value != NULL && !text_copy(inspector->dir, sizeof(inspector->dir), value)) {
		settings_complain(settings, name, value, "short enough", standard);
		value = NULL;
	}
	if (value == NULL)
		text_copy(inspector->dir, sizeof(inspector->dir), standard);
}

void inspector_settings_read(struct settings *settings)
{
	struct inspector_settings *inspector = &settings->inspector;

	*inspector = (struct inspector_settings){ .is_on = false };
	inspector->is_on = read_switch(settings, "NCCL_INSPECTOR_ENABLE", false) &&
			   read_switch(settings, "NCCL_INSPECTOR_DUMP_THREAD_ENABLE", true);
	if (!inspector->is_on)
		return;
	inspector->is_prom = read_switch(settings, "NCCL_INSPECTOR_PROM_DUMP", false);
	inspector->is_verbose = read_switch(settings, "NCCL_INSPECTOR_DUMP_VERBOSE", false);
	inspector->filter.is_without_p2p =
		!read_switch(settings, "NCCL_INSPECTOR_ENABLE_P2P", true);
	read_timing(settings);
	read_least_bytes(settings);
	read_interval(settings);
	read_job(settings);
	read_dir(settings);
}
