/* One writing of all families: what its parts share. */
#ifndef METRICS_WRITER_H
#define METRICS_WRITER_H

#include "view/metrics_rows.h"

struct metrics_writer {
	struct metrics_out out;
	struct metrics_model model;
	long only;	    /* the process to be shown, -1 all */
	enum status status; /* of the first failure that is not the sink's */
	/* Rows that are shown as other. */
	uint64_t folded_sizes;
	uint64_t folded_functions;
	uint64_t folded_choices;
	uint64_t folded_links;
};

static inline bool metrics_is_in_file(const struct metrics_writer *writer, uint32_t process)
{
	return writer->only < 0 || writer->only == (long)process;
}

static inline bool metrics_is_shown(const struct metrics_writer *writer,
				    const struct metrics_member *member)
{
	return member->is_used && !member->is_folded && metrics_is_in_file(writer, member->process);
}

/* Families of what stands, in parts because another stands between them. */
void metrics_write_oldest(struct metrics_writer *writer);
void metrics_write_last(struct metrics_writer *writer);

/* Families of totals and links, in parts because others stand between them. */
void metrics_write_totals(struct metrics_writer *writer);
void metrics_write_links(struct metrics_writer *writer);

/* Who is stuck. The counts are by class, NULL: none. */
void metrics_write_verdicts(struct metrics_writer *writer);
void metrics_write_verdict_counts(struct metrics_writer *writer, const uint64_t *counts);

/* The agent about itself, and what was folded. After everything else. */
void metrics_write_agent(struct metrics_writer *writer, const struct metrics_agent *agent);

#endif
