/*
 * What limits everything else that is said: agents that do not answer or leave something out, ranks of which nothing is recorded,
 * operations that were lost, files that are damaged. None of it is the job's fault, so it never hides what is.
 */
#ifndef BLIND_H
#define BLIND_H

#include <stdbool.h>
#include <stddef.h>

#include "doctor/hang.h"
#include "doctor/scene.h"
#include "doctor/verdict.h"
#include "recording/recording.h"

struct agent_notes;

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
