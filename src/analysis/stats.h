/* Probabilities: tails of distributions, and robust statistics of samples. */
#ifndef STATS_H
#define STATS_H

#include <stddef.h>

/* P(T >= t) for Student's t with `freedom` degrees of freedom. */
double stats_student(double t, double freedom);
/* The t that is exceeded with probability p (0 < p < 0.5). */
double stats_student_quantile(double p, double freedom);

/* The k-th smallest; values are reordered, as by the next three. */
double stats_select(double *values, size_t count, size_t k);
/* Median; 0 if there are none. */
double stats_median(double *values, size_t count);
/* Of an even number the smaller of the two in the middle. There must be at least one. */
double stats_lower_middle(double *values, size_t count);
void stats_sort(double *values, size_t count);
/* Of sorted values, at least one; of an even number the mean of the two in the middle. */
double stats_sorted_median(const double *sorted, size_t count);

struct stats_sample {
	size_t count;
	double mean;
	double deviation; /* of single values, n - 1 */
	double error;	  /* of the mean: deviation / sqrt(n), larger if neighbours are similar */
};

/* Values in the order of time: consecutive ones may be similar (first-order autocorrelation). */
struct stats_sample stats_series(const double *values, size_t count);

/* The same, but the error also covers similarity that reaches further: it is the largest that values, or
 * means of 2, 4, ... neighbours (as long as eight are left), give; count is the number of these. */
struct stats_sample stats_batches(const double *values, size_t count);

/* The same of what is typical: values far from the median (three deviations, by the median distance) count as
 * that far, so that a few do not decide. At most 64 values. */
struct stats_sample stats_typical(const double *values, size_t count);

#endif
