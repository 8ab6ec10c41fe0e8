#include <inttypes.h>

#include "bench/cost_fit.h"
#include "bench/crossover.h"
#include "cmds/cli.h"
#include "cmds/commands.h"
#include "common/text.h"
#include "programs/cli/bench_recall.h"
#include "programs/cli/crossover_measure.h"
#include "programs/cli/crossover_options.h"
#include "view/crossover_html.h"
#include "view/crossover_json.h"
#include "view/crossover_text.h"

/* ---- what was measured, shown ---------------------------------------------------------------- */

struct shown {
	const struct crossover_request *request;
	const struct crossover_view *view;
};

static enum status write_shown(const void *context, enum bench_output_kind kind, unsigned int width,
			       struct sink *sink)
{
	const struct shown *shown = context;
	const struct crossover_text_options style = {
		.width = width,
		.is_ascii = shown->request->is_ascii,
		.has_plot = true,
	};

	switch (kind) {
	case BENCH_OUTPUT_JSON:
		return crossover_json(sink, shown->view);
	case BENCH_OUTPUT_HTML:
		return crossover_html(sink, shown->view);
	default:
		return crossover_text(sink, shown->view, &style);
	}
}

/* Elements that are not what they must be, in all cells. */
static uint64_t wrong_elements(const struct bench_run *run)
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < run->cell_count; i++)
		if (run->cells[i].wrong != BENCH_UNCHECKED)
			wrong += run->cells[i].wrong;
	return wrong;
}

static int show(const struct crossover_request *request, const struct bench_run *run)
{
	const struct cost_fit_options fitting = { .over = BENCH_OVER_MEAN };
	struct crossover_view view = { .run = run };
	const struct shown shown = { request, &view };
	struct crossover_set set;
	static struct cost_model model; /* tens of kilobytes: not for the stack */
	enum status status;
	uint64_t wrong = wrong_elements(run);
	int exit_code;

	crossover_set_init(&set);
	status = crossover_find(&set, run, BENCH_OVER_MEAN);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status != OK) {
		crossover_set_release(&set);
		return cli_error("nothing was measured that could be compared");
	}
	cost_model_init(&model);
	status = cost_fit(&model, NULL, &run, 1, &fitting);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	view.set = &set;
	view.model = status == OK ? &model : NULL;
	view.why_no_model = model.note_count > 0 ? model.notes[0] : NULL;
	if (wrong > 0)
		cli_error("%" PRIu64 " elements of results are wrong", wrong);
	exit_code = bench_outputs_write(&request->files, write_shown, &shown,
					wrong > 0 ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE);
	crossover_set_release(&set);
	return exit_code;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void add_notes(const struct crossover_request *request, struct bench_run *run)
{
	const struct crossover_recorder *recorder = &request->recorder;
	bool is_any_known = false;

	text_copy(run->command, sizeof(run->command), request->command);
	if (!recorder->is_on)
		bench_run_note(run, "what NCCL took is not known: %s", recorder->why);
	if (recorder->is_in_place_of)
		bench_run_note(run, "the plugin that NCCL_PROFILER_PLUGIN named was not loaded: "
				    "the recorder was in its place");
	for (size_t i = 0; i < run->cell_count; i++)
		is_any_known |= run->cells[i].chosen_algorithm != 0;
	if (recorder->is_on && !is_any_known)
		bench_run_note(run, "what NCCL took is not known: this NCCL did not load the "
				    "recorder, or did not tell it");
}

/* One rank. */
static int body(const struct bench_place *place, void *context)
{
	struct crossover_request *request = context;
	struct bench_team team;
	int result = CLI_EXIT_DONE;

	if (request->recorder.is_on)
		crossover_recorder_set(&request->recorder);
	if (bench_team_open(&team, place, &request->how, &request->plan) != 0)
		return CLI_EXIT_TROUBLE;
	if (place->rank == 0 && bench_outputs_check(&request->files) != 0)
		return bench_team_quit(&team);
	if (crossover_measure(&team, &request->variants, &request->budget) != 0)
		return bench_team_fail(&team);
	if (bench_team_finish(&team) != 0)
		return CLI_EXIT_TROUBLE;
	if (place->rank == 0) {
		add_notes(request, &team.run);
		result = show(request, &team.run);
	}
	bench_team_release(&team);
	return result;
}

static int measure(struct crossover_request *request)
{
	int exit_code;

	crossover_recorder_open(&request->recorder);
	if (request->recorder.is_on)
		request->how.variables = request->recorder.variables;
	exit_code = bench_everywhere(&request->how, body, request);
	crossover_recorder_close(&request->recorder);
	return exit_code;
}

static int show_former(const struct crossover_request *request)
{
	struct bench_run run;
	int exit_code = bench_recall(&run, request->from);

	if (exit_code == 0)
		exit_code = show(request, &run);
	bench_run_release(&run);
	return exit_code;
}

int bench_crossover(int argc, char **argv)
{
	struct crossover_request request;
	int exit_code = crossover_request_read(&request, argc, argv);

	if (exit_code != -1)
		return exit_code;
	return request.from != NULL ? show_former(&request) : measure(&request);
}
