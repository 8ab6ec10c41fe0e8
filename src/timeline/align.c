#include "timeline/align.h"

#include <stdlib.h>

#include "common/op.h"
#include "timeline/align_solve.h"
#include "timeline/job_gaps.h"
#include "timeline/meet.h"
#include "timeline/meet_cursor.h"

const char *align_source_name(enum align_source source)
{
	static const char *const names[] = { "nothing", "anchor", "reference",
					     "direct",	"chain",  "same_clock" };

	return (unsigned int)source <= ALIGN_SAME_CLOCK ? names[source] : "nothing";
}

void align_release(struct align *align)
{
	free(align->processes);
	*align = (struct align){ .count = 0 };
}

uint64_t align_clock_ns(const struct align *align, size_t process, uint64_t common_ns)
{
	const struct align_process *own = &align->processes[process];
	uint64_t about = common_ns - (uint64_t)own->offset_ns;
	double elapsed = (double)(int64_t)(about - own->middle_ns);

	if (common_ns == 0)
		return 0;
	return about - (uint64_t)(int64_t)(own->drift / (1 + own->drift) * elapsed);
}

uint64_t align_uncertainty_ns(const struct align *align, size_t process)
{
	return align->processes[process].uncertainty_ns;
}

/* ---- a walk of its own, for who needs nothing else ------------------------------------------- */

enum {
	/* Ends of the first so many collectives of each communicator say enough, with those
	 * spread over the rest that the limit of meet.h leaves. */
	CLOCK_LIMIT = 1 << 20,
	CURSORS = 4,
};

struct walk {
	const struct job *job;
	struct meet meet;
	struct job_gaps gaps;
	struct meet_cursor **cursors;
	size_t process;
	timeline_progress *progress;
	void *context;
	uint64_t done;
	uint64_t expected;
	bool is_cancelled;
};

static struct meet_cursor *cursor_of(struct walk *walk, uint32_t comm, uint8_t source,
				     bool is_replay)
{
	const struct job_seat *seat = job_seat(walk->job, walk->process, comm);
	struct meet_cursor **cursor;

	if (seat == NULL)
		return NULL;
	cursor = &walk->cursors[((size_t)(seat - walk->job->seats) -
				 walk->job->first_seat[walk->process]) *
					CURSORS +
				(source == OP_TIME_PROXY ? 1u : 0u) + (is_replay ? 2u : 0u)];
	if (*cursor == NULL)
		*cursor = meet_cursor_new(&walk->meet, seat, source, is_replay);
	return *cursor;
}

static bool visit(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct walk *walk = context;
	struct op_batch copy;

	(void)place;
	batch = job_gaps_batch(&walk->gaps, walk->process, batch, &copy);
	for (uint32_t i = 0; i < batch->rows; i++) {
		uint64_t kind = batch->column[OP_WORD_KIND][i];
		uint64_t state = batch->column[OP_WORD_STATE][i];
		struct meet_op op = { .match = batch->column[OP_WORD_MATCH][i],
				      .signature = batch->column[OP_WORD_SIGNATURE][i],
				      .end_ns = batch->column[OP_WORD_DONE][i] };
		struct meet_cursor *cursor;

		if (!meet_is_synchronising((uint8_t)op_kind_names(kind)) || op.match == 0 ||
		    op.end_ns == 0)
			continue;
		cursor = cursor_of(walk, op_kind_comm(kind), op_state_source(state),
				   op_state_flags(state) & OP_FLAG_REPLAY);
		if (cursor != NULL)
			meet_add(cursor, &op);
	}
	walk->done += batch->rows;
	if (walk->progress != NULL)
		walk->is_cancelled = !walk->progress(
			walk->expected ? (double)walk->done / (double)walk->expected : 0.5,
			walk->context);
	return !walk->is_cancelled && walk->meet.status == OK;
}

static enum status walk_process(struct walk *walk, size_t process)
{
	const uint32_t words = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_STATE) |
			       OP_WORD_BIT(OP_WORD_MATCH) | OP_WORD_BIT(OP_WORD_SIGNATURE) |
			       OP_WORD_BIT(OP_WORD_DONE) | job_gaps_words(&walk->gaps);
	size_t seats = walk->job->first_seat[process + 1] - walk->job->first_seat[process];
	enum status status;

	walk->process = process;
	walk->cursors = calloc(seats * CURSORS + 1, sizeof(*walk->cursors));
	if (walk->cursors == NULL)
		return ERR_NO_SPACE;
	status = recording_each_batch(walk->job->recording->processes[process], words, visit, walk,
				      NULL);
	for (size_t i = 0; i < seats * CURSORS; i++)
		meet_cursor_free(walk->cursors[i]);
	free(walk->cursors);
	if (walk->is_cancelled)
		return ERR_GONE;
	return status == OK ? walk->meet.status : status;
}

enum status align_make(struct align *align, const struct job *job, timeline_progress *progress,
		       void *context)
{
	struct walk walk = { .job = job, .progress = progress, .context = context };
	enum status status = meet_init(&walk.meet, job, CLOCK_LIMIT);

	if (status == OK)
		status = job_gaps_init(&walk.gaps, job);

	*align = (struct align){ .count = 0 };
	for (size_t p = 0; p < job->recording->count; p++)
		for (size_t i = 0; i < job->recording->processes[p]->file_count; i++)
			walk.expected += job->recording->processes[p]->files[i].records;
	for (size_t p = 0; p < job->recording->count && status == OK; p++)
		status = walk_process(&walk, p);
	if (status == OK)
		status = align_solve(align, job, walk.meet.edges, walk.meet.edge_count);
	meet_release(&walk.meet);
	job_gaps_release(&walk.gaps);
	return status;
}
