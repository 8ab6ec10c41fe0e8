/* The command line of the hub. */
#ifndef HUB_OPTIONS_H
#define HUB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_system.h"
#include "agent/agent_options.h"
#include "cmds/cli.h"

/* Shared by its parser and the help of the tool. */
extern const struct cli_page hub_page;

enum { HUB_SOURCES_MAX = 16, HUB_AGENT_PORT = AGENT_PORT };

/* Where addresses of agents come from. */
enum hub_source_kind {
	HUB_SOURCE_LIST = 0, /* a list, or @FILE */
	HUB_SOURCE_FILE_SD = 1,
	HUB_SOURCE_HTTP_SD = 2,
	HUB_SOURCE_SLURM = 3,
	HUB_SOURCE_DNS = 4,
	HUB_SOURCE_KINDS = 5,
};

struct hub_source_wanted {
	enum hub_source_kind kind;
	const char *value;
};

struct hub_options {
	struct serving_options serving;
	struct hub_source_wanted sources[HUB_SOURCES_MAX];
	size_t source_count;
	const char *prometheus; /* NULL: poll the agents */
	uint64_t interval_ns;	/* between two polls of an agent */
	uint64_t refresh_ns;	/* of the sources */
	uint64_t hang_ns;
	bool is_hang_fixed; /* --hang was given: RINGSIDE_HANG_AFTER of jobs does not count */
	uint64_t check_ns;  /* judge a job without trouble this often; 0: never */
	uint64_t timeout_ns;
	const char *auth; /* for agents */
	const char *prometheus_auth;
	const char *ca_file;
	bool is_insecure;
	bool is_any_owner;   /* jobs of one name are one job, whoever runs them */
	const char *grafana; /* NULL none */
	double gpu_hour_price;
};

/* Returns -1 to continue, else the exit code: help or an error was printed. */
int hub_options_parse(struct hub_options *options, int argc, char **argv);

/* argv[0] is "hub". Runs until it is stopped; returns the exit code. */
int hub_main(int argc, char **argv);

#endif
