#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/cost_fit.h"
#include "cmds/cli.h"
#include "cmds/commands.h"
#include "programs/cli/bench_recall.h"
#include "programs/cli/model_options.h"
#include "view/model_view.h"

struct request {
	struct model_options options;
	struct bench_run runs[MODEL_FILES_MAX];
	size_t run_count;
	struct cost_model model;
	struct cost_fit fit;
	bool has_fit;
	struct cost_shape shape;
	char nodes_from[128];
	struct model_line *lines;
	size_t line_count;
};

static void request_free(struct request *request)
{
	for (size_t i = 0; i < request->run_count; i++)
		bench_run_release(&request->runs[i]);
	if (request->has_fit)
		cost_fit_release(&request->fit);
	free(request->lines);
	free(request);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int read_runs(struct request *request)
{
	for (size_t i = 0; i < request->options.file_count; i++) {
		int exit_code = bench_recall(&request->runs[i], request->options.files[i]);

		if (exit_code != 0)
			return exit_code;
		request->run_count++;
	}
	return 0;
}

static int fit_runs(struct request *request)
{
	const struct cost_fit_options options = { .over = BENCH_OVER_MEAN,
						  .mode = request->options.mode,
						  .rails = request->options.nics };
	const struct bench_run *pointers[MODEL_FILES_MAX];
	struct cost_model *model = &request->model;
	enum status status;

	if (request->run_count == 0)
		return 0;
	for (size_t i = 0; i < request->run_count; i++)
		pointers[i] = &request->runs[i];
	status = cost_fit(model, &request->fit, pointers, request->run_count, &options);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	request->has_fit = true;
	if (status == OK)
		return 0;
	return cli_error(
		"%s%s: %s", request->options.files[0], request->run_count > 1 ? " and others" : "",
		model->note_count ? model->notes[model->note_count - 1] : "nothing to fit");
}

static int find_hardware(struct request *request)
{
	char names[256] = "";
	size_t used = 0;

	if (request->options.hardware == NULL ||
	    cost_model_hardware(&request->model, request->options.hardware))
		return 0;
	for (size_t i = 0; cost_hardware(i) != NULL && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
					 i > 0 ? ", " : "", cost_hardware(i)->name);
	return cli_usage(&model_page, "--hardware: '%s' is none of %s", request->options.hardware,
			 names);
}

/* Measured first, then a textbook for what is missing, then what was said by hand over both. */
static int find_parameters(struct request *request)
{
	int exit_code;

	cost_model_init(&request->model);
	exit_code = read_runs(request);
	if (exit_code == 0)
		exit_code = fit_runs(request);
	if (exit_code == 0)
		exit_code = find_hardware(request);
	for (int p = 0; p < COST_PARAMETERS && exit_code == 0; p++)
		if (request->options.has_value[p] &&
		    cost_model_set(&request->model, (enum cost_parameter)p,
				   request->options.value[p]) != OK)
			exit_code = cli_usage(&model_page, "the %s is out of range",
					      cost_parameter_name((enum cost_parameter)p));
	return exit_code;
}

/* ---- where ----------------------------------------------------------------------------------- */

static int32_t nodes_for(int32_t ranks, int32_t local)
{
	return (ranks + local - 1) / local;
}

/* As many ranks a node as the largest measurement had. */
static int32_t measured_local(const struct request *request)
{
	int32_t local = 0, most = 0;

	for (size_t r = 0; r < request->run_count; r++)
		for (size_t c = 0; c < request->runs[r].cell_count; c++) {
			struct cost_shape shape =
				cost_shape_of(&request->runs[r], &request->runs[r].cells[c], 0);

			if (shape.ranks < most)
				continue;
			most = shape.ranks;
			local = (shape.ranks + shape.nodes - 1) / shape.nodes;
		}
	return local;
}

static int32_t hardware_local(const char *name)
{
	for (size_t i = 0; cost_hardware(i) != NULL; i++)
		if (strcmp(cost_hardware(i)->name, name) == 0)
			return cost_hardware(i)->ranks_a_node;
	return 0;
}

static int find_shape(struct request *request)
{
	const struct model_options *options = &request->options;
	struct cost_shape *shape = &request->shape;
	bool is_measured = request->run_count > 0;
	int32_t local = 0;

	shape->ranks = options->ranks;
	shape->nodes = options->nodes;
	if (shape->nodes == 0) {
		local = is_measured	    ? measured_local(request)
			: options->hardware ? hardware_local(options->hardware)
					    : 0;
		if (local == 0)
			return cli_usage(&model_page, "on how many nodes? Say --nodes N");
		shape->nodes = nodes_for(shape->ranks, local);
		snprintf(request->nodes_from, sizeof(request->nodes_from),
			 "%d %s: %d %s a node, as %s; say --nodes for others", (int)shape->nodes,
			 shape->nodes == 1 ? "node" : "nodes", (int)local,
			 local == 1 ? "rank" : "ranks",
			 is_measured ? "measured" : "this hardware has");
	}
	shape->rails = options->nics	      ? options->nics
		       : request->model.rails ? request->model.rails
					      : nodes_for(shape->ranks, shape->nodes);
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void find_line(const struct request *request, struct model_line *line)
{
	const struct model_options *options = &request->options;

	if (options->algorithm == COST_ANY && options->protocol == 0) {
		line->count = cost_predict_all(&request->model, options->function, &request->shape,
					       line->bytes, line->answers, &line->why);
		return;
	}
	for (int algorithm = COST_RING; algorithm < COST_ALGORITHMS; algorithm++) {
		struct cost_answer *answer = &line->answers[line->count];
		const char *why = NULL;

		if (options->algorithm != COST_ANY &&
		    options->algorithm != (enum cost_algorithm)algorithm)
			continue;
		if (cost_predict(&request->model, options->function, (enum cost_algorithm)algorithm,
				 options->protocol, &request->shape, line->bytes, answer, &why))
			line->count++;
		else if (line->why == NULL || options->algorithm != COST_ANY)
			line->why = why;
	}
}

/* 1 when no size has an answer. */
static int find_answers(struct request *request)
{
	const struct bench_plan *plan = &request->options.plan;
	int exit_code = CLI_EXIT_TROUBLE;

	request->lines = cli_realloc(NULL, plan->size_count * sizeof(*request->lines));
	memset(request->lines, 0, plan->size_count * sizeof(*request->lines));
	request->line_count = plan->size_count;
	for (size_t i = 0; i < request->line_count; i++) {
		request->lines[i].bytes = plan->sizes[i];
		find_line(request, &request->lines[i]);
		if (request->lines[i].count > 0)
			exit_code = CLI_EXIT_DONE;
	}
	return exit_code;
}

static int show(const struct request *request, int exit_code)
{
	const struct model_view view = {
		.function = request->options.function,
		.shape = request->shape,
		.nodes_from = request->nodes_from[0] ? request->nodes_from : NULL,
		.model = &request->model,
		.fit = request->has_fit ? &request->fit : NULL,
		.files = request->options.files,
		.file_count = request->options.file_count,
		.lines = request->lines,
		.line_count = request->line_count,
	};
	struct sink sink;
	struct json json;

	sink_init_fd(&sink, STDOUT_FILENO);
	if (request->options.is_json) {
		json_init(&json, &sink);
		model_json(&json, &view);
		json_line(&json);
	} else if (model_text(&sink, &view, cli_width()) == ERR_NO_SPACE) {
		cli_no_memory();
	}
	return cli_finish(&sink, exit_code);
}

int cmd_model(int argc, char **argv)
{
	struct request *request = cli_realloc(NULL, sizeof(*request));
	bool is_over;
	int exit_code;

	memset(request, 0, sizeof(*request));
	exit_code = model_options_read(&request->options, argc, argv, &is_over);
	if (!is_over)
		exit_code = find_parameters(request);
	if (!is_over && exit_code == 0)
		exit_code = find_shape(request);
	if (!is_over && exit_code == 0)
		exit_code = show(request, find_answers(request));
	request_free(request);
	return exit_code;
}
