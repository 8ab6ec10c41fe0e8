/* Settings from the environment, and the events to request from NCCL because of them. */
#include "plugin/settings.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/secret.h"
#include "common/text.h"
#include "plugin/abi_common.h"
#include "plugin/threads.h"

enum {
	BUFFER_LEAST = 64 * 1024,
	GROUP_MS = 40, /* longest wait in init for the name of a group */
	GROUP_BYTES = 4096,
	GROUP_BYTES_MOST = 16 * 1024 * 1024,
};
#define BUFFER_DEFAULT (UINT64_C(8) << 20)
#define BUFFER_MOST (UINT64_C(1) << 30)
#define QUOTA_LEAST (UINT64_C(1) << 20)
#define QUOTA_DEFAULT (UINT64_C(2) << 30)
enum { HEARTBEAT_S = 1, HEARTBEAT_MOST_S = 3600 };
enum { HANG_AFTER_MOST_S = 7 * 24 * 3600 };

/* A bad setting costs one line and falls back to the default: the job continues. */
static void settings_complain(struct settings *settings, const char *name, const char *value,
			      const char *allowed, const char *instead)
{
	size_t used = strlen(settings->complaints);
	char shown[61];

	text_from_field(shown, sizeof(shown), value, strlen(value));
	/* The line is also recorded, and recordings are passed on. */
	if (secret_is_value(value))
		text_copy(shown, sizeof(shown), "***");
	if (!text_format(settings->complaints + used, sizeof(settings->complaints) - used,
			 "ringside: %s=%s is not %s; using %s\n", name, shown, allowed, instead))
		settings->complaints[used] = '\0'; /* no half lines */
}

const char *settings_variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Anyone who sets such a variable wants it off, whatever the value. */
static bool is_switched_off(struct settings *settings, const char *name, const char *on,
			    const char *off, const char *allowed)
{
	const char *value = settings_variable(name);

	if (value == NULL || strcmp(value, on) == 0)
		return false;
	if (strcmp(value, off) != 0)
		settings_complain(settings, name, value, allowed, off);
	return true;
}

static void read_mode(struct settings *settings)
{
	const char *value = settings_variable("RINGSIDE_MODE");

	settings->mode = REGION_MODE_FLIGHT;
	if (value == NULL)
		return;
	for (int mode = REGION_MODE_OFF; mode <= REGION_MODE_FULL; mode++)
		if (strcmp(value, op_mode_name((unsigned int)mode)) == 0) {
			settings->mode = (enum region_mode)mode;
			settings->is_disabled |= mode == REGION_MODE_OFF;
			return;
		}
	settings_complain(settings, "RINGSIDE_MODE", value, "flight, profile, trace, full or off",
			  "flight");
}

static void read_size(struct settings *settings, const char *name, uint64_t least, uint64_t most,
		      const char *allowed, const char *instead, uint64_t *size)
{
	const char *value = settings_variable(name);
	uint64_t bytes;

	if (value == NULL)
		return;
	if (text_size(value, &bytes) == OK && bytes >= least && bytes <= most)
		*size = bytes;
	else
		settings_complain(settings, name, value, allowed, instead);
}

static void read_sizes(struct settings *settings)
{
	const char *quota = settings_variable("RINGSIDE_QUOTA");

	settings->buffer = BUFFER_DEFAULT;
	settings->quota = QUOTA_DEFAULT;
	read_size(settings, "RINGSIDE_BUFFER", BUFFER_LEAST, BUFFER_MOST,
		  "a size from 64KiB to 1GiB", "8MiB", &settings->buffer);
	settings->has_quota = quota != NULL;
	if (quota != NULL && strcmp(quota, "none") == 0)
		settings->quota = 0;
	else
		read_size(settings, "RINGSIDE_QUOTA", QUOTA_LEAST, UINT64_MAX,
			  "a size of at least 1MiB, or none", "2GiB", &settings->quota);
}

static void read_text(struct settings *settings, const char *name, const char *standard, char *to,
		      size_t size)
{
	const char *value = settings_variable(name);

	if (value != NULL && !text_copy(to, size, value)) {
		settings_complain(settings, name, value, "short enough", standard);
		value = NULL;
	}
	if (value == NULL)
		text_copy(to, size, standard);
}

static bool switch_event(struct settings *settings, const char *word)
{
	const struct {
		const char *name;
		enum settings_switch *to;
	} events[] = {
		{ "proxy", &settings->proxy },
		{ "steps", &settings->steps },
		{ "launch", &settings->launch },
	};
	bool is_off = word[0] == '-';

	if (strcmp(word, "auto") == 0)
		return true;
	/* Before there were CUDA events. */
	if (strcmp(word, "kernel") == 0 || strcmp(word, "+kernel") == 0) {
		settings->times = TIMES_KERNEL;
		return true;
	}
	if (strcmp(word, "-kernel") == 0) {
		settings->times = TIMES_AUTO;
		return true;
	}
	if (strcmp(word, "sample") == 0) {
		text_append(settings->complaints, sizeof(settings->complaints),
			    "ringside: RINGSIDE_EVENTS=sample is not used any more: "
			    "RINGSIDE_TIMES=auto, the default, times a share of the operations\n");
		return true;
	}
	word += word[0] == '-' || word[0] == '+';
	for (size_t i = 0; i < ARRAY_LENGTH(events); i++)
		if (strcmp(word, events[i].name) == 0) {
			*events[i].to = is_off ? SWITCH_OFF : SWITCH_ON;
			return true;
		}
	return false;
}

static void read_events(struct settings *settings)
{
	char list[128], *at = list, *word;

	settings->proxy = settings->steps = settings->launch = SWITCH_AUTO;
	read_text(settings, "RINGSIDE_EVENTS", "auto", list, sizeof(list));
	while ((word = strsep(&at, ",")) != NULL)
		if (word[0] != '\0' && !switch_event(settings, word))
			settings_complain(
				settings, "RINGSIDE_EVENTS", word,
				"auto, kernel, -kernel, proxy, -proxy, steps, -steps, launch or "
				"-launch",
				"auto for it");
}

static const char *const times_names[] = {
	[TIMES_AUTO] = "auto",
	[TIMES_ALL] = "all",
	[TIMES_OFF] = "off",
	[TIMES_KERNEL] = "kernel",
};

const char *times_name(enum settings_times times)
{
	return times_names[times];
}

const char *graphs_name(enum settings_graphs graphs)
{
	return graphs == GRAPHS_ALL ? "graphs" : graphs == GRAPHS_NONE ? "no-graphs" : "";
}

/* False: not a word of this setting. */
static bool switch_times(struct settings *settings, const char *word, unsigned int *choices)
{
	for (size_t i = 0; i < ARRAY_LENGTH(times_names); i++)
		if (strcmp(word, times_names[i]) == 0) {
			settings->times = (enum settings_times)i;
			++*choices;
			return true;
		}
	for (int i = GRAPHS_ALL; i <= GRAPHS_NONE; i++)
		if (strcmp(word, graphs_name((enum settings_graphs)i)) == 0) {
			settings->graphs = (enum settings_graphs)i;
			return true;
		}
	return false;
}

/* After RINGSIDE_EVENTS, whose `kernel` it replaces. */
static void read_times_setting(struct settings *settings)
{
	const char *value = settings_variable("RINGSIDE_TIMES");
	char list[64], *at = list, *word;
	unsigned int choices = 0;
	bool is_good = true;
	const char *launch_mode = settings_variable("NCCL_LAUNCH_MODE");
	const char *blocking = settings_variable("CUDA_LAUNCH_BLOCKING");

	settings->is_launch_disturbed =
		(launch_mode != NULL && strcasecmp(launch_mode, "GROUP") == 0) ||
		(blocking != NULL && strcmp(blocking, "0") != 0);
	if (settings_variable("RINGSIDE_SAMPLE_AFTER") != NULL)
		text_append(
			settings->complaints, sizeof(settings->complaints),
			"ringside: RINGSIDE_SAMPLE_AFTER is not used any more: times begin with "
			"the job\n");
	if (value == NULL)
		return;
	settings->times = TIMES_AUTO;
	text_copy(list, sizeof(list), value);
	while ((word = strsep(&at, ",")) != NULL)
		is_good &= switch_times(settings, word, &choices);
	if (is_good && choices <= 1 && strlen(value) < sizeof(list))
		return;
	settings_complain(settings, "RINGSIDE_TIMES", value,
			  "auto, all, off or kernel, and perhaps ,graphs or ,no-graphs", "auto");
	settings->times = TIMES_AUTO;
	settings->graphs = GRAPHS_SOME;
}

static void read_seconds(struct settings *settings, const char *name, int64_t least, int64_t most,
			 const char *allowed, const char *instead, int64_t *seconds)
{
	const char *value = settings_variable(name);
	int64_t number;

	if (value == NULL)
		return;
	if (text_number(value, least, most, &number) == OK)
		*seconds = number;
	else
		settings_complain(settings, name, value, allowed, instead);
}

static void read_heartbeat(struct settings *settings)
{
	int64_t heartbeat_s = HEARTBEAT_S;

	read_seconds(settings, "RINGSIDE_HEARTBEAT", 0, HEARTBEAT_MOST_S,
		     "a number of seconds up to 3600", "1", &heartbeat_s);
	settings->heartbeat_ns = (uint64_t)heartbeat_s * SECOND_NS;
}

/* k=v,k=v: keys of letters, digits and _; values without control bytes. */
static bool labels_are_fine(const char *text)
{
	char list[512], *at = list, *pair;

	if (!text_copy(list, sizeof(list), text))
		return false;
	while ((pair = strsep(&at, ",")) != NULL) {
		char *equals = strchr(pair, '=');

		if (equals == NULL || equals == pair)
			return false;
		for (const char *c = pair; c < equals; c++)
			if (!isalnum((unsigned char)*c) && *c != '_')
				return false;
		for (const char *c = equals + 1; *c != '\0'; c++)
			if (iscntrl((unsigned char)*c))
				return false;
	}
	return true;
}

static void read_labels(struct settings *settings)
{
	read_text(settings, "RINGSIDE_LABELS", "", settings->labels, sizeof(settings->labels));
	if (settings->labels[0] != '\0' && !labels_are_fine(settings->labels)) {
		settings_complain(settings, "RINGSIDE_LABELS", settings->labels,
				  "key=value,key=value", "no labels");
		settings->labels[0] = '\0';
	}
}

struct group_search {
	char name[256];
	gid_t found; /* (gid_t)-1: not found */
};

/* System libraries may ask a daemon, which may ask a server. */
static void find_group(void *data)
{
	struct group_search *search = data;
	struct group entry, *found = NULL;
	int error = ERANGE;

	/*
	 * The buffer must hold the longest group line before it, too: some groups have thousands of
	 * members.
	 */
	for (size_t size = GROUP_BYTES; error == ERANGE && size <= GROUP_BYTES_MOST; size *= 4) {
		char *buffer = malloc(size);

		if (buffer == NULL)
			return;
		error = getgrnam_r(search->name, &entry, buffer, size, &found);
		if (error == 0 && found != NULL)
			search->found = entry.gr_gid;
		free(buffer);
	}
}

static void read_group_name(struct settings *settings, const char *name)
{
	static const struct own_work work = { "ringside-group", find_group, free };
	struct group_search *search = calloc(1, sizeof(*search));

	if (search == NULL)
		return;
	search->found = (gid_t)-1;
	if (!text_copy(search->name, sizeof(search->name), name)) {
		free(search);
		settings_complain(settings, "RINGSIDE_GROUP", name, "short enough", "none");
		return;
	}
	if (!own_thread_try(&work, search, GROUP_MS)) {
		settings_complain(settings, "RINGSIDE_GROUP", name,
				  "a group that was found in time (use its number)", "none");
		return;
	}
	settings->group = search->found;
	free(search);
	if (settings->group == (gid_t)-1)
		settings_complain(settings, "RINGSIDE_GROUP", name, "a group on this host", "none");
}

static void read_group(struct settings *settings)
{
	const char *value = settings_variable("RINGSIDE_GROUP");
	int64_t number;

	settings->group = (gid_t)-1;
	if (value == NULL)
		return;
	if (text_number(value, 0, UINT32_MAX - 1, &number) == OK)
		settings->group = (gid_t)number;
	else
		read_group_name(settings, value);
}

enum {
	LINES_INTERVAL_US = 100 * 1000,
	PROM_INTERVAL_US = 15 * 1000 * 1000, /* a common scrape interval */
};
#define INTERVAL_MOST_US INT64_C(86400000000)

/* Numbers as Inspector reads them: decimal, 0x..., 0... But text after the number is an error. */
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
 * Like Inspector we write only GPU times by default. Network spans and bounds are no durations: they
 * are written, with their source, only on request, and never as a metric.
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

/* Inspector's own default, -1, is documented as writing at the end. Metrics have no end. */
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

/* Slurm sets both names; some wrappers pass on only one. */
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
	struct inspector_settings *inspector = &settings->inspector;
	const char *job = slurm_job();
	char standard[64] = "nccl-inspector-unknown-jobid";
	int64_t number;

	if (job != NULL && text_number(job, 0, INT64_MAX, &number) == OK)
		text_format(standard, sizeof(standard), "nccl-inspector-%lld", (long long)number);
	read_text(settings, "NCCL_INSPECTOR_DUMP_DIR", standard, inspector->dir,
		  sizeof(inspector->dir));
}

/* Fills settings->inspector. If it is off, only is_on is set. */
static void inspector_settings_read(struct settings *settings)
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

bool settings_is_memory(const char *path)
{
	const size_t base = sizeof(SETTINGS_SHM) - 1;
	struct stat memory, found;
	char part[512];

	if (strncmp(path, SETTINGS_SHM, base) != 0 || (path[base] != '/' && path[base] != '\0') ||
	    strlen(path) >= sizeof(part) || stat(SETTINGS_SHM, &memory) == -1)
		return false;
	for (const char *at = path + base, *end; *at != '\0'; at = end) {
		at += strspn(at, "/");
		end = at + strcspn(at, "/");
		if (end - at == 2 && at[0] == '.' && at[1] == '.')
			return false;
		text_format(part, sizeof(part), "%.*s", (int)(end - path), path);
		if (lstat(part, &found) == -1)
			return errno == ENOENT && strstr(at, "..") == NULL;
		if (!S_ISDIR(found.st_mode) || found.st_dev != memory.st_dev)
			return false;
	}
	return true;
}

/*
 * A program with more rights than its user (setuid, setgid, file capabilities): that user chooses
 * the environment and the working directory, but not where such a program writes files, nor who may
 * read them.
 */
static void distrust_paths(struct settings *settings)
{
	bool is_asked = settings->mode >= REGION_MODE_TRACE || settings->inspector.is_on ||
			settings->group != (gid_t)-1 || strcmp(settings->shm, SETTINGS_SHM) != 0;

	if (settings->mode >= REGION_MODE_TRACE)
		settings->mode = REGION_MODE_FLIGHT;
	settings->inspector = (struct inspector_settings){ .is_on = false };
	settings->group = (gid_t)-1;
	text_copy(settings->shm, sizeof(settings->shm), SETTINGS_SHM);
	if (is_asked)
		text_append(settings->complaints, sizeof(settings->complaints),
			    "ringside: this program has more rights than its user (setuid or file "
			    "capabilities); recording to " SETTINGS_SHM
			    " only, without other files or a group\n");
}

void settings_read(struct settings *settings)
{
	*settings = (struct settings){ .is_disabled = false };
	settings->is_disabled = is_switched_off(settings, "RINGSIDE_DISABLE", "0", "1", "0 or 1");
	read_mode(settings);
	read_sizes(settings);
	read_text(settings, "RINGSIDE_DIR", "ringside-%j", settings->dir, sizeof(settings->dir));
	read_text(settings, "RINGSIDE_SHM", SETTINGS_SHM, settings->shm, sizeof(settings->shm));
	read_text(settings, "RINGSIDE_JOB", "", settings->job, sizeof(settings->job));
	read_events(settings);
	read_times_setting(settings);
	read_heartbeat(settings);
	read_labels(settings);
	/* Not for the recorder: agents and alert rules read it. */
	read_seconds(settings, "RINGSIDE_HANG_AFTER", 1, HANG_AFTER_MOST_S,
		     "a number of seconds up to 604800", "none", &settings->hang_after_s);
	read_group(settings);
	settings->is_environment_off =
		is_switched_off(settings, "RINGSIDE_ENVIRONMENT", "on", "off", "on or off");
	inspector_settings_read(settings);
	if (getauxval(AT_SECURE) != 0)
		distrust_paths(settings);
}

/*
 * NCCL 2.28 to 2.30 takes about 33 MiB of /dev/shm per communicator for kernel events and crashes
 * if there is too little. Room for a few must be free.
 */
#define KERNEL_SHM_BYTES (UINT64_C(40) << 20)
enum { KERNEL_COMMS = 4, FIRST_WITH_LAUNCHES = 5 };

uint64_t mask_free_shm_bytes(void)
{
	struct statvfs fs;

	if (statvfs("/dev/shm", &fs) != 0)
		return 0;
	/* A tmpfs without a limit reports no blocks at all. */
	return fs.f_blocks == 0 ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}

static enum kernel_events decide_kernel(struct mask_choice *choice, enum kernel_events events,
					const char *reason, const char *more)
{
	text_format(choice->kernel_reason, sizeof(choice->kernel_reason), "%s%s", reason, more);
	return events;
}

/* NCCL crashes without room, so this overrules the user's setting. */
static enum kernel_events without_room(struct mask_choice *choice, uint64_t free_bytes)
{
	text_format(choice->kernel_reason, sizeof(choice->kernel_reason),
		    "only %llu MiB free in /dev/shm: NCCL takes 33 MiB per communicator for kernel "
		    "events and crashes if there is less",
		    (unsigned long long)(free_bytes >> 20));
	return KERNEL_EVENTS_OFF;
}

static enum kernel_events choose_kernel(unsigned int interface, const struct settings *settings,
					uint64_t free_bytes, struct mask_choice *choice)
{
	const struct kernel_policy *policy = kernel_policy_of(interface);
	bool takes_shm = interface == 5 || interface == 6;

	if (policy == NULL || policy->by_default == KERNEL_EVENTS_ABSENT)
		return decide_kernel(choice, KERNEL_EVENTS_ABSENT,
				     policy != NULL ? policy->why : "", "");
	if (settings->times != TIMES_KERNEL)
		return decide_kernel(choice, KERNEL_EVENTS_OFF, policy->why, "");
	if (takes_shm && free_bytes / KERNEL_SHM_BYTES < KERNEL_COMMS)
		return without_room(choice, free_bytes);
	return decide_kernel(choice, KERNEL_EVENTS_ON,
			     "switched on by a setting; known risk: ", policy->risk);
}

static enum settings_times without_times(struct mask_choice *choice, const char *why)
{
	text_copy(choice->times_reason, sizeof(choice->times_reason), why);
	return TIMES_OFF;
}

/* What is in effect, and why it is not what was asked for. */
static enum settings_times choose_times(unsigned int interface, const struct settings *settings,
					struct mask_choice *choice)
{
	if (settings->times == TIMES_OFF)
		return without_times(choice, "switched off by RINGSIDE_TIMES");
	if (settings->times == TIMES_KERNEL && choice->kernel == KERNEL_EVENTS_ON)
		return TIMES_KERNEL;
	if (settings->times == TIMES_KERNEL)
		return without_times(choice, choice->kernel_reason);
	if (interface < FIRST_WITH_LAUNCHES)
		return without_times(
			choice, interface == FIRST_WITH_LAUNCHES - 1
					? "NCCL before 2.28 does not show launches; "
					  "RINGSIDE_TIMES=kernel asks NCCL 2.27 for its own times"
					: "NCCL before 2.28 does not show launches");
	if (settings->launch == SWITCH_OFF)
		return without_times(choice, "launches are switched off by RINGSIDE_EVENTS");
	if (settings->is_launch_disturbed)
		return without_times(choice, sampling_state_text(SAMPLING_BY_MODE));
	choice->graphs = settings->graphs;
	/* Its users expect a line for each operation. */
	return settings->inspector.is_on ? TIMES_ALL : settings->times;
}

struct mask_choice mask_choose(unsigned int interface, const struct settings *settings,
			       uint64_t free_shm_bytes)
{
	struct mask_choice choice = { .mask = ABI_GROUP | ABI_COLL | ABI_P2P };

	if (settings->proxy != SWITCH_OFF) {
		choice.mask |= ABI_PROXY_OP;
		/* NCCL 2.27 crashes on net plugin callbacks without steps: they stay on there. */
		if (settings->steps != SWITCH_OFF || interface == 4)
			choice.mask |= ABI_PROXY_STEP;
	}
	if (interface >= 5)
		choice.mask |= ABI_GROUP_API | ABI_COLL_API | ABI_P2P_API;
	if (interface >= 5 && settings->launch != SWITCH_OFF)
		choice.mask |= ABI_KERNEL_LAUNCH;
	if (interface >= 6)
		choice.mask |= ABI_CE_COLL;
	choice.kernel = choose_kernel(interface, settings, free_shm_bytes, &choice);
	if (choice.kernel == KERNEL_EVENTS_ON)
		choice.mask |= ABI_KERNEL_CH;
	choice.times = choose_times(interface, settings, &choice);
	return choice;
}
