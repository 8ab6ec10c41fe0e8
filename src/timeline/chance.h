/* How likely is it by chance? Tails of distributions, and figures of samples that resist outliers. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stddef.h>

/* P(T >= t) for Student's t with `freedom` degrees of freedom. */
double chance_student(double t, double freedom);
/* The t that is exceeded with probability p (0 < p < 0.5). */
double chance_student_quantile(double p, double freedom);

/* Middle value; values are moved around. 0 when there are none. */
double chance_median(double *values, size_t count);

struct chance_sample {
	size_t count;
	double mean;
	double deviation; /* of single values, n - 1 */
	double error;	  /* of the mean: deviation / sqrt(n), wider where neighbours are alike */
};

/* Values in the order of time: what follows each other may be alike (first order autocorrelation). */
struct chance_sample chance_series(const double *values, size_t count);

#endif
