/* What the parts of link_health share. */
#ifndef LINK_HEALTH_PARTS_H
#define LINK_HEALTH_PARTS_H

#include "bench/link_health.h"
#include "common/attributes.h"

struct health_scene {
	struct health *health;
	const struct bench_run *run;
	const struct health_options *options;
	double slow; /* share that is still fine */
};

/* Fills pairs[] and kinds[] without judging. ERR_NO_SPACE. */
enum status health_measure(struct health_scene *scene);

/* Which pairs are slow or late, which ranks and nodes are behind it. ERR_NO_SPACE. */
enum status health_judge_pairs(struct health_scene *scene);

/* The functions of the whole job. ERR_NO_SPACE. */
enum status health_judge_collectives(struct health_scene *scene);

/* ---- words ----------------------------------------------------------------------------------- */

enum { HEALTH_RANK_TEXT = 128 };
/* "rank 3 (host b, GPU 1)" */
const char *health_rank_text(char to[static HEALTH_RANK_TEXT], const struct bench_run *run,
			     int32_t rank);

/* One more finding; NULL: there are too many, it is counted. Its text is yet to be written. */
struct health_finding *health_find_add(struct health *health, enum health_finding_kind kind,
				       enum health_confidence confidence);
void health_say(struct health_finding *finding, const char *format, ...) PRINTF_LIKE(2, 3);
void health_advise(struct health_finding *finding, const char *advice);
void health_reason(struct health *health, const char *format, ...) PRINTF_LIKE(2, 3);

/* Verdict, exit code and sentence from all that was found. */
void health_conclude(struct health_scene *scene);

#endif
