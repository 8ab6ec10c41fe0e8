#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "tests/tap.h"

static struct agent_notes notes;

static void read_text(const char *path, const char *text)
{
	struct recording recording;

	recording_init(&recording);
	if (recording_add_note(&recording, path, text, strlen(text)) != OK ||
	    agent_notes_read(&notes, &recording) != OK)
		abort();
	recording_release(&recording);
}

static bool has(const char *host, const char *text, bool is_warning)
{
	for (size_t i = 0; i < notes.gap_count; i++)
		if (strcmp(notes.gaps[i].host, host) == 0 && strcmp(notes.gaps[i].text, text) == 0)
			return notes.gaps[i].is_warning == is_warning;
	return false;
}

static void test_nothing(void)
{
	read_text("a/b/agent.json",
		  "{\"host\":\"n1\",\"is_failing\":false,\"processes\":[{\"file\":"
		  "\"x\"}],\"processes_left_out\":0,\"is_time_up\":false,"
		  "\"refused_files\":[],\"refused_files_count\":0,"
		  "\"unreadable_files\":0,\"processes_not_followed\":0}");
	EXPECT(notes.gap_count == 0 && notes.agent_count == 0);
	agent_notes_release(&notes);
}

static void test_all(void)
{
	read_text(
		"a/b/agent.json",
		"{\"version\":{\"deep\":[1,{}]},\"host\":\"n1\",\"is_failing\":true,\"processes\":["
		"{\"file\":\"x\",\"pid\":1},7,[],{\"left_out\":\"too\\nlarge\",\"file\":null},"
		"{\"left_out\":\"other\"}],\"processes_left_out\":2,\"is_time_up\":true,"
		"\"refused_files\":[{\"path\":\"/dev/shm/x\",\"why\":\"newer\"},{\"path\":\"y\"}],"
		"\"refused_files_count\":3,\"unreadable_files\":1,\"processes_not_followed\":1}");
	EXPECT_EQUAL(notes.gap_count, 6);
	EXPECT(has("n1", "2 processes are not in its answer: too?large", true));
	EXPECT(has("n1", "1 process is over its limits and not tracked", true));
	EXPECT(has("n1", "3 files can not be tracked: /dev/shm/x: newer", true));
	EXPECT(has("n1", "no permission to read 1 file", false));
	EXPECT(has("n1", "its last scan failed, so its data may be old", true));
	EXPECT(!notes.gaps[5].is_warning &&
	       strncmp(notes.gaps[5].text, "it ran out of time", 18) == 0);
	agent_notes_release(&notes);
}

static void test_damaged(void)
{
	read_text("127.0.0.1:9749/n1/agent.json", "{\"processes_left_out\":1,\"is_");
	EXPECT(has("127.0.0.1:9749/n1", "1 process is not in its answer", true));
	EXPECT_EQUAL(notes.gap_count, 2);
	agent_notes_release(&notes);
	read_text("n1/agent.json", "[]");
	EXPECT(has("n1", "its list of omissions is not valid", true));
	agent_notes_release(&notes);
	read_text("n1/agent.json", "{\"host\":{},\"processes\":{},\"processes_left_out\":\"many\","
				   "\"is_failing\":[true],\"refused_files\":[[]]}");
	EXPECT_EQUAL(notes.gap_count, 0);
	agent_notes_release(&notes);
}

static void test_agents(void)
{
	read_text("b/agents.json",
		  "{\"agents\":[{\"name\":\"n1\",\"problem\":null},"
		  "{\"name\":\"n2:1\",\"problem\":\"refused\"}],\"is_failing\":true}");
	if (EXPECT(notes.agent_count == 2 && notes.gap_count == 0))
		EXPECT(strcmp(notes.agents[0].name, "n1") == 0 &&
		       notes.agents[0].problem[0] == '\0' &&
		       strcmp(notes.agents[1].name, "n2:1") == 0 &&
		       strcmp(notes.agents[1].problem, "refused") == 0);
	agent_notes_release(&notes);
}

static void test_bounds(void)
{
	struct recording recording;
	bool is_good = true;

	recording_init(&recording);
	for (int i = 0; i < AGENT_NOTES_GAPS_MAX + 5; i++)
		is_good &= recording_add_note(&recording, "n/agent.json", "[]", 2) == OK;
	EXPECT(is_good && agent_notes_read(&notes, &recording) == OK);
	EXPECT(notes.gap_count == AGENT_NOTES_GAPS_MAX && notes.gaps_left_out == 5);
	agent_notes_release(&notes);
	for (int i = 0; i < RECORDING_NOTES_MAX; i++)
		is_good &= recording_add_note(&recording, "n/agent.json", "[]", 2) == OK;
	EXPECT(is_good && recording.note_count == RECORDING_NOTES_MAX &&
	       recording.trouble_count > 0);
	recording_release(&recording);
}

static void test_verdict(void)
{
	struct recording recording = { .count = 0 };
	const struct blind_options options = { .notes = &notes };
	struct verdicts verdicts;

	verdicts_init(&verdicts);
	read_text("n1/agent.json", "{\"is_time_up\":true,\"processes_left_out\":1}");
	blind_find(&verdicts, &recording, NULL, &options);
	if (EXPECT(verdicts.count == 1)) {
		EXPECT(strcmp(verdicts.list[0].rule, "agents") == 0 &&
		       verdicts.list[0].severity == VERDICT_WARNING);
		EXPECT(verdicts.list[0].evidence.count == 2 &&
		       strcmp(verdicts.list[0].evidence.list[0],
			      "n1: 1 process is not in its answer") == 0);
	}
	verdicts_release(&verdicts);
	agent_notes_release(&notes);
	read_text("n1/agent.json", "{\"is_time_up\":true}");
	blind_find(&verdicts, &recording, NULL, &options);
	EXPECT(verdicts.count == 1 && verdicts.list[0].severity == VERDICT_NOTE);
	verdicts_release(&verdicts);
	agent_notes_release(&notes);
}

int main(void)
{
	test_nothing();
	test_all();
	test_damaged();
	test_agents();
	test_bounds();
	test_verdict();
	return tap_done();
}
