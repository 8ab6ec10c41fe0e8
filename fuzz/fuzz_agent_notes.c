/* What agents report about their snapshots: both kinds of notes, from any bytes. */
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "fuzz/fuzz_main.h"

static void check(const struct agent_notes *notes)
{
	for (size_t i = 0; i < notes->gap_count; i++)
		if (memchr(notes->gaps[i].text, '\0', sizeof(notes->gaps[i].text)) == NULL ||
		    strchr(notes->gaps[i].text, '\n') || strchr(notes->gaps[i].host, '\033'))
			abort();
	for (size_t i = 0; i < notes->agent_count; i++)
		if (strchr(notes->agents[i].name, '\n') || strchr(notes->agents[i].problem, '\n'))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static const char *const paths[] = { "node/agent.json", "agents.json" };
	struct recording recording;
	struct agent_notes notes;

	recording_init(&recording);
	for (int i = 0; i < 2; i++)
		if (recording_add_note(&recording, paths[i], bytes, length) != OK)
			abort();
	if (agent_notes_read(&notes, &recording) != OK)
		abort();
	check(&notes);
	agent_notes_release(&notes);
	recording_release(&recording);
	return 0;
}
