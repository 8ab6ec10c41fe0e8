/*
 * One pass: communicators and names that are new, then the rings from where the last pass stopped.
 *
 * The disk may take its time, or never answer. So all writing is done by this thread alone. `account` is held
 * for moments, never during a write: what was taken from the rings, what is under way, whether it is over.
 * Whoever ends the job looks at this and does not wait for ever.
 */
#include "capture/drain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/own_thread.h"
#include "capture/recorder.h"
#include "capture/ring_reader.h"
#include "trace/trace_write.h"

enum {
	PASS_MS = 5,		      /* between passes while records come */
	IDLE_PASS_MS = 50,	      /* and while none come */
	SLOW_NS = 1000 * 1000 * 1000, /* anchors and counts */
	STILL_SLOWS = 10,	      /* of these, while nothing ends: an anchor says "alive" */
	LINKS_SLOWS = 10,	      /* of these, from links to links */
	LINKS_SHARE = 16,	      /* and links are at most such a part of the file */
	STANDSTILL_MS = 2000,	      /* at exit: no longer with a disk that does not answer */
	FINISH_MS = 30000,	      /* and no longer with one that is slow */
	LOOK_MS = 20,		      /* how often that is looked at */
	SAVE_MS = 50,		      /* in init, when a communicator's slot is wanted */
};

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
	struct trace_writer writer;
	struct drain_ring ops, details;
	uint64_t *batch;
	uint32_t *saved_comms; /* per slot: id whose description is in the file */
	uint32_t *ended_comms; /* per slot: id whose end and counts are, too */
	struct trace_comm_counts *counts;
	uint64_t names_saved;
	uint64_t slow_ns, sweep_ns;
	uint64_t counts_head;	/* ring head when counts were last written */
	uint64_t counts_issued; /* operations issued then */
	struct region_link *links;
	uint64_t links_proxies; /* proxy operations begun when links were last written */
	uint64_t links_bytes;	/* of the file, behind them */
	uint32_t links_age;	/* counts written since */

	pthread_mutex_t account;
	pthread_cond_t changed; /* is_asked, is_over, is_finished */
	uint64_t passes;	/* finished ones */
	bool is_asked;		/* somebody waits for a pass */
	bool is_over;		/* one last pass */
	bool is_finished;	/* it is done, the file is closed */
	bool is_abandoned;	/* nobody waits any longer: what is left is accounted for */
	uint64_t progress;	/* grows with everything that was written */
} drain = { .account = PTHREAD_MUTEX_INITIALIZER, .writer = { .fd = -1 } };

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

	pthread_mutex_lock(&drain.account);
	is_ours = !drain.is_abandoned;
	if (is_ours) {
		count_lost(ring->overrun, missed->overrun);
		count_lost(ring->busy, missed->busy);
		ring->taken = ring->reader.tail;
		ring->in_hand = taken;
	}
	pthread_mutex_unlock(&drain.account);
	return is_ours;
}

static void put_down(struct drain_ring *ring, uint32_t taken, enum status status)
{
	struct region_header *header = recorder.region.header;

	pthread_mutex_lock(&drain.account);
	if (drain.is_abandoned) {
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
	drain.progress++;
	pthread_mutex_unlock(&drain.account);
	store_relaxed(&header->trace_bytes, drain.writer.bytes);
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
				 ? trace_write_ops(&drain.writer, (void *)drain.batch, taken)
				 : trace_write_details(&drain.writer, (void *)drain.batch, taken);
	put_down(ring, taken, status);
	return taken == TRACE_OPS_PER_BLOCK || (is_last && taken > 0);
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
		if (!own_thread_read_comm(&recorder.region.comms[i], &comm) ||
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
	drain.counts_issued = 0;
	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		if (!own_thread_read_comm(&recorder.region.comms[i], &comm))
			continue;
		drain.counts[count++] = (struct trace_comm_counts){ comm.info.id, comm.counts };
		drain.counts_issued += comm.counts.issued;
	}
	save_counts_of(type, drain.counts, count);
}

static uint64_t issued_so_far(void)
{
	struct region_comm comm;
	uint64_t issued = 0;

	for (uint32_t i = 0; i < recorder.region.comm_count; i++)
		if (own_thread_read_comm(&recorder.region.comms[i], &comm))
			issued += comm.counts.issued;
	return issued;
}

static void copy_link(struct region_link *to, const struct region_link *from)
{
	to->key = load_relaxed(&from->key);
	to->proxies = load_relaxed(&from->proxies);
	to->steps = load_relaxed(&from->steps);
	to->bytes = load_relaxed(&from->bytes);
	for (int i = 0; i < 3; i++)
		to->wait_ns[i] = load_relaxed(&from->wait_ns[i]);
	to->reserved = 0;
}

/* Those that are in use, "other" first; how many. A slot that changes hands meanwhile, which takes a
 * communicator that is forgotten, may be of both: it is left out. */
static uint32_t copy_links(void)
{
	const struct region_link *links = recorder.region.links;
	uint32_t count = 0;

	for (uint32_t i = 0; i < recorder.region.link_count && count < TRACE_LINKS_MAX; i++) {
		if (i != 0 && load_relaxed(&links[i].key) <= SLOT_FORGOTTEN)
			continue;
		copy_link(&drain.links[count], &links[i]);
		/* Pairs with the release in forget_links(). */
		fence_acquire();
		count += load_relaxed(&links[i].key) == drain.links[count].key;
	}
	return count;
}

/* At the end in any case; before that now and then, when there is news and it does not make the file much
 * longer. */
static void save_links(bool is_last)
{
	uint64_t proxies = load_relaxed(&recorder.region.header->proxy_cursor);
	uint64_t grown = drain.writer.bytes - drain.links_bytes;
	uint32_t count;

	drain.links_age++;
	if (proxies == 0 ||
	    (!is_last && (drain.links_age < LINKS_SLOWS || proxies == drain.links_proxies)))
		return;
	count = copy_links();
	if (!is_last && count * sizeof(struct region_link) * LINKS_SHARE > grown)
		return;
	if (trace_write_records(&drain.writer, TRACE_LINKS, drain.links, sizeof(*drain.links),
				count) != OK)
		return;
	drain.links_age = 0;
	drain.links_proxies = proxies;
	drain.links_bytes = drain.writer.bytes;
}

static void save_anchor(void)
{
	struct clock_anchor anchor = clock_anchor_take(&recorder.clock);

	store_relaxed(&recorder.region.header->last_anchor.clock_ns, anchor.clock_ns);
	store_relaxed(&recorder.region.header->last_anchor.wall_ns, anchor.wall_ns);
	trace_write_records(&drain.writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
}

static bool is_abandoned(void)
{
	bool is_true;

	pthread_mutex_lock(&drain.account);
	is_true = drain.is_abandoned;
	pthread_mutex_unlock(&drain.account);
	return is_true;
}

/*
 * Now and then what is known besides records. While nothing ends an anchor is enough, and counts when
 * something was issued: a job that is killed after it hung for an hour has a file that says so.
 */
static void save_slowly(uint64_t now)
{
	uint64_t age_ns = now - drain.slow_ns;

	if (age_ns <= SLOW_NS)
		return;
	if (load_relaxed(&recorder.region.header->ring_head) != drain.counts_head) {
		drain.slow_ns = now;
		save_anchor();
		save_links(false);
		save_counts(TRACE_COUNTS);
	} else if (age_ns > (uint64_t)STILL_SLOWS * SLOW_NS) {
		drain.slow_ns = now;
		save_anchor();
		if (issued_so_far() != drain.counts_issued)
			save_counts(TRACE_COUNTS);
	}
}

/* True when there were records. */
static bool drain_pass(bool is_last)
{
	uint64_t now = recorder_now(), before = drain.ops.reader.tail + drain.details.reader.tail;

	save_comms(false);
	save_names();
	while (drain_ring_once(&drain.ops, is_last))
		;
	while (drain.details.reader.count != 0 && drain_ring_once(&drain.details, is_last))
		;
	if (is_abandoned())
		return false;
	if (now - drain.sweep_ns > OWN_THREAD_SWEEP_NS) {
		drain.sweep_ns = now;
		own_thread_sweep(now);
	}
	save_slowly(now);
	return drain.ops.reader.tail + drain.details.reader.tail != before;
}

/* Once more everything, then the closing record. */
static void drain_last(void)
{
	drain_pass(true);
	if (is_abandoned())
		return;
	save_comms(true);
	save_anchor();
	save_links(true);
	save_counts(TRACE_CLOSE);
	store_relaxed(&recorder.region.header->trace_bytes, drain.writer.bytes);
	trace_writer_close(&drain.writer);
}

/* False: it is over. */
static bool rest(int milliseconds)
{
	struct timespec until = own_thread_time_after(milliseconds);
	bool goes_on;

	pthread_mutex_lock(&drain.account);
	drain.passes++;
	while (!drain.is_over && !drain.is_asked &&
	       pthread_cond_timedwait(&drain.changed, &drain.account, &until) == 0)
		;
	goes_on = !drain.is_over;
	drain.is_asked = false;
	pthread_mutex_unlock(&drain.account);
	return goes_on;
}

static void *drain_thread(void *unused)
{
	bool found;

	(void)unused;
	do
		found = drain_pass(false);
	while (rest(found ? PASS_MS : IDLE_PASS_MS));
	drain_last();
	pthread_mutex_lock(&drain.account);
	drain.is_finished = true;
	pthread_cond_broadcast(&drain.changed);
	pthread_mutex_unlock(&drain.account);
	return NULL;
}

static bool make_room(void)
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
	drain.saved_comms = calloc(region->comm_count, sizeof(*drain.saved_comms));
	drain.ended_comms = calloc(region->comm_count, sizeof(*drain.ended_comms));
	drain.counts = calloc(region->comm_count, sizeof(*drain.counts));
	drain.links = calloc((size_t)region->link_count + 1, sizeof(*drain.links));
	return drain.batch && drain.links && drain.saved_comms && drain.ended_comms &&
	       drain.counts && drain.ops.reader.count > 0;
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
		status = own_thread_start(drain_thread, "ringside", &drain.changed);
	drain.is_running = status == OK;
	if (drain.is_running)
		return OK;
	error = errno;
	trace_writer_close(&drain.writer);
	unlink(path);
	errno = error;
	return status;
}

bool drain_has_comm(uint32_t slot, uint32_t id)
{
	return !drain.is_running || load_acquire(&drain.ended_comms[slot]) == id;
}

/* Ask for a pass; how many there were so far. */
static uint64_t ask_for_pass(void)
{
	uint64_t passes;

	pthread_mutex_lock(&drain.account);
	passes = drain.passes;
	drain.is_asked = true;
	pthread_cond_broadcast(&drain.changed);
	pthread_mutex_unlock(&drain.account);
	return passes;
}

/* Two passes: one may be under way, and have looked at the communicators before. */
void drain_save_comms(void)
{
	struct timespec pause = { .tv_nsec = 1000 * 1000 };
	uint64_t wanted;

	if (!drain.is_running)
		return;
	wanted = ask_for_pass() + 2;
	for (int i = 0; i < SAVE_MS && ask_for_pass() < wanted; i++)
		nanosleep(&pause, NULL);
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

/* Wait for the thread for as long as it gets on. */
static bool wait_for_finish(void)
{
	uint64_t seen = drain.progress;

	for (int waited = 0, still = 0; waited < FINISH_MS && still < STANDSTILL_MS;
	     waited += LOOK_MS, still += LOOK_MS) {
		struct timespec until = own_thread_time_after(LOOK_MS);

		while (!drain.is_finished &&
		       pthread_cond_timedwait(&drain.changed, &drain.account, &until) == 0)
			;
		if (drain.is_finished)
			return true;
		if (drain.progress != seen)
			still = 0;
		seen = drain.progress;
	}
	return false;
}

void drain_finish(void)
{
	if (!drain.is_running)
		return;
	pthread_mutex_lock(&drain.account);
	drain.is_over = true;
	pthread_cond_broadcast(&drain.changed);
	if (!wait_for_finish()) {
		drain.is_abandoned = true;
		give_up(&drain.ops);
		give_up(&drain.details);
	}
	pthread_mutex_unlock(&drain.account);
}
