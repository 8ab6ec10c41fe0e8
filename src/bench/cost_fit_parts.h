/* What the parts of the fit share. */
#ifndef COST_FIT_PARTS_H
#define COST_FIT_PARTS_H

#include "bench/cost_fit.h"
#include "bench/cost_observe.h"
#include "bench/cost_solve.h"

/* Sizes that differ by less than this do not tell latency from bandwidth. */
#define COST_SIZES_APART 4.0

struct cost_fitting {
	struct cost_model *model;
	struct cost_observed *observed;
	size_t count;
	struct cost_observation *rows; /* room for all */
	double *errors;		       /* likewise */
	double *sizes;		       /* likewise */
	struct cost_fit_options options;
};

/* Does the cell belong to the group? */
bool cost_group_has(const struct cost_group *group, const struct cost_observed *one);
/* The group's cells into rows[], their sizes, sorted, into errors[]; its range, sizes and points. */
void cost_group_gather(struct cost_fitting *fitting, struct cost_group *group);
bool cost_group_is_enough(const struct cost_group *group);
/* Fit a group like this and add it to the model. ERR_NO_SPACE. */
enum status cost_group_add(struct cost_fitting *fitting, const struct cost_group *like);
/* The same, in as many stretches of sizes as the times have bends and steps. */
enum status cost_group_add_stretches(struct cost_fitting *fitting, const struct cost_group *like,
				     uint64_t from, uint64_t to);

#endif
