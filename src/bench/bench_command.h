/*
 * Shared by `ringside bench` and its subcommands: where ranks come from, and running a function on all of them. In
 * a job (torchrun, mpirun, srun) this process is one rank; otherwise the ranks are started here.
 *
 *	static int body(const struct bench_place *place, void *context)
 *	{
 *		struct bench_team team;
 *
 *		if (bench_team_open(&team, place, &request->how, &request->plan) != 0)
 *			return CLI_EXIT_UNKNOWN;
 *		if (bench_job_connect(team.job, NULL, NULL) != 0 || ...)
 *			return bench_team_fail(&team);
 *		if (bench_team_finish(&team) != 0)
 *			return CLI_EXIT_UNKNOWN;
 *		if (place->rank == 0)
 *			code = ... write team.run to stdout;
 *		bench_team_release(&team);
 *		return code;
 *	}
 *
 *	return bench_everywhere(&request.how, body, &request);
 */
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/bench_launch.h"
#include "bench/bench_plan.h"
#include "bench/bench_result.h"
#include "cli/cli.h"
#include "common/status.h"
#include "output/sink.h"

/* The subcommands of `ringside bench`, and `ringside model`. */
int bench_health(int argc, char **argv);
int bench_crossover(int argc, char **argv);
int bench_profilers(int argc, char **argv);
int bench_model(int argc, char **argv);

/* Loading an earlier run from its JSON file. */

/*
 * "-" is standard input. 0: the caller releases *run. Otherwise CLI_EXIT_UNKNOWN after one line, and *run is empty.
 */
int bench_recall(struct bench_run *run, const char *path);

/*
 * --from measures nothing, so options that say what or how to measure are rejected. `measuring` is the one that
 * cli_page.work kept. 0, or CLI_EXIT_USAGE after one line.
 */
int bench_recall_check(const struct cli_page *page, const char *from, const char *measuring);

enum { BENCH_HOW_RANKS_MAX = 1024 };

/* For the field `how` of the request, a struct bench_how. */
#define BENCH_HOW_OPTIONS(request)                                                               \
	{ 'R', "ranks", "N",                                                                     \
	  "start N ranks on this host, sharing GPUs if there are fewer (default: as the "        \
	  "launcher says, otherwise one per GPU)",                                               \
	  CLI_INT(request, how.ranks, 1, BENCH_HOW_RANKS_MAX) },                                 \
		{ 0, "meet", "WHERE",                                                            \
		  "rendezvous: HOST:PORT on rank 0's host, or a file that all ranks can access " \
		  "(default: from the launcher)",                                                \
		  CLI_TEXT(request, how.meet) },                                                 \
		{ 0, "nccl", "FILE", "load this libnccl.so.2 instead of the default one",        \
		  CLI_TEXT(request, how.nccl) },                                                 \
		{ 0, "no-mps", NULL, "do not start MPS for ranks that share a GPU",              \
		  CLI_CLEAR(request, how.is_mps_wanted) },                                       \
	{                                                                                        \
		0, "patience", "SECONDS", "how long to wait for all ranks to join (default 60)", \
			CLI_INT(request, how.patience_s, 1, 86400),                              \
			.like = "is not a number of seconds"                                     \
	}

struct bench_how {
	int ranks;	  /* to start here; 0: not set */
	const char *meet; /* NULL: from the launcher */
	const char *nccl; /* NULL: the loader's */
	bool is_mps_wanted;
	int patience_s;
	/* Environment for ranks started here; see struct bench_launch. Set by commands, not by options. */
	const struct bench_variable *variables;
	const char *log;
	int limit_s; /* kill the whole job after this time; 0: never */
};

void bench_how_init(struct bench_how *how);

/*
 * Runs `body` on every rank: in this process if a launcher started it as a rank and --ranks was not given,
 * otherwise in processes forked from this one. Standard output of every rank goes to standard error until
 * bench_team_finish(). Returns the exit code of the command: under a launcher this rank's own, otherwise 0 if all
 * ranks returned 0, else 1 (128 + n after signal n). Failures have been reported once. A missing CUDA or NCCL
 * library is one line and CLI_EXIT_UNKNOWN.
 */
int bench_everywhere(const struct bench_how *how, bench_rank_fn body, void *context);

/* One rank's state, for a body. */
struct bench_team {
	const struct bench_place *place; /* borrowed */
	struct bench_plan plan;		 /* the caller's, with how->nccl */
	struct bench_hub *hub;
	struct bench_job *job;
	struct bench_run run; /* filled on rank 0 only */
};

/*
 * Joins the other ranks and opens the GPU. 0, or CLI_EXIT_UNKNOWN after a message, with nothing to release. `how`
 * is only used during the call.
 */
int bench_team_open(struct bench_team *team, const struct bench_place *place,
		    const struct bench_how *how, const struct bench_plan *plan);
/*
 * The first half of bench_team_open(), for callers that watch over the second half: bench_job_open() on the team.
 */
int bench_team_meet(struct bench_team *team, const struct bench_place *place,
		    const struct bench_how *how, const struct bench_plan *plan);

/*
 * After a call on the job or the hub failed: reports it (once for all ranks) and releases everything. Returns
 * CLI_EXIT_UNKNOWN.
 */
int bench_team_fail(struct bench_team *team);

/*
 * Ends measuring on all ranks: closes job and hub and restores rank 0's standard output. team->run remains. 0, or
 * as bench_team_fail().
 */
int bench_team_finish(struct bench_team *team);

void bench_team_release(struct bench_team *team);

/* Where a subcommand writes: standard output and files, whose extensions select the format. Rank 0 only. */

enum { BENCH_OUTPUTS_MOST = 16 };

enum bench_output_kind {
	BENCH_OUTPUT_TEXT = 0,
	BENCH_OUTPUT_JSON = 1,
	BENCH_OUTPUT_HTML = 2,
	BENCH_OUTPUT_PARQUET = 3,
};

struct bench_outputs {
	const char *paths[BENCH_OUTPUTS_MOST];
	enum bench_output_kind kinds[BENCH_OUTPUTS_MOST];
	size_t count;
	bool is_json; /* JSON instead of text on standard output */
};

/* "ringside bench health --ranks 4": the command line as given; argv[0] is its last word. */
void bench_outputs_command(char *to, size_t size, int argc, char **argv);

/* For the field `files` of the request. */
#define BENCH_OPTION_JSON(request)                                                                 \
	{                                                                                          \
		'j', "json", NULL, "write JSON", CLI_FLAG(request, files.is_json), .is_view = true \
	}

/*
 * The row of the -o option; `take` is bench_outputs_take, or bench_outputs_take_page if HTML pages are supported.
 */
#define BENCH_OUTPUTS_OPTION(request, ends, take)                                                \
	{                                                                                        \
		'o', "output", "FILE",                                                           \
			"also write this file: " ends "; other names get text; can be repeated", \
			CLI_CALL(request, files, take), .is_view = true                          \
	}

/* For a struct bench_outputs. */
int bench_outputs_take(const struct cli_said *said);
int bench_outputs_take_page(const struct cli_said *said);
/* Also accepts .parquet. */
int bench_outputs_take_table(const struct cli_said *said);
/* A page, whatever the extension. */
int bench_outputs_take_html(const struct cli_said *said);

/* Checks before measuring that every output can be written. 0, or CLI_EXIT_UNKNOWN after a message. */
int bench_outputs_check(const struct bench_outputs *files);

/*
 * After bench_outputs_check() failed on rank 0: ends the other ranks without a message. Returns CLI_EXIT_UNKNOWN.
 */
int bench_team_quit(struct bench_team *team);

/* `width` is the terminal's; 0 for files. */
typedef enum status (*bench_outputs_fn)(const void *context, enum bench_output_kind kind,
					unsigned int width, struct sink *sink);

/* Writes the files, then standard output. Returns exit_code, or CLI_EXIT_UNKNOWN after a message. */
int bench_outputs_write(const struct bench_outputs *files, bench_outputs_fn write,
			const void *context, int exit_code);

#endif
