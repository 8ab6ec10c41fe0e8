/*
 * How RINGSIDE_* variables are interpreted. That a job continues, and what it prints, is tested
 * with real processes in tests/process/settings.t.
 */
#include "plugin/settings.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "common/attributes.h"
#include "plugin/threads.h"
#include "tests/tap.h"

static const char *const names[] = {
	"RINGSIDE_MODE",      "RINGSIDE_DIR",	       "RINGSIDE_SHM",
	"RINGSIDE_BUFFER",    "RINGSIDE_QUOTA",	       "RINGSIDE_EVENTS",
	"RINGSIDE_JOB",	      "RINGSIDE_LABELS",       "RINGSIDE_GROUP",
	"RINGSIDE_DISABLE",   "RINGSIDE_ENVIRONMENT",  "RINGSIDE_HANG_AFTER",
	"RINGSIDE_HEARTBEAT", "RINGSIDE_SAMPLE_AFTER", "RINGSIDE_TIMES",
	"NCCL_LAUNCH_MODE",   "CUDA_LAUNCH_BLOCKING",
};

/* The settings with this one variable set. */
static struct settings with(const char *name, const char *value)
{
	struct settings settings;

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		unsetenv(names[i]);
	if (name != NULL)
		setenv(name, value, 1);
	settings_read(&settings);
	return settings;
}

static unsigned int lines(const struct settings *settings)
{
	unsigned int count = 0;

	for (const char *at = settings->complaints; *at != '\0'; at++)
		count += *at == '\n';
	return count;
}

static bool are_standard(const struct settings *s)
{
	return !s->is_disabled && s->mode == REGION_MODE_FLIGHT && s->buffer == 8388608 &&
	       s->quota == 2147483648u && strcmp(s->dir, "ringside-%j") == 0 &&
	       strcmp(s->shm, "/dev/shm") == 0 && s->job[0] == '\0' && s->labels[0] == '\0' &&
	       s->hang_after_s == 0 && s->group == (gid_t)-1 && !s->is_environment_off &&
	       s->times == TIMES_AUTO && s->proxy == SWITCH_AUTO && s->steps == SWITCH_AUTO &&
	       s->launch == SWITCH_AUTO && s->heartbeat_ns == 1000000000 && !s->is_launch_disturbed;
}

static void nothing_set_is_the_standard(void)
{
	struct settings settings = with(NULL, NULL);

	EXPECT(are_standard(&settings) && lines(&settings) == 0);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		settings = with(names[i], "");
		EXPECT_THAT(names[i], are_standard(&settings) && lines(&settings) == 0);
	}
}

static void right_values_are_taken(void)
{
	struct settings settings = with("RINGSIDE_MODE", "profile");

	EXPECT_EQUAL(settings.mode, REGION_MODE_PROFILE);
	settings = with("RINGSIDE_MODE", "full");
	EXPECT_EQUAL(settings.mode, REGION_MODE_FULL);
	settings = with("RINGSIDE_BUFFER", "64KiB");
	EXPECT_EQUAL(settings.buffer, 65536);
	settings = with("RINGSIDE_BUFFER", "1GiB");
	EXPECT_EQUAL(settings.buffer, 1073741824);
	settings = with("RINGSIDE_QUOTA", "none");
	EXPECT_EQUAL(settings.quota, 0);
	settings = with("RINGSIDE_QUOTA", "1TiB");
	EXPECT_EQUAL(settings.quota, 1099511627776);
	settings = with("RINGSIDE_DIR", "/a/%r");
	EXPECT(strcmp(settings.dir, "/a/%r") == 0);
	settings = with("RINGSIDE_SHM", "/b");
	EXPECT(strcmp(settings.shm, "/b") == 0);
	settings = with("RINGSIDE_JOB", "j1");
	EXPECT(strcmp(settings.job, "j1") == 0);
	settings = with("RINGSIDE_LABELS", "a=b,c_2=");
	EXPECT(strcmp(settings.labels, "a=b,c_2=") == 0 && lines(&settings) == 0);
	settings = with("RINGSIDE_HANG_AFTER", "900");
	EXPECT(settings.hang_after_s == 900 && lines(&settings) == 0);
	settings = with("RINGSIDE_GROUP", "0");
	EXPECT_EQUAL(settings.group, 0);
	if (getgrgid(getegid()) != NULL) {
		settings = with("RINGSIDE_GROUP", getgrgid(getegid())->gr_name);
		EXPECT_EQUAL(settings.group, getegid());
	}
}

/* The first and the last value that is taken. */
static void limits_are_taken(void)
{
	struct settings settings = with("RINGSIDE_QUOTA", "1MiB");

	EXPECT(settings.quota == 1 << 20 && lines(&settings) == 0);
	settings = with("RINGSIDE_HANG_AFTER", "1");
	EXPECT(settings.hang_after_s == 1 && lines(&settings) == 0);
	settings = with("RINGSIDE_HANG_AFTER", "604800");
	EXPECT(settings.hang_after_s == 604800 && lines(&settings) == 0);
	settings = with("RINGSIDE_HEARTBEAT", "0");
	EXPECT(settings.heartbeat_ns == 0 && lines(&settings) == 0);
	settings = with("RINGSIDE_HEARTBEAT", "3600");
	EXPECT(settings.heartbeat_ns == 3600 * UINT64_C(1000000000) && lines(&settings) == 0);
}

static void times_are_chosen(void)
{
	static const char *const words[] = { "auto", "all", "off", "kernel" };
	struct settings settings;

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		settings = with("RINGSIDE_TIMES", words[i]);
		EXPECT(settings.times == (enum settings_times)i && lines(&settings) == 0);
		EXPECT(strcmp(times_name(settings.times), words[i]) == 0);
	}
	settings = with("RINGSIDE_TIMES", "all,no-graphs");
	EXPECT(settings.times == TIMES_ALL && settings.graphs == GRAPHS_NONE &&
	       lines(&settings) == 0);
	settings = with("RINGSIDE_TIMES", "graphs");
	EXPECT(settings.times == TIMES_AUTO && settings.graphs == GRAPHS_ALL &&
	       lines(&settings) == 0);
	settings = with("RINGSIDE_TIMES", "graphs,of");
	EXPECT(settings.times == TIMES_AUTO && settings.graphs == GRAPHS_SOME &&
	       lines(&settings) == 1);
	/* What replaces the older names. */
	settings = with("RINGSIDE_EVENTS", "kernel");
	EXPECT(settings.times == TIMES_KERNEL && lines(&settings) == 0);
	setenv("RINGSIDE_TIMES", "all", 1);
	settings_read(&settings);
	EXPECT_EQUAL(settings.times, TIMES_ALL);
	settings = with("RINGSIDE_EVENTS", "-kernel");
	EXPECT(settings.times == TIMES_AUTO && lines(&settings) == 0);
	settings = with("RINGSIDE_EVENTS", "sample");
	EXPECT(settings.times == TIMES_AUTO && lines(&settings) == 1 &&
	       strstr(settings.complaints, "RINGSIDE_TIMES=auto") != NULL);
	settings = with("RINGSIDE_SAMPLE_AFTER", "60");
	EXPECT(lines(&settings) == 1 && strstr(settings.complaints, "not used any more") != NULL);
	/* Where events would disturb the launches. */
	EXPECT(with("NCCL_LAUNCH_MODE", "group").is_launch_disturbed);
	EXPECT(!with("NCCL_LAUNCH_MODE", "PARALLEL").is_launch_disturbed);
	EXPECT(with("CUDA_LAUNCH_BLOCKING", "1").is_launch_disturbed);
	EXPECT(!with("CUDA_LAUNCH_BLOCKING", "0").is_launch_disturbed);
}

static void events_switch_one_by_one(void)
{
	struct settings settings = with("RINGSIDE_EVENTS", "kernel,-steps,+launch");

	EXPECT(settings.times == TIMES_KERNEL && settings.steps == SWITCH_OFF &&
	       settings.launch == SWITCH_ON && settings.proxy == SWITCH_AUTO);
	settings = with("RINGSIDE_EVENTS", "kernel,-kernel");
	EXPECT_THAT("the last one wins", settings.times == TIMES_AUTO);
	settings = with("RINGSIDE_EVENTS", "-auto,-proxy");
	EXPECT(lines(&settings) == 1 && settings.proxy == SWITCH_OFF);
	settings = with("RINGSIDE_EVENTS", "auto,,-kernel,proxy");
	EXPECT(lines(&settings) == 0 && settings.times == TIMES_AUTO &&
	       settings.proxy == SWITCH_ON && settings.steps == SWITCH_AUTO);
}

static void wrong_values_cost_one_line_and_take_the_standard(void)
{
	char longest[700];
	const struct {
		const char *name, *value;
	} wrong[] = {
		{ "RINGSIDE_MODE", "Trace" },	  { "RINGSIDE_BUFFER", "63KiB" },
		{ "RINGSIDE_BUFFER", "1025MiB" }, { "RINGSIDE_QUOTA", "1" },
		{ "RINGSIDE_QUOTA", "None" },	  { "RINGSIDE_EVENTS", "kernels" },
		{ "RINGSIDE_LABELS", "a" },	  { "RINGSIDE_LABELS", "a=b,,c=d" },
		{ "RINGSIDE_LABELS", "ä=b" },	  { "RINGSIDE_GROUP", "4294967295" },
		{ "RINGSIDE_GROUP", "-1" },	  { "RINGSIDE_DIR", longest },
		{ "RINGSIDE_SHM", longest },	  { "RINGSIDE_JOB", longest },
		{ "RINGSIDE_LABELS", longest },	  { "RINGSIDE_EVENTS", longest },
		{ "RINGSIDE_GROUP", longest },	  { "RINGSIDE_HANG_AFTER", "15m" },
		{ "RINGSIDE_HANG_AFTER", "0" },	  { "RINGSIDE_HANG_AFTER", "604801" },
		{ "RINGSIDE_QUOTA", "1048575" },  { "RINGSIDE_BUFFER", "65535" },
		{ "RINGSIDE_HEARTBEAT", "3601" }, { "RINGSIDE_HEARTBEAT", "-1" },
		{ "RINGSIDE_LABELS", "=b" },	  { "RINGSIDE_LABELS", "a-b=c" },
		{ "RINGSIDE_LABELS", "a=b\tc" },  { "RINGSIDE_TIMES", "Auto" },
		{ "RINGSIDE_LABELS", "a=b," },	  { "RINGSIDE_TIMES", "all,off" },
	};
	struct settings settings;

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		settings = with(wrong[i].name, wrong[i].value);
		EXPECT_THAT(wrong[i].name, are_standard(&settings) && lines(&settings) == 1 &&
						   strstr(settings.complaints, wrong[i].name));
		if (lines(&settings) != 1 || !are_standard(&settings))
			printf("# %.60s: %s", wrong[i].value, settings.complaints);
	}
}

static void the_switch_means_off_however_it_is_spelt(void)
{
	EXPECT(with("RINGSIDE_ENVIRONMENT", "off").is_environment_off);
	EXPECT(!with("RINGSIDE_ENVIRONMENT", "on").is_environment_off);
	EXPECT_THAT("with a bad value no variables are recorded",
		    with("RINGSIDE_ENVIRONMENT", "no").is_environment_off);
	EXPECT(with("RINGSIDE_DISABLE", "1").is_disabled);
	EXPECT(!with("RINGSIDE_DISABLE", "0").is_disabled);
	EXPECT(with("RINGSIDE_DISABLE", "true").is_disabled);
	EXPECT(with("RINGSIDE_MODE", "off").is_disabled);
}

/* A line is there as a whole or not at all. */
static void too_many_complaints_end_with_a_whole_line(void)
{
	struct settings settings;
	char many[128];

	with(NULL, NULL);
	for (size_t i = 0; i + 2 < sizeof(many); i += 2) {
		many[i] = 'x';
		many[i + 1] = ',';
		many[i + 2] = '\0';
	}
	setenv("RINGSIDE_MODE", "x", 1);
	setenv("RINGSIDE_EVENTS", many, 1);
	settings_read(&settings);
	EXPECT(lines(&settings) > 10);
	EXPECT(settings.complaints[strlen(settings.complaints) - 1] == '\n');
}

/*
 * Replaces libc's: a group file with long lines. The whole line has to fit into the caller's
 * buffer.
 */
EXPORTED int getgrnam_r(const char *name, struct group *entry, char *buffer, size_t size,
			struct group **found)
{
	int (*real)(const char *, struct group *, char *, size_t, struct group **);

	*(void **)&real = dlsym(RTLD_NEXT, "getgrnam_r");
	if (strcmp(name, "thousands") != 0)
		return real(name, entry, buffer, size, found);
	*found = NULL;
	if (size < 200 * 1000)
		return ERANGE;
	entry->gr_gid = 4242;
	*found = entry;
	return 0;
}

static void a_group_with_thousands_of_members_is_found(void)
{
	struct settings settings = with("RINGSIDE_GROUP", "thousands");

	EXPECT_EQUAL(settings.group, 4242);
	EXPECT_EQUAL(lines(&settings), 0);
}

static bool is_setuid;

/* Replaces libc's: for a moment this program has more rights than its user. */
EXPORTED unsigned long getauxval(unsigned long type)
{
	unsigned long (*real)(unsigned long);

	*(void **)&real = dlsym(RTLD_NEXT, "getauxval");
	return type == AT_SECURE && is_setuid ? 1 : real(type);
}

static void a_program_with_more_rights_writes_nowhere_else(void)
{
	static const struct {
		const char *name, *value;
		enum region_mode mode;
		unsigned int lines;
	} cases[] = {
		{ NULL, NULL, REGION_MODE_FLIGHT, 0 },
		{ "RINGSIDE_MODE", "profile", REGION_MODE_PROFILE, 0 },
		{ "RINGSIDE_MODE", "trace", REGION_MODE_FLIGHT, 1 },
		{ "RINGSIDE_MODE", "full", REGION_MODE_FLIGHT, 1 },
		{ "RINGSIDE_SHM", "/tmp", REGION_MODE_FLIGHT, 1 },
		{ "RINGSIDE_GROUP", "0", REGION_MODE_FLIGHT, 1 },
		{ "NCCL_INSPECTOR_ENABLE", "1", REGION_MODE_FLIGHT, 1 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct settings settings;

		is_setuid = true;
		settings = with(cases[i].name, cases[i].value);
		is_setuid = false;
		EXPECT_EQUAL(settings.mode, cases[i].mode);
		EXPECT_EQUAL(lines(&settings), cases[i].lines);
		EXPECT(strcmp(settings.shm, "/dev/shm") == 0 && settings.group == (gid_t)-1 &&
		       !settings.inspector.is_on);
	}
	unsetenv("NCCL_INSPECTOR_ENABLE");
}

static void a_secret_is_not_repeated(void)
{
	struct settings settings = with("RINGSIDE_LABELS", "hf_AbCdEf0123456789");

	EXPECT(strstr(settings.complaints, "RINGSIDE_LABELS=*** is not") != NULL);
	EXPECT(strstr(settings.complaints, "AbCdEf") == NULL);
}

static void no_value_leads_a_trace_elsewhere(void)
{
	struct settings settings = with("RINGSIDE_DIR", "/traces/%h-%r");
	struct identity identity = {
		.host = "../evil/host", .rank = "/../../0", .pid = 7, .start_ticks = 8
	};
	struct trace_place place;
	char path[1000];

	EXPECT_EQUAL(trace_place_choose(&place, &settings, &identity), OK);
	trace_place_path(path, sizeof(path), &place, 0);
	EXPECT(strcmp(path, "/traces/.._evil_host-_.._.._0/r_.._.._0-.._evil_host-7-8.ringside") ==
	       0);
	trace_place_path(path, sizeof(path), &place, 3);
	EXPECT(strcmp(strrchr(path, '/'), "/r_.._.._0-.._evil_host-7-8-3.ringside") == 0);
	memset(identity.host, 'h', sizeof(identity.host) - 1);
	EXPECT_EQUAL(trace_place_choose(&place, &settings, &identity), OK);
	trace_place_path(path, sizeof(path), &place, 0);
	EXPECT_THAT("a file's name has at most 255 bytes", strlen(strrchr(path, '/') + 1) <= 255);
}

static void memory_is_known(void)
{
	char dir[] = "/dev/shm/settings-test.XXXXXX", path[128];
	int file;

	EXPECT(settings_is_memory("/dev/shm") && settings_is_memory("/dev/shm/"));
	EXPECT(!settings_is_memory("/dev/shmem") && !settings_is_memory("/tmp") &&
	       !settings_is_memory("dev/shm") && !settings_is_memory(""));
	if (mkdtemp(dir) == NULL) {
		printf("# /dev/shm is not writable\n");
		return;
	}
	EXPECT_THAT("a directory below /dev/shm", settings_is_memory(dir));
	snprintf(path, sizeof(path), "%s/later/ringside-0", dir);
	EXPECT_THAT("one that does not exist yet", settings_is_memory(path));
	snprintf(path, sizeof(path), "%s/../../tmp", dir);
	EXPECT_THAT("not one that leads elsewhere", !settings_is_memory(path));
	snprintf(path, sizeof(path), "%s/later/../../../tmp", dir);
	EXPECT_THAT("by a name that does not exist yet, either", !settings_is_memory(path));
	snprintf(path, sizeof(path), "%s/link", dir);
	EXPECT_EQUAL(symlink("/tmp", path), 0);
	EXPECT_THAT("nor a link", !settings_is_memory(path));
	snprintf(path, sizeof(path), "%s/link/deeper", dir);
	EXPECT_THAT("nor what is behind it", !settings_is_memory(path));
	snprintf(path, sizeof(path), "%s/link", dir);
	unlink(path);
	file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	EXPECT_THAT("nor a file", file != -1 && !settings_is_memory(path));
	close(file);
	unlink(path);
	rmdir(dir);
}

static void only_what_is_wrong_is_complained_about(void)
{
	static const struct {
		const char *name, *value;
		unsigned int lines;
	} cases[] = {
		{ "RINGSIDE_DISABLE", "0", 0 },	       { "RINGSIDE_DISABLE", "1", 0 },
		{ "RINGSIDE_DISABLE", "2", 1 },	       { "RINGSIDE_ENVIRONMENT", "on", 0 },
		{ "RINGSIDE_ENVIRONMENT", "off", 0 },  { "RINGSIDE_ENVIRONMENT", "no", 1 },
		{ "RINGSIDE_GROUP", "4294967294", 0 }, { "RINGSIDE_GROUP", "4294967295", 1 },
		{ "RINGSIDE_GROUP", "4294967296", 1 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct settings settings = with(cases[i].name, cases[i].value);

		EXPECT_EQUAL(lines(&settings), cases[i].lines);
	}
}

int main(void)
{
	memory_is_known();
	only_what_is_wrong_is_complained_about();
	nothing_set_is_the_standard();
	right_values_are_taken();
	limits_are_taken();
	times_are_chosen();
	events_switch_one_by_one();
	wrong_values_cost_one_line_and_take_the_standard();
	the_switch_means_off_however_it_is_spelt();
	too_many_complaints_end_with_a_whole_line();
	a_group_with_thousands_of_members_is_found();
	a_program_with_more_rights_writes_nowhere_else();
	a_secret_is_not_repeated();
	no_value_leads_a_trace_elsewhere();
	return tap_done();
}
