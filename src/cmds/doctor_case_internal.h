/* Shared by the files of the doctor. */
#ifndef DOCTOR_CASE_INTERNAL_H
#define DOCTOR_CASE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "cmds/cli_input.h"
#include "cmds/doctor_case.h"
#include "doctor/coverage.h"
#include "doctor/hang.h"
#include "doctor/slow.h"
#include "doctor/verdict.h"
#include "import/expected.h"
#include "import/nccl_log.h"
#include "output/json.h"
#include "output/sink.h"
#include "output/verdict_show.h"
#include "recording/recording.h"

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
	size_t hidden;	   /* verdicts behind verdicts.count that --rank or --comm left out */
	uint64_t wall_ns;  /* of the look; 0: only of the past is reported */
	char from[256];	   /* where it was read, in words */
	const char *asked; /* what sources are: "agents" */
};

/* Read and judge. 0; the exit code, after an error was reported; FETCH_STOPPED: stop_fd said so. Release in every case. */
int doctor_case_make(struct doctor_case *look, const struct doctor_options *options,
		     const struct doctor_yardstick *yardstick, int stop_fd);
void doctor_case_release(struct doctor_case *look);

/* For the views. Points into *look. */
struct verdict_look doctor_case_look(const struct doctor_case *look);

/* Some lines: what is the same on many ranks is reported once, with how many. */
void doctor_found_text(struct sink *sink, const struct nccl_log *log);

/* A member "nccl" of the open object: every fact. */
void doctor_found_json(struct json *json, const struct nccl_log *log);

#endif
