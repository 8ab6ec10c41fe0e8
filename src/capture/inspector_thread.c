/*
 * One pass: communicators that are new, then the ring from where the last pass stopped, then, when it is
 * time, the file. What is read goes into memory at once, so that the ring does not run over while a file
 * is written only every now and then.
 *
 * `account` is held for moments, never during a write: what was taken from the ring, how much of it is still
 * on its way, whether it is over. Whoever ends the job looks at this and does not wait for ever.
 */
#include "capture/inspector_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "capture/inspector_comms.h"
#include "capture/inspector_events.h"
#include "capture/inspector_log.h"
#include "capture/inspector_series.h"
#include "capture/own_passes.h"
#include "capture/own_thread.h"
#include "capture/recorder.h"
#include "capture/ring_reader.h"
#include "inspector/inspector_line.h"

enum { BATCH = 256, LAST_WORDS_MS = 200 };
#define PROM_LEAST_NS (UINT64_C(100) * 1000 * 1000)

static struct {
	bool is_running; /* written once */
	const struct inspector_settings *settings;
	const struct identity *identity;
	char dir[1024];

	/* The thread's own. */
	struct ring_reader reader;
	struct op_record *batch;
	struct inspector_comms comms;
	struct inspector_log log;	      /* lines, or ... */
	struct inspector_series series;	      /* ... metrics */
	struct inspector_events_pool *events; /* NULL: not asked for */
	struct clock_anchor anchor;
	uint64_t written_ns, sweep_ns;
	bool is_told; /* the user knows that nothing can be written */

	struct own_passes passes; /* its account guards what follows */
	uint64_t taken;		  /* sequence last taken, or missed and counted */
	uint64_t in_hand;	  /* of these, not yet in the file */
	uint64_t in_file;
	uint64_t lost;
	uint64_t fates[INSPECTOR_FATES];
	char last_words[2400]; /* what became of every operation */
} inspector = { .passes = OWN_PASSES_INIT };

/* ---- the account ----------------------------------------------------------------------------- */

/* With the account held. */
static void lose(uint64_t how_many)
{
	inspector.lost += how_many;
	count_lost(LOST_INSPECTOR, how_many);
}

/* Records are this thread's to write from now on. False: too late, they are accounted for. */
static bool take_in_hand(uint32_t taken, const struct ring_missed *missed)
{
	bool is_ours;

	pthread_mutex_lock(&inspector.passes.account);
	is_ours = !inspector.passes.is_abandoned;
	if (is_ours) {
		lose(missed->overrun + missed->busy);
		inspector.taken = inspector.reader.tail;
		inspector.in_hand += taken;
		inspector.passes.progress++;
	}
	pthread_mutex_unlock(&inspector.passes.account);
	return is_ours;
}

/* So many of them are in the file now, and so many never will be. */
static void put_down(uint64_t in_file, uint64_t lost)
{
	pthread_mutex_lock(&inspector.passes.account);
	if (inspector.passes.is_abandoned) {
		/* give_up() counted all of them as lost: take back what is not true. */
		count_lost(LOST_INSPECTOR, -in_file);
	} else {
		inspector.in_hand -= in_file + lost;
		inspector.in_file += in_file;
		lose(lost);
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

/* Once: what is wrong with the place where the files should be. */
static void tell_trouble(enum status status)
{
	char line[1600];

	if (inspector.is_told)
		return;
	inspector.is_told = true;
	text_format(line, sizeof(line),
		    "ringside: NCCL_INSPECTOR_DUMP_DIR: files in %.1000s cannot be written (%s); "
		    "trying again, what is lost is counted\n",
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

/* False: it does not fit. */
static bool put_line(const struct inspector_comm *comm, const struct op_record *op)
{
	struct inspector_speaker speaker = { .host = inspector.identity->host,
					     .pid = (int64_t)inspector.identity->pid,
					     .wall_ns = wall_of(op->done_ns) };
	struct inspector_channel channels[INSPECTOR_CHANNELS];
	struct inspector_events events = { .op_ns = wall_of(op->task_ns), .channels = channels };
	size_t room, length;
	char *place = inspector_log_place(&inspector.log, &room);

	if (inspector.events != NULL)
		events.count = inspector_events_of(inspector.events, op, channels);
	for (size_t i = 0; i < events.count; i++) {
		channels[i].start_ns = wall_of(channels[i].start_ns);
		channels[i].stop_ns = wall_of(channels[i].stop_ns);
	}
	length = inspector_line(place, room, &speaker, &comm->info, op, comm->p2p,
				inspector.events != NULL ? &events : NULL);
	if (length > 0)
		inspector_log_add(&inspector.log, length);
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
		/* New since this pass began, or its slot has another owner already. */
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

/* True when there may be more. */
static bool take_batch(uint64_t now, bool is_last)
{
	struct ring_missed missed;
	uint32_t taken = ring_reader_take(&inspector.reader, now, is_last,
					  (uint64_t *)(void *)inspector.batch, BATCH, &missed);

	if (!take_in_hand(taken, &missed))
		return false;
	/* An operation's details are in their ring before it is in its own. */
	if (inspector.events != NULL)
		inspector_events_read(inspector.events, now);
	for (uint32_t i = 0; i < taken; i++)
		take_op(&inspector.batch[i], now);
	return taken == BATCH || (is_last && taken > 0);
}

static void see_gpus(void)
{
	for (uint32_t i = 0; i < inspector.comms.count; i++)
		if (inspector.comms.slots[i].info.id != 0)
			inspector_series_see_gpu(&inspector.series, &inspector.comms.slots[i].info);
}

/* True when there were records. */
static bool pass(bool is_last)
{
	uint64_t now = recorder_now(), before = inspector.reader.tail;
	bool is_one_ending = inspector_comms_refresh(&inspector.comms);
	uint64_t head = load_relaxed(inspector.reader.head);

	inspector.anchor = clock_anchor_take(&recorder.clock);
	while (take_batch(now, is_last))
		;
	if (inspector.reader.tail >= head)
		inspector_comms_settle(&inspector.comms);
	if (now - inspector.sweep_ns > OWN_THREAD_SWEEP_NS) {
		inspector.sweep_ns = now;
		own_thread_sweep(now);
	}
	if (inspector.settings->is_prom)
		see_gpus();
	if (is_time(now, is_one_ending) || (is_last && !inspector.settings->is_prom))
		write_file(now);
	return inspector.reader.tail != before;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* ", 12 without a time" for each reason there was. */
static void add_fates(char *line, size_t size)
{
	for (int i = INSPECTOR_WRITTEN + 1; i < INSPECTOR_FATES; i++) {
		size_t used = strlen(line);

		if (inspector.fates[i] > 0)
			text_format(line + used, size - used, ", %llu %s",
				    (unsigned long long)inspector.fates[i],
				    inspector_fate_text((enum inspector_fate)i));
	}
}

/* What became of every operation; with the account held. */
static void sum_up(void)
{
	bool is_prom = inspector.settings->is_prom;
	size_t size = sizeof(inspector.last_words), used;
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
	used = strlen(line);
	if (inspector.in_hand > 0)
		text_format(line + used, size - used, ", %llu since the last metrics",
			    (unsigned long long)inspector.in_hand);
	used = strlen(line);
	text_format(line + used, size - used, ", %llu lost\n", (unsigned long long)inspector.lost);
}

/* What cannot be written now never will be. */
static void last_pass(void)
{
	pass(true);
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
		has_found = pass(false);
	while (own_passes_rest(&inspector.passes, has_found));
	last_pass();
	pthread_mutex_lock(&inspector.passes.account);
	if (!inspector.passes.is_abandoned)
		sum_up();
	own_passes_end(&inspector.passes);
	pthread_mutex_unlock(&inspector.passes.account);
	return NULL;
}

/* ---- what others call ------------------------------------------------------------------------ */

/* The job may be elsewhere when the thread comes to open a file. */
static bool choose_dir(const char *dir)
{
	char here[512];

	if (dir[0] == '/')
		return text_copy(inspector.dir, sizeof(inspector.dir), dir);
	return getcwd(here, sizeof(here)) != NULL &&
	       text_format(inspector.dir, sizeof(inspector.dir), "%s/%s", here, dir);
}

static bool make_room(const struct settings *settings, const struct identity *identity)
{
	struct region_writer *region = &recorder.region;
	const struct inspector_settings *own = &settings->inspector;

	inspector.reader = (struct ring_reader){ .slots = (void *)region->ring,
						 .count = region->ring_count,
						 .words = OP_RECORD_WORDS,
						 .head = &region->header->ring_head };
	inspector.batch = malloc(BATCH * sizeof(*inspector.batch));
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
	if (!choose_dir(settings->inspector.dir))
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
	return !inspector.is_running || inspector_comms_is_done(&inspector.comms, slot, id);
}

void inspector_save_comms(void)
{
	if (inspector.is_running)
		own_passes_ask(&inspector.passes);
}

/* The thread is stuck in the disk: what it has in hand may never reach the file, what is in the ring will
 * not. With the account held. */
static void give_up(void)
{
	lose(inspector.in_hand + load_relaxed(inspector.reader.head) - inspector.taken);
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
