/* `ringside bench`: its options, what it measures, where the results go. */
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
#include "cmds/cli.h"
#include "cmds/cli_output.h"
#include "common/attributes.h"
#include "common/text.h"

/* What `ringside bench` measured, to standard output and to files. Rank 0's alone. */

enum { BENCH_FILES_MAX = 16 };

struct bench_write {
	const char *paths[BENCH_FILES_MAX]; /* by their end: .json, .parquet, otherwise text */
	size_t count;
	bool is_json; /* on standard output, instead of text */
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
	{ 'g', "ngpus", "a rank for each GPU is started anyway; --ranks N for another number" },
	{ 0, "nthreads", "a rank is a process here; --ranks N says how many" },
	{ 'd', "datatype", "datatypes are -t, --types" },
	{ 0, "op", "reductions are -r, --redops" },
	{ 0, "iters", "calls are -n, --calls" },
	{ 'w', "warmup_iters", "warm-up calls are --warmup" },
	{ 'm', "agg_iters", "calls without a wait between them are --modes back-to-back" },
	{ 'G', "cudagraph", "CUDA graphs are --modes graph, with --graph-calls N" },
	{ 'z', "blocking", "waiting for each call is --modes blocking, as it is by itself" },
	{ 'c', "check", "results are checked anyway; --no-check leaves it" },
	{ 'a', "average", "whose time a call has is --over mean, min or max" },
	{ 'T', "timeout", "the limit for a call that hangs is --stuck" },
	{ 'J', "output_file", "files are -o: .json, .parquet, others are text" },
	{ .name = NULL },
};

/* A time for each cell; NULL where nothing could be fitted, which is said in *why. */
static double *model_times(const struct bench_run *run, enum bench_over over, const char **why)
{
	struct cost_fit_options options = { .over = over };
	struct cost_model model;
	struct cost_answer answer;
	double *times = NULL;

	cost_model_init(&model);
	*why = "too few sizes to fit a model: three of one function, at least two ranks";
	if (cost_fit(&model, NULL, &run, 1, &options) == OK)
		times = calloc(run->cell_count + 1, sizeof(*times));
	for (size_t i = 0; times != NULL && i < run->cell_count; i++)
		if (cost_predict_cell(&model, run, &run->cells[i], &answer))
			times[i] = answer.time_ns;
	return times;
}

static enum status write_text(struct sink *sink, const struct bench_write *write,
			      const struct bench_run *run)
{
	struct bench_table_options table = { .is_median = write->is_median,
					     .has_percentiles = write->has_percentiles,
					     .over = write->over };
	struct bench_histogram_options histogram = { .width = cli_width(), .over = write->over };
	double *times = NULL;
	const char *why;
	enum status status;

	if (write->has_model) {
		times = model_times(run, write->over, &why);
		if (times == NULL)
			cli_error("--model: %s", why);
	}
	table.model_ns = times;
	status = bench_table_write(sink, run, &table);
	free(times);
	if (status == OK && write->has_histogram) {
		sink_text(sink, "\n");
		status = bench_histogram_write(sink, run, &histogram);
	}
	return status;
}

static enum status write_kind(struct sink *sink, const struct bench_write *write,
			      const struct bench_run *run, const char *path)
{
	if (path != NULL ? text_ends_with(path, ".json") : write->is_json)
		return bench_json_write(sink, run);
	if (path != NULL && text_ends_with(path, ".parquet"))
		return bench_parquet_write(sink, run);
	return write_text(sink, write, run);
}

/* Could all be written? Before anything is measured. 0, or CLI_EXIT_UNKNOWN after it was told. */
static int bench_write_check(const struct bench_write *write)
{
	for (size_t i = 0; i < write->count; i++)
		if (cli_output_check(write->paths[i]) != 0)
			return CLI_EXIT_UNKNOWN;
	return 0;
}

static int write_file(const struct bench_write *write, const struct bench_run *run,
		      const char *path, int exit_code)
{
	struct cli_output output;
	enum status status;

	if (cli_output_open(&output, path) != 0)
		return CLI_EXIT_UNKNOWN;
	status = write_kind(&output.sink, write, run, path);
	/* What the file system refuses is told by the commit. */
	if (status == OK || status == ERR_SYSTEM)
		return cli_output_commit(&output, exit_code);
	cli_output_discard(&output);
	return cli_error("%s is not written: %s", path, status_text(status));
}

/* Files, then standard output. Gives back exit_code, or CLI_EXIT_UNKNOWN after something was told. */
static int bench_write_all(const struct bench_write *write, const struct bench_run *run,
			   int exit_code)
{
	enum status status;
	struct sink sink;

	for (size_t i = 0; i < write->count; i++)
		exit_code = write_file(write, run, write->paths[i], exit_code);
	sink_init_fd(&sink, STDOUT_FILENO);
	status = write_kind(&sink, write, run, NULL);
	if (status != OK && status != ERR_SYSTEM)
		exit_code = cli_error("results are cut: %s", status_text(status));
	return cli_finish(&sink, exit_code);
}

enum { STUCK_SECONDS = 300, USUAL_CALLS = 20 };

struct request {
	struct bench_how how;
	struct bench_plan plan;
	struct bench_write write;
	const char *from;      /* a former measurement; NULL: measure */
	const char *measuring; /* an option that says what or how to measure; NULL: none was said */
	char functions[1024];
	double seconds; /* for everything; 0: not said */
	char command[BENCH_TEXT_BYTES * 4];
};

/* ---- options ----------------------------------------------------------------------------------- */

static int take_seconds(const struct cli_said *said)
{
	char *end;
	double seconds = strtod(said->value, &end);

	if (end == said->value || *end != '\0' || !(seconds >= 0.001 && seconds <= 86400))
		return cli_usage(said->page, "--%s %s is not a time from 0.001 to 86400",
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
	return cli_usage(said->page, "--%s %s is none of %s, %s, %s", said->option->name,
			 said->value, words[0], words[1], words[2]);
}

/* Options whose text the plan understands. */
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

/* "a,b" from -f a and the operand b: into the request's text. */
static int take_function(const struct cli_said *said)
{
	struct request *request = said->target;
	size_t length = strlen(request->functions);

	if (!text_format(request->functions + length, sizeof(request->functions) - length, "%s%s",
			 length ? "," : "", said->value))
		return cli_usage(said->page, "too many functions");
	return 0;
}

static int take_file(const struct cli_said *said)
{
	struct bench_write *write = said->target;

	if (strcmp(said->value, "-") == 0)
		return cli_usage(said->page,
				 "standard output has the results anyway; --json for JSON");
	if (write->count == BENCH_FILES_MAX)
		return cli_usage(said->page, "more than %d files", BENCH_FILES_MAX);
	write->paths[write->count++] = said->value;
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

/* --in-place, --out-of-place: both said is both meant. */
static int take_place(const struct cli_said *said)
{
	struct bench_plan *plan = said->target;
	unsigned int place = said->option->name[0] == 'i' ? PLAN_IN_PLACE : PLAN_OUT_OF_PLACE;

	plan->places = plan->places == PLAN_BOTH_PLACES ? place : plan->places | place;
	return 0;
}

static const struct cli_option bench_option_rows[] = {
	{ 'f', "functions", "LIST",
	  "what to measure, as FUNCTION does: allreduce, allgather, reducescatter, broadcast, "
	  "reduce, alltoall, sendrecv, gather, scatter; all of them: all (default allreduce)",
	  CLI_CALL_ALL(take_function) },
	{ 's', "sizes", "LIST",
	  "bytes of the message: 1K,32K,1M or 1K..1G (by 2), 1K..1G*4, 1M..8M+1M (default "
	  "1K..128M*4)",
	  CLI_CALL(struct request, plan, take_list) },
	{ 't', "types", "LIST", "float32, float16, bfloat16, int32 ...; all (default float32)",
	  CLI_CALL(struct request, plan, take_list) },
	{ 'r', "redops", "LIST", "sum, prod, max, min, avg; all (default sum)",
	  CLI_CALL(struct request, plan, take_list) },
	{ 0, "modes", "LIST", "blocking, back-to-back, graph, loop; all (default blocking)",
	  CLI_CALL(struct request, plan, take_list) },
	{ 0, "in-place", NULL, "in place only (default: both)",
	  CLI_CALL(struct request, plan, take_place) },
	{ 0, "out-of-place", NULL, "out of place only",
	  CLI_CALL(struct request, plan, take_place) },
	{ 0, "root", "RANK", "of Broadcast, Reduce, Gather, Scatter (default 0)",
	  CLI_INT(struct request, plan.root, 0, BENCH_RANKS_MAX) },
	{ 'n', "calls", "N", "measured calls of each cell (default 20)",
	  CLI_U32(struct request, plan.calls, 1, 10000000) },
	{ 0, "seconds-per-cell", "S",
	  "measure each cell for so long; with --calls: until one of them is reached",
	  CLI_CALL(struct request, plan.seconds, take_seconds) },
	{ 0, "seconds", "S", "time for everything: each cell has its share of it, warm-up apart",
	  CLI_CALL(struct request, seconds, take_seconds) },
	{ 0, "least-calls", "N", "never fewer than these because of a time (default 5)",
	  CLI_U32(struct request, plan.least_calls, 1, 1000000) },
	{ 0, "warmup", "N", "calls before the measured ones (default 5)",
	  CLI_U32(struct request, plan.warmups, 0, 1000000) },
	{ 0, "graph-calls", "N", "calls in one CUDA graph (default 10)",
	  CLI_U32(struct request, plan.graph_calls, 1, 10000) },
	{ 0, "align", "HOW",
	  "what keeps ranks together before each measured call: none, hub (a message over TCP), "
	  "nccl (an AllReduce of one element) (default hub)",
	  CLI_CALL(struct request, plan.align, take_align) },
	{ 0, "no-check", NULL, "do not check results", CLI_CLEAR(struct request, plan.is_checked) },
	{ 0, "over", "WHICH", "whose time a call has: mean, min or max of its ranks (default mean)",
	  CLI_CALL(struct request, plan.over, take_over), .is_view = true },
	{ 0, "stuck", "SECONDS",
	  "a call that is not over after so long ends the job; 0: never (default 300)",
	  CLI_INT(struct request, plan.patience_s, 0, 86400) },
	BENCH_HOW_OPTIONS(struct request),
	{ 0, "percentiles", NULL, "columns p50, p90, p99, min and max",
	  CLI_FLAG(struct request, write.has_percentiles), .is_view = true },
	{ 0, "median", NULL, "times and bandwidths of the median call, not of the mean",
	  CLI_FLAG(struct request, write.is_median), .is_view = true },
	{ 0, "histogram", NULL, "how the calls of each cell spread",
	  CLI_FLAG(struct request, write.has_histogram), .is_view = true },
	{ 0, "model", NULL, "columns with the times of a model that is fitted to these results",
	  CLI_FLAG(struct request, write.has_model), .is_view = true },
	{ 0, "from", "FILE", "show a former measurement again, a .json file, instead of measuring",
	  CLI_TEXT(struct request, from), .is_view = true },
	{ 'o', "output", "FILE",
	  "write this file too: .json and .parquet have every call, others are text; may be given "
	  "several times",
	  CLI_CALL(struct request, write, take_file), .is_view = true },
	{ 'j', "json", NULL, "write JSON, for programs", CLI_FLAG(struct request, write.is_json),
	  .is_view = true },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside bench", "AllReduce on the GPUs of this machine" },
	{ "ringside bench --ranks 4 allgather -s 1M,32M", "four ranks, on one GPU if need be" },
	{ "ringside bench all -s 1K..1G*4 --seconds-per-cell 1 --percentiles",
	  "every function, a second for each cell" },
	{ "ringside bench allreduce --modes all -o calls.parquet -o run.json",
	  "every mode; every call into files" },
	{ "ringside bench --from run.json --histogram", "what was measured then, shown again" },
	{ "srun -N2 --ntasks-per-node=8 ringside bench alltoall", "in a job" },
	{ "mpirun -n 16 -H a:8,b:8 ringside bench --meet a:5000",
	  "where the launcher does not say which machine is rank 0's" },
	{ "ringside bench health", "is this machine or job as fast as it should be?" },
	{ NULL, NULL },
};

static const struct cli_page bench_page = {
	.name = "bench",
	.operands = "[FUNCTION...]",
	.about = "Measures NCCL call by call: every single call of every rank, by CUDA events "
		 "and by the host's clock, and checks results on the GPU. Prints a table in the "
		 "shape of nccl-tests. docs/BENCH.md explains it.\n"
		 "Starts its ranks itself, one for each GPU, or takes part in a job of torchrun, "
		 "mpirun or srun; MPI is not needed. CUDA and NCCL are opened when it runs.\n"
		 "ringside bench health, crossover and profilers are commands of their own: see "
		 "their --help.\n"
		 "Exits with 1 when results are wrong, or nothing could be measured.\n",
	.options = bench_option_rows,
	.examples = examples,
	.elsewhere = nccl_tests_options,
	.operand = take_function,
	.work = offsetof(struct request, measuring),
};

/* Commands behind this one. */
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
		return cli_usage(&bench_page, "--seconds and --seconds-per-cell: one of them");
	if (request->seconds > 0)
		request->plan.seconds = request->seconds / (double)plan_cells(&request->plan);
	if (request->plan.calls == 0 && request->plan.seconds <= 0)
		request->plan.calls = USUAL_CALLS;
	request->write.over = request->plan.over;
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
		return cli_error("nothing was measured: the notes of the results say why");
	if (first == NULL)
		return CLI_EXIT_DONE;
	cli_error("wrong results in %zu of %zu cells; the first, with %" PRIu64 " wrong %s: %s",
		  cells, run->cell_count, first->wrong,
		  text_which(first->wrong, "element", "elements"), bench_cell_words(words, first));
	return CLI_EXIT_TROUBLE;
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
		code = bench_judge(&team->run);
		code = bench_write_all(&request->write, &team->run, code);
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
		return place->rank != 0
			       ? CLI_EXIT_USAGE
			       : cli_usage(&bench_page, "--root %d: ranks are from 0 to %d",
					   (int)request->plan.root, place->nranks - 1);
	if (place->rank == 0 && bench_write_check(&request->write) != 0)
		return CLI_EXIT_UNKNOWN;
	team = malloc(sizeof(*team));
	if (team == NULL)
		bench_tell(place, "no memory");
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
	code = bench_write_check(&request->write);
	if (code == 0)
		code = bench_write_all(&request->write, &run, bench_judge(&run));
	bench_run_release(&run);
	return code;
}

static int measure_plain(int argc, char **argv)
{
	struct request *request = calloc(1, sizeof(*request));
	int code;

	if (request == NULL)
		return cli_error("no memory");
	bench_how_init(&request->how);
	plan_init(&request->plan);
	request->plan.patience_s = STUCK_SECONDS;
	request->plan.calls = 0; /* not said */
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
	/* Where it is inherited as ignored, nobody could wait for a rank. */
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
