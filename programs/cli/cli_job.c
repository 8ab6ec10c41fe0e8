/*
 * How NCCL is led to the plugin. Releases differ in what they make of NCCL_PROFILER_PLUGIN: up to
 * 2.25 it goes to dlopen() as it is; 2.26 also tries libnccl-profiler-<value>.so; 2.27.3 takes only
 * a bare lib*.so name as it is and refuses paths; later ones take names and paths. The one value
 * that all of them find is the bare file name, with the plugin's directory in LD_LIBRARY_PATH. The
 * directory goes to the end, so that nothing in it hides a library the job has chosen, and is left
 * out where the loader finds the plugin by itself.
 */
#include "programs/cli/cli_job.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_plugin.h"

void cli_job_init(struct cli_job *job)
{
	memset(job, 0, sizeof(*job));
}

static int set(struct cli_job *job, const char *name, const char *value, bool is_appended)
{
	struct cli_variable *variable = NULL;

	for (size_t i = 0; i < job->count; i++)
		if (strcmp(job->variables[i].name, name) == 0)
			variable = &job->variables[i];
	if (variable == NULL)
		variable = &job->variables[job->count++];
	variable->name = name;
	variable->is_appended = is_appended;
	if (!text_copy(variable->value, sizeof(variable->value), value))
		return cli_error("the value for %s is longer than %zu bytes", name,
				 sizeof(variable->value) - 1);
	return 0;
}

/* Ranks may change their working directory; they shall all mean the same place. */
static int set_directory(struct cli_job *job, const char *name, const char *value, bool is_pattern)
{
	char here[JOB_PATH_BYTES / 2], whole[JOB_PATH_BYTES];
	size_t out = 0;

	if (value[0] == '/')
		return set(job, name, value, false);
	if (getcwd(here, sizeof(here)) == NULL)
		return cli_error("cannot tell the working directory: %s", strerror(errno));
	/* A '%' there is no placeholder. */
	for (const char *at = here; *at != '\0'; at++) {
		if (*at == '%' && is_pattern)
			whole[out++] = '%';
		whole[out++] = *at;
	}
	if (!text_format(whole + out, sizeof(whole) - out, "/%s", value))
		return cli_error("the path '%s' is too long", value);
	return set(job, name, whole, false);
}

static int take_mode(struct cli_job *job, const struct cli_page *page, const char *value)
{
	static const char *const modes[] = { "flight", "profile", "trace", "full", "off" };
	const char *nearest;

	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++)
		if (strcmp(modes[i], value) == 0)
			return set(job, "RINGSIDE_MODE", value, false);
	nearest = cli_nearest(value, modes, ARRAY_LENGTH(modes));
	if (nearest)
		return cli_usage(page, "unknown mode '%s', did you mean '%s'?", value, nearest);
	return cli_usage(page, "unknown mode '%s'; choose flight, profile, trace, full or off",
			 value);
}

/* The same limits as the recorder's own, which would take its default and go on. */
static int take_buffer(struct cli_job *job, const struct cli_page *page, const char *value)
{
	uint64_t bytes;

	if (text_size(value, &bytes) != OK || bytes < 64 << 10 || bytes > 1 << 30)
		return cli_usage(page, "'%s' is no size from 64KiB to 1GiB; write it like 8MiB",
				 value);
	return set(job, "RINGSIDE_BUFFER", value, false);
}

static int take_quota(struct cli_job *job, const struct cli_page *page, const char *value)
{
	uint64_t bytes;

	if (strcmp(value, "none") != 0 && (text_size(value, &bytes) != OK || bytes < 1 << 20))
		return cli_usage(
			page,
			"'%s' is neither none nor a size of at least 1MiB; write it like 4GiB",
			value);
	return set(job, "RINGSIDE_QUOTA", value, false);
}

static int take_events(struct cli_job *job, const struct cli_page *page, const char *value)
{
	static const char *const kinds[] = { "auto", "kernel", "proxy", "steps", "launch" };

	for (const char *at = value; *at != '\0';) {
		size_t length = strcspn(at, ","), skip = *at == '-' || *at == '+';
		bool is_known = false;

		for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
			is_known |= strlen(kinds[i]) == length - skip &&
				    strncmp(kinds[i], at + skip, length - skip) == 0;
		if (!is_known)
			return cli_usage(
				page,
				"'%.*s' is no kind of event; choose from kernel, proxy, steps, "
				"launch, with a '-' before it to switch it off",
				(int)length, at);
		at += length + (at[length] == ',');
	}
	return set(job, "RINGSIDE_EVENTS", value, false);
}

static bool is_label(const char *pair, size_t length)
{
	const char *equals = memchr(pair, '=', length);

	if (equals == NULL || equals == pair)
		return false;
	for (const char *at = pair; at < equals; at++)
		if (!isalnum((unsigned char)*at) && *at != '_')
			return false;
	return true;
}

static int take_labels(struct cli_job *job, const struct cli_page *page, const char *value)
{
	for (const char *at = value; *at != '\0';) {
		size_t length = strcspn(at, ",");

		if (!is_label(at, length))
			return cli_usage(page,
					 "'%.*s' is no label; write it like key=value, the key of "
					 "letters, digits and '_'",
					 (int)length, at);
		at += length + (at[length] == ',');
	}
	return set(job, "RINGSIDE_LABELS", value, false);
}

static int take_plugin(struct cli_job *job, const char *value)
{
	const char *slash = strrchr(value, '/');
	char directory[PATH_MAX], whole[PATH_MAX];

	text_format(directory, sizeof(directory), "%.*s", slash ? (int)(slash - value + 1) : 1,
		    slash ? value : ".");
	if (access(value, R_OK) != 0 || realpath(directory, whole) == NULL)
		return cli_error("cannot read the plugin '%s': %s", value, strerror(errno));
	if (!text_format(job->plugin, sizeof(job->plugin), "%s/%s", whole,
			 slash ? slash + 1 : value))
		return cli_error("the path '%s' is too long", value);
	return 0;
}

int cli_job_take(struct cli_job *job, const struct cli_page *page, int id, const char *value)
{
	switch (id) {
	case JOB_MODE:
		return take_mode(job, page, value);
	case JOB_DIRECTORY:
		return set_directory(job, "RINGSIDE_DIR", value, true);
	case JOB_EVENTS:
		return take_events(job, page, value);
	case JOB_BUFFER:
		return take_buffer(job, page, value);
	case JOB_QUOTA:
		return take_quota(job, page, value);
	case JOB_SHM:
		return set_directory(job, "RINGSIDE_SHM", value, false);
	case JOB_NAME:
		return set(job, "RINGSIDE_JOB", value, false);
	case JOB_LABELS:
		return take_labels(job, page, value);
	case JOB_GROUP:
		return set(job, "RINGSIDE_GROUP", value, false);
	case JOB_PLUGIN:
		return take_plugin(job, value);
	case JOB_BY_PATH:
		job->is_by_path = true;
		return 0;
	default:
		return cli_usage(page, "option %d is not known here", id);
	}
}

/* Longer names are cut by NCCL. */
enum { NCCL_NAME_MAX = 254 };

static int set_plugin_path(struct cli_job *job)
{
	if (strlen(job->plugin) > NCCL_NAME_MAX)
		return cli_error("NCCL cuts names after %d letters: move the plugin from '%s' to a "
				 "shorter path",
				 NCCL_NAME_MAX, job->plugin);
	return set(job, "NCCL_PROFILER_PLUGIN", job->plugin, false);
}

/* Can the plugin be named by its bare name, with its directory in LD_LIBRARY_PATH? */
static bool can_be_listed(const char *directory, const char *name)
{
	return strncmp(name, "lib", 3) == 0 && strpbrk(directory, ":;$") == NULL;
}

int cli_job_complete(struct cli_job *job)
{
	char looked[8192], directory[JOB_PATH_BYTES];
	const char *name;
	int failed;

	if (job->plugin[0] == '\0' &&
	    !cli_plugin_find(job->plugin, sizeof(job->plugin), looked, sizeof(looked)))
		return cli_error("cannot find " CLI_PLUGIN_FILE " in %s; name it with --plugin",
				 looked);
	text_copy(directory, sizeof(directory), job->plugin);
	name = strrchr(job->plugin, '/') + 1;
	directory[name - job->plugin - 1] = '\0';
	if (job->is_by_path || !can_be_listed(directory, name) || cli_plugin_is_hidden(job->plugin))
		return set_plugin_path(job);
	failed = set(job, "NCCL_PROFILER_PLUGIN", name, false);
	if (failed || (strcmp(name, CLI_PLUGIN_FILE) == 0 && cli_plugin_is_on_path(job->plugin)))
		return failed;
	return set(job, "LD_LIBRARY_PATH", directory, true);
}

bool cli_job_is_ours(const char *value)
{
	const char *slash = strrchr(value, '/');

	return strcmp(value, "ringside") == 0 ||
	       strcmp(slash ? slash + 1 : value, CLI_PLUGIN_FILE) == 0;
}
