/*
 * Walks over every operation once, as records or as columns, and checks whether they add up.
 *
 * The order: trace files, then the region's ring from where the files end, then live slots.
 *
 * Live slots were copied when the region was loaded; files and ring are read now. What was in
 * flight then may be finished by now. It is returned once, as finished: `seen` marks live slots
 * whose record was found on the way.
 */
#include "recording/recording.h"
#include "recording/recording_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/op.h"
#include "format/region_read.h"
#include "format/trace_read.h"

struct recording_batch;

struct walk {
	const struct recording_process *process;
	recording_visit_op *visit_op; /* one of the two */
	recording_visit_detail *visit_detail;
	void *context;
	/*
	 * Blocks of operations go here instead; everything that is not in a block still goes to
	 * visit_op.
	 */
	struct recording_batch *batch;
	struct recording_walk *counts;
	bool *seen;	     /* per flight */
	uint64_t floor;	     /* sequences up to here were returned from earlier files */
	uint64_t last;	     /* the highest sequence found in files */
	bool is_snapshot;    /* the current file is one */
	uint64_t live_after; /* of the current file: later sequences are not records */
	bool is_over;	     /* the visitor ended the walk */
	bool has_no_times;   /* from the GPU, so far: see below */
};

/* ---- network spans instead of missing samples -------------------------------------------------- */

/*
 * A process that times a share of its operations on the GPU may not have timed any yet, or cannot. Until
 * then their network spans, which are no durations, are all that is known: links are compared by them. Once a process
 * has a time of the GPU, only such times count.
 */
static bool has_no_times(const struct recording_process *process)
{
	uint64_t recorded = 0, timed = 0;

	for (size_t i = 0; i < process->comm_count; i++)
		if (process->comms[i].has_counts) {
			recorded += process->comms[i].counts.recorded;
			timed += process->comms[i].counts.timed;
		}
	return recorded > 0 && timed == 0;
}

static void take_network_time(struct op_record *op)
{
	if (op->time_source == OP_TIME_NONE && op->flags & OP_FLAG_NOT_SAMPLED &&
	    op_has_network_time(op))
		op->time_source = OP_TIME_PROXY;
}

static void recording_each_refused(struct walk *walk, const char *problem, uint64_t offset)
{
	walk->counts->refused++;
	walk->counts->refused_at = offset;
	walk->counts->problem = problem;
}

/* An operation was returned: its live slot must not be. */
static void recording_each_seen(struct walk *walk, uint32_t comm, uint64_t number)
{
	const struct recording_process *process = walk->process;
	size_t from = 0, to = process->flight_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct op_record *found = &process->flights[middle].op;

		if (found->comm == comm && found->number == number) {
			walk->seen[middle] = true;
			return;
		}
		if (found->comm < comm || (found->comm == comm && found->number < number))
			from = middle + 1;
		else
			to = middle;
	}
}

/* False: it was returned before, from another file. */
static bool recording_each_is_new(struct walk *walk, uint64_t sequence)
{
	if (sequence <= walk->floor) {
		walk->counts->repeated++;
		return false;
	}
	if (sequence > walk->last)
		walk->last = sequence;
	return true;
}

/*
 * Operations as columns. Blocks of a trace file are decoded straight into them, large ones in
 * pieces, small ones one after the other. Records from the ring, from live slots or from another
 * tool's log are added row by row.
 *
 *	columns | rows that were checked           | the next rows ...  |
 *	         0                              rows                   BATCH_ROWS
 *
 * Rows are first checked together. Only if something is wrong, they are checked one by one, like
 * single records.
 */

enum {
	BATCH_ROWS = 512,	 /* half the words of that many records fit the L1 cache */
	STRIDE = BATCH_ROWS + 8, /* columns start in different cache sets */
	TOGETHER = 16,		 /* rows checked together */
};

/* Needed to tell whether a record is valid and new, and which live slot it had. */
static const uint32_t checked_words = OP_WORD_BIT(OP_WORD_SEQUENCE) | OP_WORD_BIT(OP_WORD_KIND) |
				      OP_WORD_BIT(OP_WORD_NUMBER) | OP_WORD_BIT(OP_WORD_STATE);
/* Needed to tell whether its times fit their source. */
static const uint32_t timed_words = OP_WORDS_TIME & ~OP_WORD_BIT(OP_WORD_TASK);
/* Needed to tell whether the network's time can be used. */
static const uint32_t network_words =
	OP_WORD_BIT(OP_WORD_STATE) | OP_WORD_BIT(OP_WORD_ACTIVE) | OP_WORD_BIT(OP_WORD_CHILDREN);

struct recording_batch {
	uint32_t words; /* requested */
	recording_visit_batch *visit;
	void *context;
	enum recording_place place;
	uint32_t rows;
	bool is_over;
	uint64_t *columns[OP_RECORD_WORDS];
	struct trace_columns block;
	/* All values of its columns are valid. */
	bool is_kind_good;
	bool is_state_good;
	bool is_sequence_good;
	bool is_number_good;
	uint32_t sources; /* bit per enum op_time_source: such rows may exist */
	uint32_t
		same; /* bit per word: the whole column has the value below, whatever is in the file */
	uint64_t values[OP_RECORD_WORDS];
};

static bool flush_batch(struct recording_batch *batch)
{
	struct op_batch given = { .rows = batch->rows, .words = batch->words };

	if (batch->rows == 0 || batch->is_over)
		return !batch->is_over;
	for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
		if (batch->words & OP_WORD_BIT(word))
			given.column[word] = batch->columns[word];
	batch->rows = 0;
	batch->is_over = !batch->visit(&given, batch->place, batch->context);
	return !batch->is_over;
}

/* A single record, from a source without columns. */
static bool take_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct recording_batch *batch = context;
	uint64_t record[OP_RECORD_WORDS];

	memcpy(record, op, sizeof(record));
	if (place != batch->place && !flush_batch(batch))
		return false;
	batch->place = place;
	batch->same = 0;
	for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
		batch->columns[word][batch->rows] = record[word];
	return ++batch->rows < BATCH_ROWS || flush_batch(batch);
}

/* ---- checks of whole columns ------------------------------------------------------------------ */

/* In each of these the top bit is set if op_check() would reject the record for this word. */

/* Neither 0 nor marked busy, and above the floor. */
static inline uint64_t wrong_sequence(uint64_t sequence, uint64_t floor)
{
	return sequence | (sequence - 1 - floor);
}

/*
 * The communicator's number is not 0. Each name's number is in its table or interned (bit 7 set,
 * bit 6 not). All four at once: add what makes a number beyond its table reach 128.
 */
static inline uint64_t wrong_kind(uint64_t kind)
{
	const uint64_t margin =
		(uint64_t)(128 - OP_FUNCTIONS) << 32 | (uint64_t)(128 - OP_DATATYPES) << 40 |
		(uint64_t)(128 - OP_ALGORITHMS) << 48 | (uint64_t)(128 - OP_PROTOCOLS) << 56;
	uint64_t past_table = (kind & 0x7f7f7f7f00000000) + margin;
	uint64_t wrong = ((~kind & past_table) | (kind & kind << 1)) & 0x8080808000000000;

	_Static_assert(OP_NAME_INTERNED == 128 && OP_NAMES_INTERNED_MAX == 64,
		       "interned names have bit 7 and not bit 6");
	return wrong | wrong << 8 | wrong << 16 | wrong << 24 | ((kind & UINT32_MAX) - 1);
}

static inline uint64_t wrong_number(uint64_t number)
{
	return (number - 1) & ~number;
}

static inline uint64_t wrong_state(uint64_t word)
{
	uint64_t state = word >> 32 & 0xff, source = word >> 40 & 0xff;

	return (state - 1) | (OP_STATES - 1 - state) | (OP_TIME_SOURCES - 1 - source);
}

static uint64_t wrong_sequences(const uint64_t *sequence, uint32_t rows, uint64_t floor)
{
	uint64_t wrong = 0;

	for (; rows >= TOGETHER; rows -= TOGETHER, sequence += TOGETHER)
		for (unsigned int i = 0; i < TOGETHER; i++)
			wrong |= wrong_sequence(sequence[i], floor);
	for (; rows > 0; rows--, sequence++)
		wrong |= wrong_sequence(*sequence, floor);
	return wrong;
}

static uint64_t wrong_numbers(const uint64_t *number, uint32_t rows)
{
	uint64_t wrong = 0;

	for (; rows >= TOGETHER; rows -= TOGETHER, number += TOGETHER)
		for (unsigned int i = 0; i < TOGETHER; i++)
			wrong |= wrong_number(number[i]);
	for (; rows > 0; rows--, number++)
		wrong |= wrong_number(*number);
	return wrong;
}

/* Columns that usually have few values: these are checked when the block is opened. */
static void look_at_values(struct recording_batch *batch)
{
	uint64_t values[TRACE_VALUES_MAX], wrong = 0;
	uint32_t count = trace_columns_values(&batch->block, OP_WORD_KIND, values);

	batch->is_kind_good = count > 0;
	for (uint32_t i = 0; i < count; i++)
		wrong |= wrong_kind(values[i]);
	batch->is_kind_good &= wrong >> 63 == 0;

	count = trace_columns_values(&batch->block, OP_WORD_STATE, values);
	batch->is_state_good = count > 0;
	batch->sources = 0;
	wrong = 0;
	for (uint32_t i = 0; i < count; i++) {
		wrong |= wrong_state(values[i]);
		batch->sources |= 1u << op_state_source(values[i]) % 32;
	}
	batch->is_state_good &= wrong >> 63 == 0;
	if (!batch->is_state_good)
		batch->sources = UINT32_MAX;
}

/* Rising columns: the first and the last value suffice. */
static void look_at_ends(struct recording_batch *batch, uint64_t floor)
{
	uint64_t first, last;

	batch->is_sequence_good =
		trace_columns_rising(&batch->block, OP_WORD_SEQUENCE, &first, &last) &&
		(wrong_sequence(first, floor) | wrong_sequence(last, floor)) >> 63 == 0;
	batch->is_number_good =
		trace_columns_rising(&batch->block, OP_WORD_NUMBER, &first, &last) && first != 0;
}

/* Are all rows valid and new? */
static bool are_good(const struct recording_batch *batch, uint32_t from, uint32_t rows,
		     uint64_t floor)
{
	uint64_t wrong = 0;

	if (!batch->is_sequence_good)
		wrong |= wrong_sequences(batch->columns[OP_WORD_SEQUENCE] + from, rows, floor);
	if (!batch->is_number_good)
		wrong |= wrong_numbers(batch->columns[OP_WORD_NUMBER] + from, rows);
	for (uint32_t row = from; !batch->is_kind_good && row < from + rows; row++)
		wrong |= wrong_kind(batch->columns[OP_WORD_KIND][row]);
	for (uint32_t row = from; !batch->is_state_good && row < from + rows; row++)
		wrong |= wrong_state(batch->columns[OP_WORD_STATE][row]);
	return wrong >> 63 == 0;
}

/*
 * The top bit is set if the time is of this source, and the first is 0 or past the last. Plain
 * arithmetic, which compilers vectorize more readily than comparisons.
 */
static inline uint64_t misfit(uint64_t state, uint64_t first, uint64_t last, uint64_t source)
{
	uint64_t other_source = (state >> 40 & 0xff) ^ source;
	uint64_t before = first - 1;
	uint64_t is_below_last = (~before & last) | ((~before | last) & (before - last));

	return (other_source - 1) & ~is_below_last;
}

/* Like op_check_time(), for the rows whose time is of this source. */
static bool do_times_fit(const struct recording_batch *batch, uint32_t from, uint32_t rows,
			 enum op_time_source source)
{
	const uint64_t *state = batch->columns[OP_WORD_STATE] + from;
	const uint64_t *first = batch->columns[source == OP_TIME_KERNEL_GPU ? OP_WORD_GPU_START
					       : source == OP_TIME_PROXY    ? OP_WORD_ACTIVE
									    : OP_WORD_ISSUE] +
				from;
	const uint64_t *last =
		batch->columns[source == OP_TIME_KERNEL_GPU ? OP_WORD_GPU_STOP : OP_WORD_DONE] +
		from;
	uint64_t misfits = 0;

	for (; rows >= TOGETHER;
	     rows -= TOGETHER, state += TOGETHER, first += TOGETHER, last += TOGETHER)
		for (unsigned int i = 0; i < TOGETHER; i++)
			misfits |= misfit(state[i], first[i], last[i], source);
	for (; rows > 0; rows--, state++, first++, last++)
		misfits |= misfit(*state, *first, *last, source);
	return misfits >> 63 == 0;
}

/* ---- row by row ------------------------------------------------------------------------------- */

static void read_row(const struct recording_batch *batch, uint32_t words, uint32_t row,
		     struct op_record *op)
{
	uint64_t record[OP_RECORD_WORDS];

	for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
		record[word] = words & OP_WORD_BIT(word) ? batch->columns[word][row] : 0;
	memcpy(op, record, sizeof(*op));
}

static void write_state(struct recording_batch *batch, uint32_t row, const struct op_record *op)
{
	memcpy(&batch->columns[OP_WORD_STATE][row],
	       (const char *)op + OP_WORD_STATE * sizeof(uint64_t), sizeof(uint64_t));
}

/* Close the gaps left by invalid and duplicate rows; returns how many remain. */
static uint32_t sort_out(struct walk *walk, uint32_t words, uint32_t rows, uint64_t offset)
{
	struct recording_batch *batch = walk->batch;
	uint32_t to = batch->rows;

	for (uint32_t from = to; from < batch->rows + rows; from++) {
		struct op_record op;
		const char *problem;

		read_row(batch, words, from, &op);
		problem = op_check(&op);
		if (problem != NULL)
			recording_each_refused(walk, problem, offset);
		if (problem != NULL || !recording_each_is_new(walk, op.sequence))
			continue;
		for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
			if (words & OP_WORD_BIT(word))
				batch->columns[word][to] = batch->columns[word][from];
		to++;
	}
	return to - batch->rows;
}

/* If the times do not fit the source, it is set to none. */
static void check_times(struct walk *walk, uint32_t from, uint32_t rows)
{
	struct recording_batch *batch = walk->batch;
	bool do_fit = true;

	for (unsigned int source = OP_TIME_KERNEL_GPU; source < OP_TIME_SOURCES; source++)
		if (batch->sources & 1u << source)
			do_fit &= do_times_fit(batch, from, rows, source);
	for (uint32_t row = from; !do_fit && row < from + rows; row++) {
		struct op_record op;

		read_row(batch, timed_words, row, &op);
		walk->counts->untimed += !op_check_time(&op);
		write_state(batch, row, &op);
	}
}

/* Before check_times(), which checks the result. */
static void take_network_times(struct recording_batch *batch, uint32_t from, uint32_t rows)
{
	for (uint32_t row = from; row < from + rows; row++) {
		struct op_record op;

		read_row(batch, network_words, row, &op);
		take_network_time(&op);
		write_state(batch, row, &op);
	}
	batch->sources |= 1u << OP_TIME_PROXY;
}

/* ---- blocks ----------------------------------------------------------------------------------- */

static void note_seen(struct walk *walk, uint32_t from, uint32_t rows)
{
	const uint64_t *sequence = walk->batch->columns[OP_WORD_SEQUENCE];
	uint64_t last = walk->last;

	if (walk->batch->is_sequence_good && rows > 0)
		last = sequence[from + rows - 1] > last ? sequence[from + rows - 1] : last;
	for (uint32_t i = from; !walk->batch->is_sequence_good && i < from + rows; i++)
		last = sequence[i] > last ? sequence[i] : last;
	walk->last = last;
	for (uint32_t i = from; i < from + rows && walk->process->flight_count > 0; i++)
		recording_each_seen(walk, op_kind_comm(walk->batch->columns[OP_WORD_KIND][i]),
				    walk->batch->columns[OP_WORD_NUMBER][i]);
	walk->counts->in_trace += rows;
}

/* Add rows that were decoded after those already there. */
static void take_rows(struct walk *walk, uint32_t words, uint32_t rows, uint64_t offset)
{
	struct recording_batch *batch = walk->batch;

	if (!are_good(batch, batch->rows, rows, walk->floor))
		rows = sort_out(walk, words, rows, offset);
	note_seen(walk, batch->rows, rows);
	if (batch->words & OP_WORD_BIT(OP_WORD_STATE)) {
		if (walk->has_no_times)
			take_network_times(batch, batch->rows, rows);
		check_times(walk, batch->rows, rows);
	}
	batch->rows += rows;
	if (batch->rows == BATCH_ROWS && !flush_batch(batch))
		walk->is_over = true;
}

/*
 * Columns with one value in the whole block, as many have in block after block, are filled when the
 * value changes and not decoded. Except for the state, which check_times() may change.
 */
static void fill_same(struct recording_batch *batch)
{
	for (unsigned int word = 0; word < OP_RECORD_WORDS; word++) {
		uint32_t bit = OP_WORD_BIT(word);
		bool is_same = false;
		uint64_t value;

		if (!(batch->block.needed & bit))
			continue;
		if (word != OP_WORD_STATE && trace_columns_constant(&batch->block, word, &value))
			is_same = batch->rows == 0 ||
				  (batch->same & bit && batch->values[word] == value);
		if (is_same && !(batch->same & bit && batch->values[word] == value))
			for (uint32_t row = 0; row < BATCH_ROWS; row++)
				batch->columns[word][row] = value;
		if (is_same) {
			batch->block.needed &= ~bit;
			batch->same |= bit;
			batch->values[word] = value;
		} else {
			batch->same &= ~bit;
		}
	}
}

/* A block of operations, as columns. */
static void recording_batch_block(struct walk *walk, const struct trace_item *item)
{
	struct recording_batch *batch = walk->batch;
	uint32_t words = batch->words | checked_words;
	uint64_t *to[TRACE_WORDS_MAX];

	if (batch->words & OP_WORD_BIT(OP_WORD_STATE))
		words |= timed_words | (walk->has_no_times ? network_words : 0);
	if (trace_columns_open(&batch->block, item->payload, item->payload_bytes, OP_RECORD_WORDS,
			       item->records, words) != OK) {
		recording_each_refused(walk, "its coding is damaged", item->offset);
		return;
	}
	batch->place = RECORDING_IN_TRACE;
	look_at_values(batch);
	look_at_ends(batch, walk->floor);
	fill_same(batch);
	while (!walk->is_over) {
		uint32_t rows;

		for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
			to[word] = batch->columns[word] + batch->rows;
		rows = trace_columns_next(&batch->block, BATCH_ROWS - batch->rows, to);
		if (rows == 0)
			break;
		take_rows(walk, words, rows, item->offset);
	}
}

static void give_op(struct walk *walk, struct op_record *op, enum recording_place place)
{
	if (walk->has_no_times)
		take_network_time(op);
	walk->counts->untimed += !op_check_time(op);
	walk->counts->in_trace += place == RECORDING_IN_TRACE;
	walk->counts->in_ring += place == RECORDING_IN_RING;
	walk->counts->in_live += place == RECORDING_IN_LIVE;
	if (place != RECORDING_IN_LIVE)
		recording_each_seen(walk, op->comm, op->number);
	walk->is_over = !walk->visit_op(op, place, walk->context);
}

static void give_detail(struct walk *walk, const struct op_detail *detail,
			enum recording_place place)
{
	walk->counts->in_trace += place == RECORDING_IN_TRACE;
	walk->counts->in_ring += place == RECORDING_IN_RING;
	walk->is_over = !walk->visit_detail(detail, place, walk->context);
}

static void walk_ops(struct walk *walk, const struct trace_item *item)
{
	struct trace_records records;
	struct op_record op;
	const char *problem;
	enum status status = trace_records_init(&records, item);

	while (status == OK && !walk->is_over) {
		status = trace_records_op(&records, &op);
		if (status != OK)
			break;
		/* In a snapshot these are among the flights. */
		if (op.sequence > walk->live_after)
			continue;
		problem = op_check(&op);
		if (problem != NULL)
			recording_each_refused(walk, problem, item->offset);
		else if (walk->is_snapshot && !recording_past_place(walk->process, &op))
			continue;
		else if (recording_each_is_new(walk, op.sequence))
			give_op(walk, &op, RECORDING_IN_TRACE);
	}
	if (status == ERR_FORMAT)
		recording_each_refused(walk, "its coding is damaged", item->offset);
}

static void walk_details(struct walk *walk, const struct trace_item *item)
{
	struct trace_records records;
	struct op_detail detail;
	const char *problem;
	enum status status = trace_records_init(&records, item);

	while (status == OK && !walk->is_over) {
		status = trace_records_detail(&records, &detail);
		if (status != OK)
			break;
		problem = op_check_detail(&detail);
		if (problem != NULL)
			recording_each_refused(walk, problem, item->offset);
		/* A snapshot numbers its own details. */
		else if (walk->is_snapshot || recording_each_is_new(walk, detail.sequence))
			give_detail(walk, &detail, RECORDING_IN_TRACE);
	}
	if (status == ERR_FORMAT)
		recording_each_refused(walk, "its coding is damaged", item->offset);
}

/* Open the same file that was loaded; not another one with its name. */
static enum status open_again(const struct recording_file *file, struct trace_reader *reader)
{
	enum status status;
	int fd;

	if (file->memory != NULL)
		return trace_open_memory(reader, file->memory, file->bytes, NULL);
	fd = file_open_same(file->archive != NULL ? file->archive : file->path, file->device,
			    file->inode);
	if (fd == -1)
		return errno == ENOENT || errno == ESTALE ? ERR_GONE : ERR_SYSTEM;
	status = file->archive != NULL ? trace_open_part(reader, fd, file->start, file->bytes, NULL)
				       : trace_open_fd(reader, fd, NULL);
	close(fd);
	return status;
}

static enum status walk_file(struct walk *walk, const struct recording_file *file)
{
	struct trace_reader reader;
	struct trace_item item;
	enum status status = open_again(file, &reader);

	if (status != OK)
		return status;
	walk->floor = walk->last;
	walk->is_snapshot = file->is_snapshot;
	walk->live_after = file->is_snapshot ? file->live_after : UINT64_MAX;
	while (!walk->is_over && trace_next(&reader, &item) != TRACE_END) {
		walk->counts->damages += item.found == TRACE_DAMAGE;
		if (item.found != TRACE_BLOCK)
			continue;
		if (item.type == TRACE_OPS && walk->batch != NULL && !file->is_snapshot)
			recording_batch_block(walk, &item);
		else if (item.type == TRACE_OPS && walk->visit_op != NULL)
			walk_ops(walk, &item);
		else if (item.type == TRACE_DETAILS && walk->visit_detail != NULL)
			walk_details(walk, &item);
	}
	trace_close(&reader);
	return OK;
}

static enum status walk_ring(struct walk *walk)
{
	bool is_ops = walk->visit_op != NULL;
	uint64_t drained = walk->process->drained;
	struct region_ring ring;
	struct op_detail detail;
	struct op_record op;
	enum status status;

	if (walk->process->region == NULL)
		return OK;
	status = region_ring_open(&ring, walk->process->region,
				  is_ops ? REGION_RING : REGION_DETAILS, walk->last);
	while (status == OK && !walk->is_over) {
		status = is_ops ? region_ring_next_op(&ring, &op)
				: region_ring_next_detail(&ring, &detail);
		if (status != OK)
			break;
		if (!is_ops) {
			give_detail(walk, &detail, RECORDING_IN_RING);
			continue;
		}
		walk->counts->recovered += op.sequence <= drained && walk->process->file_count > 0;
		give_op(walk, &op, RECORDING_IN_RING);
	}
	walk->counts->overwritten += ring.overwritten;
	walk->counts->torn += ring.torn;
	walk->counts->refused += ring.refused;
	if (ring.problem != NULL)
		walk->counts->problem = ring.problem;
	region_ring_close(&ring);
	return status == ERR_GONE ? OK : status;
}

static void walk_live(struct walk *walk)
{
	for (size_t i = 0; i < walk->process->flight_count && !walk->is_over; i++) {
		struct op_record op = walk->process->flights[i].op;

		if (walk->seen[i])
			walk->counts->repeated++;
		else
			give_op(walk, &op, RECORDING_IN_LIVE);
	}
}

/* From all places. *counts may be NULL. */
static enum status recording_each_walk(struct walk *walk, struct recording_walk *counts)
{
	struct recording_walk unwanted;
	enum status status = OK;

	walk->counts = counts != NULL ? counts : &unwanted;
	*walk->counts = (struct recording_walk){ 0 };
	walk->has_no_times = has_no_times(walk->process);
	walk->seen = calloc(walk->process->flight_count + 1, sizeof(*walk->seen));
	if (walk->seen == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < walk->process->file_count && status == OK && !walk->is_over; i++)
		status = walk_file(walk, &walk->process->files[i]);
	if (status == OK && !walk->is_over)
		status = walk_ring(walk);
	if (status == OK && !walk->is_over && walk->visit_op != NULL)
		walk_live(walk);
	free(walk->seen);
	return status;
}

enum status recording_each_op(const struct recording_process *process, recording_visit_op *visit,
			      void *context, struct recording_walk *walk)
{
	struct walk state = { .process = process, .visit_op = visit, .context = context };

	if (process->foreign != NULL)
		return recording_foreign_each(process, visit, NULL, context, walk);
	return recording_each_walk(&state, walk);
}

enum status recording_each_detail(const struct recording_process *process,
				  recording_visit_detail *visit, void *context,
				  struct recording_walk *walk)
{
	struct walk state = { .process = process, .visit_detail = visit, .context = context };

	if (process->foreign != NULL)
		return recording_foreign_each(process, NULL, visit, context, walk);
	return recording_each_walk(&state, walk);
}

enum status recording_each_batch(const struct recording_process *process, uint32_t words,
				 recording_visit_batch *visit, void *context,
				 struct recording_walk *counts)
{
	struct recording_batch *batch = malloc(sizeof(*batch));
	uint64_t *room = malloc((size_t)OP_RECORD_WORDS * STRIDE * sizeof(*room));
	struct walk walk = {
		.process = process, .visit_op = take_op, .context = batch, .batch = batch
	};
	enum status status = ERR_NO_SPACE;

	if (batch != NULL && room != NULL) {
		*batch = (struct recording_batch){ .words = words,
						   .visit = visit,
						   .context = context };
		for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
			batch->columns[word] = room + (size_t)word * STRIDE;
		status = process->foreign != NULL
				 ? recording_foreign_each(process, take_op, NULL, batch, counts)
				 : recording_each_walk(&walk, counts);
		flush_batch(batch);
	}
	free(room);
	free(batch);
	return status;
}

/*
 * Two equations. The first is from the recorder's own counters, per communicator:
 *
 *	issued == recorded + in flight
 *
 * (a communicator without a slot has no counters: its operations are only in `lost`). The second
 * compares with what can be read, for the whole process:
 *
 *	records finished == records in files and ring + lost on the way
 *
 * A process that was killed or is running may have been caught between two steps: an operation that
 * is being moved from its live slot to the ring counts where it balances the equation.
 */

enum { UNDESCRIBED_MAX = 1024 };

struct tally {
	struct recording_account *account;
	const struct recording_process *process;
	uint64_t kept;	       /* finished ones up to process->recorded */
	uint64_t retiring;     /* from live slots being emptied */
	uint64_t undescribed;  /* communicators known only from operations */
	uint64_t last_comm_at; /* where the last one was found: usually the next is there, too */
	enum status status;
};

static int compare_comms(const void *one, const void *other)
{
	const struct recording_account_comm *a = one, *b = other;

	return ORDER(a->id, b->id);
}

/*
 * The entry of a communicator. One without a description gets its own entry; absurdly many of these
 * share the entry with id 0. NULL: out of memory.
 */
static struct recording_account_comm *comm_of(struct tally *tally, uint32_t id)
{
	struct recording_account *account = tally->account;
	struct recording_account_comm wanted = { .id = id }, *found, *more;

	if (tally->last_comm_at < account->comm_count &&
	    account->comms[tally->last_comm_at].id == id)
		return &account->comms[tally->last_comm_at];
	found = bsearch(&wanted, account->comms, account->comm_count, sizeof(*account->comms),
			compare_comms);
	if (found == NULL && tally->undescribed >= UNDESCRIBED_MAX && id != 0)
		return comm_of(tally, 0);
	if (found == NULL) {
		more = reallocarray(account->comms, account->comm_count + 1,
				    sizeof(*account->comms));
		if (more == NULL)
			return NULL;
		account->comms = more;
		account->comms[account->comm_count++] = wanted;
		tally->undescribed++;
		qsort(account->comms, account->comm_count, sizeof(*account->comms), compare_comms);
		found = bsearch(&wanted, account->comms, account->comm_count,
				sizeof(*account->comms), compare_comms);
	}
	tally->last_comm_at = (uint64_t)(found - account->comms);
	return found;
}

static bool tally_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct tally *tally = context;
	struct recording_account_comm *comm = comm_of(tally, op->comm);

	if (comm == NULL) {
		tally->status = ERR_NO_SPACE;
		return false;
	}
	/* A running process has finished more since its counts were read. */
	if (place != RECORDING_IN_LIVE && op->sequence <= tally->process->recorded) {
		comm->kept++;
		tally->kept++;
	}
	return true;
}

static enum status take_counts(struct recording_account *account,
			       const struct recording_process *process)
{
	account->comms = calloc(process->comm_count + 1, sizeof(*account->comms));
	if (account->comms == NULL)
		return ERR_NO_SPACE;
	account->comm_count = process->comm_count;
	for (size_t i = 0; i < process->comm_count; i++) {
		const struct recording_comm *from = &process->comms[i];
		const struct comm_counts *counts = &from->counts;

		account->comms[i] = (struct recording_account_comm){
			.id = from->info.id,
			.has_counts = from->has_counts,
			.issued = counts->issued,
			.recorded = counts->recorded,
			.timed = counts->timed,
			.untrusted = counts->untrusted,
			.captured = counts->captured,
			.replayed = counts->replayed,
			.abandoned = counts->abandoned,
			.untracked = counts->untracked,
		};
	}
	return OK;
}

static int64_t clamp(int64_t value, int64_t most)
{
	return value < 0 ? 0 : value > most ? most : value;
}

/* a - b for arbitrary numbers: exact unless absurd. */
static int64_t difference(uint64_t a, uint64_t b)
{
	const uint64_t most = INT64_MAX / 4;

	if (a >= b)
		return (int64_t)(a - b < most ? a - b : most);
	return -(int64_t)(b - a < most ? b - a : most);
}

static int64_t sum(int64_t a, int64_t b)
{
	int64_t result;

	return __builtin_add_overflow(a, b, &result) ? (a < 0 ? INT64_MIN / 4 : INT64_MAX / 4)
						     : result;
}

/* Live slots by communicator; those being emptied separately. */
static enum status count_flights(struct tally *tally)
{
	const struct recording_process *process = tally->process;

	for (size_t i = 0; i < process->flight_count; i++) {
		struct recording_account_comm *comm;

		/* One found in a trace counts as recorded there. */
		if (process->flights[i].op.sequence != 0)
			continue;
		comm = comm_of(tally, process->flights[i].op.comm);
		if (comm == NULL)
			return ERR_NO_SPACE;
		comm->in_flight += !process->flights[i].is_retiring;
		comm->retiring += process->flights[i].is_retiring;
		tally->retiring += process->flights[i].is_retiring;
	}
	return OK;
}

/*
 * Those being emptied count as in flight only where needed. Counts that are not final may be older
 * than the last records: what can be read is not missing.
 */
static void settle_comm(struct recording_account_comm *comm, bool is_final)
{
	uint64_t recorded = comm->recorded, issued = comm->issued;
	int64_t open;

	if (!comm->has_counts)
		return;
	if (!is_final && comm->kept > recorded) {
		recorded = comm->kept;
		issued = issued > recorded ? issued : recorded;
	}
	open = difference(issued, recorded) - (int64_t)comm->in_flight;
	comm->missing = open - clamp(open, (int64_t)comm->retiring);
	comm->in_flight += (uint64_t)clamp(open, (int64_t)comm->retiring);
}

static void sum_up(struct tally *tally)
{
	struct recording_account *account = tally->account;

	for (size_t i = 0; i < account->comm_count; i++) {
		struct recording_account_comm *comm = &account->comms[i];

		settle_comm(comm, tally->process->is_final);
		account->issued += comm->issued;
		account->recorded += comm->recorded;
		account->timed += comm->timed;
		account->untrusted += comm->untrusted;
		account->in_flight += comm->in_flight;
		account->kept += comm->kept;
		account->missing = sum(account->missing, comm->missing);
		account->has_counts |= comm->has_counts;
	}
	/* Counted as issued but not readable yet; its communicator is unknown. */
	account->missing -= clamp(account->missing, (int64_t)tally->process->filling);
	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		if (op_lost_is_whole(i))
			account->lost_operations += tally->process->lost[i];
		else
			account->lost_details += tally->process->lost[i];
	}
}

/* Finished but not readable: how many of these are counted as lost? */
static uint64_t lost_on_the_way(const struct recording_process *process)
{
	uint64_t lost = 0;

	for (unsigned int i = LOST_RING_BUSY; i <= LOST_WRITE_ERROR; i++)
		lost += process->lost[i];
	return lost;
}

/*
 * An upper bound for records that were overwritten in the ring before the trace thread read them,
 * and that a killed process could not count.
 */
static int64_t overwritten_at_most(const struct recording_process *process)
{
	uint64_t safe = process->drained;
	uint64_t slots;

	if (process->region == NULL)
		return 0;
	slots = process->region->header.parts[REGION_RING].count;
	for (size_t i = 0; i < process->file_count; i++)
		if (process->files[i].last_sequence > safe)
			safe = process->files[i].last_sequence;
	if (process->recorded < slots || process->recorded - slots <= safe)
		return 0;
	return difference(process->recorded - slots, safe);
}

static void compare_with_kept(struct tally *tally)
{
	struct recording_account *account = tally->account;
	const struct recording_process *process = tally->process;
	bool is_trace = strcmp(process->mode, "trace") == 0 || strcmp(process->mode, "full") == 0;
	int64_t uncounted;

	/* A snapshot has the last of them, however many there were. */
	account->keeps_all = is_trace && !process->is_snapshot &&
			     (process->file_count > 0 || process->foreign != NULL);
	if (!account->keeps_all)
		return;
	account->unread = difference(process->recorded + account->walk.recovered,
				     tally->kept + lost_on_the_way(process));
	account->unread -= clamp(account->unread, (int64_t)tally->retiring);
	uncounted = clamp(account->unread, overwritten_at_most(process));
	account->unread -= uncounted;
	account->lost_uncounted = (uint64_t)uncounted;
	account->lost_operations += account->lost_uncounted;
}

enum status recording_account(struct recording_account *account,
			      const struct recording_process *process)
{
	struct tally tally = { .account = account, .process = process };
	enum status status;

	*account = (struct recording_account){ .is_moving = process->is_moving };
	status = take_counts(account, process);
	if (status == OK)
		status = recording_each_op(process, tally_op, &tally, &account->walk);
	if (status == OK)
		status = tally.status;
	if (status == OK)
		status = count_flights(&tally);
	if (status != OK)
		return status;
	sum_up(&tally);
	compare_with_kept(&tally);
	account->is_exact = process->has_counts && process->is_final && account->missing == 0 &&
			    account->unread == 0 && account->walk.refused == 0 &&
			    account->walk.damages == 0;
	for (size_t i = 0; i < account->comm_count; i++)
		account->is_exact &= account->comms[i].missing >= 0;
	return OK;
}

void recording_account_release(struct recording_account *account)
{
	free(account->comms);
	account->comms = NULL;
	account->comm_count = 0;
}
