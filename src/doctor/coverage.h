/*
 * What was looked at, beside the verdicts: how many ranks, where, how current, and where each communicator
 * stands. For the sentence that a healthy job gets, and for the details below a verdict.
 */
#ifndef COVERAGE_H
#define COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/status.h"
#include "doctor/hang.h"
#include "doctor/verdict.h"
#include "recording/recording.h"

/* Only what goes on is counted: a member whose process is gone or that has finalized it is in none of these. */
struct scene_comm {
	uint32_t comm;	 /* index into job.comms */
	uint32_t open;	 /* members seen that go on */
	uint32_t inside; /* of these: in an operation */
	uint64_t age_ns; /* of the oldest operation that a member is in; 0 nobody is */
	uint64_t
		still_ns; /* for so long no member issued or finished anything; UINT64_MAX unknown */
	uint64_t most_issued;  /* the last collective issued: by the member that is furthest, */
	uint64_t least_issued; /* and by the one that is least far */
	uint64_t number;       /* of that oldest operation, as ranks are joined; 0 unknown */
	char function[32];     /* of that; "" nobody is in one */
};

struct scene {
	char job[128]; /* the only one's name; "" none or several */
	size_t jobs;   /* groups with a rank */
	size_t processes;
	size_t ranks; /* seen; a rank that was started again is one */
	size_t hosts;
	size_t communicators; /* that go on; all, where nothing goes on */
	size_t alive;	      /* processes by life */
	size_t ended;
	size_t killed;
	size_t missing;	 /* ranks that the launcher or a communicator counts, and nobody recorded */
	size_t standing; /* communicators that somebody is in, without a sign for hang_ns */
	uint64_t operations;	  /* issued, as far as counts are known */
	uint64_t age_ns;	  /* of the oldest operation that somebody is in; 0 nobody is */
	uint64_t last_ns;	  /* since the last sign of an operation; UINT64_MAX unknown */
	struct scene_comm *comms; /* that go on: those somebody is in first, the longest first */
	size_t comm_count;
};

/* now_ns: per process, its recorder's clock; NULL: as hang_now_ns() says. ERR_NO_SPACE (memory): nothing to
 * release. */
enum status scene_make(struct scene *scene, const struct job *job, const uint64_t *now_ns,
		       uint64_t hang_ns);
void scene_release(struct scene *scene);

/* Nothing of it goes on, and it did not end by itself. */
bool scene_is_dead(const struct scene *scene);

/* Is something wrong: told as a warning at least, or killed? The exit code of the doctor. scene NULL: only logs were
 * read; so for the next one. */
bool scene_has_trouble(const struct scene *scene, const struct verdicts *verdicts);

/* The answer in one word: everything was judged, nothing is told that is worse than a note, and it was not killed. */
bool scene_is_healthy(const struct scene *scene, const struct verdicts *verdicts);

/*
 * What agents say they left out of their snapshots (docs/FORMATS.md, agent.json), and of which agents a bundle has no
 * answer (docs/EXPORT.md, agents.json). Others wrote it: nothing of it is trusted, and all of it is bounded.
 */

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

/*
 * What limits everything else that is said: agents that do not answer or leave something out, ranks of which nothing is recorded,
 * operations that were lost, files that are damaged. None of it is the job's fault, so it never hides what is.
 */

struct blind_options {
	const struct agent_notes *notes; /* what agents left out; NULL none */
	const struct hang_source *sources;
	size_t source_count;
	const char *asked; /* what sources are: "agents" */
	/* Is this trouble worth a word? NULL: all but cut files and other files of a directory. */
	bool (*is_trouble)(const struct recording_trouble *trouble, void *context);
	void *context;
	bool is_whole; /* all of the job was asked for: missing ranks are a warning */
};

/* Adds VERDICT_BLIND. scene may be NULL. */
void blind_find(struct verdicts *verdicts, const struct recording *recording,
		const struct scene *scene, const struct blind_options *options);

#endif
