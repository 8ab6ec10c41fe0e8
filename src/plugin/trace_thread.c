/* The trace file: its path, its contents besides records, and the thread that writes it. */
#include "plugin/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/order.h"
#include "common/text.h"
#include "format/region_create.h"
#include "format/trace_layout.h"
#include "format/trace_write.h"
#include "plugin/process_info.h"
#include "plugin/recorder.h"

/* The file and its contents besides records: communicators, names, counts, links, anchors. */
struct drain_file {
	struct trace_writer writer;
	uint32_t *saved_comms; /* per slot: id whose description is in the file */
	uint32_t *ended_comms; /* per slot: id whose end and counts are in the file */
	struct trace_comm_counts *counts;
	uint64_t names_saved;
	uint64_t slow_ns;
	uint64_t counts_head;	/* ring head when counts were last written */
	uint64_t counts_issued; /* operations issued by then */
	struct region_link *links;
	uint64_t links_proxies; /* proxy operations begun when links were last written */
	uint64_t links_bytes;	/* file size after that */
	uint32_t links_age;	/* counts written since */
};

void trace_place_path(char *path, size_t size, const struct trace_place *place, int attempt)
{
	char again[16] = "";

	if (attempt > 0)
		text_format(again, sizeof(again), "-%d", attempt);
	text_format(path, size, "%s/%s%s.ringside", place->dir, place->name, again);
}

enum status trace_place_choose(struct trace_place *place, const struct settings *settings,
			       const struct identity *identity)
{
	struct text_names names = { identity->host, identity->job, identity->rank,
				    (int64_t)identity->pid };
	char host[201], pattern[64];
	struct text_names file_names = { host, "", identity->rank, (int64_t)identity->pid };

	place->group = settings->group;
	if (text_expand(place->dir, 512, settings->dir, &names) != OK)
		return ERR_FORMAT;
	file_make_absolute(place->dir, sizeof(place->dir));
	/* As in the directory: a '/' from a launcher or a hostname must not act as one. */
	text_format(host, sizeof(host), "%.200s", identity->host);
	text_format(pattern, sizeof(pattern), "r%%r-%%h-%%p-%llu",
		    (unsigned long long)identity->start_ticks);
	return text_expand(place->name, sizeof(place->name), pattern, &file_names) == OK
		       ? OK
		       : ERR_FORMAT;
}

enum {
	SLOW_NS = 1000 * 1000 * 1000, /* how often anchors and counts are written */
	STILL_SLOWS = 10, /* in units of SLOW_NS while nothing ends: an anchor shows "alive" */
	LINKS_SLOWS = 10, /* in units of SLOW_NS between two writes of the links */
	LINKS_SHARE = 16, /* links take at most this share of the file: 1/16 */
};

static void save_counts_of(struct drain_file *file, enum trace_block_type type,
			   const struct trace_comm_counts *comms, uint64_t comm_count)
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
	trace_write_counts(&file->writer, type, &counts, comms);
}

/*
 * The final state of a communicator. If it does not fit (quota), the slot can be reused
 * nevertheless.
 */
static void save_comm_end(struct drain_file *file, uint32_t slot, const struct region_comm *comm)
{
	struct trace_comm_counts counts = { comm->info.id, comm->counts };

	trace_write_records(&file->writer, TRACE_COMM, &comm->info, sizeof(comm->info), 1);
	save_counts_of(file, TRACE_COUNTS, &counts, 1);
	store_release(&file->ended_comms[slot], comm->info.id);
}

/*
 * A description is written when it is new, and again, complete, when its communicator has ended or
 * `all` is requested.
 */
static void save_comms(struct drain_file *file, bool all)
{
	struct region_comm comm;

	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		if (!own_thread_read_comm(&recorder.region.comms[i], &comm) ||
		    file->ended_comms[i] == comm.info.id)
			continue;
		if (comm.word & COMM_ENDED)
			save_comm_end(file, i, &comm);
		else if ((all || file->saved_comms[i] != comm.info.id) &&
			 trace_write_records(&file->writer, TRACE_COMM, &comm.info,
					     sizeof(comm.info), 1) == OK)
			file->saved_comms[i] = comm.info.id;
	}
}

static void save_names(struct drain_file *file)
{
	uint64_t used = load_relaxed(&recorder.region.header->names_used);

	for (; file->names_saved < used && file->names_saved < OP_NAMES_INTERNED_MAX;
	     file->names_saved++) {
		const struct region_name *from = &recorder.region.names[file->names_saved];
		struct trace_name name = { .id = (uint32_t)(OP_NAME_INTERNED + file->names_saved) };

		/* Pairs with the release in put_name(): the name is incomplete. */
		if (load_acquire((const uint64_t *)(const void *)from) == 0)
			return;
		memcpy(name.text, from->text, sizeof(name.text));
		if (trace_write_records(&file->writer, TRACE_NAME, &name, sizeof(name), 1) != OK)
			return;
	}
}

static void save_counts(struct drain_file *file, enum trace_block_type type)
{
	struct region_comm comm;
	uint64_t count = 0;

	file->counts_head = load_relaxed(&recorder.region.header->ring_head);
	file->counts_issued = 0;
	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		if (!own_thread_read_comm(&recorder.region.comms[i], &comm))
			continue;
		file->counts[count++] = (struct trace_comm_counts){ comm.info.id, comm.counts };
		file->counts_issued += comm.counts.issued;
	}
	save_counts_of(file, type, file->counts, count);
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
	to->wire_ns = load_relaxed(&from->wire_ns);
}

/*
 * Copies the links in use, "other" first; returns how many. A slot that changes owners in the
 * meantime (its communicator was forgotten) may hold parts of both, so it is left out.
 */
static uint32_t copy_links(struct drain_file *file)
{
	const struct region_link *links = recorder.region.links;
	uint32_t count = 0;

	for (uint32_t i = 0; i < recorder.region.link_count && count < TRACE_LINKS_MAX; i++) {
		if (i != 0 && load_relaxed(&links[i].key) <= SLOT_FORGOTTEN)
			continue;
		copy_link(&file->links[count], &links[i]);
		/* Pairs with the release in forget_links(). */
		fence_acquire();
		count += load_relaxed(&links[i].key) == file->links[count].key;
	}
	return count;
}

/*
 * Always at the end; before that now and then, if there is news and the file does not grow much by
 * it.
 */
static void save_links(struct drain_file *file, bool is_last)
{
	uint64_t proxies = load_relaxed(&recorder.region.header->proxy_cursor);
	uint64_t grown = file->writer.bytes - file->links_bytes;
	uint32_t count;

	file->links_age++;
	if (proxies == 0 ||
	    (!is_last && (file->links_age < LINKS_SLOWS || proxies == file->links_proxies)))
		return;
	count = copy_links(file);
	if (!is_last && count * sizeof(struct region_link) * LINKS_SHARE > grown)
		return;
	if (trace_write_records(&file->writer, TRACE_LINKS, file->links, sizeof(*file->links),
				count) != OK)
		return;
	file->links_age = 0;
	file->links_proxies = proxies;
	file->links_bytes = file->writer.bytes;
}

static void save_anchor(struct drain_file *file)
{
	struct clock_anchor anchor = clock_anchor_take(&recorder.clock);

	store_relaxed(&recorder.region.header->last_anchor.clock_ns, anchor.clock_ns);
	store_relaxed(&recorder.region.header->last_anchor.wall_ns, anchor.wall_ns);
	trace_write_records(&file->writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
}

/*
 * Now and then write what is known besides records. While nothing ends, an anchor is enough, plus
 * counts if something was issued: the file of a job that was killed after an hour's hang shows that
 * hour.
 */
static void drain_file_save_slowly(struct drain_file *file, uint64_t now)
{
	uint64_t age_ns = now - file->slow_ns;

	if (age_ns <= SLOW_NS)
		return;
	if (load_relaxed(&recorder.region.header->ring_head) != file->counts_head) {
		file->slow_ns = now;
		save_anchor(file);
		save_links(file, false);
		save_counts(file, TRACE_COUNTS);
	} else if (age_ns > (uint64_t)STILL_SLOWS * SLOW_NS) {
		file->slow_ns = now;
		save_anchor(file);
		if (issued_so_far() != file->counts_issued)
			save_counts(file, TRACE_COUNTS);
	}
}

/* Everything once more, then the closing record. */
static void drain_file_close(struct drain_file *file)
{
	save_comms(file, true);
	save_anchor(file);
	save_links(file, true);
	save_counts(file, TRACE_CLOSE);
	store_relaxed(&recorder.region.header->trace_bytes, file->writer.bytes);
	trace_writer_close(&file->writer);
}

/* False: out of memory. */
static bool drain_file_init(struct drain_file *file)
{
	const struct region_writer *region = &recorder.region;

	file->saved_comms = calloc(region->comm_count, sizeof(*file->saved_comms));
	file->ended_comms = calloc(region->comm_count, sizeof(*file->ended_comms));
	file->counts = calloc(region->comm_count, sizeof(*file->counts));
	file->links = calloc((size_t)region->link_count + 1, sizeof(*file->links));
	return file->saved_comms && file->ended_comms && file->counts && file->links;
}

/* Write the header and what is known about the process. */
static enum status drain_file_begin(struct drain_file *file)
{
	const struct region_writer *region = &recorder.region;
	enum status status = trace_write_text(&file->writer, TRACE_PROCESS, region->info,
					      region->header->info_bytes);

	if (status == OK)
		status = trace_write_records(&file->writer, TRACE_ANCHOR,
					     &region->header->first_anchor,
					     sizeof(struct clock_anchor), 1);
	return status;
}

/*
 * The thread first creates the file. While init waits for that, init decides about the name and may
 * give up; after that the thread is on its own.
 *
 * One pass: new communicators and names, then the rings from where the last pass stopped.
 *
 * The disk may be slow or never answer, so only this thread writes. What was taken from the rings
 * and what is in flight is in the account (struct own_passes), which the thread that ends the job reads.
 */

/* A ring, and how far its records have come on their way to the file. */
struct drain_ring {
	struct ring_reader reader;
	uint64_t taken;	  /* account: sequence last taken, or missed and counted */
	uint64_t in_hand; /* account: how many of these are being written */
	enum lost_reason overrun, busy, unwritten;
	uint64_t *drained; /* in the region's header */
};

enum {
	OPEN_MS = 20, /* longest wait of init for a disk */
	NAMES_MOST = 100,
};

static struct {
	bool is_running; /* written once */
	uint32_t has_no_file;
	struct trace_place place;
	uint64_t quota;

	/* Until the file exists; guarded by the account. */
	struct {
		pid_t tid;
		char path[1000];
		bool is_settled; /* init has something to do: */
		bool is_renamed; /* the path changed, and the thread waits for an answer */
		bool is_over;	 /* finished, see status and error */
		bool is_late;	 /* init gave up waiting */
		enum status status;
		int error;
	} opening;

	/* Private to the thread. */
	struct drain_file file;
	struct drain_ring ops, details;
	uint64_t *batch;
	uint64_t sweep_ns;

	struct own_passes passes; /* its account also guards taken and in_hand of the rings */
} drain = { .passes = OWN_PASSES_INIT, .file = { .writer = { .fd = -1 } } };

static enum lost_reason reason_of(enum status status, enum lost_reason unwritten)
{
	if (unwritten == LOST_DETAIL_QUOTA)
		return LOST_DETAIL_QUOTA;
	return status == ERR_RANGE	? LOST_QUOTA
	       : status == ERR_NO_SPACE ? LOST_NO_SPACE
					: LOST_WRITE_ERROR;
}

/* These records are this thread's to write. False: too late, they are already accounted for. */
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
		/* give_up() counted them as lost: correct that. */
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

/*
 * True if there may be more. What comes while a block is written is left for the next pass,
 * otherwise blocks would have few records; except at the end.
 */
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

/* True if there were records. */
static bool drain_pass(bool is_last)
{
	uint64_t now = recorder_now(), before = drain.ops.reader.tail + drain.details.reader.tail;

	save_comms(&drain.file, false);
	save_names(&drain.file);
	while (drain_ring_once(&drain.ops, is_last))
		;
	while (drain.details.reader.count != 0 && drain_ring_once(&drain.details, is_last))
		;
	if (own_passes_are_abandoned(&drain.passes))
		return false;
	own_thread_sweep(&drain.sweep_ns, now);
	drain_file_save_slowly(&drain.file, now);
	return drain.ops.reader.tail + drain.details.reader.tail != before;
}

void trace_thread_explain(char *line, size_t size, const char *path, enum status status, int error)
{
	text_format(line, size,
		    "ringside: %.700s cannot be written (%s); recording without a trace file\n",
		    path, status == ERR_SYSTEM ? strerror(error) : status_text(status));
}

static bool is_late(void)
{
	bool answer;

	pthread_mutex_lock(&drain.passes.account);
	answer = drain.opening.is_late;
	pthread_mutex_unlock(&drain.passes.account);
	return answer;
}

/* The region names the file: init writes that. False: init gave up waiting. */
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

/* On failure there is no file, and errno says why for ERR_SYSTEM. */
static enum status make_file(char *path, size_t size)
{
	struct trace_writer *writer = &drain.file.writer;
	gid_t group = drain.place.group;
	int attempt = 0, error;
	enum status status;

	file_make_directories(drain.place.dir, 0700, group);
	do {
		trace_place_path(path, size, &drain.place, attempt);
		status = trace_writer_open(writer, path, 0600, drain.quota);
	} while (status == ERR_SYSTEM && errno == EEXIST && ++attempt < NAMES_MOST && !is_late());
	if (status != OK)
		return status;
	/* Give the group read access, if there is one and the user may do so. */
	if (group != (gid_t)-1 && fchown(writer->fd, (uid_t)-1, group) == 0)
		fchmod(writer->fd, 0640);
	if (attempt > 0 && !agree_on_name(path)) {
		errno = EEXIST;
		status = ERR_SYSTEM;
	} else {
		status = drain_file_begin(&drain.file);
	}
	if (status != OK) {
		error = errno;
		trace_writer_close(writer);
		unlink(path);
		errno = error;
	}
	return status;
}

/* Init is over and the job runs: do what init would have done, as far as possible. */
static void go_without_file(const char *path, enum status status, int error)
{
	char line[1024];

	store_relaxed(&recorder.region.header->mode, REGION_MODE_FLIGHT);
	trace_thread_explain(line, sizeof(line), path, status, error);
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

	drain.ops = (struct drain_ring){ .reader = ring_reader_of_ops(),
					 .drained = &region->header->drained,
					 .overrun = LOST_RING_OVERRUN,
					 .busy = LOST_RING_BUSY,
					 .unwritten = LOST_QUOTA };
	drain.details = (struct drain_ring){ .reader = ring_reader_of_details(),
					     .drained = &region->header->details_drained,
					     .overrun = LOST_DETAIL_OVERRUN,
					     .busy = LOST_DETAIL_OVERRUN,
					     .unwritten = LOST_DETAIL_QUOTA };
	drain.batch = malloc((size_t)TRACE_OPS_PER_BLOCK * OP_RECORD_BYTES);
	return drain.batch != NULL && drain.ops.reader.count > 0;
}

/* How creating the file went, if that is known in time. */
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

enum status trace_thread_start(const struct trace_place *place, uint64_t quota,
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

bool trace_thread_has_comm(uint32_t slot, uint32_t id)
{
	return !is_writing() || load_acquire(&drain.file.ended_comms[slot]) == id;
}

void trace_thread_save_comms(void)
{
	if (is_writing())
		own_passes_ask(&drain.passes);
}

/*
 * The thread is stuck in the disk. What it has in hand may never reach the file, and what was
 * overwritten will not; the rest can still be read from the ring.
 */
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

void trace_thread_finish(void)
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
