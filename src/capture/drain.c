/*
 * One pass: communicators and names that are new, then the rings from where the last pass stopped.
 *
 * The disk may take its time, or never answer. So all writing is done by this thread alone. What was taken
 * from the rings and what is under way is in the account of own_passes.h: whoever ends the job looks at it.
 */
#include "capture/drain.h"

#include <stdlib.h>

#include "capture/drain_file.h"
#include "capture/own_passes.h"
#include "capture/own_thread.h"
#include "capture/recorder.h"
#include "capture/ring_reader.h"

/* One ring, and where its records are on their way to the file. */
struct drain_ring {
	struct ring_reader reader;
	uint64_t taken;	  /* account: sequence last taken, or missed and counted */
	uint64_t in_hand; /* account: of these, how many are being written */
	enum lost_reason overrun, busy, unwritten;
	uint64_t *drained; /* in the region's header */
};

static struct {
	bool is_running; /* written once */

	/* The thread's own. */
	struct drain_file file;
	struct drain_ring ops, details;
	uint64_t *batch;
	uint64_t sweep_ns;

	struct own_passes passes; /* its account guards taken and in_hand of the rings, too */
} drain = { .passes = OWN_PASSES_INIT, .file = { .writer = { .fd = -1 } } };

static enum lost_reason reason_of(enum status status, enum lost_reason unwritten)
{
	if (unwritten == LOST_DETAIL_QUOTA)
		return LOST_DETAIL_QUOTA;
	return status == ERR_RANGE	? LOST_QUOTA
	       : status == ERR_NO_SPACE ? LOST_NO_SPACE
					: LOST_WRITE_ERROR;
}

/* What was taken is this thread's to write from now on. False: too late, it is accounted for. */
static bool take_in_hand(struct drain_ring *ring, uint32_t taken, const struct ring_missed *missed)
{
	bool is_ours;

	pthread_mutex_lock(&drain.passes.account);
	is_ours = !drain.passes.is_abandoned;
	if (is_ours) {
		count_lost(ring->overrun, missed->overrun);
		count_lost(ring->busy, missed->busy);
		ring->taken = ring->reader.tail;
		ring->in_hand = taken;
	}
	pthread_mutex_unlock(&drain.passes.account);
	return is_ours;
}

static void put_down(struct drain_ring *ring, uint32_t taken, enum status status)
{
	struct region_header *header = recorder.region.header;

	pthread_mutex_lock(&drain.passes.account);
	if (drain.passes.is_abandoned) {
		/* give_up() counted them as lost: take that back when it is not true. */
		if (status == OK)
			count_lost(reason_of(ERR_SYSTEM, ring->unwritten), -(uint64_t)taken);
	} else {
		if (status != OK)
			count_lost(reason_of(status, ring->unwritten), taken);
		store_relaxed(ring->drained, ring->taken);
	}
	if (status == OK && ring == &drain.ops)
		bump_relaxed(&header->trace_records, taken);
	ring->in_hand = 0;
	drain.passes.progress++;
	pthread_mutex_unlock(&drain.passes.account);
	store_relaxed(&header->trace_bytes, drain.file.writer.bytes);
}

/* True when there may be more. What came while a block was written is left for the next pass, or
 * blocks would have few records; at the end it is not. */
static bool drain_ring_once(struct drain_ring *ring, bool is_last)
{
	struct ring_missed missed;
	uint32_t taken = ring_reader_take(&ring->reader, recorder_now(), is_last, drain.batch,
					  TRACE_OPS_PER_BLOCK, &missed);
	enum status status = OK;

	if (!take_in_hand(ring, taken, &missed))
		return false;
	if (taken > 0)
		status = ring == &drain.ops
				 ? trace_write_ops(&drain.file.writer, (void *)drain.batch, taken)
				 : trace_write_details(&drain.file.writer, (void *)drain.batch,
						       taken);
	put_down(ring, taken, status);
	return taken == TRACE_OPS_PER_BLOCK || (is_last && taken > 0);
}

/* True when there were records. */
static bool drain_pass(bool is_last)
{
	uint64_t now = recorder_now(), before = drain.ops.reader.tail + drain.details.reader.tail;

	drain_file_save_news(&drain.file);
	while (drain_ring_once(&drain.ops, is_last))
		;
	while (drain.details.reader.count != 0 && drain_ring_once(&drain.details, is_last))
		;
	if (own_passes_are_abandoned(&drain.passes))
		return false;
	if (now - drain.sweep_ns > OWN_THREAD_SWEEP_NS) {
		drain.sweep_ns = now;
		own_thread_sweep(now);
	}
	drain_file_save_slowly(&drain.file, now);
	return drain.ops.reader.tail + drain.details.reader.tail != before;
}

static void *drain_thread(void *unused)
{
	bool found;

	(void)unused;
	do
		found = drain_pass(false);
	while (own_passes_rest(&drain.passes, found));
	drain_pass(true);
	if (!own_passes_are_abandoned(&drain.passes))
		drain_file_close(&drain.file);
	pthread_mutex_lock(&drain.passes.account);
	own_passes_end(&drain.passes);
	pthread_mutex_unlock(&drain.passes.account);
	return NULL;
}

static bool make_rings(void)
{
	struct region_writer *region = &recorder.region;

	drain.ops = (struct drain_ring){ .reader = { .slots = (void *)region->ring,
						     .count = region->ring_count,
						     .words = OP_RECORD_WORDS,
						     .head = &region->header->ring_head },
					 .drained = &region->header->drained,
					 .overrun = LOST_RING_OVERRUN,
					 .busy = LOST_RING_BUSY,
					 .unwritten = LOST_QUOTA };
	drain.details = (struct drain_ring){ .reader = { .slots = (void *)region->details,
							 .count = region->detail_count,
							 .words = OP_DETAIL_WORDS,
							 .head = &region->header->details_head },
					     .drained = &region->header->details_drained,
					     .overrun = LOST_DETAIL_OVERRUN,
					     .busy = LOST_DETAIL_OVERRUN,
					     .unwritten = LOST_DETAIL_QUOTA };
	drain.batch = malloc((size_t)TRACE_OPS_PER_BLOCK * OP_RECORD_BYTES);
	return drain.batch != NULL && drain.ops.reader.count > 0;
}

enum status drain_start(const char *path, gid_t group, uint64_t quota)
{
	enum status status;

	if (!make_rings())
		return ERR_NO_SPACE;
	status = drain_file_open(&drain.file, path, group, quota);
	if (status != OK)
		return status;
	status = own_thread_start(drain_thread, "ringside", &drain.passes.changed);
	drain.is_running = status == OK;
	if (!drain.is_running)
		drain_file_discard(&drain.file, path);
	return status;
}

bool drain_has_comm(uint32_t slot, uint32_t id)
{
	return !drain.is_running || load_acquire(&drain.file.ended_comms[slot]) == id;
}

void drain_save_comms(void)
{
	if (drain.is_running)
		own_passes_ask(&drain.passes);
}

/* The thread is stuck in the disk. What it has in hand may never reach the file, what was overwritten
 * will not; what is left in the ring can be read there. */
static void give_up(const struct drain_ring *ring)
{
	uint64_t head = load_relaxed(ring->reader.head), tail = ring->taken;
	uint64_t overwritten = head > ring->reader.count ? head - ring->reader.count : 0;

	count_lost(reason_of(ERR_SYSTEM, ring->unwritten), ring->in_hand);
	if (overwritten > tail) {
		count_lost(ring->overrun, overwritten - tail);
		tail = overwritten;
	}
	store_relaxed(ring->drained, tail);
}

void drain_finish(void)
{
	if (!drain.is_running)
		return;
	pthread_mutex_lock(&drain.passes.account);
	if (!own_passes_finish(&drain.passes)) {
		give_up(&drain.ops);
		give_up(&drain.details);
	}
	pthread_mutex_unlock(&drain.passes.account);
}
