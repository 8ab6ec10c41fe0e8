/* Statistics of a list of values: medians, spread, means of a series with their error. */
#include "analysis/stats.h"

#include <math.h>
#include <stdlib.h>

#include "common/attributes.h"

double stats_select(double *values, size_t count, size_t k)
{
	size_t low = 0, high = count - 1;

	while (low < high) {
		double pivot = values[low + (high - low) / 2];
		size_t i = low, j = high;

		while (i <= j) {
			double swap;

			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i > j)
				break;
			swap = values[i];
			values[i++] = values[j];
			values[j] = swap;
			if (j == 0)
				break;
			j--;
		}
		if (k <= j)
			high = j;
		else if (k >= i)
			low = i;
		else
			break;
	}
	return values[k];
}

double stats_median(double *values, size_t count)
{
	return count > 0 ? stats_select(values, count, count / 2) : 0;
}

double stats_lower_middle(double *values, size_t count)
{
	return stats_select(values, count, (count - 1) / 2);
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return ORDER(a, b);
}

void stats_sort(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
}

double stats_sorted_median(const double *sorted, size_t count)
{
	return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* ---- probabilities --------------------------------------------------------------------------- */

enum { FRACTION_TERMS = 300 };

/* The continued fraction of the incomplete beta function, from the front (Lentz). */
static double beta_fraction(double x, double a, double b)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), value;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	value = d;
	for (int m = 1; m <= FRACTION_TERMS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		const double terms[] = { even, odd };
		double factor = 1;

		for (int i = 0; i < 2; i++) {
			d = 1 + terms[i] * d;
			c = 1 + terms[i] / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			factor = c * d;
			value *= factor;
		}
		if (fabs(factor - 1) < 1e-14)
			break;
	}
	return value;
}

/* The regularized incomplete beta function I_x(a, b). */
static double beta_share(double x, double a, double b)
{
	double front;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double stats_student(double t, double freedom)
{
	double tail;

	if (!(freedom > 0))
		return 0.5;
	tail = 0.5 * beta_share(freedom / (freedom + t * t), freedom / 2, 0.5);
	return t >= 0 ? tail : 1 - tail;
}

double stats_student_quantile(double p, double freedom)
{
	double low = 0, high = 1;

	while (stats_student(high, freedom) > p && high < 1e12)
		high *= 2;
	while (high - low > 1e-12 * high) {
		double middle = (low + high) / 2;

		if (stats_student(middle, freedom) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

struct stats_sample stats_series(const double *values, size_t count)
{
	struct stats_sample sample = { .count = count };
	double squares = 0, products = 0, alike;

	if (count == 0)
		return sample;
	for (size_t i = 0; i < count; i++)
		sample.mean += values[i] / (double)count;
	for (size_t i = 0; i < count; i++) {
		double here = values[i] - sample.mean;

		squares += here * here;
		if (i > 0)
			products += here * (values[i - 1] - sample.mean);
	}
	if (count < 2)
		return sample;
	sample.deviation = sqrt(squares / (double)(count - 1));
	alike = squares > 0 ? products / squares : 0;
	alike = alike < 0 ? 0 : alike > 0.9 ? 0.9 : alike;
	sample.error = sample.deviation / sqrt((double)count) * sqrt((1 + alike) / (1 - alike));
	return sample;
}

enum { BATCHES_MOST = 64, BATCHES_LEAST = 8 };

struct stats_sample stats_batches(const double *values, size_t count)
{
	struct stats_sample sample = stats_series(values, count);
	double means[BATCHES_MOST];

	for (size_t left = count, size = 2; left / 2 >= BATCHES_LEAST && count <= BATCHES_MOST;
	     size *= 2) {
		struct stats_sample other;

		left /= 2;
		for (size_t i = 0; i < left; i++)
			means[i] = size == 2 ? (values[2 * i] + values[2 * i + 1]) / 2
					     : (means[2 * i] + means[2 * i + 1]) / 2;
		other = stats_series(means, left);
		if (other.error > sample.error) {
			sample.error = other.error;
			sample.count = other.count;
		}
	}
	return sample;
}

struct stats_sample stats_typical(const double *values, size_t count)
{
	const double distance_to_deviation = 1.4826;
	double kept[BATCHES_MOST], middle, reach;

	if (count > BATCHES_MOST)
		return stats_batches(values, count);
	for (size_t i = 0; i < count; i++)
		kept[i] = values[i];
	middle = stats_median(kept, count);
	for (size_t i = 0; i < count; i++)
		kept[i] = fabs(values[i] - middle);
	reach = 3 * distance_to_deviation * stats_median(kept, count);
	for (size_t i = 0; i < count; i++)
		kept[i] = fmin(fmax(values[i], middle - reach), middle + reach);
	return stats_batches(kept, count);
}
