/*
 * One look of the doctor: everything that was read, and what is said about it.
 *
 *	read (files, regions, agents, Prometheus, logs) -> job -> verdicts -> shown
 */
#ifndef DOCTOR_CASE_H
#define DOCTOR_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/coverage.h"
#include "doctor/hang.h"
#include "doctor/slow.h"
#include "doctor/verdict.h"
#include "import/expected.h"
#include "import/nccl_log.h"
#include "programs/cli/cli_input.h"
#include "programs/cli/doctor_options.h"
#include "view/verdict_text.h"

/* What is compared with: read once, also for many looks. */
struct doctor_yardstick {
	struct baseline baseline;
	struct expected expected;
	bool has_baseline;
	bool has_expected;
};

struct doctor_case {
	const struct doctor_options *options;
	const struct doctor_yardstick *yardstick;
	int stop_fd; /* when it can be read, end: -1 none */

	struct cli_input input;	     /* everything that was read */
	struct recording asked_for;  /* of it, the job asked for: borrows its processes */
	struct hang_source *sources; /* agents, or what Prometheus scrapes */
	size_t source_count;
	struct agent_notes notes; /* what agents left out; of a bundle, who was asked */
	char **problems;	  /* what sources point to, and owned; NULL where it is not ours */
	struct prom *prom;	  /* NULL: not through Prometheus */
	struct nccl_log log;
	bool has_log;
	struct job job;
	struct scene scene;
	bool has_job;
	struct verdicts verdicts;
	uint64_t wall_ns;  /* of the look; 0: only of the past is told */
	char from[256];	   /* where it was read, in words */
	const char *asked; /* what sources are: "agents" */
};

/* 0, or the exit code after an error was told. */
int doctor_yardstick_read(struct doctor_yardstick *yardstick, const struct doctor_options *options);
void doctor_yardstick_release(struct doctor_yardstick *yardstick);

/* Read and judge. 0; the exit code, after an error was told; CLI_END: stop_fd said so. Release in every case. */
int doctor_case_make(struct doctor_case *look, const struct doctor_options *options,
		     const struct doctor_yardstick *yardstick, int stop_fd);
void doctor_case_release(struct doctor_case *look);

/* For the views. Points into *look. */
struct verdict_look doctor_case_look(const struct doctor_case *look);

/* ---- parts: read into look->input.recording and look->log ------------------------------------ */

/* Each gives back as doctor_case_make() does. */
int doctor_read_agents(struct doctor_case *look);
int doctor_read_prometheus(struct doctor_case *look);
int doctor_read_logs(struct doctor_case *look);

/* Adds verdicts about all that was read, and sorts them. */
void doctor_judge(struct doctor_case *look);

/* Something could not be used, and the rest goes on without it. */
void doctor_note_failure(struct doctor_case *look, const char *what, const char *why,
			 size_t length);

/* The problem of a source, copied. */
void doctor_source_problem(struct doctor_case *look, size_t source, const char *text,
			   size_t length);

#endif
