/*
 * Operations as columns. Blocks of a trace file are decoded straight into them, large ones in pieces,
 * small ones one behind the other; what comes from the ring, from live slots or from another tool's
 * log is put there row by row.
 *
 *	columns	| rows that were checked           | the next rows ...  |
 *		0                              rows                   BATCH_ROWS
 *
 * Rows are looked at together first. Only when something is not as it should be they are taken one by
 * one, with the same checks that a single record gets.
 */
#include <stdlib.h>
#include <string.h>

#include "op/op_check.h"
#include "recording/recording_each.h"
#include "recording/recording_load.h"
#include "trace/trace_decode.h"

enum {
	BATCH_ROWS = 512,	 /* half the words of so many records stay in the nearest cache */
	STRIDE = BATCH_ROWS + 8, /* columns begin in different cache sets */
	TOGETHER = 16,		 /* rows that are looked at together */
};

/* What says whether a record is acceptable and new, and which live slot it had. */
static const uint32_t checked_words = OP_WORD_BIT(OP_WORD_SEQUENCE) | OP_WORD_BIT(OP_WORD_KIND) |
				      OP_WORD_BIT(OP_WORD_NUMBER) | OP_WORD_BIT(OP_WORD_STATE);
/* What says whether its times fit their source. */
static const uint32_t timed_words = OP_WORDS_TIME & ~OP_WORD_BIT(OP_WORD_TASK);

struct recording_batch {
	uint32_t words; /* asked for */
	recording_visit_batch *visit;
	void *context;
	enum recording_place place;
	uint32_t rows;
	bool is_over;
	uint64_t *columns[OP_RECORD_WORDS];
	struct trace_columns block;
	/* Of its columns: all values are acceptable. */
	bool is_kind_good;
	bool is_state_good;
	bool is_sequence_good;
	bool is_number_good;
	uint32_t sources; /* bit per enum op_time_source: there may be such rows */
	uint32_t
		same; /* bit per word: all of its column has the value below, whatever is in the file */
	uint64_t values[OP_RECORD_WORDS];
};

static bool flush(struct recording_batch *batch)
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

/* A single record, from wherever there are no columns. */
static bool take_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct recording_batch *batch = context;
	uint64_t record[OP_RECORD_WORDS];

	memcpy(record, op, sizeof(record));
	if (place != batch->place && !flush(batch))
		return false;
	batch->place = place;
	batch->same = 0;
	for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
		batch->columns[word][batch->rows] = record[word];
	return ++batch->rows < BATCH_ROWS || flush(batch);
}

/* ---- checks of whole columns ------------------------------------------------------------------ */

/* The top bit of each of these is set when op_check() would refuse the record for this word. */

/* Neither 0, nor with the mark of a ring slot; and above the floor. */
static inline uint64_t wrong_sequence(uint64_t sequence, uint64_t floor)
{
	return sequence | (sequence - 1 - floor);
}

/* A communicator's number is not 0. A name's number is in its table, or interned: with bit 7 and
 * without bit 6. All four at a time: what makes one that its table does not have reach 128. */
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

/* Columns that mostly have a few values: these are looked at when the block is opened. */
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

/* Columns that rise: the first and the last value say all. */
static void look_at_ends(struct recording_batch *batch, uint64_t floor)
{
	uint64_t first, last;

	batch->is_sequence_good =
		trace_columns_rising(&batch->block, OP_WORD_SEQUENCE, &first, &last) &&
		(wrong_sequence(first, floor) | wrong_sequence(last, floor)) >> 63 == 0;
	batch->is_number_good =
		trace_columns_rising(&batch->block, OP_WORD_NUMBER, &first, &last) && first != 0;
}

/* Are all rows acceptable and new? */
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

/* The top bit is set when the time is of this source, and the first is 0 or past the last. Plain
 * arithmetic: compilers turn it into wide instructions sooner than comparisons. */
static inline uint64_t misfit(uint64_t state, uint64_t first, uint64_t last, uint64_t source)
{
	uint64_t other_source = (state >> 40 & 0xff) ^ source;
	uint64_t before = first - 1;
	uint64_t is_below_last = (~before & last) | ((~before | last) & (before - last));

	return (other_source - 1) & ~is_below_last;
}

/* As op_check_time() has it, of the rows whose time is of this source. */
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

/* Those that are acceptable and new close ranks; gives back how many. */
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

/* Where the times do not fit the source, it is none. */
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
		memcpy(&batch->columns[OP_WORD_STATE][row],
		       (const char *)&op + OP_WORD_STATE * sizeof(uint64_t), sizeof(uint64_t));
	}
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

/* Rows that were decoded behind those that are there. */
static void take_rows(struct walk *walk, uint32_t words, uint32_t rows, uint64_t offset)
{
	struct recording_batch *batch = walk->batch;

	if (!are_good(batch, batch->rows, rows, walk->floor))
		rows = sort_out(walk, words, rows, offset);
	note_seen(walk, batch->rows, rows);
	if (batch->words & OP_WORD_BIT(OP_WORD_STATE))
		check_times(walk, batch->rows, rows);
	batch->rows += rows;
	if (batch->rows == BATCH_ROWS && !flush(batch))
		walk->is_over = true;
}

/* Columns with one value in the whole block, as many have in block after block: filled when it is another one
 * than before, and not decoded. But for the state, which check_times() may change. */
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

void recording_batch_block(struct walk *walk, const struct trace_item *item)
{
	struct recording_batch *batch = walk->batch;
	uint32_t words = batch->words | checked_words;
	uint64_t *to[TRACE_WORDS_MAX];

	if (batch->words & OP_WORD_BIT(OP_WORD_STATE))
		words |= timed_words;
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
		flush(batch);
	}
	free(room);
	free(batch);
	return status;
}
