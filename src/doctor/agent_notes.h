/*
 * What agents say they left out of their snapshots (docs/SNAPSHOT.md, agent.json), and of which agents a bundle has no
 * answer (docs/BUNDLE.md, agents.json). Others wrote it: nothing of it is trusted, and all of it is bounded.
 */
#ifndef AGENT_NOTES_H
#define AGENT_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"
#include "recording/recording.h"

enum { AGENT_NOTES_GAPS_MAX = 1000, AGENT_NOTES_AGENTS_MAX = 16384 };

/* Something that an agent knows of and did not hand out. */
struct agent_gap {
	char host[128];
	char text[400];
	bool is_warning; /* processes or files are missing; else it says less than it could */
};

/* An agent that a bundle was made of. */
struct agent_asked {
	char name[256];
	char problem[300]; /* "": it answered */
};

struct agent_notes {
	struct agent_gap *gaps;
	size_t gap_count;
	size_t gaps_left_out;
	struct agent_asked *agents;
	size_t agent_count;
};

/* All that the notes of a recording say. A note that cannot be read is a gap. ERR_NO_SPACE; release in every case. */
enum status agent_notes_read(struct agent_notes *notes, const struct recording *recording);
void agent_notes_release(struct agent_notes *notes);

#endif
