/*
 * What a running process did before what its ring buffer still holds. Whoever follows it keeps stretches of its
 * operations, the older the fewer:
 *
 *	wall time   |   0   |   1   |   2   |   3   | ...      slots of PAST_SLOT_NS, the same on all hosts
 *	operations  |====   |====   |====   |====   | ...      the first PAST_STRETCH of each
 *	kept        the first ones; a slot whose number is divisible by 2^k for 2^k times as long as others
 *
 * so that agents of a job keep the same ones without asking each other. A snapshot has some of them ahead of the last
 * operations, and its info says which:
 *
 *	snapshot_past=FIRST FROM-UNTIL FROM-UNTIL ...      the first of the last operations; recorder's clock
 *
 * Readers do not see them unless recording_show_past() was called. Then what is between stretches is cut out of time, for all
 * processes alike: rates, shares and waiting are then those of the time that was recorded, and recording_past_wall()
 * says when it was.
 */
#include "recording/recording.h"
#include "recording/recording_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "format/trace_read.h"
#include "format/trace_write.h"

#define PAST_SLOT_NS UINT64_C(30000000000)
/* Changes are found with about this error. */
#define PAST_CUT_NS UINT64_C(5000000000)

enum {
	PAST_STRETCH = 4096,
	PAST_LEVELS = 9, /* the oldest are 2 to 17 hours old */
	PAST_FIRST = 2,	 /* always kept: how fast it was when it began */
	PAST_NEWEST = 4, /* as is_kept(), if they fit */
	/* Records read for one, whatever their times are: some milliseconds. */
	PAST_READ_MOST = 16 * PAST_STRETCH,
	PAST_PARTS = 4, /* a small snapshot has the beginnings of at least this many */
	PAST_KEPT_MAX = 64,
	PAST_SHOWN_MAX = 256, /* different ones of all processes: agents keep nearly the same */
};

struct past_stretch {
	uint64_t slot;
	uint64_t from_ns; /* recorder's clock: its first operation */
	uint32_t count;
	unsigned char *trace; /* its operations as a trace file in memory */
	size_t length;
};

struct recording_past {
	struct past_stretch list[PAST_KEPT_MAX]; /* by slot */
	size_t count;
	uint64_t slot;	/* now */
	uint64_t first; /* sequence: nothing of this slot was finished before it */
	uint64_t seen;	/* the last sequence at the scan before */
	bool is_taken;	/* the current slot's stretch is whole */
};

/* When it was over, as far as is known: nearly the order of the records. */
static uint64_t past_time(const struct op_record *op)
{
	return op->done_ns != 0 ? op->done_ns : op->issue_ns;
}

static void stretch_free(struct past_stretch *stretch)
{
	free(stretch->trace);
	*stretch = (struct past_stretch){ .trace = NULL };
}

void recording_past_free(struct recording_past *past)
{
	for (size_t i = 0; past != NULL && i < past->count; i++)
		stretch_free(&past->list[i]);
	free(past);
}

uint64_t recording_past_bytes(const struct recording_process *process)
{
	const struct recording_past *past = process->past;
	uint64_t bytes = past != NULL ? sizeof(*past) : 0;

	for (size_t i = 0; past != NULL && i < past->count; i++)
		bytes += past->list[i].length;
	return bytes;
}

/* ---- which are kept ---------------------------------------------------------------------------- */

/* What fits into `most` operations, at most `each` of a stretch. */
struct past_choice {
	uint64_t most, each;
	unsigned int
		newest; /* slots that all are kept of; half as many again of each age twice as high */
	size_t from;	/* of list: older ones are left out, but for the first */
};

static bool is_kept(const struct recording_past *past, const struct past_choice *choice, size_t i)
{
	uint64_t slot = past->list[i].slot;
	unsigned int level = slot != 0 ? (unsigned int)__builtin_ctzll(slot) : PAST_LEVELS;

	if (i < PAST_FIRST)
		return true;
	level = level < PAST_LEVELS ? level : PAST_LEVELS;
	return i >= choice->from && slot + ((uint64_t)choice->newest << level) > past->slot;
}

static uint64_t kept_of(const struct past_stretch *stretch, const struct past_choice *choice)
{
	return stretch->count < choice->each ? stretch->count : choice->each;
}

static uint64_t operations_kept(const struct recording_past *past, const struct past_choice *choice)
{
	uint64_t total = 0;

	for (size_t i = 0; i < past->count; i++)
		total += is_kept(past, choice, i) ? kept_of(&past->list[i], choice) : 0;
	return total;
}

static struct past_choice choose(const struct recording_past *past, uint64_t most, uint64_t each)
{
	struct past_choice choice = { .most = most, .each = each, .newest = PAST_NEWEST };

	while (choice.newest > 1 && operations_kept(past, &choice) > most)
		choice.newest /= 2;
	while (choice.from < past->count && operations_kept(past, &choice) > most)
		choice.from++;
	return choice;
}

static void past_trim(struct recording_past *past, uint64_t most)
{
	struct past_choice choice = choose(past, most, PAST_STRETCH);
	bool is_wanted[PAST_KEPT_MAX];
	size_t kept = 0;

	for (size_t i = 0; i < past->count; i++)
		is_wanted[i] = is_kept(past, &choice, i);
	for (size_t i = 0; i < past->count; i++)
		if (is_wanted[i])
			past->list[kept++] = past->list[i];
		else
			stretch_free(&past->list[i]);
	past->count = kept;
}

/* ---- taking ------------------------------------------------------------------------------------ */

struct taking {
	struct past_stretch stretch;
	struct trace_writer writer;
	struct op_record *ops; /* of a block */
	uint32_t pending;
	uint32_t skipped;
	uint64_t first, last;	    /* sequences of the slot, */
	uint64_t from_ns, until_ns; /* and its time */
	enum status status;
};

/* False: the stretch is whole. */
static bool take_one(const struct op_record *op, enum recording_place place, void *context)
{
	struct taking *taking = context;
	struct past_stretch *stretch = &taking->stretch;
	uint64_t time_ns = past_time(op);

	if (place == RECORDING_IN_LIVE || op->sequence < taking->first)
		return true;
	if (time_ns < taking->from_ns)
		return ++taking->skipped < PAST_READ_MOST;
	if (op->sequence > taking->last || time_ns >= taking->until_ns)
		return false;
	if (stretch->count++ == 0)
		stretch->from_ns = time_ns;
	taking->ops[taking->pending++] = *op;
	if (taking->pending == TRACE_OPS_PER_BLOCK) {
		taking->status = trace_write_ops(&taking->writer, taking->ops, taking->pending);
		taking->pending = 0;
	}
	return taking->status == OK && stretch->count < PAST_STRETCH;
}

static enum status take_ops(struct taking *taking, const struct recording_process *process)
{
	struct region_ring ring;
	struct op_record op;
	enum status status;

	if (process->region != NULL) {
		status = region_ring_open(&ring, process->region, REGION_RING, taking->first - 1);
		while (status == OK && (status = region_ring_next_op(&ring, &op)) == OK &&
		       take_one(&op, RECORDING_IN_RING, taking))
			;
		region_ring_close(&ring);
	} else {
		status = recording_each_op(process, take_one, taking, NULL);
	}
	if (taking->status != OK || (status != OK && status != ERR_GONE))
		return taking->status != OK ? taking->status : status;
	return trace_write_ops(&taking->writer, taking->ops, taking->pending);
}

/* What cannot be taken is not there: nothing depends on it. */
static void take_stretch(struct recording_process *process)
{
	struct recording_past *past = process->past;
	struct taking taking = { .stretch = { .slot = past->slot },
				 .writer = { .fd = -1 },
				 .first = past->first,
				 .last = process->recorded };

	if (past->count == PAST_KEPT_MAX ||
	    !recording_clock_ns(process, past->slot * PAST_SLOT_NS, &taking.from_ns) ||
	    !recording_clock_ns(process, (past->slot + 1) * PAST_SLOT_NS, &taking.until_ns))
		return;
	taking.ops = calloc(TRACE_OPS_PER_BLOCK, sizeof(*taking.ops));
	if (taking.ops != NULL && trace_writer_open_memory(&taking.writer, 0) == OK &&
	    take_ops(&taking, process) == OK && taking.stretch.count > 0)
		taking.stretch.trace = trace_writer_take(&taking.writer, &taking.stretch.length);
	if (taking.stretch.trace != NULL)
		past->list[past->count++] = taking.stretch;
	trace_writer_close(&taking.writer);
	free(taking.ops);
}

bool recording_past_follow(struct recording_process *process, uint64_t wall_ns, uint64_t most,
			   bool may_take)
{
	uint64_t slot = wall_ns / PAST_SLOT_NS;
	struct recording_past *past = process->past;
	bool is_due;

	if ((process->region == NULL && process->file_count == 0) ||
	    process->life != RECORDING_ALIVE || most < PAST_STRETCH)
		return false;
	if (past == NULL) {
		past = process->past = calloc(1, sizeof(*past));
		if (past == NULL)
			return false;
		past->slot = slot;
		past->is_taken = true;
	}
	is_due = !past->is_taken &&
		 (slot != past->slot || process->recorded + 1 - past->first >= PAST_STRETCH);
	if (is_due && !may_take)
		return false;
	if (is_due) {
		take_stretch(process);
		past->is_taken = true;
	}
	if (slot != past->slot) {
		past->slot = slot;
		past->first = past->seen + 1;
		past->is_taken = false;
		past_trim(past, most);
	}
	past->seen = process->recorded;
	return is_due;
}

/* ---- in a snapshot ----------------------------------------------------------------------------- */

struct copying {
	struct recording_past_ops *to;
	uint64_t before; /* sequence */
	uint64_t left;	 /* of this stretch */
	uint64_t until_ns;
	size_t room;
};

static enum status copy_block(struct copying *copying, const struct trace_item *item)
{
	struct recording_past_ops *to = copying->to;
	struct trace_records records;
	struct op_record op;
	enum status status = trace_records_init(&records, item);

	while (status == OK && copying->left > 0 &&
	       (status = trace_records_op(&records, &op)) == OK && op.sequence < copying->before) {
		if (to->count == copying->room)
			break;
		to->ops[to->count++] = op;
		copying->left--;
		if (past_time(&op) > copying->until_ns)
			copying->until_ns = past_time(&op);
	}
	return status == ERR_NO_SPACE ? status : OK;
}

static enum status copy_stretch(struct copying *copying, const struct past_stretch *stretch,
				char *text, size_t size)
{
	size_t had = copying->to->count;
	struct trace_reader reader;
	struct trace_item item;
	enum status status = trace_open_memory(&reader, stretch->trace, stretch->length, NULL);

	copying->until_ns = 0;
	if (status != OK)
		return status;
	while (status == OK && trace_next(&reader, &item) != TRACE_END)
		if (item.found == TRACE_BLOCK && item.type == TRACE_OPS)
			status = copy_block(copying, &item);
	trace_close(&reader);
	if (copying->to->count > had)
		text_append(text, size, " %" PRIu64 "-%" PRIu64, stretch->from_ns,
			    copying->until_ns);
	return status;
}

enum status recording_past_copy(struct recording_past_ops *to,
				const struct recording_process *process, uint64_t before,
				size_t most)
{
	const struct recording_past *past = process->past;
	struct copying copying = { .to = to, .before = before };
	uint64_t each = most / PAST_PARTS < PAST_STRETCH ? most / PAST_PARTS : PAST_STRETCH;
	enum status status = OK;
	struct past_choice choice;

	*to = (struct recording_past_ops){ .ops = NULL };
	if (past == NULL || past->count == 0 || each == 0)
		return OK;
	choice = choose(past, most, each);
	copying.room = (size_t)operations_kept(past, &choice);
	to->ops = calloc(copying.room + 1, sizeof(*to->ops));
	if (to->ops == NULL)
		return ERR_NO_SPACE;
	text_format(to->text, sizeof(to->text), "%" PRIu64, before);
	for (size_t i = 0; i < past->count && status == OK; i++) {
		copying.left = kept_of(&past->list[i], &choice);
		if (is_kept(past, &choice, i))
			status = copy_stretch(&copying, &past->list[i], to->text, sizeof(to->text));
	}
	return status;
}

/* ---- from a snapshot --------------------------------------------------------------------------- */

/* A stretch of all processes that have it. Wall time, and the wall time that readers see. */
struct shown_stretch {
	uint64_t from_ns, until_ns;
	uint64_t shown_ns;
	uint64_t slot;
	bool is_torn; /* a process does not have it, and has an older one */
};

struct recording_shown {
	struct shown_stretch *list; /* by time */
	size_t count;
	uint64_t recent_ns; /* wall: from here on nothing is cut out */
};

/* Of one process: what is added to its clock in each stretch. */
struct recording_shift {
	uint64_t from_ns, until_ns, added_ns;
};

/* "FIRST FROM-UNTIL ...", by time; a line that is not so is ignored. */
static size_t read_past(const struct recording_process *process, uint64_t *first,
			struct recording_shift list[PAST_KEPT_MAX])
{
	char text[RECORDING_PAST_TEXT];
	const char *at = text;
	size_t count = 0;
	char *end;

	if (!info_get(process->info, process->info_bytes, "snapshot_past", text, sizeof(text)))
		return 0;
	*first = strtoull(at, &end, 10);
	for (at = end; *at == ' ' && count < PAST_KEPT_MAX; at = end) {
		struct recording_shift *one = &list[count];

		one->from_ns = strtoull(at + 1, &end, 10);
		if (end == at + 1 || *end != '-')
			return 0;
		at = end + 1;
		one->until_ns = strtoull(at, &end, 10);
		if (end == at || one->until_ns < one->from_ns ||
		    (count > 0 && one->from_ns < one[-1].from_ns))
			return 0;
		count++;
	}
	return *at == '\0' ? count : 0;
}

void recording_past_load(struct recording_process *process)
{
	struct recording_shift list[PAST_KEPT_MAX];

	process->past_before = 0;
	if (read_past(process, &process->past_before, list) == 0)
		process->past_before = 0;
}

static struct shown_stretch *shown_find(struct recording_shown *shown, uint64_t slot)
{
	for (size_t i = 0; i < shown->count; i++)
		if (shown->list[i].slot == slot)
			return &shown->list[i];
	return NULL;
}

/* Clocks differ, and it begins a little after the slot. */
static uint64_t slot_of(uint64_t from_ns)
{
	return (from_ns + PAST_SLOT_NS / 4) / PAST_SLOT_NS;
}

static enum status add_stretch(struct recording_shown *shown, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t slot = slot_of(from_ns);
	struct shown_stretch *one = shown_find(shown, slot);

	if (one == NULL && shown->count == PAST_SHOWN_MAX)
		return OK;
	if (one == NULL) {
		if (!list_grow(&shown->list, shown->count, sizeof(*shown->list)))
			return ERR_NO_SPACE;
		shown->list[shown->count++] =
			(struct shown_stretch){ from_ns, until_ns, 0, slot, false };
		return OK;
	}
	one->from_ns = from_ns > one->from_ns ? from_ns : one->from_ns;
	one->until_ns = until_ns < one->until_ns ? until_ns : one->until_ns;
	return OK;
}

/*
 * Those that this process does not have. It may have begun later, or be followed by an agent that did: then it has none of
 * that time. But a rank that is missing in between would seem to do nothing there.
 */
static void tear(struct recording_shown *shown, const struct recording_process *process,
		 const struct recording_shift *list, size_t count)
{
	for (size_t i = 0; i < shown->count; i++) {
		bool is_there = false, is_older = false;
		uint64_t from_ns;

		for (size_t k = 0; k < count; k++)
			if (recording_wall_ns(process, list[k].from_ns, &from_ns)) {
				is_there |= slot_of(from_ns) == shown->list[i].slot;
				is_older |= slot_of(from_ns) < shown->list[i].slot;
			}
		shown->list[i].is_torn |= is_older && !is_there;
	}
}

static int by_time(const void *left, const void *right)
{
	const struct shown_stretch *a = left, *b = right;

	return ORDER(a->from_ns, b->from_ns);
}

struct first_time {
	uint64_t before; /* sequence */
	uint64_t ns;
};

static bool find_first(const struct op_record *op, enum recording_place place, void *context)
{
	struct first_time *first = context;

	if (place == RECORDING_IN_LIVE || op->sequence < first->before)
		return true;
	first->ns = past_time(op);
	return first->ns == 0;
}

/* Where the last operations of a process begin. */
static void add_recent(struct recording_shown *shown, const struct recording_process *process)
{
	struct first_time first = { .before = process->past_before };
	uint64_t wall_ns;

	recording_each_op(process, find_first, &first, NULL);
	if (first.ns != 0 && recording_wall_ns(process, first.ns, &wall_ns) &&
	    wall_ns > shown->recent_ns)
		shown->recent_ns = wall_ns;
}

/* Without what is cut out between them. */
static void shown_finish(struct recording_shown *shown)
{
	uint64_t added_ns = 0, next_ns = shown->recent_ns;
	size_t kept = 0;

	if (shown->count > 1)
		qsort(shown->list, shown->count, sizeof(*shown->list), by_time);
	for (size_t i = 0; i < shown->count; i++) {
		struct shown_stretch *one = &shown->list[i];

		if (one->until_ns > shown->recent_ns)
			one->until_ns = shown->recent_ns;
		if (kept > 0 && one->from_ns < shown->list[kept - 1].until_ns)
			one->from_ns = shown->list[kept - 1].until_ns;
		if (!one->is_torn && one->from_ns < one->until_ns)
			shown->list[kept++] = *one;
	}
	shown->count = kept;
	for (size_t i = kept; i-- > 0;) {
		struct shown_stretch *one = &shown->list[i];

		added_ns += next_ns - one->until_ns;
		one->shown_ns = one->from_ns + added_ns;
		next_ns = one->from_ns;
	}
}

/* What is added to the clock of a process in each stretch. */
static enum status make_shifts(struct recording_process *process,
			       const struct recording_shown *shown)
{
	process->shifts = calloc(shown->count + 1, sizeof(*process->shifts));
	if (process->shifts == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < shown->count; i++) {
		const struct shown_stretch *one = &shown->list[i];
		struct recording_shift *shift = &process->shifts[i];
		uint64_t to_ns = 0;

		if (recording_clock_ns(process, one->from_ns, &shift->from_ns) &&
		    recording_clock_ns(process, one->until_ns, &shift->until_ns) &&
		    recording_clock_ns(process, one->shown_ns, &to_ns) && to_ns >= shift->from_ns)
			shift->added_ns = to_ns - shift->from_ns;
	}
	if (!recording_clock_ns(process, shown->recent_ns, &process->recent_ns))
		process->recent_ns = 0;
	process->shift_count = shown->count;
	return OK;
}

static bool is_one_job(const struct recording *recording)
{
	for (size_t i = 1; i < recording->count; i++)
		if (strcmp(recording->processes[i]->job, recording->processes[0]->job) != 0 ||
		    recording->processes[i]->run != recording->processes[0]->run)
			return false;
	return true;
}

/* The stretches of all processes, and from where on all have everything. */
static enum status shown_make(struct recording_shown *shown, const struct recording *recording)
{
	struct recording_shift list[PAST_KEPT_MAX];
	uint64_t first, from_ns, until_ns;
	enum status status = OK;
	size_t count;

	for (size_t i = 0; i < recording->count && status == OK; i++) {
		const struct recording_process *process = recording->processes[i];

		count = read_past(process, &first, list);
		if (process->past_before != 0)
			add_recent(shown, process);
		for (size_t k = 0; k < count && status == OK; k++)
			if (recording_wall_ns(process, list[k].from_ns, &from_ns) &&
			    recording_wall_ns(process, list[k].until_ns, &until_ns))
				status = add_stretch(shown, from_ns, until_ns);
	}
	for (size_t i = 0; i < recording->count; i++) {
		count = read_past(recording->processes[i], &first, list);
		tear(shown, recording->processes[i], list, count);
	}
	shown_finish(shown);
	return status;
}

enum status recording_show_past(struct recording *recording)
{
	struct recording_shown *shown;
	enum status status;

	recording_hide_past(recording);
	if (!is_one_job(recording))
		return OK;
	shown = recording->shown = calloc(1, sizeof(*shown));
	status = shown != NULL ? shown_make(shown, recording) : ERR_NO_SPACE;
	for (size_t i = 0; i < recording->count && status == OK && shown->count > 0; i++)
		status = make_shifts(recording->processes[i], shown);
	if (status != OK || shown->count == 0)
		recording_hide_past(recording);
	return status;
}

void recording_hide_past(struct recording *recording)
{
	for (size_t i = 0; i < recording->count; i++) {
		free(recording->processes[i]->shifts);
		recording->processes[i]->shifts = NULL;
		recording->processes[i]->shift_count = 0;
	}
	if (recording->shown != NULL)
		free(recording->shown->list);
	free(recording->shown);
	recording->shown = NULL;
}

uint64_t recording_past_wall(const struct recording *recording, uint64_t shown_ns)
{
	const struct recording_shown *shown = recording != NULL ? recording->shown : NULL;

	for (size_t i = 0; shown != NULL && i < shown->count; i++) {
		const struct shown_stretch *one = &shown->list[i];
		uint64_t end_ns = i + 1 < shown->count ? one[1].shown_ns : shown->recent_ns;

		if (shown_ns < end_ns)
			return shown_ns < one->shown_ns && one->shown_ns - shown_ns > one->from_ns
				       ? 0
				       : one->from_ns + shown_ns - one->shown_ns;
	}
	return shown_ns;
}

bool recording_past_gap(const struct recording *recording, uint64_t shown_ns, uint64_t *from_ns,
			uint64_t *until_ns)
{
	const struct recording_shown *shown = recording != NULL ? recording->shown : NULL;

	for (size_t i = 0; shown != NULL && i < shown->count; i++) {
		const struct shown_stretch *one = &shown->list[i];
		bool is_last = i + 1 == shown->count;
		uint64_t cut_ns = is_last ? shown->recent_ns : one[1].shown_ns;

		*from_ns = one->until_ns;
		*until_ns = is_last ? shown->recent_ns : one[1].from_ns;
		if (shown_ns + PAST_CUT_NS >= cut_ns && shown_ns <= cut_ns + PAST_CUT_NS &&
		    *until_ns > *from_ns + PAST_CUT_NS)
			return true;
	}
	return false;
}

static void shift_time(uint64_t *ns, uint64_t added_ns)
{
	*ns += *ns != 0 ? added_ns : 0;
}

bool recording_past_place(const struct recording_process *process, struct op_record *op)
{
	uint64_t time_ns = past_time(op);

	if (process->shifts == NULL)
		return op->sequence >= process->past_before;
	if (time_ns >= process->recent_ns)
		return true;
	for (size_t i = 0; i < process->shift_count; i++) {
		const struct recording_shift *shift = &process->shifts[i];

		if (time_ns < shift->from_ns || time_ns >= shift->until_ns)
			continue;
		shift_time(&op->issue_ns, shift->added_ns);
		shift_time(&op->launch_ns, shift->added_ns);
		shift_time(&op->task_ns, shift->added_ns);
		shift_time(&op->active_ns, shift->added_ns);
		shift_time(&op->done_ns, shift->added_ns);
		shift_time(&op->gpu_start_ns, shift->added_ns);
		shift_time(&op->gpu_stop_ns, shift->added_ns);
		return true;
	}
	return false;
}
