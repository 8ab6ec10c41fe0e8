/*
 * An earlier measurement, as read by `bench health --from` and `bench crossover --from`: any bytes
 * are rejected, or judged and shown by every view.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench_result.h"
#include "bench/cost_model.h"
#include "bench/crossover.h"
#include "bench/health.h"
#include "fuzz/fuzz_main.h"

static void check_health(const struct bench_run *run)
{
	static const struct health_options options = { .expected_gbs = { 1, 300, 45 } };
	static const struct health_text_options style = { .width = 80 };
	struct health health;
	struct sink sink;

	if (health_find(&health, run, &options) != OK)
		return;
	sink_init_memory(&sink);
	if (health_text(&sink, &health, run, &style) != OK ||
	    health_json(&sink, &health, run) != OK)
		abort();
	sink_release(&sink);
	health_release(&health);
}

static void check_crossover(const struct bench_run *run)
{
	static const struct cost_fit_options fitting = { .over = BENCH_OVER_MEAN };
	static const struct crossover_text_options style = { .width = 80, .has_plot = true };
	static struct cost_model model;
	struct crossover_set set;
	struct crossover_view view = { .run = run, .set = &set };
	struct sink sink;

	crossover_set_init(&set);
	if (crossover_find(&set, run, BENCH_OVER_MEAN) == OK) {
		cost_model_init(&model);
		if (cost_fit(&model, NULL, &run, 1, &fitting) == OK)
			view.model = &model;
		sink_init_memory(&sink);
		if (crossover_text(&sink, &view, &style) != OK ||
		    crossover_json(&sink, &view) != OK || crossover_html(&sink, &view) != OK)
			abort();
		sink_release(&sink);
	}
	crossover_set_release(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of the exact size, so that reads past the end are caught. */
	char *text = malloc(size == 0 ? 1 : size);
	struct bench_run run;
	const char *at;
	size_t length;

	if (size > 0)
		memcpy(text, data, size);
	if (run_inside(text, size, &at, &length) == OK) {
		if (at < text || length > size || (size_t)(at - text) > size - length)
			abort();
		if (bench_read(&run, at, length, NULL) == OK) {
			check_health(&run);
			check_crossover(&run);
			bench_run_release(&run);
		}
	}
	free(text);
	return 0;
}
