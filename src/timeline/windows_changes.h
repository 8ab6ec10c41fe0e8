/* How lasting changes are found. For the use of src/timeline/windows_*.c. */
#ifndef WINDOWS_CHANGES_H
#define WINDOWS_CHANGES_H

#include "timeline/windows_make.h"

enum { CHANGE_POINTS_MAX = 128 };

/* What comes about by chance more often is no change. */
#define CHANGE_CHANCE 1e-3

/* A meeting, and later several together. */
struct change_point {
	uint64_t ns;
	double value;	/* log of busbw */
	double cost_ns; /* shortest duration x ranks */
	uint32_t meetings;
};

/* One change in one communicator. */
struct change_raw {
	uint32_t comm;
	uint8_t function;
	uint8_t size_class;
	uint64_t at_ns;
	double before;
	double after;
	double chance;
	double lost_ns;
	uint64_t meetings_before;
	uint64_t meetings_after;
};

/* What changes are counted against: communicators that were looked at. */
struct change_tested {
	uint8_t kind, function, size_class;
	uint32_t comms;
};

/* Both lists are bounded by the meetings that are kept: a series has sixteen at least, a change five on each side. */
struct change_search {
	const struct timeline_report *report;
	const struct meet *meet;
	struct change_raw *raws;
	size_t raw_count;
	size_t series; /* tested so far */
	struct change_tested *tested;
	size_t tested_count;
	enum status status;
};

/* windows_cuts.c: changes of one series, points [from, to), are added to search->raws, filled as `like` is. */
void windows_cut_series(struct change_search *search, struct change_raw *like,
			const struct change_point *points, size_t from, size_t to,
			unsigned int depth);

/* windows_group.c: search->raws become windows->changes, of which the most important are kept. Sorts both. */
enum status windows_group_changes(struct windows *windows, struct change_search *search);

#endif
