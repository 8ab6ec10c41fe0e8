/*
 * The thread makes the file first. While init waits for it, init has the last word on the name and may give up;
 * after that the thread is alone with it.
 *
 * One pass: communicators and names that are new, then the rings from where the last pass stopped.
 *
 * The disk may take its time, or never answer. So all writing is done by this thread alone. What was taken
 * from the rings and what is under way is in the account of own_passes.h: whoever ends the job looks at it.
 */
#include "capture/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "capture/drain_file.h"
#include "capture/own_passes.h"
#include "capture/own_thread.h"
#include "capture/process_info.h"
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

enum {
	OPEN_MS = 20, /* that init waits for a disk */
	NAMES_MOST = 100,
};

static struct {
	bool is_running; /* written once */
	uint32_t has_no_file;
	struct trace_place place;
	uint64_t quota;

	/* Until the file is there; guarded by the account. */
	struct {
		pid_t tid;
		char path[1000];
		bool is_settled; /* init has something to do: */
		bool is_renamed; /*   the path is another one, and the thread waits for a word */
		bool is_over;	 /*   status and error say how it went */
		bool is_late;	 /* init does not wait any longer */
		enum status status;
		int error;
	} opening;

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

void drain_explain(char *line, size_t size, const char *path, enum status status, int error)
{
	text_format(line, size,
		    "ringside: %.700s cannot be written (%s); recording without trace file\n", path,
		    status == ERR_SYSTEM ? strerror(error) : status_text(status));
}

static bool is_late(void)
{
	bool answer;

	pthread_mutex_lock(&drain.passes.account);
	answer = drain.opening.is_late;
	pthread_mutex_unlock(&drain.passes.account);
	return answer;
}

/* The region says where the file is: init sees to that. False: it has left. */
static bool agree_on_name(const char *path)
{
	bool is_agreed;

	pthread_mutex_lock(&drain.passes.account);
	text_copy(drain.opening.path, sizeof(drain.opening.path), path);
	drain.opening.is_renamed = drain.opening.is_settled = true;
	pthread_cond_broadcast(&drain.passes.changed);
	while (drain.opening.is_renamed && !drain.opening.is_late)
		pthread_cond_wait(&drain.passes.changed, &drain.passes.account);
	is_agreed = !drain.opening.is_renamed;
	pthread_mutex_unlock(&drain.passes.account);
	return is_agreed;
}

static enum status make_file(char *path, size_t size)
{
	enum status status;
	int attempt = 0;

	trace_place_make(&drain.place);
	do {
		trace_place_path(path, size, &drain.place, attempt);
		status = drain_file_open(&drain.file, path, drain.place.group, drain.quota);
	} while (status == ERR_SYSTEM && errno == EEXIST && ++attempt < NAMES_MOST && !is_late());
	if (status != OK)
		return status;
	if (attempt > 0 && !agree_on_name(path)) {
		errno = EEXIST;
		status = ERR_SYSTEM;
	} else {
		status = drain_file_begin(&drain.file);
	}
	if (status != OK)
		drain_file_discard(&drain.file, path);
	return status;
}

/* Init has left and the job runs: as if it had known at once, as far as that is possible. */
static void go_without_file(const char *path, enum status status, int error)
{
	char line[1024];

	store_relaxed(&recorder.region.header->mode, REGION_MODE_FLIGHT);
	drain_explain(line, sizeof(line), path, status, error);
	process_info_add_message(line);
	store_release(&drain.has_no_file, 1);
	own_thread_say(line);
}

static bool open_file(void)
{
	char path[sizeof(drain.opening.path)];
	enum status status = make_file(path, sizeof(path));
	int error = errno;
	bool was_late;

	pthread_mutex_lock(&drain.passes.account);
	was_late = drain.opening.is_late;
	drain.opening.status = status;
	drain.opening.error = error;
	drain.opening.is_over = drain.opening.is_settled = true;
	pthread_cond_broadcast(&drain.passes.changed);
	pthread_mutex_unlock(&drain.passes.account);
	if (status != OK && was_late)
		go_without_file(path, status, error);
	return status == OK;
}

static void *drain_thread(void *unused)
{
	pid_t tid = own_thread_begin("ringside");
	bool found;

	(void)unused;
	pthread_mutex_lock(&drain.passes.account);
	drain.opening.tid = tid;
	pthread_mutex_unlock(&drain.passes.account);
	if (open_file()) {
		do
			found = drain_pass(false);
		while (own_passes_rest(&drain.passes, found));
		drain_pass(true);
		if (!own_passes_are_abandoned(&drain.passes))
			drain_file_close(&drain.file);
	}
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

/* How it went, as far as that is known in time. */
static enum status await_file(void (*is_renamed)(const char *path))
{
	enum status status = OK;

	pthread_mutex_lock(&drain.passes.account);
	while (!drain.opening.is_over && !drain.opening.is_late) {
		if (!own_thread_wait(&drain.passes.account, &drain.passes.changed,
				     &drain.opening.tid, &drain.opening.is_settled, OPEN_MS))
			drain.opening.is_late = true;
		else if (drain.opening.is_renamed) {
			is_renamed(drain.opening.path);
			drain.opening.is_renamed = drain.opening.is_settled = false;
		}
		pthread_cond_broadcast(&drain.passes.changed);
	}
	if (drain.opening.is_over) {
		status = drain.opening.status;
		errno = drain.opening.error;
	}
	pthread_mutex_unlock(&drain.passes.account);
	return status;
}

enum status drain_start(const struct trace_place *place, uint64_t quota,
			void (*is_renamed)(const char *path))
{
	enum status status;

	if (!make_rings() || !drain_file_init(&drain.file))
		return ERR_NO_SPACE;
	drain.place = *place;
	drain.quota = quota;
	status = own_thread_start(drain_thread, NULL, &drain.passes.changed);
	if (status == OK)
		status = await_file(is_renamed);
	drain.is_running = status == OK;
	return status;
}

static bool is_writing(void)
{
	return drain.is_running && !load_acquire(&drain.has_no_file);
}

bool drain_has_comm(uint32_t slot, uint32_t id)
{
	return !is_writing() || load_acquire(&drain.file.ended_comms[slot]) == id;
}

void drain_save_comms(void)
{
	if (is_writing())
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
	if (!is_writing())
		return;
	pthread_mutex_lock(&drain.passes.account);
	if (!own_passes_finish(&drain.passes)) {
		give_up(&drain.ops);
		give_up(&drain.details);
	}
	pthread_mutex_unlock(&drain.passes.account);
}
