/*
 * Verdicts for people: what is wrong first, then what was seen, how sure that is, what to do, and where each
 * communicator stands. docs/DOCTOR.md explains it.
 */
#ifndef VERDICT_SHOW_H
#define VERDICT_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/status.h"
#include "doctor/coverage.h"
#include "doctor/verdict.h"
#include "output/json.h"
#include "output/sink.h"

/* What was looked at. Texts are borrowed. */
struct verdict_look {
	const char *source;	   /* "64 agents", "the regions of this machine", "traces/" */
	const struct scene *scene; /* NULL: no ranks were looked at, only logs */
	const struct job *job;	   /* with scene */
	uint64_t wall_ns;	   /* when; 0: does not matter (recordings of the past) */
	uint64_t hang_ns;
	size_t sources; /* agents or such that were asked, */
	size_t silent;	/* and that did not answer */
	size_t log_files;
	uint64_t log_lines;
};

struct verdict_text_options {
	unsigned int width; /* of the terminal; 0: VERDICT_TEXT_WIDTH for sentences, titles whole */
	bool has_colour;
	bool has_jobs;	       /* there are several: say which one each verdict is about */
	bool has_all;	       /* every line of every verdict, every communicator */
	const char *documents; /* where pages are: before "runbooks/x.md"; NULL: "docs/" */
};

/* Sorted verdicts and what was looked at. ERR_NO_SPACE (memory), or the sink's status. */
enum status verdict_text(struct sink *sink, const struct verdicts *verdicts,
			 const struct verdict_look *look,
			 const struct verdict_text_options *options);

/* One verdict: for who follows a job. `number` 0: none before its title. */
void verdict_text_one(struct sink *sink, const struct verdict *verdict, size_t number,
		      const struct verdict_text_options *options);

/* A copy for a terminal: '?' stands for control bytes, for signs that turn the direction of writing, and for bytes
 * that are not UTF-8. Cut where it does not fit. */
void verdict_text_clean(char *to, size_t size, const char *from);

/* Verdicts for programs: docs/DOCTOR.md has every key. */

/* One verdict as an object: for lists of other documents, too. */
void verdict_json_one(struct json *json, const struct verdict *verdict);

/* The document without its end: who has more to say adds members, and ends the object. */
void verdict_json_open(struct json *json, const struct verdicts *verdicts,
		       const struct verdict_look *look);

/* The whole document: an object. */
void verdict_json(struct json *json, const struct verdicts *verdicts,
		  const struct verdict_look *look);

#endif
