/* The text about the process, whole: each line, and what happens at the end of the room for it. */
#include "plugin/process_info.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "format/region_layout.h"
#include "tests/tap.h"

static struct region_header header;
static char info[REGION_INFO_BYTES + 64];
static struct process_info process;

/* A region of its own for the text. */
static void begin(void)
{
	memset(info, '#', sizeof(info));
	recorder.region.header = &header;
	recorder.region.info = info;
	recorder.region.kind = REGION_KIND_MEMFD;
	text_copy(recorder.region.path, sizeof(recorder.region.path), "/shm/1");
	text_copy(recorder.region.reason, sizeof(recorder.region.reason), "why");
	header.first_anchor.wall_ns = 123;
	process = (struct process_info){ .interface = 6, .trace = "/t.ringside" };
	process.identity = (struct identity){ .host = "a\nb\rc d",
					      .boot_id = "boot",
					      .exe = "/exe",
					      .job = "j",
					      .rank = "3",
					      .local_rank = "1",
					      .world_size = "8",
					      .pid = 4711,
					      .pid_namespace = 17,
					      .start_ticks = 99 };
	process.settings.mode = REGION_MODE_TRACE;
	process.settings.buffer = 1000;
	process.settings.quota = 2000;
	process.settings.heartbeat_ns = 3000;
	process.choice.mask = 255;
	process.choice.kernel = KERNEL_EVENTS_OFF;
	text_copy(process.choice.kernel_reason, sizeof(process.choice.kernel_reason), "because");
}

static bool text_is(const char *wanted)
{
	if (header.info_bytes == strlen(wanted) && memcmp(info, wanted, header.info_bytes) == 0 &&
	    info[header.info_bytes] == '#')
		return true;
	printf("# wanted:\n%s# got:\n%.*s", wanted, (int)header.info_bytes, info);
	return false;
}

/* With these lines at their places. */
static const char *text_with(const char *pod, const char *inspector, const char *end)
{
	static char text[4096];

	snprintf(text, sizeof(text),
		 "host=a b c d\nboot_id=boot\npid=4711\npid_namespace=17\nstart_ticks=99\nuid=%u\n"
		 "exe=/exe\njob=j\nrank=3\nlocal_rank=1\nworld_size=8\n%sversion=%s\nmode=trace\n"
		 "interface=6\nregion=/shm/1\nregion_kind=memfd\nregion_reason=why\n"
		 "trace=/t.ringside\n%sbuffer=1000\nquota=2000\nheartbeat_ns=3000\n"
		 "kernel_events=%s\nkernel_events_reason=because\ntimes=auto\ntimes_reason=\n"
		 "events=255\n"
		 "started_wall_ns=123\n%s",
		 (unsigned int)geteuid(), pod, RINGSIDE_VERSION, inspector,
		 kernel_events_name(KERNEL_EVENTS_OFF), end);
	return text;
}

static void add_environment(const char *lines, unsigned int left_out)
{
	text_copy(process.environment.text, sizeof(process.environment.text), lines);
	process.environment.bytes = strlen(lines);
	process.environment.left_out = left_out;
}

static void the_whole_text(void)
{
	begin();
	process_info_write(&process);
	EXPECT_THAT("only what there is", text_is(text_with("", "", "")));
	process.settings.hang_after_s = 1;
	text_copy(process.identity.pod_namespace, 64, "team");
	process.settings.inspector.is_on = true;
	text_copy(process.settings.inspector.dir, 512, "/insp");
	text_copy(process.settings.labels, 512, "a=1,b=,none,c=d=e,hf=hf_AbCdEf0123456789");
	text_copy(process.messages, sizeof(process.messages), "one\ntwo two\nhalf");
	add_environment("env.A=1\nenv.B=2\nhalf", 3);
	process_info_write(&process);
	EXPECT(text_is(text_with("pod_namespace=team\n", "inspector=/insp\n",
				 "hang_after_s=1\nlabel.a=1\nlabel.b=\nlabel.c=d=e\nlabel.hf=***\n"
				 "message.1=one\nmessage.2=two two\nenv.A=1\nenv.B=2\n"
				 "env_left_out=3\n")));
	process_info_add_message("three\nand no more");
	EXPECT_THAT("a message is added as one line",
		    memcmp(info + header.info_bytes - 32, "\nenv_left_out=3\nmessage.3=three\n",
			   32) == 0);
	EXPECT(info[header.info_bytes] == '#');
}

static void kinds_of_regions(void)
{
	static const struct {
		enum region_kind kind;
		const char *name;
	} cases[] = {
		{ REGION_KIND_SHM, "shm" },
		{ REGION_KIND_SHM_SMALL, "shm-small" },
		{ REGION_KIND_PRIVATE, "private" },
	};
	char line[64];

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin();
		recorder.region.kind = cases[i].kind;
		process_info_write(&process);
		snprintf(line, sizeof(line), "\nregion_kind=%s\n", cases[i].name);
		EXPECT_THAT(cases[i].name,
			    memmem(info, header.info_bytes, line, strlen(line)) != NULL);
	}
}

/* Fills the text up to so many bytes before its end, with messages of known length. */
static void leave_room(size_t room)
{
	static char line[900];

	begin();
	process_info_write(&process);
	memset(line, 'm', sizeof(line) - 1);
	for (;;) {
		size_t left = REGION_INFO_BYTES - header.info_bytes - room;
		size_t length = left > 1000 ? 800 : left;

		if (left < 40)
			break;
		if (left > 500 && left <= 1000)
			length = left - 400;
		/* "message.N=" has 10 or 11 bytes. */
		line[length - 12] = '\0';
		process_info_add_message(line);
		line[length - 12] = 'm';
	}
	while (header.info_bytes < REGION_INFO_BYTES - room)
		info[header.info_bytes++] = 'x';
}

static void the_end_of_the_room(void)
{
	static const char key[] = "message.";
	size_t used;

	/* "message.NN=12345\n" */
	leave_room(0);
	used = header.info_bytes;
	EXPECT_EQUAL(used, REGION_INFO_BYTES);
	process_info_add_message("12345");
	EXPECT_THAT("a line without room is left out", header.info_bytes == used);
	for (size_t room = 10; room < 30; room++) {
		size_t length;

		leave_room(room);
		process_info_add_message("12345");
		length = header.info_bytes - (REGION_INFO_BYTES - room);
		EXPECT_THAT("a line is there as a whole or not at all",
			    (length == 0 && room < 17) ||
				    (length == 17 && room >= 17 &&
				     memcmp(info + header.info_bytes - 17, key, 8) == 0));
		EXPECT(info[REGION_INFO_BYTES] == '#');
	}
}

/* The room that is left for "env_left_out=" is just enough. */
static void the_environment_at_the_end(void)
{
	enum { LAST = sizeof("env_left_out=4294967295") };
	static const char last[] = "\nenv_left_out=1\n";
	size_t before, room;

	begin();
	for (size_t i = 0; i < 6000; i++) /* messages that fill most of it */
		process.messages[i] = i % 100 == 99 ? '\n' : 'm';
	process_info_write(&process);
	before = header.info_bytes;
	room = REGION_INFO_BYTES - before;
	if (!EXPECT(room > 200))
		return;
	for (size_t i = 0; i < 3; i++) {
		/* Lines of 100 bytes, the last one as long as it may be, or longer. */
		size_t used = 0;

		memset(process.environment.text, 'e', sizeof(process.environment.text));
		while (room - used > 2 * 100 + LAST) {
			process.environment.text[used + 99] = '\n';
			used += 100;
		}
		used = room - LAST + i - 1;
		process.environment.text[used - 1] = '\n';
		process.environment.bytes = used;
		process.environment.left_out = 0;
		process_info_write(&process);
		if (i < 2)
			EXPECT_THAT("all lines fit", header.info_bytes == before + used);
		else
			EXPECT_THAT("the last one is left out and counted",
				    header.info_bytes < before + used &&
					    memcmp(info + header.info_bytes - 16, last, 16) == 0);
		EXPECT(info[REGION_INFO_BYTES] == '#');
	}
}

int main(void)
{
	the_whole_text();
	kinds_of_regions();
	the_end_of_the_room();
	the_environment_at_the_end();
	recorder.region.header = NULL;
	return tap_done();
}
