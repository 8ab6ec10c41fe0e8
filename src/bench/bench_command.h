/*
 * What `ringside bench` and its sub-commands have in common: where ranks come from, and running
 * something on all of them. In a job (torchrun, mpirun, srun) this process is one rank of it; otherwise
 * the ranks are started here.
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
#include "bench/hub.h"
#include "cmds/cli.h"
#include "common/status.h"
#include "output/sink.h"

/* The words of `ringside bench` that are commands of their own, and `ringside model`. */
int bench_health(int argc, char **argv);
int bench_crossover(int argc, char **argv);
int bench_profilers(int argc, char **argv);
int bench_model(int argc, char **argv);

/* A run that was measured before, from what --json wrote then. */

/* "-" is standard input. 0: the caller releases *run. Else CLI_EXIT_UNKNOWN after one line, and *run is
 * empty. */
int bench_recall(struct bench_run *run, const char *path);

/* With --from nothing is measured, and nothing that was said is silently left out. `measuring` is what cli_page.work
 * kept: an option that says what or how to measure. 0, or CLI_EXIT_USAGE after one line. */
int bench_recall_check(const struct cli_page *page, const char *from, const char *measuring);

enum { BENCH_HOW_RANKS_MAX = 1024 };

/* Into the field `how` of the request, a struct bench_how. */
#define BENCH_HOW_OPTIONS(request)                                                                 \
	{ 'R', "ranks", "N",                                                                       \
	  "start N ranks on this machine, sharing GPUs where there are fewer (default: what the "  \
	  "launcher says; without one, a rank for each GPU)",                                      \
	  CLI_INT(request, how.ranks, 1, BENCH_HOW_RANKS_MAX) },                                   \
		{ 0, "meet", "WHERE",                                                              \
		  "where ranks meet: HOST:PORT of rank 0's machine, or a file that all see "       \
		  "(default: found from the launcher)",                                            \
		  CLI_TEXT(request, how.meet) },                                                   \
		{ 0, "nccl", "FILE", "this libnccl.so.2 instead of the one that the loader finds", \
		  CLI_TEXT(request, how.nccl) },                                                   \
		{ 0, "no-mps", NULL, "ranks that share a GPU: do not start MPS; they take turns",  \
		  CLI_CLEAR(request, how.is_mps_wanted) },                                         \
	{                                                                                          \
		0, "patience", "SECONDS", "how long to wait for all ranks to come (default 60)",   \
			CLI_INT(request, how.patience_s, 1, 86400),                                \
			.like = "is not a number of seconds"                                       \
	}

struct bench_how {
	int ranks;	  /* to start here; 0: not said */
	const char *meet; /* NULL: found */
	const char *nccl; /* NULL: found */
	bool is_mps_wanted;
	int patience_s;
	/* For ranks started here; see struct bench_launch. Set by commands, not by options. */
	const struct bench_variable *variables;
	const char *log;
	int limit_s; /* the whole job is ended after so long; 0: never */
};

void bench_how_init(struct bench_how *how);

/*
 * Run `body` on every rank: here, when a launcher made this process one of them and --ranks was not
 * given; otherwise in processes that are forked from this one. Standard output of every rank is
 * standard error until bench_team_finish(). Gives back the exit code of the command: in a job this
 * rank's own, else 0 when all ranks gave 0, 1 otherwise (128 + n after signal n). What failed was told
 * once. Without CUDA, or without NCCL, that is one line and CLI_EXIT_UNKNOWN.
 */
int bench_everywhere(const struct bench_how *how, bench_rank_fn body, void *context);

/* One rank among all: what a body works with. */
struct bench_team {
	const struct bench_place *place; /* borrowed */
	struct bench_plan plan;		 /* the caller's, with how->nccl */
	struct bench_hub *hub;
	struct bench_job *job;
	struct bench_run run; /* filled on rank 0 alone */
};

/* Meet the others, open the GPU. 0, or CLI_EXIT_UNKNOWN after it was told; then there is nothing to
 * release. `how` is read in this call only. */
int bench_team_open(struct bench_team *team, const struct bench_place *place,
		    const struct bench_how *how, const struct bench_plan *plan);
/* Its first half, for those who watch over the second: bench_job_open() of what is in the team then. */
int bench_team_meet(struct bench_team *team, const struct bench_place *place,
		    const struct bench_how *how, const struct bench_plan *plan);

/* A call on the job or the hub failed: told (once for all ranks), all is released. Gives back
 * CLI_EXIT_UNKNOWN. */
int bench_team_fail(struct bench_team *team);

/* Measuring is over, on all ranks: job and hub are closed, rank 0 has its standard output back and writes
 * there as any command does. team->run stays. 0, or as bench_team_fail(). */
int bench_team_finish(struct bench_team *team);

void bench_team_release(struct bench_team *team);

/*
 * Where a sub-command of the benchmark writes: standard output, and files beside it, whose names end in what is
 * in them. Rank 0's alone.
 */

enum { BENCH_OUTPUTS_MOST = 16 };

enum bench_output_kind { BENCH_OUTPUT_TEXT = 0, BENCH_OUTPUT_JSON = 1, BENCH_OUTPUT_HTML = 2 };

struct bench_outputs {
	const char *paths[BENCH_OUTPUTS_MOST];
	enum bench_output_kind kinds[BENCH_OUTPUTS_MOST];
	size_t count;
	bool is_json; /* on standard output, instead of text */
};

/* "ringside bench health --ranks 4": the command as it was given, argv[0] being its last word. */
void bench_outputs_command(char *to, size_t size, int argc, char **argv);

/* Into the field `files` of the request. */
#define BENCH_OPTION_JSON(request)                                                               \
	{                                                                                        \
		'j', "json", NULL, "write JSON, for programs", CLI_FLAG(request, files.is_json), \
			.is_view = true                                                          \
	}

/* The option's row; `take` is bench_outputs_take, or bench_outputs_take_page where a page can be had, too. */
#define BENCH_OUTPUTS_OPTION(request, ends, take)                        \
	{                                                                \
		'o', "output", "FILE",                                   \
			"write this file too: " ends                     \
			", others are text; may be given several times", \
			CLI_CALL(request, files, take), .is_view = true  \
	}

/* Into a struct bench_outputs. */
int bench_outputs_take(const struct cli_said *said);
int bench_outputs_take_page(const struct cli_said *said);
/* A page, whatever its name ends in. */
int bench_outputs_take_html(const struct cli_said *said);

/* Could all be written? Before anything is measured. 0, or CLI_EXIT_UNKNOWN after it was told. */
int bench_outputs_check(const struct bench_outputs *files);

/* After bench_outputs_check() failed on rank 0: the others end, too, without a word. Gives back CLI_EXIT_UNKNOWN. */
int bench_team_quit(struct bench_team *team);

/* `width` is that of the terminal, 0 for files. */
typedef enum status (*bench_outputs_fn)(const void *context, enum bench_output_kind kind,
					unsigned int width, struct sink *sink);

/* Files, then standard output. Gives back exit_code, or CLI_EXIT_UNKNOWN after something was told. */
int bench_outputs_write(const struct bench_outputs *files, bench_outputs_fn write,
			const void *context, int exit_code);

#endif
