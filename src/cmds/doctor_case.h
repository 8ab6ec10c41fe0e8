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

#include "cmds/cli_input.h"
#include "fetch/fetch.h"

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

/* -1: continue; else the exit code, after help or an error was printed. Always release. */
int doctor_options_parse(struct doctor_options *options, int argc, char **argv);
void doctor_options_release(struct doctor_options *options);

#endif
