#include "timeline/chance.h"

#include <math.h>

#include "timeline/align_fit.h"

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

/* The regularised incomplete beta function I_x(a, b). */
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

double chance_student(double t, double freedom)
{
	double tail;

	if (!(freedom > 0))
		return 0.5;
	tail = 0.5 * beta_share(freedom / (freedom + t * t), freedom / 2, 0.5);
	return t >= 0 ? tail : 1 - tail;
}

double chance_student_quantile(double p, double freedom)
{
	double low = 0, high = 1;

	while (chance_student(high, freedom) > p && high < 1e12)
		high *= 2;
	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (chance_student(middle, freedom) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

double chance_median(double *values, size_t count)
{
	return count > 0 ? align_select(values, count, count / 2) : 0;
}

struct chance_sample chance_series(const double *values, size_t count)
{
	struct chance_sample sample = { .count = count };
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
