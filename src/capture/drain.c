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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/recorder.h"
#include "trace/trace_write.h"

enum {
	PASS_NS = 5 * 1000 * 1000,	  /* between passes while records come */
	IDLE_PASS_NS = 50 * 1000 * 1000,  /* and while none come */
	SLOW_NS = 1000 * 1000 * 1000,	  /* anchors and counts */
	SWEEP_NS = 200 * 1000 * 1000,	  /* how long a finished operation may linger */
	PATIENCE_NS = 1000 * 1000 * 1000, /* with a writer that does not finish */
	FINISH_MS = 2000,		  /* at exit, with a thread stuck in the disk */
	SAVE_MS = 50,			  /* in init, when a communicator's slot is wanted */
	STACK_BYTES = 256 * 1024,
	STACK_BYTES_MOST = 64 * 1024 * 1024,
};

/* One ring and how far it was read. */
struct drain_ring {
	uint64_t *slots;
	uint32_t count, words;
	uint64_t *head;
	uint64_t tail;	   /* sequence last taken or counted */
	uint64_t taken;	   /* the same as tail, for whoever does not hold the lock */
	uint64_t in_hand;  /* taken, and not yet known to be in the file */
	uint64_t stuck_ns; /* since when the next one is waited for; 0 not */
	enum lost_reason overrun, unwritten;
};

static struct {
	pthread_mutex_t lock;
	struct trace_writer writer;
	struct drain_ring ops, details;
	uint64_t *batch;
	uint32_t *saved_comms; /* per slot: id whose description is in the file */
	uint32_t *ended_comms; /* per slot: id whose end and counts are, too */
	struct trace_comm_counts *counts;
	uint64_t names_saved;
	uint64_t slow_ns, sweep_ns;
	uint64_t counts_head; /* ring head when counts were last written */
	uint32_t is_over;
	uint32_t is_abandoned; /* the exit did not wait any longer: what is left is counted */
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

/* True when there may be more. What came while a block was written is left for the next pass, or
 * blocks would have few records; at the end it is not. */
static bool drain_ring_once(struct drain_ring *ring, bool is_last)
{
	struct region_header *header = recorder.region.header;
	bool is_ops = ring == &drain.ops;
	uint32_t filled = ring_fill(ring, is_last, drain.batch);
	enum status status;

	store_relaxed(&ring->taken, ring->tail);
	if (load_relaxed(&drain.is_abandoned))
		return false;
	if (filled > 0) {
		store_relaxed(&ring->in_hand, filled);
		status = is_ops ? trace_write_ops(&drain.writer, (void *)drain.batch, filled)
				: trace_write_details(&drain.writer, (void *)drain.batch, filled);
		if (swap_relaxed(&ring->in_hand, 0) == 0) {
			/* give_up() counted them as lost: take that back when it is not true. */
			if (status == OK)
				count_lost(reason_of(ERR_SYSTEM, ring->unwritten),
					   -(uint64_t)filled);
			return false;
		}
		if (status != OK)
			count_lost(reason_of(status, ring->unwritten), filled);
		else if (is_ops)
			bump_relaxed(&header->trace_records, filled);
	}
	store_relaxed(is_ops ? &header->drained : &header->details_drained, ring->tail);
	store_relaxed(&header->trace_bytes, drain.writer.bytes);
	return filled == TRACE_OPS_PER_BLOCK || (is_last && filled > 0);
}

/* Word by word: its owner may be writing. */
static void copy_shared(void *to, const void *from, size_t bytes)
{
	typedef uint64_t __attribute__((may_alias)) any_word;
	any_word *target = to;
	const any_word *source = from;

	for (size_t i = 0; i < bytes / sizeof(*target); i++)
		target[i] = load_relaxed(&source[i]);
}

/* False: the slot is free, or changed hands meanwhile. */
static bool read_comm(const struct region_comm *comm, struct region_comm *copy)
{
	/* Pairs with the release in fill_comm(). */
	uint64_t word = load_acquire(&comm->word);

	if (!region_slot_is_used(word))
		return false;
	copy_shared(copy, comm, sizeof(*copy));
	fence_acquire();
	copy->word = word;
	return REGION_GENERATION(load_relaxed(&comm->word)) == REGION_GENERATION(word) &&
	       copy->info.id != 0;
}

static void save_counts_of(enum trace_block_type type, const struct trace_comm_counts *comms,
			   uint64_t comm_count)
{
	struct region_header *header = recorder.region.header;
	struct trace_counts counts = { .clock_ns = recorder_now(),
				       .trace_records = header->trace_records,
				       .ring_head = load_relaxed(&header->ring_head),
				       .comms = comm_count };

	for (int i = 0; i < LOST_REASONS; i++)
		counts.lost[i] = load_relaxed(&header->lost[i]);
	for (int i = 0; i < ODD_REASONS; i++)
		counts.odd[i] = load_relaxed(&header->odd[i]);
	trace_write_counts(&drain.writer, type, &counts, comms);
}

/* The last that there is to say of a communicator. Should it not fit (quota), its slot can be used
 * again all the same. */
static void save_comm_end(uint32_t slot, const struct region_comm *comm)
{
	struct trace_comm_counts counts = { comm->info.id, comm->counts };

	trace_write_records(&drain.writer, TRACE_COMM, &comm->info, sizeof(comm->info), 1);
	save_counts_of(TRACE_COUNTS, &counts, 1);
	store_release(&drain.ended_comms[slot], comm->info.id);
}

/* A description is written when it is new, and once more, complete, when its communicator has ended
 * or when `all` is asked for. */
static void save_comms(bool all)
{
	struct region_comm comm;

	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		if (!read_comm(&recorder.region.comms[i], &comm) ||
		    drain.ended_comms[i] == comm.info.id)
			continue;
		if (comm.word & COMM_ENDED)
			save_comm_end(i, &comm);
		else if ((all || drain.saved_comms[i] != comm.info.id) &&
			 trace_write_records(&drain.writer, TRACE_COMM, &comm.info,
					     sizeof(comm.info), 1) == OK)
			drain.saved_comms[i] = comm.info.id;
	}
}

static void save_names(void)
{
	uint64_t used = load_relaxed(&recorder.region.header->names_used);

	for (; drain.names_saved < used && drain.names_saved < OP_NAMES_INTERNED_MAX;
	     drain.names_saved++) {
		const struct region_name *from = &recorder.region.names[drain.names_saved];
		struct trace_name name = { .id = (uint32_t)(OP_NAME_INTERNED + drain.names_saved) };

		/* Pairs with the release in put_name(): not complete yet. */
		if (load_acquire((const uint64_t *)(const void *)from) == 0)
			return;
		memcpy(name.text, from->text, sizeof(name.text));
		if (trace_write_records(&drain.writer, TRACE_NAME, &name, sizeof(name), 1) != OK)
			return;
	}
}

static void save_counts(enum trace_block_type type)
{
	struct region_comm comm;
	uint64_t count = 0;

	drain.counts_head = load_relaxed(&recorder.region.header->ring_head);
	for (uint32_t i = 0; i < recorder.region.comm_count; i++)
		if (read_comm(&recorder.region.comms[i], &comm))
			drain.counts[count++] =
				(struct trace_comm_counts){ comm.info.id, comm.counts };
	save_counts_of(type, drain.counts, count);
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
	uint64_t now = recorder_now(), before = drain.ops.tail + drain.details.tail;

	save_comms(false);
	save_names();
	while (drain_ring_once(&drain.ops, is_last))
		;
	while (drain.details.count != 0 && drain_ring_once(&drain.details, is_last))
		;
	if (load_relaxed(&drain.is_abandoned))
		return false;
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
	return drain.ops.tail + drain.details.tail != before;
}

static void *drain_thread(void *unused)
{
	struct timespec pause = { .tv_sec = 0 };
	bool found;

	(void)unused;
	pthread_setname_np(pthread_self(), "ringside");
	while (!load_acquire(&drain.is_over)) {
		pthread_mutex_lock(&drain.lock);
		found = !load_relaxed(&drain.is_over) && drain_pass(false);
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
	int error = EINVAL;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* The job's thread-local variables lie on the stack too, however large they are. */
	for (size_t stack = STACK_BYTES; error == EINVAL && stack <= STACK_BYTES_MOST; stack *= 4) {
		pthread_attr_setstacksize(&attributes, stack);
		error = pthread_create(&thread, &attributes, drain_thread, NULL);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	errno = error;
	return error == 0 ? OK : ERR_SYSTEM;
}

static bool make_room(void)
{
	struct region_writer *region = &recorder.region;

	drain.ops = (struct drain_ring){ .slots = (void *)region->ring,
					 .count = region->ring_count,
					 .words = OP_RECORD_WORDS,
					 .head = &region->header->ring_head,
					 .overrun = LOST_RING_OVERRUN,
					 .unwritten = LOST_QUOTA };
	drain.details = (struct drain_ring){ .slots = (void *)region->details,
					     .count = region->detail_count,
					     .words = OP_DETAIL_WORDS,
					     .head = &region->header->details_head,
					     .overrun = LOST_DETAIL_OVERRUN,
					     .unwritten = LOST_DETAIL_QUOTA };
	drain.batch = malloc((size_t)TRACE_OPS_PER_BLOCK * OP_RECORD_BYTES);
	drain.saved_comms = calloc(region->comm_count, sizeof(*drain.saved_comms));
	drain.ended_comms = calloc(region->comm_count, sizeof(*drain.ended_comms));
	drain.counts = calloc(region->comm_count, sizeof(*drain.counts));
	return drain.batch && drain.saved_comms && drain.ended_comms && drain.counts &&
	       drain.ops.count > 0;
}

/* The group may read, if there is one and it is the user's to give. */
static void share(int fd, gid_t group)
{
	if (group != (gid_t)-1 && fchown(fd, (uid_t)-1, group) == 0)
		fchmod(fd, 0640);
}

enum status drain_start(const char *path, gid_t group, uint64_t quota)
{
	struct region_writer *region = &recorder.region;
	enum status status;
	int error;

	if (!make_room())
		return ERR_NO_SPACE;
	status = trace_writer_open(&drain.writer, path, 0600, quota);
	if (status != OK)
		return status;
	share(drain.writer.fd, group);
	status = trace_write_text(&drain.writer, TRACE_PROCESS, region->info,
				  region->header->info_bytes);
	if (status == OK)
		status = trace_write_records(&drain.writer, TRACE_ANCHOR,
					     &region->header->first_anchor,
					     sizeof(struct clock_anchor), 1);
	if (status == OK)
		status = start_thread();
	if (status == OK)
		return OK;
	error = errno;
	trace_writer_close(&drain.writer);
	unlink(path);
	errno = error;
	return status;
}

/* False: the thread did not let go in time. */
static bool lock_within(int milliseconds)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += milliseconds / 1000;
	deadline.tv_nsec += milliseconds % 1000 * 1000000l;
	if (deadline.tv_nsec >= 1000000000l) {
		deadline.tv_sec++;
		deadline.tv_nsec -= 1000000000l;
	}
	return pthread_mutex_timedlock(&drain.lock, &deadline) == 0;
}

bool drain_has_comm(uint32_t slot, uint32_t id)
{
	return drain.writer.fd == -1 || load_acquire(&drain.ended_comms[slot]) == id;
}

void drain_save_comms(void)
{
	if (drain.writer.fd == -1 || !lock_within(SAVE_MS))
		return;
	save_comms(false);
	pthread_mutex_unlock(&drain.lock);
}

/* The thread is stuck in the disk. What it has in hand may never reach the file, what was overwritten
 * will not; what is left in the ring can be read there. */
static void give_up(struct drain_ring *ring, uint64_t *drained)
{
	uint64_t head = load_relaxed(ring->head), tail = load_relaxed(&ring->taken);
	uint64_t overwritten = head > ring->count ? head - ring->count : 0;

	count_lost(reason_of(ERR_SYSTEM, ring->unwritten), swap_relaxed(&ring->in_hand, 0));
	if (overwritten > tail) {
		count_lost(ring->overrun, overwritten - tail);
		tail = overwritten;
	}
	store_relaxed(drained, tail);
}

void drain_finish(void)
{
	struct region_header *header = recorder.region.header;

	if (drain.writer.fd == -1)
		return;
	store_release(&drain.is_over, 1);
	if (!lock_within(FINISH_MS)) {
		store_relaxed(&drain.is_abandoned, 1);
		give_up(&drain.ops, &header->drained);
		give_up(&drain.details, &header->details_drained);
		return;
	}
	drain_pass(true);
	save_comms(true);
	save_anchor();
	save_counts(TRACE_CLOSE);
	store_relaxed(&header->trace_bytes, drain.writer.bytes);
	trace_writer_close(&drain.writer);
	pthread_mutex_unlock(&drain.lock);
}
