#include "capture/settings.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/secret.h"
#include "base/text.h"
#include "capture/own_thread.h"
#include "op/op_names.h"

enum {
	BUFFER_LEAST = 64 * 1024,
	GROUP_MS = 40, /* that init waits for the name of a group */
	GROUP_BYTES = 4096,
	GROUP_BYTES_MOST = 16 * 1024 * 1024,
};
#define BUFFER_DEFAULT (UINT64_C(8) << 20)
#define BUFFER_MOST (UINT64_C(1) << 30)
#define QUOTA_LEAST (UINT64_C(1) << 20)
#define QUOTA_DEFAULT (UINT64_C(2) << 30)
/* CUDA graphs are captured in a job's first minutes, if at all. */
enum { SAMPLE_AFTER_S = 120, SAMPLE_AFTER_MOST_S = 365 * 24 * 3600 };

void settings_complain(struct settings *settings, const char *name, const char *value,
		       const char *allowed, const char *instead)
{
	size_t used = strlen(settings->complaints);
	char shown[61];

	text_from_field(shown, sizeof(shown), value, strlen(value));
	/* The line is recorded, too, and recordings are handed on. */
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

static void read_disable(struct settings *settings)
{
	const char *value = settings_variable("RINGSIDE_DISABLE");

	if (value == NULL || strcmp(value, "0") == 0)
		return;
	/* Whoever reaches for the switch wants it off, however they spell it. */
	settings->is_disabled = true;
	if (strcmp(value, "1") != 0)
		settings_complain(settings, "RINGSIDE_DISABLE", value, "0 or 1", "1");
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
		{ "kernel", &settings->kernel },
		{ "proxy", &settings->proxy },
		{ "steps", &settings->steps },
		{ "launch", &settings->launch },
	};
	bool is_off = word[0] == '-';

	if (strcmp(word, "auto") == 0)
		return true;
	if (strcmp(word, "sample") == 0) {
		settings->kernel = SWITCH_SAMPLE;
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

	settings->kernel = settings->proxy = settings->steps = settings->launch = SWITCH_AUTO;
	read_text(settings, "RINGSIDE_EVENTS", "auto", list, sizeof(list));
	while ((word = strsep(&at, ",")) != NULL)
		if (word[0] != '\0' && !switch_event(settings, word))
			settings_complain(
				settings, "RINGSIDE_EVENTS", word,
				"auto, kernel, -kernel, sample, proxy, -proxy, steps, -steps, "
				"launch or -launch",
				"auto for it");
}

static void read_sampling(struct settings *settings)
{
	const char *value = settings_variable("RINGSIDE_SAMPLE_AFTER");
	const char *allgatherv = settings_variable("NCCL_ALLGATHERV_ENABLE");
	int64_t seconds = SAMPLE_AFTER_S;

	if (value != NULL && text_number(value, 0, SAMPLE_AFTER_MOST_S, &seconds) != OK) {
		settings_complain(settings, "RINGSIDE_SAMPLE_AFTER", value, "a number of seconds",
				  "120");
		seconds = SAMPLE_AFTER_S;
	}
	settings->sample_after_ns = (uint64_t)seconds * 1000000000;
	settings->is_allgatherv_off = allgatherv != NULL && strcmp(allgatherv, "0") == 0;
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
	gid_t found; /* (gid_t)-1: there is none */
};

/* Libraries of the system may ask a daemon, and that a server. */
static void find_group(void *data)
{
	struct group_search *search = data;
	struct group entry, *found = NULL;
	int error = ERANGE;

	/* The whole line of a group has to fit, and of those before it: some have thousands of members. */
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
				  "found in time: give its number", "none");
		return;
	}
	settings->group = search->found;
	free(search);
	if (settings->group == (gid_t)-1)
		settings_complain(settings, "RINGSIDE_GROUP", name, "a group of this machine",
				  "none");
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

static void read_environment(struct settings *settings)
{
	const char *value = settings_variable("RINGSIDE_ENVIRONMENT");

	if (value == NULL || strcmp(value, "on") == 0)
		return;
	/* As with the switch: whoever touches it does not want to be recorded. */
	settings->is_environment_off = true;
	if (strcmp(value, "off") != 0)
		settings_complain(settings, "RINGSIDE_ENVIRONMENT", value, "on or off", "off");
}

void settings_read(struct settings *settings)
{
	*settings = (struct settings){ .is_disabled = false };
	read_disable(settings);
	read_mode(settings);
	read_sizes(settings);
	read_text(settings, "RINGSIDE_DIR", "ringside-%j", settings->dir, sizeof(settings->dir));
	read_text(settings, "RINGSIDE_SHM", SETTINGS_SHM, settings->shm, sizeof(settings->shm));
	read_text(settings, "RINGSIDE_JOB", "", settings->job, sizeof(settings->job));
	read_events(settings);
	read_sampling(settings);
	read_labels(settings);
	read_group(settings);
	read_environment(settings);
	inspector_settings_read(settings);
}
