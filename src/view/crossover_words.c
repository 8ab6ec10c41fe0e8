/* Names, sentences and figures that all views of a crossover share. See crossover_text.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cost_fit.h"
#include "common/op.h"
#include "common/text.h"
#include "view/crossover_text.h"

const char *crossover_title(char to[static CROSSOVER_TITLE], const struct crossover *one)
{
	char redop[24] = "", root[32] = "";

	if (one->redop != BENCH_NO_REDOP)
		text_format(redop, sizeof(redop), ", %s", bench_redop_name(one->redop));
	if (one->root >= 0)
		text_format(root, sizeof(root), ", root %d", (int)one->root);
	text_format(to, CROSSOVER_TITLE, "%s, %s%s%s, %s%s, %d %s", op_function_name(one->function),
		    op_datatype_name(one->datatype), redop, root, bench_mode_name(one->mode),
		    one->is_in_place ? ", in place" : "", (int)one->nranks,
		    text_which((uint64_t)one->nranks, "rank", "ranks"));
	return to;
}

/* "; the largest difference is 1.80 times, at 64 MiB"; "" where no difference is clear. */
static void say_most(char *to, size_t size, const struct crossover_crossing *crossing)
{
	char at[UNITS_TEXT];

	to[0] = '\0';
	if (crossing->most_bytes > 0 && crossing->most_ratio > 1)
		text_format(to, size, "; the largest difference is %.2f times, at %s",
			    crossing->most_ratio, units_bytes(at, crossing->most_bytes));
}

/* " (they meet between 16 KiB and 64 KiB)"; "" where it is known as well as it is told. */
static void say_between(char *to, size_t size, const struct crossover_crossing *crossing)
{
	char low[UNITS_TEXT], high[UNITS_TEXT];

	units_bytes(low, (uint64_t)llround(crossing->low_bytes));
	units_bytes(high, (uint64_t)llround(crossing->high_bytes));
	to[0] = '\0';
	if (crossing->answer == CROSSOVER_CROSSES && strcmp(low, high) != 0)
		text_format(to, size, " (they meet between %s and %s)", low, high);
}

const char *crossover_sentence(char to[static CROSSOVER_SENTENCE], const struct crossover *one,
			       const struct crossover_crossing *crossing)
{
	char first[CROSSOVER_NAME], second[CROSSOVER_NAME], most[96], between[112];
	char at[UNITS_TEXT];

	crossover_curve_name(first, &one->curves[crossing->first]);
	crossover_curve_name(second, &one->curves[crossing->second]);
	say_most(most, sizeof(most), crossing);
	say_between(between, sizeof(between), crossing);
	switch (crossing->answer) {
	case CROSSOVER_CROSSES:
		text_format(to, CROSSOVER_SENTENCE, "%s below %s, %s above%s%s%s", first,
			    units_bytes(at, (uint64_t)llround(crossing->bytes)), second, between,
			    crossing->is_repeated ? "; they cross more than once" : "", most);
		break;
	case CROSSOVER_FIRST_WINS:
		text_format(to, CROSSOVER_SENTENCE, "%s is never slower than %s%s", first, second,
			    most);
		break;
	case CROSSOVER_SECOND_WINS:
		text_format(to, CROSSOVER_SENTENCE, "%s is never slower than %s%s", second, first,
			    most);
		break;
	case CROSSOVER_ALIKE:
		text_format(to, CROSSOVER_SENTENCE, "%s and %s are alike at all sizes", first,
			    second);
		break;
	default:
		text_format(to, CROSSOVER_SENTENCE, "%s and %s have fewer than two sizes in common",
			    first, second);
		break;
	}
	return to;
}

bool crossover_is_main(const struct crossover *one, const struct crossover_crossing *crossing)
{
	return one->curves[crossing->first].is_envelope &&
	       one->curves[crossing->second].is_envelope;
}

/* ---- the model beside it --------------------------------------------------------------------- */

static bool is_of(const struct bench_cell *cell, const struct crossover *one,
		  const struct crossover_curve *curve, uint64_t bytes)
{
	return cell->function == one->function && cell->datatype == one->datatype &&
	       cell->redop == one->redop && cell->mode == one->mode &&
	       cell->is_in_place == one->is_in_place && cell->root == one->root &&
	       cell->bytes == bytes && cell->peers == NULL && cell->algorithm == curve->algorithm &&
	       cell->protocol == curve->protocol;
}

const struct bench_cell *crossover_cell(const struct bench_run *run, const struct crossover *one,
					const struct crossover_curve *curve, uint64_t bytes)
{
	/* An envelope is made of several curves, and has no cells of its own. */
	for (size_t i = 0; i < run->cell_count && !curve->is_envelope; i++)
		if (is_of(&run->cells[i], one, curve, bytes))
			return &run->cells[i];
	return NULL;
}

double crossover_expected_ns(const struct crossover_view *view, const struct crossover *one,
			     const struct crossover_curve *curve, uint64_t bytes)
{
	const struct bench_cell *cell = crossover_cell(view->run, one, curve, bytes);
	struct cost_answer answer;

	if (view->model == NULL || cell == NULL || curve->is_own)
		return 0;
	return cost_predict_cell(view->model, view->run, cell, &answer) ? answer.time_ns : 0;
}

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

bool crossover_error_of(const struct crossover_view *view, const struct crossover *one,
			const struct crossover_curve *curve, struct crossover_error *error)
{
	double *errors = calloc(curve->count + 1, sizeof(*errors));

	*error = (struct crossover_error){ 0 };
	for (size_t i = 0; errors != NULL && i < curve->count; i++) {
		const struct crossover_point *point = &curve->points[i];
		double expected = crossover_expected_ns(view, one, curve, point->bytes);

		if (expected <= 0 || point->median_ns <= 0)
			continue;
		errors[error->points] = fabs(expected / point->median_ns - 1);
		if (error->worst_bytes == 0 || errors[error->points] > error->worst) {
			error->worst = errors[error->points];
			error->worst_bytes = point->bytes;
		}
		error->points++;
	}
	if (error->points > 0) {
		qsort(errors, error->points, sizeof(*errors), by_size);
		error->median = (errors[(error->points - 1) / 2] + errors[error->points / 2]) / 2;
	}
	free(errors);
	return error->points > 0;
}
