/* What the recorder's own threads share: starting, waiting, passes, reading the ring. */
#include "plugin/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/file.h"
#include "common/order.h"
#include "common/status.h"
#include "common/text.h"
#include "format/region_layout.h"
#include "plugin/recorder.h"

enum {
	STACK_BYTES = 256 * 1024,
	STACK_BYTES_MOST = 64 * 1024 * 1024,
	LOOK_MS = 5,	 /* how often a waiting thread checks */
	BUSY_MS = 1000,	 /* longest wait for a thread that gets no CPU */
	READY_MS = 1000, /* longest wait for the reader of stderr */
	SWEEP_NS = 200 * 1000 * 1000,
	TIMER_SLACK_NS = 50 * 1000 * 1000,
	NS_PER_S = 1000 * 1000 * 1000,
};

enum status own_thread_start(void *(*run)(void *), void *argument, pthread_cond_t *changed)
{
	pthread_attr_t attributes;
	pthread_condattr_t clock;
	sigset_t all, before;
	pthread_t thread;
	int error = EINVAL;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(changed, &clock);
	pthread_condattr_destroy(&clock);
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* The job's thread-local variables are on the stack, too, and can be large. */
	for (size_t stack = STACK_BYTES; error == EINVAL && stack <= STACK_BYTES_MOST; stack *= 4) {
		pthread_attr_setstacksize(&attributes, stack);
		error = pthread_create(&thread, &attributes, run, argument);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	errno = error;
	return error == 0 ? OK : ERR_SYSTEM;
}

pid_t own_thread_begin(const char *name)
{
	pthread_setname_np(pthread_self(), name);
	return (pid_t)syscall(SYS_gettid);
}

/* For pthread_cond_timedwait(); less than a second. */
static struct timespec own_thread_time_after(int milliseconds)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_nsec += milliseconds * 1000000l;
	if (time.tv_nsec >= 1000000000l) {
		time.tv_sec++;
		time.tv_nsec -= 1000000000l;
	}
	return time;
}

void own_thread_sweep(uint64_t *last_ns, uint64_t now_ns)
{
	if (now_ns - *last_ns <= SWEEP_NS)
		return;
	*last_ns = now_ns;
	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		struct region_live *live = &recorder.region.live[i];
		uint64_t word = load_acquire(&live->word);
		uint64_t done = load_relaxed(&live->op.done_ns);

		if (region_slot_is_used(word) && LIVE_OPEN(word) == 0 && done != 0 &&
		    done + SWEEP_NS < now_ns)
			live_retire(live, REGION_GENERATION(word) & HANDLE_GENERATION_MASK, false);
	}
}

static void *beat(void *period)
{
	uint64_t period_ns = load_relaxed((uint64_t *)period);
	struct timespec pause = { .tv_sec = (time_t)(period_ns / NS_PER_S),
				  .tv_nsec = (long)(period_ns % NS_PER_S) };

	own_thread_begin("ringside-alive");
	/* The exact moment does not matter: wake up together with others. */
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	while (!load_relaxed(&recorder.is_over)) {
		store_relaxed(&recorder.region.header->alive_ns, recorder_now());
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return NULL;
}

enum status own_thread_heartbeat(uint64_t period_ns)
{
	static pthread_cond_t unused;
	static uint64_t period;

	store_relaxed(&period, period_ns);
	store_relaxed(&recorder.region.header->alive_ns, recorder_now());
	return own_thread_start(beat, &period, &unused);
}

bool own_thread_read_comm(const struct region_comm *comm, struct region_comm *copy)
{
	typedef uint64_t __attribute__((may_alias)) any_word;
	const any_word *from = (const any_word *)comm;
	any_word *to = (any_word *)copy;
	/* Pairs with the release in fill_comm(). */
	uint64_t word = load_acquire(&comm->word);

	if (!region_slot_is_used(word))
		return false;
	/* Word by word, because its owner may be writing. */
	for (size_t i = 0; i < sizeof(*copy) / sizeof(*to); i++)
		to[i] = load_relaxed(&from[i]);
	fence_acquire();
	copy->word = word;
	return REGION_GENERATION(load_relaxed(&comm->word)) == REGION_GENERATION(word) &&
	       copy->info.id != 0;
}

void own_thread_say(const char *line)
{
	struct pollfd stream = { .fd = STDERR_FILENO, .events = POLLOUT };
	size_t length = strlen(line);

	if (poll(&stream, 1, 0) == 1 && stream.revents & POLLOUT &&
	    write(STDERR_FILENO, line, length) == -1)
		errno = 0;
}

/* Is a thread of ours waiting only for a CPU? One without a tid has not started. */
static bool is_busy(pid_t tid)
{
	uint64_t start_ticks;
	char task[32], state;

	if (tid == 0)
		return true;
	text_format(task, sizeof(task), "self/task/%d", (int)tid);
	return file_proc_stat(task, &state, &start_ticks) && state == 'R';
}

bool own_thread_wait(pthread_mutex_t *lock, pthread_cond_t *changed, const pid_t *tid,
		     const bool *is_done, int patience_ms)
{
	int busy_ms = 0;

	while (!*is_done && patience_ms > 0 && busy_ms < BUSY_MS) {
		struct timespec until = own_thread_time_after(LOOK_MS);

		while (!*is_done && pthread_cond_timedwait(changed, lock, &until) == 0)
			;
		if (is_busy(*tid))
			busy_ms += LOOK_MS;
		else
			patience_ms -= LOOK_MS;
	}
	return *is_done;
}

/* Work that a thread of its own does while the caller waits, or after it gave up. */
struct own_task {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct own_work *work;
	void *data;
	pid_t tid;
	bool is_done, is_left;
};

static void free_task(struct own_task *task)
{
	pthread_cond_destroy(&task->changed);
	pthread_mutex_destroy(&task->lock);
	free(task);
}

static void *run_task(void *argument)
{
	struct own_task *task = argument;
	pid_t tid = own_thread_begin(task->work->name);
	bool is_left;

	pthread_mutex_lock(&task->lock);
	task->tid = tid;
	pthread_mutex_unlock(&task->lock);
	task->work->run(task->data);
	pthread_mutex_lock(&task->lock);
	task->is_done = true;
	is_left = task->is_left;
	pthread_cond_broadcast(&task->changed);
	pthread_mutex_unlock(&task->lock);
	if (is_left) {
		task->work->drop(task->data);
		free_task(task);
	}
	return NULL;
}

/* *is_started: a thread has the work, whether or not it was done in time. */
static bool run_in_thread(const struct own_work *work, void *data, int patience_ms,
			  bool *is_started)
{
	struct own_task *task = calloc(1, sizeof(*task));
	bool is_done;

	*is_started = false;
	if (task == NULL) {
		work->drop(data);
		return false;
	}
	pthread_mutex_init(&task->lock, NULL);
	task->work = work;
	task->data = data;
	if (own_thread_start(run_task, task, &task->changed) != OK) {
		work->drop(data);
		free_task(task);
		return false;
	}
	*is_started = true;
	pthread_mutex_lock(&task->lock);
	is_done = own_thread_wait(&task->lock, &task->changed, &task->tid, &task->is_done,
				  patience_ms);
	task->is_left = !is_done;
	pthread_mutex_unlock(&task->lock);
	/*
	 * The thread has released the lock, or is about to; it does not touch the task after that.
	 */
	if (is_done)
		free_task(task);
	return is_done;
}

bool own_thread_try(const struct own_work *work, void *data, int patience_ms)
{
	bool is_started;

	return run_in_thread(work, data, patience_ms, &is_started);
}

static void say_when_ready(void *line)
{
	struct pollfd stream = { .fd = STDERR_FILENO, .events = POLLOUT };

	poll(&stream, 1, READY_MS);
	own_thread_say(line);
}

void own_thread_say_for(const char *line, int patience_ms)
{
	static const struct own_work work = { "ringside-says", say_when_ready, free };
	struct iovec bytes = { (void *)(uintptr_t)line, strlen(line) };
	char *copy = strdup(line);
	bool is_started = false;

	if (copy != NULL && run_in_thread(&work, copy, patience_ms, &is_started))
		free(copy);
	/* A sandbox or a limit allows no thread: only a write that cannot block is left. */
	if (!is_started && pwritev2(STDERR_FILENO, &bytes, 1, -1, RWF_NOWAIT) == -1)
		errno = 0;
}

enum {
	PASS_MS = 5,	      /* between passes while records come */
	IDLE_PASS_MS = 50,    /* ... and while none come */
	STANDSTILL_MS = 2000, /* at exit: longest wait for a disk that does not answer */
	FINISH_MS = 30000,    /* ... and for one that is slow */
	FINISH_LOOK_MS = 20,  /* how often that is checked */
	ASK_MS = 40,	      /* in init, when a communicator needs a slot */
};

bool own_passes_rest(struct own_passes *passes, bool has_found)
{
	struct timespec until = own_thread_time_after(has_found ? PASS_MS : IDLE_PASS_MS);
	bool goes_on;

	pthread_mutex_lock(&passes->account);
	passes->count++;
	passes->is_mute = false;
	while (!passes->is_over && !passes->is_asked &&
	       pthread_cond_timedwait(&passes->changed, &passes->account, &until) == 0)
		;
	goes_on = !passes->is_over;
	passes->is_asked = false;
	pthread_mutex_unlock(&passes->account);
	return goes_on;
}

bool own_passes_are_abandoned(struct own_passes *passes)
{
	bool is_true;

	pthread_mutex_lock(&passes->account);
	is_true = passes->is_abandoned;
	pthread_mutex_unlock(&passes->account);
	return is_true;
}

void own_passes_end(struct own_passes *passes)
{
	passes->is_finished = true;
	pthread_cond_broadcast(&passes->changed);
}

/* How many passes there were so far. UINT64_MAX: waiting for another is pointless. */
static uint64_t ask_for_pass(struct own_passes *passes)
{
	uint64_t count;

	pthread_mutex_lock(&passes->account);
	count = passes->is_mute ? UINT64_MAX : passes->count;
	passes->is_asked = true;
	pthread_cond_broadcast(&passes->changed);
	pthread_mutex_unlock(&passes->account);
	return count;
}

/* Two passes: one may be running already and have read the slot before. */
void own_passes_ask(struct own_passes *passes)
{
	struct timespec pause = { .tv_nsec = 1000 * 1000 };
	uint64_t first = ask_for_pass(passes), count = first;

	if (first == UINT64_MAX)
		return;
	for (int i = 0; i < ASK_MS && count < first + 2; i++, count = ask_for_pass(passes))
		nanosleep(&pause, NULL);
	pthread_mutex_lock(&passes->account);
	passes->is_mute = passes->count == first;
	pthread_mutex_unlock(&passes->account);
}

bool own_passes_finish(struct own_passes *passes)
{
	uint64_t seen = passes->progress;

	passes->is_over = true;
	pthread_cond_broadcast(&passes->changed);
	for (int waited = 0, still = 0; waited < FINISH_MS && still < STANDSTILL_MS;
	     waited += FINISH_LOOK_MS, still += FINISH_LOOK_MS) {
		struct timespec until = own_thread_time_after(FINISH_LOOK_MS);

		while (!passes->is_finished &&
		       pthread_cond_timedwait(&passes->changed, &passes->account, &until) == 0)
			;
		if (passes->is_finished)
			return true;
		if (passes->progress != seen)
			still = 0;
		seen = passes->progress;
	}
	passes->is_abandoned = true;
	return false;
}

/*
 * Read a ring slot by rule R2: sequence, copy, sequence again. Compared with the wanted sequence
 * number, the slot holds
 *
 *	the same one      take it
 *	a later one       overrun: missed
 *	an earlier one    its writer is not finished, or was overtaken and gave up: wait a little,
 *	                  then count it as missed
 */

enum { PATIENCE_NS = 1000 * 1000 * 1000 }; /* longest wait for a writer to finish */

struct ring_reader ring_reader_of_ops(void)
{
	return (struct ring_reader){ .slots = (void *)recorder.region.ring,
				     .count = recorder.region.ring_count,
				     .words = OP_RECORD_WORDS,
				     .head = &recorder.region.header->ring_head };
}

struct ring_reader ring_reader_of_details(void)
{
	return (struct ring_reader){ .slots = (void *)recorder.region.details,
				     .count = recorder.region.detail_count,
				     .words = OP_DETAIL_WORDS,
				     .head = &recorder.region.header->details_head };
}

/* Copy the record with this sequence. ERR_GONE: overrun; ERR_RANGE: not there yet. */
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

/* Skip to the oldest record that can still be there; all before it are lost. */
static void pass_overrun(struct ring_reader *reader, struct ring_missed *missed)
{
	uint64_t head = load_relaxed(reader->head);
	uint64_t first = head >= reader->count ? head - reader->count + 1 : 1;
	uint64_t next = reader->tail + 2 > first ? reader->tail + 2 : first;

	missed->overrun += next - 1 - reader->tail;
	reader->tail = next - 1;
}

/* A writer is not finished. True: give up on its record. */
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
