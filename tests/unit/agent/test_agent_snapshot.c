/*
 * The archive of a snapshot, file by file. What processes have recorded and the clocks are played; the file is included
 * for that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "common/clock.h"
#include "recording/recording.h"

static uint64_t play_clock(clockid_t clock);
static enum status play_snapshot(const struct recording_process *process, size_t operations,
				 size_t past, unsigned char **bytes, size_t *length);
static enum status play_add_again(struct recording *recording,
				  const struct recording_process *process);
#define clock_system_ns play_clock
#define recording_snapshot play_snapshot
#define recording_add_again play_add_again
#include "agent/agent_snapshot.c"

#include "tests/support/expected_output.h"
#include "tests/support/expected_verdicts.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

enum { PROCESSES = 4 };
static struct recording_process processes[PROCESSES], *list[PROCESSES];
static struct agent_look look;
static struct {
	uint64_t cpu_ns, now_ns, cpu_per_process_ns, per_process_ns;
	size_t length; /* of a snapshot; 0: its text */
	enum status snapshot, again;
} play;

static uint64_t play_clock(clockid_t clock)
{
	return clock == CLOCK_PROCESS_CPUTIME_ID ? play.cpu_ns
	       : clock == CLOCK_MONOTONIC	 ? play.now_ns
						 : UINT64_C(1700000000123456789);
}

static enum status play_snapshot(const struct recording_process *process, size_t operations,
				 size_t past, unsigned char **bytes, size_t *length)
{
	char text[400];

	play.cpu_ns += play.cpu_per_process_ns;
	play.now_ns += play.per_process_ns;
	if (play.snapshot != OK)
		return play.snapshot;
	text_format(text, sizeof(text), "operations %zu and %zu, pid %d, stack %s, info:\n%.*s",
		    operations, past, (int)process->pid,
		    process->stack ? process->stack : "unknown", (int)process->info_bytes,
		    process->info ? process->info : "");
	*length = play.length > 0 ? play.length : strlen(text);
	*bytes = calloc(1, *length + 1);
	memcpy(*bytes, text, play.length > 0 ? 1 : *length);
	return OK;
}

/* It is read again: now with another pid. */
static enum status play_add_again(struct recording *recording,
				  const struct recording_process *process)
{
	struct recording_process *again;

	if (play.again != OK)
		return play.again;
	again = calloc(1, sizeof(*again));
	again->pid = process->pid + 1000;
	recording->processes = calloc(1, sizeof(*recording->processes));
	recording->processes[0] = again;
	recording->count = 1;
	return OK;
}

static void begin(void)
{
	memset(&play, 0, sizeof(play));
	play.cpu_ns = 5 * SECOND_NS;
	play.now_ns = 7 * SECOND_NS;
	look = (struct agent_look){ .number = 9, .failures = 2 };
	look.watch.recording = (struct recording){ .processes = list, .count = PROCESSES };
	look.watch.unreadable = 3;
	look.watch.left_out = 4;
	for (int i = 0; i < PROCESSES; i++) {
		processes[i] = (struct recording_process){ .job = "llm",
							   .pid = 70,
							   .pid_here = -1,
							   .rank = i < 2 ? 5 : -1,
							   .life = RECORDING_ALIVE };
		list[i] = &processes[i];
	}
	processes[2].pid = 71;
	processes[2].process_state = 'T';
	processes[2].stack = "in a.py";
	processes[3].pid = 72;
	processes[3].life = RECORDING_KILLED;
	text_copy(processes[3].job, sizeof(processes[3].job), "other");
}

/* All files of the archive, with their names and lengths; JSON in lines. */
static void put_archive(struct expected_text *to, const char *heading, struct sink *sink)
{
	const char *at = sink_string(sink), *end = at + sink->used;

	expected_put(to, "=== %s\n", heading);
	while (at + TAR_BLOCK <= end && at[0] != '\0') {
		size_t length = strtoul(at + 124, NULL, 8);

		/* The length of the note depends on the version. */
		expected_put(to, "%s: %zu bytes at %lu\n", at, strstr(at, ".json") ? 0 : length,
			     strtoul(at + 136, NULL, 8));
		if (length < 4000) {
			struct sink part, split;

			sink_init_memory(&part);
			sink_write(&part, at + TAR_BLOCK, length);
			sink_init_memory(&split);
			expected_split(&split, sink_string(&part), sink_string(&part)[0] == '{');
			expected_put(to, "%s\n", sink_string(&split));
			sink_release(&part);
			sink_release(&split);
		}
		at += TAR_BLOCK + (length + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	}
	expected_put(to, "and %d bytes\n", (int)(end - at));
	sink_release(sink);
}

static void write_to(struct expected_text *to, const char *heading, const char *host,
		     const struct agent_snapshot_wanted *wanted)
{
	struct sink sink;

	sink_init_memory(&sink);
	agent_snapshot_write(&sink, &look, host, wanted);
	put_archive(to, heading, &sink);
}

/* The version of Ringside is not part of what is compared. */
static void compare(struct expected_text *text, const char *path)
{
	struct sink sink;

	sink_init_memory(&sink);
	sink_text(&sink, text->text);
	EXPECT_THAT(path, expected_text(&sink, path));
	free(text->text);
	*text = (struct expected_text){ .text = NULL };
}

/* ---- archives --------------------------------------------------------------------------------- */

static void test_archives(void)
{
	static char info[] = "host=n1\nenv.SECRET=1\nrank=5\nenv.B=2";
	struct agent_snapshot_wanted wanted = { .operations = 512, .has_environment = true };
	struct watch_refused refused[2] = { { .path = "/a", .why = "old" },
					    { .path = "/b", .why = "new" } };
	struct expected_text text = { .text = NULL };

	begin();
	processes[0].info = info;
	processes[0].info_bytes = strlen(info);
	look.watch.refused = refused;
	look.watch.refused_count = 2;
	play.again = ERR_SYSTEM;
	write_to(&text, "all processes, as of the last scan", "node 7", &wanted);
	look.watch.refused_count = 0;
	look.status = ERR_SYSTEM;
	wanted.has_environment = false;
	wanted.has_job = true;
	text_copy(wanted.job, sizeof(wanted.job), "llm");
	look.watch.recording.count = 1;
	write_to(&text, "those of a job, without environment", "", &wanted);
	play.again = OK;
	wanted.has_environment = true;
	write_to(&text, "read again", "..", &wanted);
	text_copy(wanted.job, sizeof(wanted.job), "none");
	write_to(&text, "of no job", "a/b", &wanted);
	compare(&text, "tests/unit/agent/expected/agent_snapshots");
}

/* 500 ms of CPU time, or 3 s. */
static void test_time(void)
{
	struct agent_snapshot_wanted wanted = { .operations = 512, .has_environment = true };
	struct expected_text text = { .text = NULL };

	begin();
	play.again = OK;
	play.cpu_per_process_ns = 250 * MS_NS;
	write_to(&text, "two processes take all CPU time", "n", &wanted);
	begin();
	play.per_process_ns = 1000 * MS_NS;
	write_to(&text, "three take too long", "n", &wanted);
	begin();
	play.per_process_ns = 1000 * MS_NS - 1;
	play.cpu_per_process_ns = 125 * MS_NS - 1;
	write_to(&text, "the fourth begins in time", "n", &wanted);
	compare(&text, "tests/unit/agent/expected/agent_snapshot_time");
}

static void test_size(void)
{
	struct agent_snapshot_wanted wanted = { .has_environment = true };
	struct expected_text text = { .text = NULL };

	begin();
	play.length = 16 << 20;
	write_to(&text, "what would exceed the limit is left out", "n", &wanted);
	begin();
	/* With the header, exactly what is left beside the note. */
	play.length = (31 << 20) - TAR_BLOCK;
	write_to(&text, "what fits is not", "n", &wanted);
	begin();
	play.length = 31 << 20;
	write_to(&text, "also without a header", "n", &wanted);
	begin();
	play.snapshot = ERR_NO_SPACE;
	write_to(&text, "no memory", "n", &wanted);
	compare(&text, "tests/unit/agent/expected/agent_snapshot_size");
}

static void test_refused(void)
{
	static struct watch_refused many[102];
	struct agent_snapshot_wanted wanted = { .operations = 0 };
	struct sink sink;
	const char *at;
	int count = 0;

	begin();
	for (int i = 0; i < 102; i++)
		many[i].path = "/refused";
	look.watch.refused = many;
	look.watch.refused_count = 102;
	look.watch.recording.count = 0;
	sink_init_memory(&sink);
	agent_snapshot_write(&sink, &look, "n", &wanted);
	for (at = sink_string(&sink) + TAR_BLOCK; (at = strstr(at, "\"/refused\"")); at++)
		count++;
	EXPECT_EQUAL(count, 100);
	EXPECT(strstr(sink_string(&sink) + TAR_BLOCK, "\"refused_files_count\":102,") != NULL);
	sink_release(&sink);
}

static void test_environment(void)
{
	static const struct {
		const char *info, *shown;
	} cases[] = {
		{ "", "" },
		{ "a=1", "a=1\n" },
		{ "a=1\nb=2\n", "a=1\nb=2\n" },
		{ "env.A=1", "env_hidden=1\n" },
		{ "a=1\nenv.A=1\nb=2", "a=1\nb=2\nenv_hidden=1\n" },
		{ "env=1\nenv\n", "env=1\nenv\n" },
		{ "env.", "env_hidden=1\n" },
		{ "env.A=1\nenv.B=2\nenv_x=3\n", "env_x=3\nenv_hidden=1\n" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char *info = strdup(cases[i].info), *shown;
		struct recording_process process = { .info = info, .info_bytes = strlen(info) };
		size_t length;

		shown = without_environment(&process, &length);
		EXPECT_THAT(cases[i].info, length == strlen(cases[i].shown) &&
						   memcmp(shown, cases[i].shown, length) == 0);
		free(shown);
		free(info);
	}
}

static void test_names(void)
{
	static const char *const cases[][2] = {
		{ "node7", "node7" }, { "a b/c\x7f\x01", "a_b_c__" },
		{ "", "host" },	      { ".x", "host" },
		{ "a.", "a." },	      { "!~", "!~" },
	};
	char name[64];

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		name_host(name, cases[i][0]);
		EXPECT_THAT(cases[i][0], strcmp(name, cases[i][1]) == 0);
	}
}

static void test_facts(void)
{
	struct pack pack = { .look = &look };

	begin();
	EXPECT_THAT("without a job all facts are shown",
		    !is_of_others(&pack, "series process_rss 99 x"));
	pack.wanted.has_job = true;
	text_copy(pack.wanted.job, sizeof(pack.wanted.job), "llm");
	EXPECT(is_of_others(&pack, "series process_rss 99 x") &&
	       is_of_others(&pack, "series process_rss 72 x") &&
	       !is_of_others(&pack, "series process_rss 71 x") &&
	       !is_of_others(&pack, "series gpu_clock 99 x"));
}

int main(void)
{
	test_archives();
	test_time();
	test_size();
	test_refused();
	test_environment();
	test_names();
	test_facts();
	return tap_done();
}
