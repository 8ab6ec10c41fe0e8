/*
 * What is done with each operation: the loops that a report's time is spent in.
 *
 * Rows are gone through some dozens at a time. First what each of them is (gather): that waits for memory and
 * depends on nothing, so the processor does many rows of it at once. Then each kind of sum in a loop of
 * its own, over the rows that have a duration (nearly all); the others are taken one by one (sift).
 *
 * Whatever the loops, each sum gets its operations in the order of the records: figures that round are the
 * same however many are taken at once.
 */
#include <stdlib.h>

#include "common/attributes.h"
#include "timeline/meet_cursor.h"
#include "timeline/scan.h"

enum { ROWS_AT_ONCE = 64 };

/* The words that sums are made of. */
enum {
	BYTES,
	DONE,
	FROM, /* of durations, by their source */
	TO,
	MATCH,
	SIGNATURE,
	STEPS,
	NET,
	WORDS,
};

/* Some rows of a batch. */
struct step {
	const struct op_batch *batch;
	uint32_t first; /* row of the batch */
	uint32_t rows;
	uint32_t marks; /* of any of them */
	/* Those that have a duration and pass the filter, one behind the other: */
	uint32_t count;
	bool is_sifted; /* not just all rows */
	const struct scan_entry *entries[ROWS_AT_ONCE];
	const uint64_t *words[WORDS]; /* of the batch, or copies; no FROM: their sources differ */
	uint64_t durations_ns[ROWS_AT_ONCE];
	uint8_t places[ROWS_AT_ONCE]; /* when sifted: which rows they are */
	uint64_t copies[WORDS][ROWS_AT_ONCE];
};

/* A column from the step's first row on. */
static const uint64_t *column(const struct step *step, unsigned int word)
{
	return step->batch->column[word] + step->first;
}

/* ---- what each row is ------------------------------------------------------------------------ */

/* All of a state that makes a difference here, and above it what tells size classes apart (op_size_class() is a
 * call, and numbers them otherwise). */
static inline uint64_t what_of(uint64_t state, uint64_t bytes)
{
	const uint64_t mask =
		UINT64_C(0xffff00000000) | (uint32_t)(OP_FLAG_REPLAY | OP_STAMPS_UNTRUSTED);
	uint64_t size = 64 - (unsigned int)__builtin_clzll(bytes | 1) + (bytes != 0) +
			(bytes == OP_BYTES_UNKNOWN);

	return (state & mask) | size << 48;
}

static inline struct scan_entry *place_of(struct scan *scan, const struct scan_key *key)
{
	uint64_t mixed = (key->kind ^ key->what << 13 ^ key->what >> 30 ^ key->tag) *
			 UINT64_C(0x9e3779b97f4a7c15);

	_Static_assert(SCAN_CACHE == 256, "the hash has 8 bits");
	return &scan->cache[mixed >> 56];
}

static inline bool is_like(const struct scan_entry *entry, const struct scan_key *key)
{
	return entry->kind == key->kind && entry->what == key->what && entry->tag == key->tag;
}

static inline struct scan_key key_of(const struct scan *scan, const struct step *step, uint32_t row)
{
	uint64_t bytes = column(step, OP_WORD_BYTES)[row];

	return (struct scan_key){ .kind = column(step, OP_WORD_KIND)[row],
				  .what = what_of(column(step, OP_WORD_STATE)[row], bytes),
				  .tag = scan->has_tags ? column(step, OP_WORD_USER_TAG)[row] : 0,
				  .bytes = bytes };
}

/* It came after another one than last time. NULL: never seen. */
static APART struct scan_entry *look_up(struct scan *scan, const struct step *step, uint32_t row)
{
	struct scan_key key = key_of(scan, step, row);
	struct scan_entry *entry = place_of(scan, &key);

	return is_like(entry, &key) ? entry : NULL;
}

/* As many as there are entries for, and in the current stretch of time. */
static void gather(struct scan *scan, struct step *step)
{
	const uint64_t *kinds = column(step, OP_WORD_KIND), *states = column(step, OP_WORD_STATE);
	const uint64_t *bytes = column(step, OP_WORD_BYTES), *done = column(step, OP_WORD_DONE);
	const uint64_t *tags = scan->has_tags ? column(step, OP_WORD_USER_TAG) : NULL;
	struct scan_entry *latest = scan->latest;
	uint64_t end_ns = scan->stretch_end_ns;
	uint32_t n = 0, marks = 0;

	for (; n < step->rows && done[n] < end_ns; n++) {
		struct scan_entry *entry = latest->next;

		if (UNLIKELY(entry->kind != kinds[n] ||
			     entry->what != what_of(states[n], bytes[n]) ||
			     (tags != NULL && entry->tag != tags[n]))) {
			entry = look_up(scan, step, n);
			if (entry == NULL)
				break;
			latest->next = entry;
		}
		step->entries[n] = entry;
		marks |= entry->marks;
		latest = entry;
	}
	scan->latest = latest;
	step->rows = step->count = n;
	step->marks = marks;
}

/* The filter's limits in time, and its tag. */
static bool is_passing(const struct scan *scan, const struct step *step, uint32_t place)
{
	bool has_limits = scan->since_ns != 0 || scan->until_ns != UINT64_MAX;

	if (has_limits &&
	    !filter_is_within(scan->since_ns, scan->until_ns, column(step, OP_WORD_DONE)[place],
			      column(step, OP_WORD_ISSUE)[place]))
		return false;
	return !scan->filter->has_tag || column(step, OP_WORD_USER_TAG)[place] == scan->filter->tag;
}

/* ---- one by one ------------------------------------------------------------------------------ */

static uint64_t duration_of(const struct step *step, uint32_t place, uint8_t source)
{
	uint64_t done_ns = column(step, OP_WORD_DONE)[place];

	switch (source) {
	case OP_TIME_KERNEL_GPU:
		return column(step, OP_WORD_GPU_STOP)[place] -
		       column(step, OP_WORD_GPU_START)[place];
	case OP_TIME_PROXY:
		return done_ns - column(step, OP_WORD_ACTIVE)[place];
	case OP_TIME_HOST:
		return done_ns - column(step, OP_WORD_ISSUE)[place];
	default:
		return 0;
	}
}

/* Either may be 0: not known. */
static void widen_span(struct scan_rank *rank, uint64_t issue_ns, uint64_t done_ns)
{
	uint64_t first_ns = issue_ns != 0 ? issue_ns : done_ns;
	uint64_t last_ns = done_ns > issue_ns ? done_ns : issue_ns;

	if (last_ns == 0)
		return;
	if (first_ns < rank->untimed_first_ns)
		rank->untimed_first_ns = first_ns;
	if (last_ns > rank->untimed_last_ns)
		rank->untimed_last_ns = last_ns;
}

/* No duration. Neither done nor captured: in flight, or never seen to end. */
static COLD void take_untimed(struct scan *scan, const struct scan_entry *entry,
			      const struct step *step, uint32_t place)
{
	const uint32_t blind =
		OP_FLAG_API_ONLY | OP_FLAG_COPY_ENGINE | OP_FLAG_SELF | OP_FLAG_UNTRACKED;
	const struct recording_process *process = scan->job->recording->processes[scan->process];
	size_t seat = entry->cell->seat;
	const struct recording_comm *comm =
		&process->comms[seat - scan->job->first_seat[scan->process]];
	uint64_t state_word = column(step, OP_WORD_STATE)[place];
	struct scan_open *open = &scan->opens[seat];
	uint8_t state = op_state_state(state_word);

	entry->cell->calls++;
	entry->cell->bytes += column(step, OP_WORD_BYTES)[place];
	widen_span(entry->rank, column(step, OP_WORD_ISSUE)[place],
		   column(step, OP_WORD_DONE)[place]);
	if (entry->marks & (SCAN_JOINED | SCAN_APART))
		scan->meet.untimed++;
	if (state >= OP_DONE || column(step, OP_WORD_DONE)[place] != 0 ||
	    op_state_flags(state_word) & blind || process->life == RECORDING_ENDED)
		return;
	/* They run in order: what is before one that is done is over. */
	if (state != OP_RUNNING && comm->has_counts &&
	    column(step, OP_WORD_NUMBER)[place] <= comm->counts.last_done_number)
		return;
	entry->cell->open++;
	scan->report->completeness.in_flight++;
	if (open->count++ > 0)
		return;
	open->match = column(step, OP_WORD_MATCH)[place];
	open->signature = column(step, OP_WORD_SIGNATURE)[place];
	open->issue_ns = column(step, OP_WORD_ISSUE)[place];
	open->function = (uint8_t)entry->cell->names;
	open->state = state;
}

static void take_iteration_op(struct scan *scan, const struct scan_entry *entry,
			      const struct step *step, uint32_t place)
{
	uint64_t bytes = column(step, OP_WORD_BYTES)[place];

	if (scan->iteration_count == scan->iteration_room) {
		size_t room = scan->iteration_room ? scan->iteration_room * 2 : 4096;
		void *grown;

		if (scan->iteration_count >= ITERATIONS_OPS_MAX) {
			scan->is_iteration_cut = true;
			return;
		}
		grown = realloc(scan->iteration_ops, room * sizeof(*scan->iteration_ops));
		if (grown == NULL) {
			scan->status = ERR_NO_SPACE;
			return;
		}
		scan->iteration_ops = grown;
		scan->iteration_room = room;
	}
	scan->iteration_ops[scan->iteration_count++] = (struct iterations_op){
		.symbol = entry->symbol,
		.tag = column(step, OP_WORD_USER_TAG)[place],
		.issue_ns = column(step, OP_WORD_ISSUE)[place],
		.done_ns = column(step, OP_WORD_DONE)[place],
		.duration_ns = duration_of(step, place, entry->cell->source),
		.bytes = bytes == OP_BYTES_UNKNOWN ? 0 : bytes,
		.is_timed = entry->cell->source != OP_TIME_NONE,
	};
}

static void add_link(struct scan *scan, const struct scan_entry *entry, const struct step *step,
		     uint32_t place)
{
	uint64_t bytes = column(step, OP_WORD_BYTES)[place];
	uint32_t seat = entry->cell->seat;
	struct link *link;

	if (scan->options->without_joins)
		return;
	link = links_get(&scan->links, scan->job->seats[seat].comm, seat,
			 (int32_t)(column(step, OP_WORD_ENDS)[place] >> 32));
	if (link == NULL)
		return;
	link->sends++;
	link->send_steps += (uint32_t)column(step, OP_WORD_STEPS)[place];
	link->send_net_ns += column(step, OP_WORD_WAITS + OP_WAIT_SEND_NET)[place];
	link->bytes += bytes == OP_BYTES_UNKNOWN ? 0 : bytes;
}

static void take_odd(struct scan *scan, const struct scan_entry *entry, const struct step *step,
		     uint32_t place)
{
	if (entry->marks & SCAN_CAPTURED) {
		entry->cell->captured++;
		return;
	}
	entry->cell->untrusted += (entry->marks & SCAN_UNTRUSTED) != 0;
	take_untimed(scan, entry, step, place);
	if (entry->marks & SCAN_SEND)
		add_link(scan, entry, step, place);
}

/* What is not plain is done now; the others close ranks. Gives back how many rows are looked at. */
static uint32_t sift(struct scan *scan, struct step *step)
{
	bool is_iterated = scan->process == scan->iteration_process;
	uint32_t looked_at = 0;

	step->is_sifted = true;
	step->count = 0;
	for (uint32_t n = 0; n < step->rows; n++) {
		const struct scan_entry *entry = step->entries[n];

		if (entry->cell == NULL || !is_passing(scan, step, n))
			continue;
		looked_at += !(entry->marks & SCAN_HIDDEN);
		if (is_iterated && !(entry->marks & SCAN_CAPTURED))
			take_iteration_op(scan, entry, step, n);
		if (entry->marks & (SCAN_CAPTURED | SCAN_UNTIMED)) {
			take_odd(scan, entry, step, n);
			continue;
		}
		step->places[step->count] = (uint8_t)n;
		step->entries[step->count++] = entry;
	}
	return looked_at;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void set_words(struct step *step)
{
	step->words[BYTES] = column(step, OP_WORD_BYTES);
	step->words[DONE] = step->words[TO] = column(step, OP_WORD_DONE);
	step->words[MATCH] = column(step, OP_WORD_MATCH);
	step->words[SIGNATURE] = column(step, OP_WORD_SIGNATURE);
	step->words[STEPS] = column(step, OP_WORD_STEPS);
	step->words[NET] = column(step, OP_WORD_WAITS + OP_WAIT_SEND_NET);
	step->words[FROM] = NULL;
	switch (step->marks & SCAN_ANY_SOURCE) {
	case SCAN_TIMED << OP_TIME_KERNEL_GPU:
		step->words[FROM] = column(step, OP_WORD_GPU_START);
		step->words[TO] = column(step, OP_WORD_GPU_STOP);
		break;
	case SCAN_TIMED << OP_TIME_PROXY:
		step->words[FROM] = column(step, OP_WORD_ACTIVE);
		break;
	case SCAN_TIMED << OP_TIME_HOST:
		step->words[FROM] = column(step, OP_WORD_ISSUE);
		break;
	}
}

/* Rows are missing: what is left of each word goes where it is without gaps. */
static void close_gaps(struct step *step)
{
	for (unsigned int word = 0; word < WORDS; word++) {
		bool is_for_joins = word >= MATCH;

		if (step->words[word] == NULL || (is_for_joins && !(step->marks & SCAN_JOINED)))
			continue;
		for (uint32_t i = 0; i < step->count; i++)
			step->copies[word][i] = step->words[word][step->places[i]];
		step->words[word] = step->copies[word];
	}
}

static void find_durations(struct step *step)
{
	const uint64_t *from = step->words[FROM], *to = step->words[TO];

	for (uint32_t i = 0; from != NULL && i < step->count; i++)
		step->durations_ns[i] = to[i] - from[i];
	for (uint32_t i = 0; from == NULL && i < step->count; i++)
		step->durations_ns[i] = duration_of(step, step->is_sifted ? step->places[i] : i,
						    step->entries[i]->cell->source);
}

static void add_to_cells(const struct tally_scale *scale, const struct step *step)
{
	const uint64_t *bytes = step->words[BYTES];

	for (uint32_t i = 0; i < step->count; i++) {
		struct scan_cell *cell = step->entries[i]->cell;
		uint64_t ns = step->durations_ns[i];

		cell->calls++;
		cell->bytes += bytes[i];
		cell->sum_ns += ns;
		cell->square_sum += (double)ns * (double)ns;
		cell->min_ns = ns < cell->min_ns ? ns : cell->min_ns;
		cell->max_ns = ns > cell->max_ns ? ns : cell->max_ns;
		cell->buckets[tally_bucket(scale, ns)]++;
	}
}

static void add_to_ranks(const struct step *step)
{
	const uint64_t *done = step->words[DONE];
	struct busy_run run = { .busy = NULL };

	for (uint32_t i = 0; i < step->count; i++) {
		struct busy *busy = &step->entries[i]->rank->busy;
		uint64_t ns = step->durations_ns[i];

		if (UNLIKELY(busy != run.busy)) {
			busy_run_end(&run);
			busy_run_start(&run, busy);
		}
		if (LIKELY(done[i] >= ns && done[i] != 0))
			busy_run_add(&run, done[i] - ns, done[i]);
	}
	busy_run_end(&run);
}

static void join(const struct step *step)
{
	const struct meet_columns columns = { .match = step->words[MATCH],
					      .signature = step->words[SIGNATURE],
					      .duration_ns = step->durations_ns,
					      .end_ns = step->words[DONE],
					      .send_net_ns = step->words[NET],
					      .steps = step->words[STEPS],
					      .bytes = step->words[BYTES] };
	struct meet_run run = { .cursor = NULL };

	for (uint32_t i = 0, count = step->count; i < count; i++) {
		const struct meet_what *what = &step->entries[i]->meet;

		if (what->cursor == NULL)
			continue;
		if (UNLIKELY(what->cursor != run.cursor)) {
			meet_run_end(&run);
			meet_run_start(&run, what->cursor);
		}
		if (UNLIKELY(!meet_run_add(&run, &columns, i, what))) {
			step->entries[i]->cell->apart++;
			step->entries[i]->cell->apart_ns += step->durations_ns[i];
		}
	}
	meet_run_end(&run);
}

/* What few operations have. */
static void take_rest(struct scan *scan, const struct scan_entry *entry, const struct step *step,
		      uint32_t i)
{
	struct scan_cell *cell = entry->cell;

	cell->untrusted += (entry->marks & SCAN_UNTRUSTED) != 0;
	if (entry->marks & SCAN_SEND)
		add_link(scan, entry, step, step->is_sifted ? step->places[i] : i);
	if (!(entry->marks & SCAN_APART))
		return;
	cell->apart++;
	cell->apart_ns += step->durations_ns[i];
	if (cell->source == OP_TIME_KERNEL_GPU || cell->source == OP_TIME_PROXY)
		scan->meet.unmatched++;
	else
		scan->meet.untimed++;
}

static void add_up(struct scan *scan, struct step *step)
{
	set_words(step);
	if (step->count < step->rows)
		close_gaps(step);
	find_durations(step);
	add_to_cells(&scan->scale, step);
	add_to_ranks(step);
	if (step->marks & SCAN_JOINED)
		join(step);
	if (step->marks & (SCAN_APART | SCAN_SEND | SCAN_UNTRUSTED))
		for (uint32_t i = 0; i < step->count; i++)
			take_rest(scan, step->entries[i], step, i);
}

static void add_rows(struct scan *scan, struct step *step)
{
	const uint32_t odd = SCAN_IGNORED | SCAN_HIDDEN | SCAN_CAPTURED | SCAN_UNTIMED;
	bool is_filtered = scan->since_ns != 0 || scan->until_ns != UINT64_MAX ||
			   scan->filter->has_tag || scan->process == scan->iteration_process;
	uint32_t looked_at = step->rows;

	step->is_sifted = false;
	if (is_filtered || step->marks & odd)
		looked_at = sift(scan, step);
	scan->report->completeness.looked_at += looked_at;
	if (step->count > 0)
		add_up(scan, step);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* The next stretch of time begins with this row, unless it is not looked at: then it is taken alone. */
static void take_over(struct scan *scan, struct step *step, const struct scan_entry *entry)
{
	uint64_t done_ns = column(step, OP_WORD_DONE)[0];

	if (entry->cell != NULL && !(entry->marks & SCAN_CAPTURED) && scan->local != NULL &&
	    is_passing(scan, step, 0)) {
		scan_tell_series(scan);
		windows_local_move(scan->local, done_ns);
		scan->stretch_end_ns = scan->local->current_end_ns;
		/* With those that follow it; but for a time past the end of all times. */
		if (done_ns < scan->stretch_end_ns)
			return;
	}
	step->rows = step->count = 1;
	step->entries[0] = entry;
	step->marks = entry->marks;
	add_rows(scan, step);
}

/* Some rows from `first` on; gives back how many. 0: something was found out about the first one. */
static uint32_t take_some(struct scan *scan, const struct op_batch *batch, uint32_t first)
{
	uint32_t left = batch->rows - first;
	struct scan_entry *entry;
	struct scan_key key;
	struct step step;

	step.batch = batch;
	step.first = first;
	step.rows = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
	gather(scan, &step);
	if (LIKELY(step.rows > 0)) {
		add_rows(scan, &step);
		return step.rows;
	}
	key = key_of(scan, &step, 0);
	entry = place_of(scan, &key);
	if (is_like(entry, &key))
		take_over(scan, &step, entry);
	else
		scan_entry_fill(scan, &key, entry);
	return step.rows;
}

/* Cells count in 32 bits: to the tables long before they are full. */
static void flush_in_time(struct scan *scan, uint32_t rows)
{
	scan->unflushed += rows;
	if (UNLIKELY(scan->unflushed > UINT32_MAX / 2)) {
		scan->status = scan_flush(scan);
		scan_entry_forget(scan);
		scan->unflushed = 0;
	}
}

static void tell_progress(struct scan *scan)
{
	double fraction = scan->ops_expected
				  ? 0.95 * (double)scan->ops_done / (double)scan->ops_expected
				  : 0.5;

	if (scan->status == OK && scan->options->progress != NULL &&
	    !scan->options->progress(fraction, scan->options->progress_context))
		scan->status = ERR_GONE;
}

bool scan_rows_visit(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct scan *scan = context;
	struct op_batch copy;

	(void)place;
	batch = job_gaps_batch(&scan->gaps, scan->process, batch, &copy);
	if (scan->gaps.status != OK)
		scan->status = scan->gaps.status;
	for (uint32_t first = 0; first < batch->rows && scan->status == OK;)
		first += take_some(scan, batch, first);
	flush_in_time(scan, batch->rows);
	scan->ops_done += batch->rows;
	tell_progress(scan);
	return scan->status == OK;
}
