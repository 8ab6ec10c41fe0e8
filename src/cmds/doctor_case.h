/*
 * One scan of the doctor: all input, and the verdicts.
 *
 *	read (files, regions, agents, Prometheus, logs) -> job -> verdicts -> output
 */
#ifndef DOCTOR_CASE_H
#define DOCTOR_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "cli/cli_ask.h"
#include "cli/cli_input.h"
#include "doctor/doctor.h"
#include "doctor/verdict.h"
#include "fetch/fetch.h"
#include "import/expected.h"
#include "import/nccl_log.h"
#include "output/json.h"
#include "output/sink.h"
#include "output/verdict_show.h"
#include "recording/recording.h"

/* The command line of `ringside doctor`. */

struct doctor_options {
	const char **paths; /* borrowed strings */
	size_t path_count;
	const char **logs;
	size_t log_count;
	const char *ras; /* address of NCCL's RAS, or "local"; NULL: do not query it */
	struct fetch_targets targets;
	bool has_agents;
	const char *slurm;	/* a job of Slurm, whose nodes have the agents; NULL none */
	char slurm_name[24];	/* its name in recordings */
	const char *prometheus; /* NULL none */
	uint64_t window_ns;	/* of Prometheus; 0: default of prom_options */
	uint64_t past_ns;

	uint64_t hang_ns;
	bool is_hang_fixed; /* --hang was given: RINGSIDE_HANG_AFTER of jobs does not count */
	struct report_filter chosen; /* job; verdicts to show; time span for slowness */
	const char *baseline;
	const char *expected;
	double peak_nvlink; /* bytes a second; 0 not given */
	double peak_network;
	double gpu_hour_price;

	uint64_t timeout_ns;
	unsigned int parallel;
	const char *auth;
	const char *ca_file;
	bool is_insecure;

	bool is_json;
	bool has_all;
	bool is_watch;
	bool has_no_stacks;
	bool has_native;   /* native frames, too: stops processes for a moment */
	bool has_any_user; /* also stacks of other users' processes */
	uint64_t interval_ns;
};

/* argv[0]: the command that has them. -1: continue; else the exit code, after help or an error was printed. Always release. */
int doctor_options_parse(struct doctor_options *options, int argc, char **argv);
void doctor_options_release(struct doctor_options *options);

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
	bool has_speed;	      /* slowness was judged by operations */
	uint64_t compared_ns; /* over this time, */
	uint64_t examined_ns; /* of which they cover this much; */
	bool has_iterations;  /* and they show iterations */
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
