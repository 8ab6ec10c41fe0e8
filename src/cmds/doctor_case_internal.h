/* Shared by the files of the doctor. */
#ifndef DOCTOR_CASE_INTERNAL_H
#define DOCTOR_CASE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "cmds/cli_input.h"
#include "cmds/cli_host.h"
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

/* What the job is compared with: read once, also for repeated scans. */
struct doctor_yardstick {
	struct baseline baseline;
	struct expected expected;
	bool has_baseline;
	bool has_expected;
	struct cli_host_watch
		*host; /* facts of this host; NULL: jobs of this host are not judged */
};

struct doctor_case {
	const struct doctor_options *options;
	const struct doctor_yardstick *yardstick;
	int stop_fd; /* stop when it becomes readable; -1: none */

	struct cli_input input;	     /* everything that was read */
	struct recording asked_for;  /* the selected job; borrows its processes */
	struct hang_source *sources; /* agents, or targets of Prometheus */
	size_t source_count;
	struct agent_notes notes; /* what agents left out; in a bundle, which were queried */
	char **problems;	  /* owned texts that sources point to; NULL: not owned */
	struct prom *prom;	  /* NULL: no Prometheus */
	struct nccl_log log;
	bool has_log;
	bool has_speed; /* slowness was judged by operations */
	struct job job;
	struct scene scene;
	bool has_job;
	struct verdicts verdicts;
	size_t hidden;	   /* verdicts past verdicts.count that --rank or --comm left out */
	uint64_t wall_ns;  /* time of the scan; 0: past only */
	char from[256];	   /* description of the input */
	const char *asked; /* kind of sources: "agents" */
};

/*
 * Reads and diagnoses. Returns 0; the exit code, after an error was reported; or FETCH_STOPPED if stop_fd became
 * readable. Always release.
 */
int doctor_case_make(struct doctor_case *look, const struct doctor_options *options,
		     const struct doctor_yardstick *yardstick, int stop_fd);
void doctor_case_release(struct doctor_case *look);

/* For output. Points into *look. */
struct verdict_look doctor_case_look(const struct doctor_case *look);

/* A short summary: facts that are the same on many ranks are printed once, with a count. */
void doctor_found_text(struct sink *sink, const struct nccl_log *log);

/* Adds a member "nccl" with every fact to the open object. */
void doctor_found_json(struct json *json, const struct nccl_log *log);

#endif
