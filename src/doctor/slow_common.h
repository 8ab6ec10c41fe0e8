/* What kinds of transfers that are slow have in common, and which class that makes. For the room's own use. */
#ifndef SLOW_COMMON_H
#define SLOW_COMMON_H

#include "doctor/slow_find.h"

struct slow_common {
	const struct slow_rows *rows;
	const struct slow_cells *cells;
	const bool *is_taken; /* rows that are slow and explained by nobody else */
	const struct slow_row *worst;
	size_t slow;
	bool is_one_size, is_one_choice, is_one_comm, is_one_name, is_switched, is_all_over;
	bool has_net, has_nvlink, has_other;
	uint8_t least_class, most_class;
	double lost_ns, switched_ns, confidence, percent;
	uint32_t ranks;
	uint32_t host; /* of all slow ones within nodes; UINT32_MAX several */
	struct slow_wire wire;
};

/* rows and is_taken are borrowed for as long as it is used. cells are set by the caller. */
struct slow_common slow_common_find(const struct slow_rows *rows, const bool *is_taken);
/* Where the time of the row over nodes went that lost most. */
void slow_common_wire(struct slow_search *search, struct slow_common *common);
bool slow_common_is_wire_fine(const struct slow_common *common);
bool slow_common_is_wire_slow(const struct slow_common *common);
bool slow_common_is_wire_partial(const struct slow_common *common);
/* Slower transfers over nodes, by so little that links within nodes may be the reason as well. */
bool slow_common_is_either(const struct slow_common *common);
enum verdict_class slow_common_class(const struct slow_common *common);

/* Title, evidence, advice and what is missing, of a verdict whose class is set. */
void slow_common_title(struct verdict *verdict, const struct slow_common *common,
		       const struct job *job);
void slow_common_rows(struct slow_search *search, struct verdict *verdict,
		      const struct slow_common *common);
void slow_common_tell_wire(struct verdict *verdict, const struct slow_common *common);
void slow_common_advise(struct verdict *verdict, const struct slow_common *common);
void slow_common_missing(struct verdict *verdict, const struct slow_common *common);

#endif
