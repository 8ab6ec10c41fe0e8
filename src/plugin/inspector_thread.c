/*
 * Writes what NCCL Inspector writes: communicators, the log, channels for verbose lines, and the
 * thread.
 */
#include "plugin/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"
#include "format/inspector_write.h"
#include "plugin/recorder.h"

/*
 * Communicators as the reader of the ring needs them. Records can come after their communicator
 * ended, when its slot in the region may have another owner. So each one is copied, and its slot is
 * not reused before all of its records were read (waiting for that is bounded).
 */

struct inspector_comm {
	struct comm_info info; /* id 0: none */
	uint64_t p2p;	       /* Sends and Recvs so far */
	bool is_ending;	       /* all of its records are in the ring */
};

struct inspector_comms {
	struct inspector_comm *slots; /* as many as the region has */
	uint32_t *done;		      /* per slot: id whose records have all been read */
	uint32_t count;
	uint32_t last; /* slot found last */
};

/*
 * NCCL Inspector's log: <dir>/<host>-pid<pid>.log. Lines are buffered and written in large pieces.
 * The file ends with a whole line after every write, even on a full disk. Existing content is never
 * overwritten.
 *
 * Writing can block on the disk, so this is only for the recorder's own thread.
 */

enum { INSPECTOR_PATH_BYTES = 1400, INSPECTOR_LOG_BYTES = 512 * 1024 };

struct inspector_log {
	char dir[1024];
	char path[INSPECTOR_PATH_BYTES];
	int fd;		   /* -1: not open */
	uint64_t quota;	   /* byte limit, 0: none */
	uint64_t bytes;	   /* written by us */
	bool is_torn;	   /* the file ends with half a line that could not be removed */
	char *text;	   /* buffered lines: */
	size_t used;	   /*   their bytes */
	uint64_t held;	   /*   their number */
	uint64_t retry_ns; /* earliest retry after a failed write; 0: none failed */
	bool is_told;	   /* the user knows that it cannot be written */
};

/* False: out of memory. */
static bool inspector_comms_init(struct inspector_comms *comms, uint32_t count)
{
	*comms = (struct inspector_comms){ .count = count };
	comms->slots = calloc(count, sizeof(*comms->slots));
	comms->done = calloc(count, sizeof(*comms->done));
	return comms->slots != NULL && comms->done != NULL;
}

static bool refresh_one(struct inspector_comm *own, const struct region_comm *shared)
{
	/* Pairs with the release in fill_comm() and in setup_comm_end(). */
	uint64_t word = load_acquire(&shared->word);
	struct region_comm copy;

	if (!region_slot_is_used(word))
		return false;
	if (own->info.id != load_relaxed(&shared->info.id)) {
		if (!own_thread_read_comm(shared, &copy))
			return false;
		*own = (struct inspector_comm){ .info = copy.info };
		word = copy.word;
	}
	if (!(word & COMM_ENDED) || own->is_ending)
		return false;
	own->is_ending = true;
	return true;
}

/* Copy new ones and note which have ended. True if one has ended since the last call. */
static bool inspector_comms_refresh(struct inspector_comms *comms)
{
	bool is_one_ending = false;

	for (uint32_t i = 0; i < comms->count; i++)
		is_one_ending |= refresh_one(&comms->slots[i], &recorder.region.comms[i]);
	return is_one_ending;
}

/* The ring was read at least up to where it was at the refresh: what had ended then is done. */
static void inspector_comms_settle(struct inspector_comms *comms)
{
	for (uint32_t i = 0; i < comms->count; i++)
		if (comms->slots[i].is_ending && comms->done[i] != comms->slots[i].info.id)
			/* Pairs with the acquire in inspector_has_comm(). */
			store_release(&comms->done[i], comms->slots[i].info.id);
}

/* NULL if its slot went to another communicator before its records were read. */
static struct inspector_comm *inspector_comms_find(struct inspector_comms *comms, uint32_t id)
{
	if (comms->slots[comms->last].info.id == id)
		return &comms->slots[comms->last];
	for (uint32_t i = 0; i < comms->count; i++)
		if (comms->slots[i].info.id == id) {
			comms->last = i;
			return &comms->slots[i];
		}
	return NULL;
}

/*
 * For NCCL_INSPECTOR_DUMP_VERBOSE: what each channel of an operation did, kept from when its detail
 * is read until its record is. Bounded: when there is no room, all are dropped and lines have fewer
 * channels.
 */

enum { NODES = 1 << 16, DETAIL_BATCH = 256, TRIES = 1000 };

/* One channel; index 0 means none. */
struct node {
	uint64_t number;
	uint64_t start_ns, stop_ns;
	uint32_t comm;
	uint32_t next; /* in its list or in the free list */
	uint8_t channel;
};

struct inspector_events_pool {
	struct ring_reader reader;
	struct op_detail batch[DETAIL_BATCH];
	struct node nodes[NODES];
	uint32_t lists[NODES]; /* by hash of communicator and number */
	uint32_t free;
};

static void forget_all(struct inspector_events_pool *pool)
{
	memset(pool->lists, 0, sizeof(pool->lists));
	for (uint32_t i = 1; i < NODES; i++)
		pool->nodes[i].next = i + 1 < NODES ? i + 1 : 0;
	pool->free = 1;
}

/* The region must have details. NULL: out of memory. */
static struct inspector_events_pool *inspector_events_new(void)
{
	struct inspector_events_pool *pool = malloc(sizeof(*pool));

	if (pool == NULL)
		return NULL;
	pool->reader = ring_reader_of_details();
	forget_all(pool);
	return pool;
}

static uint32_t list_of(uint32_t comm, uint64_t number)
{
	return (uint32_t)(hash_word(comm, number) & (NODES - 1));
}

static void keep_channel(struct inspector_events_pool *pool, const struct op_detail *detail)
{
	uint32_t list = list_of(detail->comm, detail->number), which;

	if (detail->kind != OP_DETAIL_KERNEL || detail->comm == 0)
		return;
	if (pool->free == 0)
		forget_all(pool);
	which = pool->free;
	pool->free = pool->nodes[which].next;
	pool->nodes[which] = (struct node){ .number = detail->number,
					    .start_ns = detail->time_ns[2],
					    .stop_ns = detail->time_ns[3],
					    .comm = detail->comm,
					    .next = pool->lists[list],
					    .channel = detail->channel };
	pool->lists[list] = which;
}

/* Read everything that is in the ring of details now. */
static void inspector_events_read(struct inspector_events_pool *pool, uint64_t now_ns)
{
	uint64_t head = load_relaxed(pool->reader.head);
	struct ring_missed missed;

	/* Give a writer that is busy a moment, but do not wait for one that never finishes. */
	for (int i = 0; i < TRIES && pool->reader.tail < head; i++) {
		uint32_t taken =
			ring_reader_take(&pool->reader, now_ns, i == TRIES - 1,
					 (uint64_t *)(void *)pool->batch, DETAIL_BATCH, &missed);

		for (uint32_t j = 0; j < taken; j++)
			keep_channel(pool, &pool->batch[j]);
		if (taken == 0)
			sched_yield();
		else
			i = 0;
	}
}

static bool is_of(const struct node *node, const struct op_record *op)
{
	return node->comm == op->comm && node->number == op->number;
}

static int compare_channels(const void *left, const void *right)
{
	const struct inspector_channel *a = left, *b = right;

	return (int)a->channel - (int)b->channel;
}

/* The channels of this operation, by number, on the recorder's clock. Returns how many. */
static size_t inspector_events_of(const struct inspector_events_pool *pool,
				  const struct op_record *op,
				  struct inspector_channel channels[static INSPECTOR_CHANNELS])
{
	size_t count = 0;

	for (uint32_t at = pool->lists[list_of(op->comm, op->number)];
	     at != 0 && count < INSPECTOR_CHANNELS; at = pool->nodes[at].next) {
		const struct node *node = &pool->nodes[at];

		if (is_of(node, op))
			channels[count++] =
				(struct inspector_channel){ node->start_ns, node->stop_ns,
							    node->channel };
	}
	qsort(channels, count, sizeof(*channels), compare_channels);
	return count;
}

static void inspector_events_forget(struct inspector_events_pool *pool, const struct op_record *op)
{
	uint32_t *link = &pool->lists[list_of(op->comm, op->number)];

	while (*link != 0) {
		uint32_t which = *link;

		if (!is_of(&pool->nodes[which], op)) {
			link = &pool->nodes[which].next;
			continue;
		}
		*link = pool->nodes[which].next;
		pool->nodes[which].next = pool->free;
		pool->free = which;
	}
}

enum { RETRY_NS = 200 * 1000 * 1000 }; /* wait after a failed write */

/* Opens nothing yet. False: out of memory. */
static bool inspector_log_init(struct inspector_log *log, const char *dir, const char *host,
			       int64_t pid, uint64_t quota)
{
	char name[INSPECTOR_NAME_BYTES];

	*log = (struct inspector_log){ .fd = -1, .quota = quota };
	inspector_file_name(name, host, pid);
	log->text = malloc(INSPECTOR_LOG_BYTES);
	return log->text != NULL && text_copy(log->dir, sizeof(log->dir), dir) &&
	       text_format(log->path, sizeof(log->path), "%s/%s", dir, name);
}

/* A killed process of the same name may have left a line without a newline. */
static enum status begin_on_a_new_line(int fd, off_t size)
{
	char last = '\n';

	if (size > 0 && pread(fd, &last, 1, size - 1) != 1)
		return ERR_SYSTEM;
	return last == '\n' || pwrite(fd, "\n", 1, size) == 1 ? OK : ERR_SYSTEM;
}

/* Write only to a regular file that belongs to this user, whoever put it there. */
static enum status open_log(struct inspector_log *log)
{
	struct stat st = { .st_size = 0 };
	int fd;

	/* As Inspector does: accessible to everyone, limited by the umask. */
	file_make_directories(log->dir, 0777, (gid_t)-1);
	fd = fd_open_high(AT_FDCWD, log->path,
			  O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	if (fd == -1)
		return ERR_SYSTEM;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    begin_on_a_new_line(fd, st.st_size) == OK) {
		/* Inspector's logs are world-readable, whatever the umask. */
		if (st.st_size == 0)
			fchmod(fd, 0644);
		log->fd = fd;
		return OK;
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		errno = EPERM;
	close(fd);
	return ERR_SYSTEM;
}

/* Drop what was written. Returns the number of lines. */
static uint64_t let_go(struct inspector_log *log, size_t bytes)
{
	uint64_t lines = 0;

	for (const char *at = log->text; (at = memchr(at, '\n', bytes - (size_t)(at - log->text)));
	     at++)
		lines++;
	memmove(log->text, log->text + bytes, log->used - bytes);
	log->used -= bytes;
	log->held -= lines;
	log->bytes += bytes;
	return lines;
}

/*
 * The disk took only a part: remove the half line at the end of the file. Returns the bytes of the
 * whole lines.
 */
static size_t cut_last_line(struct inspector_log *log, size_t written)
{
	const char *newline = memrchr(log->text, '\n', written);
	size_t whole = newline != NULL ? (size_t)(newline + 1 - log->text) : 0;
	struct stat st;

	if (whole == written)
		return whole;
	/* If that fails, a reader finds half a line and reports it. */
	log->is_torn = fstat(log->fd, &st) == -1 ||
		       ftruncate(log->fd, st.st_size - (off_t)(written - whole)) == -1;
	return whole;
}

static enum status status_of_errno(void)
{
	return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? ERR_NO_SPACE : ERR_SYSTEM;
}

static size_t write_some(struct inspector_log *log, enum status *status)
{
	size_t written = 0;

	if (log->is_torn && pwrite(log->fd, "\n", 1, (off_t)log->bytes) != 1) {
		*status = status_of_errno();
		return 0;
	}
	log->is_torn = false;
	while (written < log->used && *status == OK) {
		ssize_t got = pwrite(log->fd, log->text + written, log->used - written,
				     (off_t)(log->bytes + written));

		if (got > 0)
			written += (size_t)got;
		else if (got == 0 || errno != EINTR)
			*status = got == 0 ? ERR_NO_SPACE : status_of_errno();
	}
	return written;
}

/*
 * Write the buffered lines, opening the file if necessary. Returns how many reached it; the others
 * stay buffered. ERR_SYSTEM (errno), ERR_NO_SPACE, ERR_RANGE (over quota: nothing can be written
 * any more).
 */
static uint64_t inspector_log_write(struct inspector_log *log, uint64_t now_ns, enum status *status)
{
	size_t written, whole;
	int error;

	*status = OK;
	if (log->used == 0)
		return 0;
	if (log->quota != 0 && log->bytes + log->used > log->quota) {
		*status = ERR_RANGE;
		return 0;
	}
	if (log->fd == -1)
		*status = open_log(log);
	written = *status == OK ? write_some(log, status) : 0;
	error = errno;
	whole = *status == OK ? written : cut_last_line(log, written);
	log->retry_ns = *status != OK ? now_ns + RETRY_NS : 0;
	errno = error;
	return let_go(log, whole);
}

/* Drop the buffered lines. Returns how many. */
static uint64_t inspector_log_drop(struct inspector_log *log)
{
	uint64_t held = log->held;

	log->held = 0;
	log->used = 0;
	return held;
}

static void inspector_log_close(struct inspector_log *log)
{
	if (log->fd != -1)
		close(log->fd);
	log->fd = -1;
	free(log->text);
	log->text = NULL;
	log->used = 0;
}

/*
 * One pass: new communicators, then the ring from where the last pass stopped, then, when it is
 * due, the file. Records are copied into memory at once, so the ring does not overrun while files
 * are written only now and then.
 *
 * `account` is held for moments, never during a write. It guards what was taken from the ring, how
 * much of that is still to be written, and whether this is the end. The thread that ends the job
 * reads it and does not wait forever.
 */

enum { RECORD_BATCH = 256, LAST_WORDS_MS = 200 };
#define PROM_LEAST_NS (UINT64_C(100) * 1000 * 1000)

static struct {
	bool is_running; /* written once */
	const struct inspector_settings *settings;
	const struct identity *identity;
	char dir[1024];

	/* Private to the thread. */
	struct ring_reader reader;
	struct op_record *batch;
	struct inspector_comms comms;
	struct inspector_log log;	      /* lines, or ... */
	struct inspector_series series;	      /* ... metrics */
	struct inspector_events_pool *events; /* NULL: not requested */
	struct clock_anchor anchor;
	uint64_t written_ns, sweep_ns;
	bool is_told; /* the user knows that nothing can be written */

	struct own_passes passes; /* its account guards the following */
	uint64_t taken;		  /* sequence last taken, or missed and counted */
	uint64_t in_hand;	  /* of these, not yet in the file */
	uint64_t in_file;
	uint64_t lost;
	uint64_t fates[INSPECTOR_FATES];
	char last_words[2400]; /* the summary for the user */
} inspector = { .passes = OWN_PASSES_INIT };

/* ---- accounting ------------------------------------------------------------------------------ */

/* With the account held. */
static void lose_ops(uint64_t how_many)
{
	inspector.lost += how_many;
	count_lost(LOST_INSPECTOR, how_many);
}

/* These records are this thread's to write. False: too late, they are already accounted for. */
static bool take_in_hand(uint32_t taken, const struct ring_missed *missed)
{
	bool is_ours;

	pthread_mutex_lock(&inspector.passes.account);
	is_ours = !inspector.passes.is_abandoned;
	if (is_ours) {
		lose_ops(missed->overrun + missed->busy);
		inspector.taken = inspector.reader.tail;
		inspector.in_hand += taken;
		inspector.passes.progress++;
	}
	pthread_mutex_unlock(&inspector.passes.account);
	return is_ours;
}

/* Some of them are in the file now, some never will be. */
static void put_down(uint64_t in_file, uint64_t lost)
{
	pthread_mutex_lock(&inspector.passes.account);
	if (inspector.passes.is_abandoned) {
		/* give_up() counted all of them as lost: correct that. */
		count_lost(LOST_INSPECTOR, -in_file);
	} else {
		inspector.in_hand -= in_file + lost;
		inspector.in_file += in_file;
		lose_ops(lost);
	}
	inspector.passes.progress++;
	pthread_mutex_unlock(&inspector.passes.account);
}

static void leave_out(enum inspector_fate fate)
{
	pthread_mutex_lock(&inspector.passes.account);
	if (!inspector.passes.is_abandoned) {
		inspector.in_hand--;
		inspector.fates[fate]++;
	}
	pthread_mutex_unlock(&inspector.passes.account);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Report once that files cannot be written. */
static void tell_trouble(enum status status)
{
	char line[1600];

	if (inspector.is_told)
		return;
	inspector.is_told = true;
	text_format(line, sizeof(line),
		    "ringside: NCCL_INSPECTOR_DUMP_DIR: cannot write files in %.1000s (%s); "
		    "retrying, lost operations are counted\n",
		    inspector.dir, status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	own_thread_say(line);
}

static void write_lines(uint64_t now)
{
	enum status status;
	uint64_t written = inspector_log_write(&inspector.log, now, &status);
	uint64_t lost = status == ERR_RANGE ? inspector_log_drop(&inspector.log) : 0;

	if (status == ERR_SYSTEM || status == ERR_NO_SPACE)
		tell_trouble(status);
	put_down(written, lost);
}

static void publish_metrics(void)
{
	enum status status;
	uint64_t count = inspector.series.count;
	uint64_t published = inspector_series_publish(&inspector.series, &status);

	if (status != OK)
		tell_trouble(status);
	put_down(published, count - published);
}

static bool is_time(uint64_t now, bool is_one_ending)
{
	int64_t interval_us = inspector.settings->interval_us;
	uint64_t interval_ns = (uint64_t)interval_us * 1000;

	if (inspector.settings->is_prom)
		return now - inspector.written_ns >=
		       (interval_ns > PROM_LEAST_NS ? interval_ns : PROM_LEAST_NS);
	if (inspector.log.retry_ns > now)
		return false;
	return is_one_ending || inspector.log.used > INSPECTOR_LOG_BYTES / 2 ||
	       (interval_us != INSPECTOR_AT_END && now - inspector.written_ns >= interval_ns);
}

static void write_file(uint64_t now)
{
	inspector.written_ns = now;
	if (inspector.settings->is_prom)
		publish_metrics();
	else
		write_lines(now);
}

/* ---- records --------------------------------------------------------------------------------- */

static uint64_t wall_of(uint64_t clock_ns)
{
	return clock_ns != 0 ? inspector.anchor.wall_ns + (clock_ns - inspector.anchor.clock_ns)
			     : 0;
}

/* False: the line does not fit. */
static bool put_line(const struct inspector_comm *comm, const struct op_record *op)
{
	struct inspector_speaker speaker = { .host = inspector.identity->host,
					     .pid = (int64_t)inspector.identity->pid,
					     .wall_ns = wall_of(op->done_ns) };
	struct inspector_channel channels[INSPECTOR_CHANNELS];
	struct inspector_events events = { .op_ns = wall_of(op->task_ns), .channels = channels };
	struct inspector_log *log = &inspector.log;
	size_t length;

	if (inspector.events != NULL)
		events.count = inspector_events_of(inspector.events, op, channels);
	for (size_t i = 0; i < events.count; i++) {
		channels[i].start_ns = wall_of(channels[i].start_ns);
		channels[i].stop_ns = wall_of(channels[i].stop_ns);
	}
	length = inspector_line(log->text + log->used, INSPECTOR_LOG_BYTES - log->used, &speaker,
				&comm->info, op, comm->p2p,
				inspector.events != NULL ? &events : NULL);
	log->used += length;
	log->held += length > 0;
	return length > 0;
}

static void write_op(const struct inspector_comm *comm, const struct op_record *op, uint64_t now)
{
	size_t most = inspector.events != NULL ? INSPECTOR_VERBOSE_BYTES : INSPECTOR_LINE_BYTES;
	bool is_kept;

	if (inspector.settings->is_prom) {
		is_kept = inspector_series_add(&inspector.series, &comm->info, op);
	} else {
		if (inspector.log.used + most > INSPECTOR_LOG_BYTES &&
		    inspector.log.retry_ns <= now)
			write_lines(now);
		is_kept = put_line(comm, op);
	}
	if (!is_kept)
		put_down(0, 1);
}

static void take_op(const struct op_record *op, uint64_t now)
{
	struct inspector_comm *comm = inspector_comms_find(&inspector.comms, op->comm);
	enum inspector_fate fate;

	if (comm == NULL) {
		/* New since this pass began, or its slot already has another owner. */
		inspector_comms_refresh(&inspector.comms);
		comm = inspector_comms_find(&inspector.comms, op->comm);
	}
	if (comm == NULL) {
		put_down(0, 1);
		return;
	}
	comm->p2p += inspector_is_p2p(op->function);
	fate = inspector_fate(op, &comm->info, &inspector.settings->filter);
	if (fate == INSPECTOR_WRITTEN)
		write_op(comm, op, now);
	else
		leave_out(fate);
	if (inspector.events != NULL)
		inspector_events_forget(inspector.events, op);
}

/* True if there may be more. */
static bool take_batch(uint64_t now, bool is_last)
{
	struct ring_missed missed;
	uint32_t taken =
		ring_reader_take(&inspector.reader, now, is_last,
				 (uint64_t *)(void *)inspector.batch, RECORD_BATCH, &missed);

	if (!take_in_hand(taken, &missed))
		return false;
	/* An operation's details are in their ring before its record is. */
	if (inspector.events != NULL)
		inspector_events_read(inspector.events, now);
	for (uint32_t i = 0; i < taken; i++)
		take_op(&inspector.batch[i], now);
	return taken == RECORD_BATCH || (is_last && taken > 0);
}

static void see_gpus(void)
{
	for (uint32_t i = 0; i < inspector.comms.count; i++)
		if (inspector.comms.slots[i].info.id != 0)
			inspector_series_see_gpu(&inspector.series, &inspector.comms.slots[i].info);
}

/* True if there were records. */
static bool make_pass(bool is_last)
{
	uint64_t now = recorder_now(), before = inspector.reader.tail;
	bool is_one_ending = inspector_comms_refresh(&inspector.comms);
	uint64_t head = load_relaxed(inspector.reader.head);

	inspector.anchor = clock_anchor_take(&recorder.clock);
	while (take_batch(now, is_last))
		;
	if (inspector.reader.tail >= head)
		inspector_comms_settle(&inspector.comms);
	own_thread_sweep(&inspector.sweep_ns, now);
	if (inspector.settings->is_prom)
		see_gpus();
	if (is_time(now, is_one_ending) || (is_last && !inspector.settings->is_prom))
		write_file(now);
	return inspector.reader.tail != before;
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* Append ", 12 without a time" for each reason that occurred. */
static void add_fates(char *line, size_t size)
{
	for (int i = INSPECTOR_WRITTEN + 1; i < INSPECTOR_FATES; i++)
		if (inspector.fates[i] > 0)
			text_append(line, size, ", %llu %s", (unsigned long long)inspector.fates[i],
				    inspector_fate_text((enum inspector_fate)i));
}

/* Summarize what happened to every operation; with the account held. */
static void sum_up(void)
{
	bool is_prom = inspector.settings->is_prom;
	size_t size = sizeof(inspector.last_words);
	char *line = inspector.last_words;
	uint64_t left_out = 0;

	for (int i = INSPECTOR_WRITTEN + 1; i < INSPECTOR_FATES; i++)
		left_out += inspector.fates[i];
	text_format(line, size, "ringside: %.1300s: %llu operations, %llu %s",
		    is_prom ? inspector.dir : inspector.log.path,
		    (unsigned long long)(inspector.in_file + inspector.in_hand + left_out +
					 inspector.lost),
		    (unsigned long long)inspector.in_file, is_prom ? "in metrics" : "lines");
	add_fates(line, size);
	if (inspector.in_hand > 0)
		text_append(line, size, ", %llu since the last metrics",
			    (unsigned long long)inspector.in_hand);
	text_append(line, size, ", %llu lost\n", (unsigned long long)inspector.lost);
}

/* What cannot be written now is lost. */
static void last_pass(void)
{
	make_pass(true);
	if (inspector.settings->is_prom)
		inspector_series_leave(&inspector.series);
	else
		put_down(0, inspector_log_drop(&inspector.log));
	inspector_log_close(&inspector.log);
}

static void *run_thread(void *unused)
{
	bool has_found;

	(void)unused;
	own_thread_begin("ringside-insp");
	do
		has_found = make_pass(false);
	while (own_passes_rest(&inspector.passes, has_found));
	last_pass();
	pthread_mutex_lock(&inspector.passes.account);
	if (!inspector.passes.is_abandoned)
		sum_up();
	own_passes_end(&inspector.passes);
	pthread_mutex_unlock(&inspector.passes.account);
	return NULL;
}

/* ---- interface ------------------------------------------------------------------------------- */

static bool make_room(const struct settings *settings, const struct identity *identity)
{
	struct region_writer *region = &recorder.region;
	const struct inspector_settings *own = &settings->inspector;

	inspector.reader = ring_reader_of_ops();
	inspector.batch = malloc(RECORD_BATCH * sizeof(*inspector.batch));
	if (inspector.batch == NULL || region->ring_count == 0 ||
	    !inspector_comms_init(&inspector.comms, region->comm_count))
		return false;
	if (own->is_prom)
		return inspector_series_init(&inspector.series, inspector.dir, own->job,
					     identity->host);
	if (own->is_verbose && region->detail_count > 0) {
		inspector.events = inspector_events_new();
		if (inspector.events == NULL)
			return false;
	}
	return inspector_log_init(&inspector.log, inspector.dir, identity->host,
				  (int64_t)identity->pid,
				  settings->has_quota ? settings->quota : 0);
}

enum status inspector_start(const struct settings *settings, const struct identity *identity)
{
	enum status status;

	inspector.settings = &settings->inspector;
	inspector.identity = identity;
	inspector.log.fd = -1;
	/* The job may change its working directory before the thread opens a file. */
	if (!text_copy(inspector.dir, sizeof(inspector.dir), settings->inspector.dir) ||
	    !file_make_absolute(inspector.dir, sizeof(inspector.dir)))
		return ERR_SYSTEM;
	if (!make_room(settings, identity))
		return ERR_NO_SPACE;
	inspector.written_ns = inspector.sweep_ns = recorder_now();
	status = own_thread_start(run_thread, NULL, &inspector.passes.changed);
	inspector.is_running = status == OK;
	return status;
}

bool inspector_has_comm(uint32_t slot, uint32_t id)
{
	return !inspector.is_running || load_acquire(&inspector.comms.done[slot]) == id;
}

void inspector_save_comms(void)
{
	if (inspector.is_running)
		own_passes_ask(&inspector.passes);
}

/*
 * The thread is stuck in the disk: what it has in hand may never reach the file, and what is in the
 * ring will not. With the account held.
 */
static void give_up(void)
{
	lose_ops(inspector.in_hand + load_relaxed(inspector.reader.head) - inspector.taken);
	inspector.in_hand = 0;
	sum_up();
}

void inspector_finish(void)
{
	if (!inspector.is_running)
		return;
	pthread_mutex_lock(&inspector.passes.account);
	if (!own_passes_finish(&inspector.passes))
		give_up();
	pthread_mutex_unlock(&inspector.passes.account);
	own_thread_say_for(inspector.last_words, LAST_WORDS_MS);
}
