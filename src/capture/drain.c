/*
 * One pass: communicators and names that are new, then the ring from where the last pass stopped.
 *
 * A ring slot is read as R2 says: sequence, copy, sequence again. What a slot can say about the
 * sequence number wanted:
 *	the same	take it
 *	a later one	overrun: lost, counted
 *	an earlier one	its writer is still at it, or was overtaken and gave up: wait a little, then
 *			count it as lost
 */
#include "capture/drain.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/recorder.h"
#include "trace/trace_write.h"

enum {
	PASS_NS = 5 * 1000 * 1000,	  /* between passes while records come */
	IDLE_PASS_NS = 50 * 1000 * 1000,  /* and while none come */
	SLOW_NS = 1000 * 1000 * 1000,	  /* anchors and counts */
	SWEEP_NS = 200 * 1000 * 1000,	  /* how long a finished operation may linger */
	PATIENCE_NS = 1000 * 1000 * 1000, /* with a writer that does not finish */
	FINISH_S = 2,			  /* at exit, with a thread stuck in the disk */
	STACK_BYTES = 256 * 1024,
};

/* One ring and how far it was read. */
struct drain_ring {
	uint64_t *slots;
	uint32_t count, words;
	uint64_t *head;
	uint64_t tail;	   /* sequence last taken or counted */
	uint64_t stuck_ns; /* since when the next one is waited for; 0 not */
	enum lost_reason overrun, unwritten;
};

static struct {
	pthread_mutex_t lock;
	struct trace_writer writer;
	struct drain_ring ops, details;
	uint64_t *batch;
	uint32_t *saved_comms; /* per slot: id whose description is in the file */
	struct trace_comm_counts *counts;
	uint64_t names_saved;
	uint64_t slow_ns, sweep_ns;
	uint64_t counts_head; /* ring head when counts were last written */
	uint32_t is_over;
} drain = { .lock = PTHREAD_MUTEX_INITIALIZER, .writer = { .fd = -1 } };

static enum lost_reason reason_of(enum status status, enum lost_reason unwritten)
{
	if (unwritten == LOST_DETAIL_QUOTA)
		return LOST_DETAIL_QUOTA;
	return status == ERR_RANGE	? LOST_QUOTA
	       : status == ERR_NO_SPACE ? LOST_NO_SPACE
					: LOST_WRITE_ERROR;
}

/* Copy the record with this sequence, or say why not: ERR_GONE overrun, ERR_RANGE not there yet. */
static enum status ring_take(const struct drain_ring *ring, uint64_t sequence, uint64_t *to)
{
	uint64_t *slot = ring->slots + ((sequence - 1) & (ring->count - 1)) * ring->words;
	/* Pairs with the release in record_push(). */
	uint64_t found = load_acquire(&slot[0]);

	if (found != sequence) {
		found &= ~RING_BUSY;
		return found > sequence ? ERR_GONE : ERR_RANGE;
	}
	to[0] = sequence;
	for (uint32_t i = 1; i < ring->words; i++)
		to[i] = load_relaxed(&slot[i]);
	fence_acquire();
	return load_relaxed(&slot[0]) == sequence ? OK : ERR_GONE;
}

/* The oldest that can still be there; all before it are gone at once. */
static void count_overrun(struct drain_ring *ring, uint64_t head)
{
	uint64_t first = head >= ring->count ? head - ring->count + 1 : 1;
	uint64_t next = ring->tail + 2 > first ? ring->tail + 2 : first;

	count_lost(ring->overrun, next - 1 - ring->tail);
	ring->tail = next - 1;
}

/* A writer is at it. True: give up on it. */
static bool is_out_of_patience(struct drain_ring *ring, uint64_t head, bool is_last)
{
	uint64_t now = recorder_now();

	if (ring->stuck_ns == 0)
		ring->stuck_ns = now;
	if (!is_last && now - ring->stuck_ns < PATIENCE_NS && head - ring->tail < ring->count / 2)
		return false;
	ring->stuck_ns = 0;
	return true;
}

/* Fill the batch with consecutive records. */
static uint32_t ring_fill(struct drain_ring *ring, bool is_last, uint64_t *batch)
{
	uint64_t head = load_relaxed(ring->head);
	uint32_t filled = 0;

	while (ring->tail < head && filled < TRACE_OPS_PER_BLOCK) {
		switch (ring_take(ring, ring->tail + 1, batch + (size_t)filled * ring->words)) {
		case OK:
			ring->tail++;
			ring->stuck_ns = 0;
			filled++;
			break;
		case ERR_GONE:
			count_overrun(ring, load_relaxed(ring->head));
			break;
		default:
			if (!is_out_of_patience(ring, head, is_last))
				return filled;
			count_lost(ring->overrun == LOST_RING_OVERRUN ? LOST_RING_BUSY
								      : ring->overrun,
				   1);
			ring->tail++;
		}
	}
	return filled;
}

/* True when there was anything. */
static bool drain_ring_once(struct drain_ring *ring, bool is_last)
{
	struct region_header *header = recorder.region.header;
	bool is_ops = ring == &drain.ops;
	uint32_t filled = ring_fill(ring, is_last, drain.batch);
	enum status status;

	if (filled > 0) {
		status = is_ops ? trace_write_ops(&drain.writer, (void *)drain.batch, filled)
				: trace_write_details(&drain.writer, (void *)drain.batch, filled);
		if (status != OK)
			count_lost(reason_of(status, ring->unwritten), filled);
		else if (is_ops)
			bump_relaxed(&header->trace_records, filled);
	}
	store_relaxed(is_ops ? &header->drained : &header->details_drained, ring->tail);
	store_relaxed(&header->trace_bytes, drain.writer.bytes);
	return filled > 0;
}

/* A description is written when it is new, and once more, complete, when `all` is asked for. */
static void save_comms(bool all)
{
	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		struct region_comm *comm = &recorder.region.comms[i];
		/* Pairs with the release in setup_comm(). */
		uint64_t word = load_acquire(&comm->word);
		struct comm_info info = comm->info;

		if (!region_slot_is_used(word) || info.id == 0 ||
		    (!all && load_relaxed(&drain.saved_comms[i]) == info.id))
			continue;
		if (trace_write_records(&drain.writer, TRACE_COMM, &info, sizeof(info), 1) == OK)
			store_release(&drain.saved_comms[i], info.id);
	}
}

static void save_names(void)
{
	uint64_t used = load_relaxed(&recorder.region.header->names_used);

	for (; drain.names_saved < used && drain.names_saved < OP_NAMES_INTERNED_MAX;
	     drain.names_saved++) {
		struct trace_name name = { .id = (uint32_t)(OP_NAME_INTERNED + drain.names_saved) };

		memcpy(name.text, recorder.region.names[drain.names_saved].text, sizeof(name.text));
		if (trace_write_records(&drain.writer, TRACE_NAME, &name, sizeof(name), 1) != OK)
			return;
	}
}

static void save_counts(enum trace_block_type type)
{
	struct region_header *header = recorder.region.header;
	struct trace_counts counts = { .clock_ns = recorder_now(),
				       .trace_records = header->trace_records,
				       .ring_head = load_relaxed(&header->ring_head) };

	for (int i = 0; i < LOST_REASONS; i++)
		counts.lost[i] = load_relaxed(&header->lost[i]);
	for (int i = 0; i < ODD_REASONS; i++)
		counts.odd[i] = load_relaxed(&header->odd[i]);
	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		struct region_comm *comm = &recorder.region.comms[i];

		if (!region_slot_is_used(load_relaxed(&comm->word)))
			continue;
		drain.counts[counts.comms].id = comm->info.id;
		drain.counts[counts.comms++].counts = comm->counts;
	}
	trace_write_counts(&drain.writer, type, &counts, drain.counts);
	drain.counts_head = counts.ring_head;
}

static void save_anchor(void)
{
	struct clock_anchor anchor = clock_anchor_take(&recorder.clock);

	store_relaxed(&recorder.region.header->last_anchor.clock_ns, anchor.clock_ns);
	store_relaxed(&recorder.region.header->last_anchor.wall_ns, anchor.wall_ns);
	trace_write_records(&drain.writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
}

/* What lingers only because nothing follows it need not wait any longer. */
static void sweep_live(uint64_t now)
{
	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		struct region_live *live = &recorder.region.live[i];
		uint64_t word = load_acquire(&live->word);
		uint64_t done = load_relaxed(&live->op.done_ns);

		if (region_slot_is_used(word) && LIVE_OPEN(word) == 0 && done != 0 &&
		    done + SWEEP_NS < now)
			live_retire(live, REGION_GENERATION(word) & HANDLE_GENERATION_MASK, false);
	}
}

static bool drain_pass(bool is_last)
{
	uint64_t now = recorder_now();
	bool found = false;

	save_comms(false);
	save_names();
	while (drain_ring_once(&drain.ops, is_last))
		found = true;
	while (drain.details.count != 0 && drain_ring_once(&drain.details, is_last))
		found = true;
	if (now - drain.sweep_ns > SWEEP_NS) {
		drain.sweep_ns = now;
		sweep_live(now);
	}
	if (now - drain.slow_ns > SLOW_NS &&
	    load_relaxed(&recorder.region.header->ring_head) != drain.counts_head) {
		drain.slow_ns = now;
		save_anchor();
		save_counts(TRACE_COUNTS);
	}
	return found;
}

static void *drain_thread(void *unused)
{
	struct timespec pause = { .tv_sec = 0 };
	bool found;

	(void)unused;
	pthread_setname_np(pthread_self(), "ringside");
	while (!load_acquire(&drain.is_over)) {
		pthread_mutex_lock(&drain.lock);
		found = !drain.is_over && drain_pass(false);
		pthread_mutex_unlock(&drain.lock);
		pause.tv_nsec = found ? PASS_NS : IDLE_PASS_NS;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* The job's signals are none of this thread's business. */
static enum status start_thread(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attributes, drain_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	errno = error;
	return error == 0 ? OK : ERR_SYSTEM;
}

static bool make_room(void)
{
	struct region_writer *region = &recorder.region;

	drain.ops = (struct drain_ring){ (void *)region->ring,
					 region->ring_count,
					 OP_RECORD_WORDS,
					 &region->header->ring_head,
					 0,
					 0,
					 LOST_RING_OVERRUN,
					 LOST_QUOTA };
	drain.details = (struct drain_ring){ (void *)region->details,
					     region->detail_count,
					     OP_DETAIL_WORDS,
					     &region->header->details_head,
					     0,
					     0,
					     LOST_DETAIL_OVERRUN,
					     LOST_DETAIL_QUOTA };
	drain.batch = malloc((size_t)TRACE_OPS_PER_BLOCK * OP_RECORD_BYTES);
	drain.saved_comms = calloc(region->comm_count, sizeof(*drain.saved_comms));
	drain.counts = calloc(region->comm_count, sizeof(*drain.counts));
	return drain.batch && drain.saved_comms && drain.counts && drain.ops.count > 0;
}

enum status drain_start(const char *path, unsigned int mode, uint64_t quota)
{
	struct region_writer *region = &recorder.region;
	enum status status;

	if (!make_room())
		return ERR_NO_SPACE;
	status = trace_writer_open(&drain.writer, path, mode, quota);
	if (status != OK)
		return status;
	status = trace_write_text(&drain.writer, TRACE_PROCESS, region->info,
				  region->header->info_bytes);
	if (status == OK)
		status = trace_write_records(&drain.writer, TRACE_ANCHOR,
					     &region->header->first_anchor,
					     sizeof(struct clock_anchor), 1);
	if (status == OK)
		status = start_thread();
	if (status != OK)
		trace_writer_close(&drain.writer);
	return status;
}

bool drain_has_comm(uint32_t slot, uint32_t id)
{
	return drain.writer.fd == -1 || load_acquire(&drain.saved_comms[slot]) == id;
}

void drain_finish(void)
{
	struct timespec deadline;

	if (drain.writer.fd == -1)
		return;
	store_release(&drain.is_over, 1);
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += FINISH_S;
	if (pthread_mutex_timedlock(&drain.lock, &deadline) != 0)
		return;
	drain_pass(true);
	save_comms(true);
	save_anchor();
	save_counts(TRACE_CLOSE);
	store_relaxed(&recorder.region.header->trace_bytes, drain.writer.bytes);
	trace_writer_close(&drain.writer);
	pthread_mutex_unlock(&drain.lock);
}
