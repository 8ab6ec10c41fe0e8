/*
 * What was examined, beside the verdicts: number of ranks, hosts, how recent, and the state of each
 * communicator. For the summary of a healthy job and for the details below a verdict.
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

/* Only live ranks are counted: not those whose process is gone or that have finalized it. */
struct scene_comm {
	uint32_t comm;	   /* index into job.comms */
	uint32_t open;	   /* visible live ranks */
	uint32_t inside;   /* of these: in an operation */
	uint64_t age_ns;   /* of the oldest operation a rank is in; 0 none */
	uint64_t still_ns; /* time since any rank called or finished anything; UINT64_MAX unknown */
	uint64_t most_issued;  /* the last collective called: by the rank that is furthest, */
	uint64_t least_issued; /* and by the one that is least far */
	uint64_t number;       /* of that oldest operation, its match number; 0 unknown */
	char function[32];     /* of that operation; "" no rank is in one */
};

struct scene {
	char job[128]; /* the only one's name; "" none or several */
	size_t jobs;   /* groups with a rank */
	size_t processes;
	size_t ranks; /* visible; a restarted rank counts once */
	size_t hosts;
	size_t communicators; /* live ones; all, if none is live */
	size_t alive;	      /* processes by life */
	size_t ended;
	size_t killed;
	size_t missing;	     /* ranks that the launcher or a communicator counts but that are not
				recorded */
	size_t standing;     /* communicators that a rank is in, without activity for hang_ns */
	uint64_t operations; /* called, as far as counts are known */
	uint64_t age_ns;     /* of the oldest operation a rank is in; 0 none */
	uint64_t last_ns;    /* since the last activity; UINT64_MAX unknown */
	struct scene_comm *comms; /* live ones: those that a rank is in first, the longest first */
	size_t comm_count;
};

/* now_ns: per process, its recorder's clock; NULL: as hang_now_ns() returns. On ERR_NO_SPACE (out of
 * memory) there is nothing to release. */
enum status scene_make(struct scene *scene, const struct job *job, const uint64_t *now_ns,
		       uint64_t hang_ns);
void scene_release(struct scene *scene);

/* Nothing of it is live, and it did not end by itself. */
bool scene_is_dead(const struct scene *scene);

/* The answer of the doctor: the first word of its text, "answer" in JSON, and its exit code. */
enum scene_answer {
	SCENE_NOTHING_WRONG = 0,
	SCENE_TROUBLE = 1, /* a warning or an error, or the job was killed */
	SCENE_STUCK = 2,   /* it hangs, and nothing shows why */
	SCENE_UNKNOWN = 3, /* could not tell: what was not visible may hide a problem */
};

/* scene NULL: only logs were read; also for the next one. */
enum scene_answer scene_answer(const struct scene *scene, const struct verdicts *verdicts);
const char *scene_answer_name(enum scene_answer answer); /* "nothing_wrong", ... */

/* Healthy: nothing is wrong, and everything was judged. */
bool scene_is_healthy(const struct scene *scene, const struct verdicts *verdicts);

/*
 * What agents left out of their snapshots (docs/FORMATS.md, agent.json), and which agents did not answer
 * when a bundle was made (docs/EXPORT.md, agents.json). The input is untrusted, and all of it is bounded.
 */

enum { AGENT_NOTES_GAPS_MAX = 1000, AGENT_NOTES_AGENTS_MAX = 16384 };

/* Something that an agent knows of and did not return. */
struct agent_gap {
	char host[128];
	char text[400];
	bool is_warning; /* processes or files are missing; else they are only incomplete */
};

/* An agent that a bundle was made from. */
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

/* All notes of a recording. A note that cannot be read is a gap. ERR_NO_SPACE; release in every case. */
enum status agent_notes_read(struct agent_notes *notes, const struct recording *recording);
void agent_notes_release(struct agent_notes *notes);

/*
 * What limits all other verdicts: agents that do not answer or leave something out, ranks that are not
 * recorded, lost operations, damaged files. None of it is the job's fault, so it never hides other
 * verdicts.
 */

struct blind_options {
	const struct agent_notes *notes; /* what agents left out; NULL none */
	const struct hang_source *sources;
	size_t source_count;
	const char *asked; /* what sources are: "agents" */
	/* Should this trouble be reported? NULL: all but truncated files and unrelated files of a
	 * directory. */
	bool (*is_trouble)(const struct recording_trouble *trouble, void *context);
	void *context;
	bool is_whole;	  /* the whole job was asked for: missing ranks are a warning */
	uint64_t wall_ns; /* current time: recordings that end just before it go on; 0 unknown */
	uint64_t hang_ns;
};

/* Adds VERDICT_BLIND. scene may be NULL. */
void blind_find(struct verdicts *verdicts, const struct recording *recording,
		const struct scene *scene, const struct blind_options *options);

#endif
