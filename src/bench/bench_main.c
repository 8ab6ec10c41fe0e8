/* `ringside bench`: options, measuring, output. */
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench_command.h"
#include "bench/bench_job.h"
#include "bench/bench_result.h"
#include "bench/cost_model.h"
#include "cli/cli.h"
#include "common/attributes.h"
#include "common/text.h"

/* What the text of `ringside bench` shows. */
struct bench_view {
	bool has_percentiles;
	bool has_histogram;
	bool is_median;
	bool has_model;
	enum bench_over over;
};

#define SIZES "nccl-tests' -b, -e, -i and -f are one option here: -s 1K..1G*2, or 1M..8M+1M"

static const struct cli_other nccl_tests_options[] = {
	{ 'b', "minbytes", SIZES },
	{ 'e', "maxbytes", SIZES },
	{ 'i', "stepbytes", SIZES },
	{ 0, "stepfactor", SIZES },
	{ 'g', "ngpus", "one rank per GPU is the default; use --ranks N for a different number" },
	{ 0, "nthreads", "each rank is a process here; use --ranks N" },
	{ 'd', "datatype", "use -t, --types for datatypes" },
	{ 0, "op", "use -r, --redops for reductions" },
	{ 0, "iters", "use -n, --calls for the number of calls" },
	{ 'w', "warmup_iters", "use --warmup for warm-up calls" },
	{ 'm', "agg_iters", "use --modes back-to-back for calls without a wait between them" },
	{ 'G', "cudagraph", "use --modes graph and --graph-calls N for CUDA graphs" },
	{ 'z', "blocking", "--modes blocking, the default, waits for each call" },
	{ 'c', "check", "results are checked by default; use --no-check to turn this off" },
	{ 'a', "average", "use --over mean, min or max to combine the ranks' times" },
	{ 'T', "timeout", "use --stuck for the time limit of a hung call" },
	{ 'J', "output_file", "use -o FILE: .json, .parquet, anything else is text" },
	{ .name = NULL },
};

/* One predicted time per cell; NULL with the reason in *why if no model could be fitted. */
static double *model_times(const struct bench_run *run, enum bench_over over, const char **why)
{
	struct cost_fit_options options = { .over = over };
	struct cost_model model;
	struct cost_answer answer;
	double *times = NULL;

	cost_model_init(&model);
	*why = "too few sizes to fit a model: need three of one function and at least two ranks";
	if (cost_fit(&model, NULL, &run, 1, &options) == OK)
		times = calloc(run->cell_count + 1, sizeof(*times));
	for (size_t i = 0; times != NULL && i < run->cell_count; i++)
		if (cost_predict_cell(&model, run, &run->cells[i], &answer))
			times[i] = answer.time_ns;
	return times;
}

struct shown {
	const struct bench_view *view;
	const struct bench_run *run;
};

static enum status write_text(struct sink *sink, const struct bench_view *view,
			      const struct bench_run *run)
{
	struct bench_table_options table = { .is_median = view->is_median,
					     .has_percentiles = view->has_percentiles,
					     .over = view->over };
	struct bench_histogram_options histogram = { .width = cli_width(), .over = view->over };
	double *times = NULL;
	const char *why;
	enum status status;

	if (view->has_model) {
		times = model_times(run, view->over, &why);
		if (times == NULL)
			cli_error("--model: %s", why);
	}
	table.model_ns = times;
	status = bench_table_write(sink, run, &table);
	free(times);
	if (status == OK && view->has_histogram) {
		sink_text(sink, "\n");
		status = bench_histogram_write(sink, run, &histogram);
	}
	return status;
}

static enum status write_shown(const void *context, enum bench_output_kind kind, unsigned int width,
			       struct sink *sink)
{
	const struct shown *shown = context;

	(void)width;
	if (kind == BENCH_OUTPUT_JSON)
		return bench_json_write(sink, shown->run);
	if (kind == BENCH_OUTPUT_PARQUET)
		return bench_parquet_write(sink, shown->run);
	return write_text(sink, shown->view, shown->run);
}

enum { STUCK_SECONDS = 300, USUAL_CALLS = 20 };

struct request {
	struct bench_how how;
	struct bench_plan plan;
	struct bench_outputs files;
	struct bench_view view;
	const char *from;      /* an earlier measurement; NULL: measure now */
	const char *measuring; /* a measuring option that was given; NULL: none */
	char functions[1024];
	double seconds; /* total time; 0: not set */
	char command[BENCH_TEXT_BYTES * 4];
};

/* ---- options ----------------------------------------------------------------------------------- */

static int take_seconds(const struct cli_said *said)
{
	char *end;
	double seconds = strtod(said->value, &end);

	if (end == said->value || *end != '\0' || !(seconds >= 0.001 && seconds <= 86400))
		return cli_usage(said->page, "--%s %s: expected a time from 0.001 to 86400",
				 said->option->name, said->value);
	*(double *)said->target = seconds;
	return 0;
}

static int take_word(const struct cli_said *said, const char *const words[3], unsigned int *which)
{
	for (unsigned int i = 0; i < 3; i++) {
		if (strcmp(said->value, words[i]) == 0) {
			*which = i;
			return 0;
		}
	}
	return cli_usage(said->page, "--%s %s: expected %s, %s or %s", said->option->name,
			 said->value, words[0], words[1], words[2]);
}

/* Options that the plan parses. */
static int take_list(const struct cli_said *said)
{
	struct bench_plan *plan = said->target;
	char problem[512];
	int result;

	switch (said->option->letter) {
	case 's':
		result = plan_sizes(plan, said->value, problem, sizeof(problem));
		break;
	case 't':
		result = plan_datatypes(plan, said->value, problem, sizeof(problem));
		break;
	case 'r':
		result = plan_redops(plan, said->value, problem, sizeof(problem));
		break;
	default:
		result = plan_modes(plan, said->value, problem, sizeof(problem));
	}
	return result == 0 ? 0 : cli_usage(said->page, "%s", problem);
}

/* Joins -f a and the operand b to "a,b" in the request. */
static int take_function(const struct cli_said *said)
{
	struct request *request = said->target;
	size_t length = strlen(request->functions);

	if (!text_format(request->functions + length, sizeof(request->functions) - length, "%s%s",
			 length ? "," : "", said->value))
		return cli_usage(said->page, "too many functions");
	return 0;
}

static int take_align(const struct cli_said *said)
{
	static const char *const aligns[] = { "none", "hub", "nccl" };
	unsigned int which = 0;
	int result = take_word(said, aligns, &which);

	*(enum plan_align *)said->target = (enum plan_align)which;
	return result;
}

static int take_over(const struct cli_said *said)
{
	static const char *const overs[] = { "mean", "min", "max" };
	unsigned int which = 0;
	int result = take_word(said, overs, &which);

	*(enum bench_over *)said->target = (enum bench_over)which;
	return result;
}

/* --in-place and --out-of-place together mean both. */
static int take_place(const struct cli_said *said)
{
	struct bench_plan *plan = said->target;
	unsigned int place = said->option->name[0] == 'i' ? PLAN_IN_PLACE : PLAN_OUT_OF_PLACE;

	plan->places = plan->places == PLAN_BOTH_PLACES ? place : plan->places | place;
	return 0;
}

static const struct cli_option bench_option_rows[] = {
	{ 'f', "functions", "LIST",
	  "operations to measure, same as FUNCTION: allreduce, allgather, reducescatter, "
	  "broadcast, reduce, alltoall, sendrecv, gather, scatter or all (default allreduce)",
	  CLI_CALL_ALL(take_function) },
	{ 's', "sizes", "LIST",
	  "message sizes in bytes: 1K,32K,1M or 1K..1G (doubling), 1K..1G*4, 1M..8M+1M (default "
	  "1K..128M*4)",
	  CLI_CALL(struct request, plan, take_list) },
	{ 't', "types", "LIST",
	  "datatypes: float32, float16, bfloat16, int32 ... or all (default "
	  "float32)",
	  CLI_CALL(struct request, plan, take_list) },
	{ 'r', "redops", "LIST", "reductions: sum, prod, max, min, avg or all (default sum)",
	  CLI_CALL(struct request, plan, take_list) },
	{ 0, "modes", "LIST",
	  "call modes: blocking, back-to-back, graph, loop or all (default "
	  "blocking)",
	  CLI_CALL(struct request, plan, take_list) },
	{ 0, "in-place", NULL, "in place only (default: both)",
	  CLI_CALL(struct request, plan, take_place) },
	{ 0, "out-of-place", NULL, "out of place only",
	  CLI_CALL(struct request, plan, take_place) },
	{ 0, "root", "RANK", "root rank of Broadcast, Reduce, Gather, Scatter (default 0)",
	  CLI_INT(struct request, plan.root, 0, BENCH_RANKS_MAX) },
	{ 'n', "calls", "N", "measured calls per cell (default 20)",
	  CLI_U32(struct request, plan.calls, 1, 10000000) },
	{ 0, "seconds-per-cell", "S", "time per cell; with --calls, stop at whichever comes first",
	  CLI_CALL(struct request, plan.seconds, take_seconds) },
	{ 0, "seconds", "S", "total time, shared among the cells (warm-up not included)",
	  CLI_CALL(struct request, seconds, take_seconds) },
	{ 0, "least-calls", "N", "minimum number of calls when a time limit is set (default 5)",
	  CLI_U32(struct request, plan.least_calls, 1, 1000000) },
	{ 0, "warmup", "N", "warm-up calls before the measured ones (default 5)",
	  CLI_U32(struct request, plan.warmups, 0, 1000000) },
	{ 0, "graph-calls", "N", "calls per CUDA graph (default 10)",
	  CLI_U32(struct request, plan.graph_calls, 1, 10000) },
	{ 0, "align", "HOW",
	  "how to align ranks before each measured call: none, hub (a message over TCP) or nccl "
	  "(an AllReduce of one element) (default hub)",
	  CLI_CALL(struct request, plan.align, take_align) },
	{ 0, "no-check", NULL, "do not check results", CLI_CLEAR(struct request, plan.is_checked) },
	{ 0, "over", "WHICH", "combine the ranks' times of a call: mean, min or max (default mean)",
	  CLI_CALL(struct request, plan.over, take_over), .is_view = true },
	{ 0, "stuck", "SECONDS",
	  "abort the job if a call takes longer than this; 0: never (default 300)",
	  CLI_INT(struct request, plan.patience_s, 0, 86400) },
	BENCH_HOW_OPTIONS(struct request),
	{ 0, "percentiles", NULL, "add columns p50, p90, p99, min and max",
	  CLI_FLAG(struct request, view.has_percentiles), .is_view = true },
	{ 0, "median", NULL, "report the median call instead of the mean",
	  CLI_FLAG(struct request, view.is_median), .is_view = true },
	{ 0, "histogram", NULL, "print a histogram of the calls of each cell",
	  CLI_FLAG(struct request, view.has_histogram), .is_view = true },
	{ 0, "model", NULL,
	  "add columns with the times predicted by a model fitted to these "
	  "results",
	  CLI_FLAG(struct request, view.has_model), .is_view = true },
	{ 0, "from", "FILE", "show an earlier measurement (a .json file) instead of measuring",
	  CLI_TEXT(struct request, from), .is_view = true },
	{ 'o', "output", "FILE",
	  "also write this file: .json and .parquet contain every call, other names get text; can "
	  "be repeated",
	  CLI_CALL(struct request, files, bench_outputs_take_table), .is_view = true },
	BENCH_OPTION_JSON(struct request),
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside bench", "AllReduce on the GPUs of this host" },
	{ "ringside bench --ranks 4 allgather -s 1M,32M",
	  "four ranks, sharing a GPU if necessary" },
	{ "ringside bench all -s 1K..1G*4 --seconds-per-cell 1 --percentiles",
	  "every operation, one second per cell" },
	{ "ringside bench allreduce --modes all -o calls.parquet -o run.json",
	  "every mode; write every call to files" },
	{ "ringside bench --from run.json --histogram", "show an earlier measurement" },
	{ "srun -N2 --ntasks-per-node=8 ringside bench alltoall", "in a Slurm job" },
	{ "mpirun -n 16 -H a:8,b:8 ringside bench --meet a:5000",
	  "if the launcher does not provide the host of rank 0" },
	{ "ringside bench health", "check that this host or job is as fast as it should be" },
	{ NULL, NULL },
};

static const struct cli_page bench_page = {
	.name = "bench",
	.operands = "[FUNCTION...]",
	.about = "Times every NCCL call on every rank with CUDA events and the host clock, and "
		 "checks the results on the GPU. Prints a table like nccl-tests. See "
		 "docs/BENCH.md.\n"
		 "Starts its own ranks, one per GPU, or joins a torchrun, mpirun or srun job; MPI "
		 "is not required. CUDA and NCCL are loaded at run time.\n"
		 "ringside bench health, crossover and profilers are separate commands: see their "
		 "--help.\n"
		 "Exits with 1 if results are wrong, 3 if nothing could be measured.\n",
	.options = bench_option_rows,
	.examples = examples,
	.elsewhere = nccl_tests_options,
	.operand = take_function,
	.work = offsetof(struct request, measuring),
};

/* Subcommands. */
static const char *const commands[] = { "health", "crossover", "profilers" };

static int bench_complete_request(struct request *request)
{
	char problem[512];

	if (bench_recall_check(&bench_page, request->from, request->measuring) != 0)
		return CLI_EXIT_USAGE;
	if (request->functions[0] != '\0' &&
	    plan_functions(&request->plan, request->functions, problem, sizeof(problem)) != 0) {
		const char *near =
			cli_nearest(request->functions, commands, ARRAY_LENGTH(commands));

		return cli_usage(&bench_page, "%s%s%s%s", problem,
				 near != NULL ? "; did you mean 'ringside bench " : "",
				 near != NULL ? near : "", near != NULL ? "'?" : "");
	}
	if (request->seconds > 0 && request->plan.seconds > 0)
		return cli_usage(&bench_page, "use only one of --seconds and --seconds-per-cell");
	if (request->seconds > 0)
		request->plan.seconds = request->seconds / (double)plan_cells(&request->plan);
	if (request->plan.calls == 0 && request->plan.seconds <= 0)
		request->plan.calls = USUAL_CALLS;
	request->view.over = request->plan.over;
	return CLI_GO_ON;
}

/* ---- a rank ------------------------------------------------------------------------------------ */

static void show_progress(void *context, const struct bench_run *run)
{
	cli_progress_at(context, run->cell_count);
}

static int bench_judge(const struct bench_run *run)
{
	const struct bench_cell *first = NULL;
	char words[BENCH_CELL_TEXT];
	size_t cells = 0;

	for (size_t i = 0; i < run->cell_count; i++) {
		const struct bench_cell *cell = &run->cells[i];

		if (cell->wrong == 0 || cell->wrong == BENCH_UNCHECKED)
			continue;
		if (first == NULL)
			first = cell;
		cells++;
	}
	if (run->cell_count == 0)
		return cli_error("nothing was measured; see the notes in the results");
	if (first == NULL)
		return CLI_EXIT_DONE;
	cli_error("wrong results in %zu of %zu cells; first: %" PRIu64 " wrong %s in %s", cells,
		  run->cell_count, first->wrong, text_which(first->wrong, "element", "elements"),
		  bench_cell_words(words, first));
	return CLI_EXIT_TROUBLE;
}

static int write_results(const struct request *request, const struct bench_run *run)
{
	struct shown shown = { &request->view, run };

	return bench_outputs_write(&request->files, write_shown, &shown, bench_judge(run));
}

static int measure(struct request *request, struct bench_team *team)
{
	struct cli_progress progress;
	int code;

	cli_progress_start(&progress, "bench", "cells", 0);
	if (bench_job_connect(team->job, NULL, NULL) != 0 ||
	    bench_job_measure_all(team->job, show_progress, &progress) != 0) {
		cli_progress_end(&progress);
		return bench_team_fail(team);
	}
	bench_job_choices(team->job);
	cli_progress_end(&progress);
	if (bench_team_finish(team) != 0)
		return CLI_EXIT_UNKNOWN;
	code = CLI_EXIT_DONE;
	if (team->place->rank == 0) {
		text_copy(team->run.command, sizeof(team->run.command), request->command);
		code = write_results(request, &team->run);
	}
	bench_team_release(team);
	return code;
}

static int bench_rank_body(const struct bench_place *place, void *context)
{
	struct request *request = context;
	struct bench_team *team;
	int code = CLI_EXIT_UNKNOWN;

	if (request->plan.root >= place->nranks)
		return place->rank != 0 ? CLI_EXIT_USAGE
					: cli_usage(&bench_page, "--root %d: ranks are 0 to %d",
						    (int)request->plan.root, place->nranks - 1);
	if (place->rank == 0 && bench_outputs_check(&request->files) != 0)
		return CLI_EXIT_UNKNOWN;
	team = malloc(sizeof(*team));
	if (team == NULL)
		bench_tell(place, "out of memory");
	else if (bench_team_open(team, place, &request->how, &request->plan) == 0)
		code = measure(request, team);
	free(team);
	return code;
}

/* ---- the command ------------------------------------------------------------------------------- */

static int show_former(struct request *request)
{
	struct bench_run run;
	int code = bench_recall(&run, request->from);

	if (code != 0)
		return code;
	code = bench_outputs_check(&request->files);
	if (code == 0)
		code = write_results(request, &run);
	bench_run_release(&run);
	return code;
}

static int measure_plain(int argc, char **argv)
{
	struct request *request = calloc(1, sizeof(*request));
	int code;

	if (request == NULL)
		return cli_error("out of memory");
	bench_how_init(&request->how);
	plan_init(&request->plan);
	request->plan.patience_s = STUCK_SECONDS;
	request->plan.calls = 0; /* not set */
	bench_outputs_command(request->command, sizeof(request->command), argc - 1, argv + 1);
	code = cli_parse(&bench_page, request, argc, argv);
	if (code == CLI_GO_ON)
		code = bench_complete_request(request);
	if (code == CLI_GO_ON)
		code = request->from != NULL
			       ? show_former(request)
			       : bench_everywhere(&request->how, bench_rank_body, request);
	free(request);
	return code;
}

int main(int argc, char **argv)
{
	/* If SIGCHLD was inherited as ignored, waitpid() could not return a rank's status. */
	signal(SIGCHLD, SIG_DFL);
	if (argc > 1 && strcmp(argv[1], "health") == 0)
		return bench_health(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "crossover") == 0)
		return bench_crossover(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "profilers") == 0)
		return bench_profilers(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "model") == 0)
		return bench_model(argc - 1, argv + 1);
	return measure_plain(argc, argv);
}
