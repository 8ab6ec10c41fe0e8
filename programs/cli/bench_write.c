#include "programs/cli/bench_write.h"

#include <stdlib.h>
#include <unistd.h>

#include "bench/cost_fit.h"
#include "bench/cost_model.h"
#include "cmds/cli.h"
#include "cmds/cli_output.h"
#include "common/text.h"
#include "view/bench_histogram.h"
#include "view/bench_json.h"
#include "view/bench_parquet.h"
#include "view/bench_table.h"

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

static enum status write_one(struct sink *sink, const struct bench_write *write,
			     const struct bench_run *run, const char *path)
{
	if (path != NULL ? text_ends_with(path, ".json") : write->is_json)
		return bench_json_write(sink, run);
	if (path != NULL && text_ends_with(path, ".parquet"))
		return bench_parquet_write(sink, run);
	return write_text(sink, write, run);
}

int bench_write_check(const struct bench_write *write)
{
	for (size_t i = 0; i < write->count; i++)
		if (cli_output_check(write->paths[i]) != 0)
			return CLI_EXIT_TROUBLE;
	return 0;
}

static int write_file(const struct bench_write *write, const struct bench_run *run,
		      const char *path, int exit_code)
{
	struct cli_output output;
	enum status status;

	if (cli_output_open(&output, path) != 0)
		return CLI_EXIT_TROUBLE;
	status = write_one(&output.sink, write, run, path);
	/* What the file system refuses is told by the commit. */
	if (status == OK || status == ERR_SYSTEM)
		return cli_output_commit(&output, exit_code);
	cli_output_discard(&output);
	return cli_error("%s is not written: %s", path, status_text(status));
}

int bench_write_all(const struct bench_write *write, const struct bench_run *run, int exit_code)
{
	enum status status;
	struct sink sink;

	for (size_t i = 0; i < write->count; i++)
		exit_code = write_file(write, run, write->paths[i], exit_code);
	sink_init_fd(&sink, STDOUT_FILENO);
	status = write_one(&sink, write, run, NULL);
	if (status != OK && status != ERR_SYSTEM)
		exit_code = cli_error("results are cut: %s", status_text(status));
	return cli_finish(&sink, exit_code);
}
