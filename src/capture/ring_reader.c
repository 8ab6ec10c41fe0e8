/*
 * A ring slot is read as R2 says: sequence, copy, sequence again. What a slot can say about the
 * sequence number wanted:
 *	the same	take it
 *	a later one	overrun: missed
 *	an earlier one	its writer is still at it, or was overtaken and gave up: wait a little, then
 *			take it as missed
 */
#include "capture/ring_reader.h"

#include "base/order.h"
#include "base/status.h"
#include "region/region_layout.h"

enum { PATIENCE_NS = 1000 * 1000 * 1000 }; /* with a writer that does not finish */

/* Copy the record with this sequence, or say why not: ERR_GONE overrun, ERR_RANGE not there yet. */
static enum status take_one(const struct ring_reader *reader, uint64_t sequence, uint64_t *to)
{
	uint64_t *slot = reader->slots + ((sequence - 1) & (reader->count - 1)) * reader->words;
	/* Pairs with the release in record_push(). */
	uint64_t found = load_acquire(&slot[0]);

	if (found != sequence) {
		found &= ~RING_BUSY;
		return found > sequence ? ERR_GONE : ERR_RANGE;
	}
	to[0] = sequence;
	for (uint32_t i = 1; i < reader->words; i++)
		to[i] = load_relaxed(&slot[i]);
	fence_acquire();
	return load_relaxed(&slot[0]) == sequence ? OK : ERR_GONE;
}

/* The oldest that can still be there; all before it are gone at once. */
static void pass_overrun(struct ring_reader *reader, struct ring_missed *missed)
{
	uint64_t head = load_relaxed(reader->head);
	uint64_t first = head >= reader->count ? head - reader->count + 1 : 1;
	uint64_t next = reader->tail + 2 > first ? reader->tail + 2 : first;

	missed->overrun += next - 1 - reader->tail;
	reader->tail = next - 1;
}

/* A writer is at it. True: give up on it. */
static bool is_out_of_patience(struct ring_reader *reader, uint64_t head, uint64_t now_ns)
{
	if (reader->stuck_ns == 0)
		reader->stuck_ns = now_ns;
	return now_ns - reader->stuck_ns >= PATIENCE_NS || head - reader->tail >= reader->count / 2;
}

uint32_t ring_reader_take(struct ring_reader *reader, uint64_t now_ns, bool is_last,
			  uint64_t *batch, uint32_t most, struct ring_missed *missed)
{
	uint64_t head = load_relaxed(reader->head);
	uint32_t taken = 0;

	*missed = (struct ring_missed){ 0 };
	while (reader->tail < head && taken < most) {
		switch (take_one(reader, reader->tail + 1, batch + (size_t)taken * reader->words)) {
		case OK:
			reader->tail++;
			taken++;
			break;
		case ERR_GONE:
			pass_overrun(reader, missed);
			break;
		default:
			if (!is_last && !is_out_of_patience(reader, head, now_ns))
				return taken;
			missed->busy++;
			reader->tail++;
		}
		reader->stuck_ns = 0;
	}
	return taken;
}
