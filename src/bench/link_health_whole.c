/* Operations of the whole job: right results, and as fast as somebody expects. */
#include <stdlib.h>

#include "bench/bench_stats.h"
#include "bench/link_health_parts.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"

enum { CALLS_FOR_COURSE = 3 };

/* ---- results --------------------------------------------------------------------------------- */

static void judge_results(struct health_scene *scene, uint8_t function)
{
	const struct bench_run *run = scene->run;
	struct health_finding *finding;
	uint64_t wrong = 0;
	size_t cells = 0;

	for (size_t c = 0; c < run->cell_count; c++) {
		if (run->cells[c].function != function || run->cells[c].wrong == BENCH_UNCHECKED)
			continue;
		scene->health->is_checked = true;
		wrong += run->cells[c].wrong;
		cells += run->cells[c].wrong != 0;
	}
	if (wrong == 0)
		return;
	finding = health_find_add(scene->health, HEALTH_WRONG_RESULTS, HEALTH_CERTAIN);
	if (finding == NULL)
		return;
	finding->function = function;
	finding->value = (double)wrong;
	health_say(finding, "%s gave wrong results: %llu %s in %zu %s", op_function_name(function),
		   (unsigned long long)wrong, wrong == 1 ? "element" : "elements", cells,
		   cells == 1 ? "measurement" : "measurements");
	health_advise(finding,
		      "take these GPUs out of use; look at their memory errors (nvidia-smi "
		      "-q -d ECC) and at the kernel's log (Xid)");
}

/* ---- speed ----------------------------------------------------------------------------------- */

/* The largest size of a function; of several such cells the fastest. */
static enum status find_collective(struct health_scene *scene, uint8_t function,
				   struct health_collective *found)
{
	const struct bench_run *run = scene->run;

	for (size_t c = 0; c < run->cell_count; c++) {
		const struct bench_cell *cell = &run->cells[c];
		struct bench_figures figures;
		enum status status;

		if (cell->function != function || cell->peers || cell->bytes < found->bytes)
			continue;
		status = bench_cell_figures(cell, BENCH_OVER_MEAN, &figures);
		if (status != OK)
			return status;
		if (figures.p50 <= 0 || (cell->bytes == found->bytes && found->time_ns > 0 &&
					 figures.p50 >= found->time_ns))
			continue;
		found->function = function;
		found->bytes = cell->bytes;
		found->time_ns = figures.p50;
		found->busbw = bench_busbw(cell, figures.p50);
	}
	return OK;
}

static void judge_collective(struct health_scene *scene, struct health_collective *one)
{
	struct expected_value value;
	struct health_finding *finding;
	char size[UNITS_TEXT];

	if (scene->options->expected == NULL ||
	    !expected_find(scene->options->expected, one->function, one->bytes, scene->run->nranks,
			   &value) ||
	    value.busbw <= 0)
		return;
	one->expected = value.busbw;
	one->how = value.how;
	one->is_slow = one->busbw < scene->slow * one->expected;
	if (!one->is_slow)
		return;
	finding = health_find_add(scene->health, HEALTH_SLOW_COLLECTIVE,
				  value.how & ~(unsigned int)EXPECTED_BETWEEN ? HEALTH_LIKELY
									      : HEALTH_CERTAIN);
	if (finding == NULL)
		return;
	finding->function = one->function;
	finding->value = one->busbw;
	finding->usual = one->expected;
	finding->ratio = one->busbw / one->expected;
	health_say(finding, "%s of %s: %.2f GB/s (busbw), %.2f GB/s expected (%.0f %%)%s",
		   op_function_name(one->function), units_bytes(size, one->bytes), one->busbw,
		   one->expected, finding->ratio * 100,
		   value.how & EXPECTED_OTHER_RANKS ? ", which was measured with other ranks" : "");
	health_advise(finding, "compare with pairs: one slow link holds up the whole ring");
}

static void tell_slower(struct health_scene *scene, const struct health_collective *one,
			double first_gbs, double last_gbs)
{
	struct health_finding *finding =
		health_find_add(scene->health, HEALTH_GOT_SLOWER, HEALTH_LIKELY);
	char size[UNITS_TEXT];

	if (finding == NULL)
		return;
	finding->function = one->function;
	finding->value = last_gbs;
	finding->usual = first_gbs;
	finding->ratio = last_gbs / first_gbs;
	health_say(finding,
		   "%s of %s got slower: %.2f GB/s (busbw) at the beginning, %.2f GB/s at "
		   "the end (%.0f %%)",
		   op_function_name(one->function), units_bytes(size, one->bytes), first_gbs,
		   last_gbs, finding->ratio * 100);
	health_advise(finding, "look at clocks and temperatures (nvidia-smi -q -d "
			       "PERFORMANCE,TEMPERATURE), and at what else began meanwhile");
}

/* The same was measured at the beginning and at the end: did the machine get slower? Beyond what calls scatter,
 * and by more than is tolerated of links. Getting faster is warming up. */
static enum status judge_course(struct health_scene *scene, const struct health_collective *one)
{
	const struct bench_run *run = scene->run;
	const struct bench_cell *first = NULL, *last = NULL;
	struct bench_figures before, after;
	enum status status;

	for (size_t c = 0; c < run->cell_count; c++) {
		const struct bench_cell *cell = &run->cells[c];

		if (cell->function != one->function || cell->peers || cell->bytes != one->bytes ||
		    cell->calls < CALLS_FOR_COURSE)
			continue;
		first = first ? first : cell;
		last = cell;
	}
	if (first == last)
		return OK;
	status = bench_cell_figures(first, BENCH_OVER_MEAN, &before);
	if (status == OK)
		status = bench_cell_figures(last, BENCH_OVER_MEAN, &after);
	if (status == OK && before.p50 > 0 && before.p50 < scene->slow * after.p50 &&
	    before.p75 < after.p25)
		tell_slower(scene, one, bench_busbw(first, before.p50),
			    bench_busbw(last, after.p50));
	return status;
}

enum status health_judge_collectives(struct health_scene *scene)
{
	struct health *health = scene->health;
	const size_t room = sizeof(health->collectives) / sizeof(health->collectives[0]);
	enum status status = OK;
	size_t judged = 0;

	for (uint8_t function = 1; function < OP_FUNCTIONS && status == OK; function++) {
		struct health_collective found = { 0 };

		judge_results(scene, function);
		status = find_collective(scene, function, &found);
		if (status != OK || found.time_ns <= 0 || health->collective_count == room)
			continue;
		judge_collective(scene, &found);
		status = judge_course(scene, &found);
		judged += found.expected > 0;
		health->collectives[health->collective_count++] = found;
	}
	if (status == OK && health->collective_count > 0 && judged == 0)
		health_reason(health,
			      scene->options->expected
				      ? "the expectations have none of the functions measured"
				      : "nobody said which bandwidth to expect of the whole job");
	return status;
}
