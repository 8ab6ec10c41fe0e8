/*
 * Shows verdicts: the problem first, then evidence, confidence, caveats, next steps, and the state of each
 * communicator. See docs/DOCTOR.md.
 */
#ifndef VERDICT_SHOW_H
#define VERDICT_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/status.h"
#include "doctor/doctor.h"
#include "doctor/verdict.h"
#include "output/json.h"
#include "output/sink.h"

/* What was examined. Strings are borrowed. */
struct verdict_look {
	const char *source;	   /* "64 agents", "the regions of this machine", "traces/" */
	const struct scene *scene; /* NULL: only logs were examined */
	const struct job *job;	   /* with scene */
	uint64_t wall_ns;	   /* time of the scan; 0: irrelevant (recordings of the past) */
	uint64_t hang_ns;
	size_t sources; /* number of agents or other sources that were asked, */
	size_t silent;	/* and of those that did not answer */
	size_t log_files;
	uint64_t log_lines;
	bool has_speed;		  /* operations were compared with each other and over time, */
	uint64_t compared_ns;	  /* this long; 0: unknown */
	uint64_t examined_ns;	  /* of which this much was recorded, */
	bool has_iterations;	  /* with iterations, */
	bool has_speed_reference; /* and with a baseline, expected bandwidths or a peak */
};

struct verdict_text_options {
	unsigned int width; /* of the terminal; 0: VERDICT_TEXT_WIDTH for sentences, titles are
			       not wrapped */
	bool has_colour;
	bool has_jobs; /* several jobs: each verdict shows its job */
	bool has_all;  /* show all lines of all verdicts, and all communicators */
};

/* Sorted verdicts and what was examined. Returns ERR_NO_SPACE (out of memory) or the sink's status. */
enum status verdict_text(struct sink *sink, const struct verdicts *verdicts,
			 const struct verdict_look *look,
			 const struct verdict_text_options *options);

/* One verdict, for --watch. `number` 0: no number before the title. */
void verdict_text_one(struct sink *sink, const struct verdict *verdict, size_t number,
		      const struct verdict_text_options *options);

/* Verdicts as JSON: docs/DOCTOR.md lists every key. */

/* One verdict as an object, also used in lists of other documents. */
void verdict_json_one(struct json *json, const struct verdict *verdict);

/* The document without its end: the caller may add members and must end the object. */
void verdict_json_open(struct json *json, const struct verdicts *verdicts,
		       const struct verdict_look *look);

/* The whole document: an object. */
void verdict_json(struct json *json, const struct verdicts *verdicts,
		  const struct verdict_look *look);

/* A page that a verdict or alert refers to: "runbooks/HangNetwork.md", "hang-network". It is part of the program.
 * NULL: there is none of this name. */
const char *runbook_find(const char *name, size_t *length);

#endif
