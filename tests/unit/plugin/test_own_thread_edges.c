/* How long and how often the plugin waits for its own threads, and what happens without any. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include "common/file.h"
#include "tests/unit/plugin/thread_play.h"

/* ---- what replaces libc ------------------------------------------------------------------------- */

enum { TRIES_MOST = 8 };

static struct own_passes passes = OWN_PASSES_INIT;
static unsigned int sleeps, answers_at, answers;
static struct timespec last_sleep, last_pause;
static uint32_t pauses;
static int create_error;
static size_t stacks[TRIES_MOST];
static unsigned int creates;

/* The thread makes passes while the caller sleeps. */
int nanosleep(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	last_sleep = *pause;
	if (++sleeps >= answers_at && answers > 0) {
		passes.count++;
		passes.is_mute = false;
		answers--;
	}
	return 0;
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *pause, struct timespec *left)
{
	(void)id, (void)flags, (void)left;
	if (load_relaxed(&pauses) == 0)
		last_pause = *pause;
	store_release(&pauses, load_relaxed(&pauses) + 1);
	store_relaxed(&recorder.is_over, 1);
	return 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
		   void *argument)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (attributes != NULL && creates < TRIES_MOST)
		pthread_attr_getstacksize(attributes, &stacks[creates]);
	creates++;
	if (create_error != 0)
		return create_error;
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attributes, run, argument);
}

/* ---- requests for a pass ------------------------------------------------------------------------ */

/* Asks; true if the caller slept so often. */
static bool ask(unsigned int at, unsigned int how_many, unsigned int wanted)
{
	sleeps = 0;
	answers_at = at;
	answers = how_many;
	passes.is_asked = false;
	own_passes_ask(&passes);
	if (sleeps != wanted)
		printf("# slept %u times\n", sleeps);
	return sleeps == wanted;
}

static void ask_for_passes(void)
{
	pthread_cond_init(&passes.changed, NULL);
	passes.count = 7;
	expect(ask(3, 2, 4) && !passes.is_mute && passes.is_asked && passes.count == 9);
	expect(last_sleep.tv_sec == 0 && last_sleep.tv_nsec == 1000000);
	expect(ask(1, 2, 2) && !passes.is_mute);
	/* One pass may have begun before. */
	expect(ask(1, 1, 40) && !passes.is_mute && passes.count == 12);
	expect(ask(40, 1, 40) && !passes.is_mute);
	expect(ask(1, 0, 40) && passes.is_mute && passes.is_asked);
	/* Then nobody waits for it. */
	expect(ask(1, 5, 0) && passes.is_mute && passes.is_asked);
	passes.is_mute = false;
	expect(ask(39, 2, 40) && !passes.is_mute);
}

static void rest_between_passes(void)
{
	pthread_cond_init(&passes.changed, NULL);
	passes.is_asked = passes.is_mute = true;
	expect(own_passes_rest(&passes, false));
	expect(passes.count == 1 && !passes.is_asked && !passes.is_mute);
	store_relaxed(&thread_is_past, 1);
	expect(own_passes_rest(&passes, true) && passes.count == 2);
	passes.is_over = true;
	expect(!own_passes_rest(&passes, true) && passes.count == 3);
	passes.is_asked = true;
	expect(!own_passes_rest(&passes, true) && passes.count == 4 && !passes.is_asked);
	expect(!own_passes_are_abandoned(&passes));
	passes.is_abandoned = true;
	expect(own_passes_are_abandoned(&passes));
	own_passes_end(&passes);
	expect(passes.is_finished);
}

/* ---- the last pass ------------------------------------------------------------------------------ */

static uint32_t progress_until, finish_at;

/* Work is done between two checks, up to some check. */
static void make_progress(void)
{
	if (thread_rests <= progress_until)
		passes.progress++;
	if (thread_rests == finish_at)
		passes.is_finished = true;
}

/* Waits for the last pass; true if it checked so often. */
static bool finish(uint32_t until, uint32_t done_at, bool is_finished, uint32_t checks)
{
	passes = (struct own_passes)OWN_PASSES_INIT;
	pthread_cond_init(&passes.changed, NULL);
	store_relaxed(&thread_rests, 0);
	progress_until = until;
	finish_at = done_at;
	pthread_mutex_lock(&passes.account);
	if (own_passes_finish(&passes) != is_finished || !passes.is_over ||
	    passes.is_abandoned == is_finished)
		return false;
	pthread_mutex_unlock(&passes.account);
	if (thread_rests != checks)
		printf("# checked %u times\n", thread_rests);
	return thread_rests == checks;
}

/* A check takes 20 ms. */
static void wait_for_the_last_pass(void)
{
	thread_on_rest = make_progress;
	store_relaxed(&thread_is_past, 1);
	expect(finish(0, 0, false, 100));	    /* 2 s without progress */
	expect(finish(50, 0, false, 50 + 100 - 1)); /* since the last progress */
	expect(finish(5000, 0, false, 1500));	    /* 30 s in total */
	expect(finish(5000, 1500, true, 1500));
	expect(finish(0, 1, true, 1));
	expect(finish(0, 100, true, 100));
}

/* ---- waiting for work --------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool is_done;
static uint32_t done_at, tid_of_other, is_spinning;
static sem_t never;

static void be_done(void)
{
	if (thread_rests == done_at)
		is_done = true;
}

static bool waits(pid_t tid, int patience_ms, bool answer, uint32_t checks)
{
	bool is_answered;

	is_done = false;
	store_relaxed(&thread_rests, 0);
	pthread_mutex_lock(&lock);
	is_answered = own_thread_wait(&lock, &changed, &tid, &is_done, patience_ms);
	pthread_mutex_unlock(&lock);
	if (thread_rests != checks)
		printf("# checked %u times\n", thread_rests);
	return is_answered == answer && thread_rests == checks;
}

static void *block(void *unused)
{
	store_release(&tid_of_other, (uint32_t)own_thread_begin("blocked"));
	while (sem_wait(&never) == -1)
		;
	return unused;
}

static void *spin(void *unused)
{
	store_release(&tid_of_other, (uint32_t)own_thread_begin("spinning"));
	while (load_relaxed(&is_spinning))
		;
	return unused;
}

static pid_t start_other(void *(*run)(void *), char wanted)
{
	static pthread_cond_t unused;
	char task[32], state = '?';
	uint64_t ticks;

	store_relaxed(&tid_of_other, 0);
	expect(own_thread_start(run, NULL, &unused) == OK);
	while (load_acquire(&tid_of_other) == 0)
		sched_yield();
	text_format(task, sizeof(task), "self/task/%u", tid_of_other);
	while (state != wanted)
		expect(file_proc_stat(task, &state, &ticks));
	return (pid_t)tid_of_other;
}

/* A check takes 5 ms. */
static void wait_for_work(void)
{
	pid_t blocked, spinning;

	pthread_cond_init(&changed, NULL);
	sem_init(&never, 0, 0);
	blocked = start_other(block, 'S');
	is_spinning = 1;
	spinning = start_other(spin, 'R');
	thread_on_rest = be_done;
	store_relaxed(&thread_is_past, 1);
	expect(waits(blocked, 0, false, 0));
	expect(waits(blocked, 1, false, 1));
	expect(waits(blocked, 5, false, 1));
	expect(waits(blocked, 6, false, 2));
	expect(waits(blocked, 20, false, 4));
	/* One that lacks a processor gets a second. */
	expect(waits(0, 20, false, 200));
	expect(waits(spinning, 20, false, 200));
	done_at = 2;
	expect(waits(blocked, 20, true, 2));
	done_at = 150;
	expect(waits(0, 20, true, 150));
	store_relaxed(&is_spinning, 0);
}

/* ---- without threads ---------------------------------------------------------------------------- */

static void *do_nothing(void *unused)
{
	return unused;
}

/* Larger stacks are tried if the job's variables do not fit. */
static void try_larger_stacks(void)
{
	static pthread_cond_t unused;

	create_error = EINVAL;
	expect(own_thread_start(do_nothing, NULL, &unused) == ERR_SYSTEM && errno == EINVAL);
	expect(creates == 5 && stacks[0] == 256 << 10 && stacks[1] == 1 << 20);
	expect(stacks[2] == 4 << 20 && stacks[3] == 16 << 20 && stacks[4] == 64 << 20);
	creates = 0;
	create_error = EAGAIN;
	expect(own_thread_start(do_nothing, NULL, &unused) == ERR_SYSTEM && errno == EAGAIN);
	expect(creates == 1);
}

static int drops;

static void drop(void *data)
{
	expect(data == &drops);
	drops++;
}

static void run_nothing(void *data)
{
	(void)data;
	_exit(5);
}

static int said[2];

/* A pipe, which can be written without blocking, unlike most files. */
static void open_pipe(void)
{
	expect(pipe2(said, O_NONBLOCK) == 0 && dup2(said[1], STDERR_FILENO) != -1);
}

/* What was written since. */
static bool has_said(const char *text)
{
	char found[256];
	ssize_t got = read(said[0], found, sizeof(found) - 1);

	found[got > 0 ? got : 0] = '\0';
	return strcmp(found, text) == 0;
}

static void drop_work_without_a_thread(void)
{
	static const struct own_work work = { "work", run_nothing, drop };

	create_error = EAGAIN;
	expect(!own_thread_try(&work, &drops, 10) && drops == 1);
	open_pipe();
	own_thread_say_for("alone\n", 10);
	expect(has_said("alone\n"));
}

static void say_a_line_once(void)
{
	open_pipe();
	own_thread_say_for("one line\n", 60000);
	expect(has_said("one line\n"));
	own_thread_say("another\n");
	expect(has_said("another\n"));
}

/* Nobody reads it. */
static void say_nothing_into_a_full_pipe(void)
{
	int ends[2], count = 0, left = 0;
	char byte = 'x';

	expect(pipe2(ends, O_NONBLOCK) == 0);
	while (write(ends[1], &byte, 1) == 1)
		count++;
	/* As it is for a job: writing blocks. */
	expect(fcntl(ends[1], F_SETFL, 0) == 0 && dup2(ends[1], STDERR_FILENO) != -1);
	own_thread_say("nothing\n");
	while (read(ends[0], &byte, 1) == 1)
		left++;
	expect(left == count);
}

/* ---- the heartbeat ------------------------------------------------------------------------------ */

static void beat_in_time(void)
{
	play_init(1, 1, 2, 0);
	thread_freeze();
	expect(own_thread_heartbeat(UINT64_C(2500000000)) == OK);
	while (load_acquire(&pauses) == 0)
		sched_yield();
	expect(last_pause.tv_sec == 2 && last_pause.tv_nsec == 500000000);
	expect(load_relaxed(&recorder.region.header->alive_ns) == THREAD_BEGIN_NS);
}

/* ---- a communicator's slot ---------------------------------------------------------------------- */

static void read_a_slot(void)
{
	static struct region_comm comm, copy;

	for (size_t i = 0; i < sizeof(comm) / 8; i++)
		((uint64_t *)(void *)&comm)[i] = i + 1;
	comm.word = UINT64_C(3) << 32 | COMM_ENDED;
	expect(own_thread_read_comm(&comm, &copy) && memcmp(&comm, &copy, sizeof(comm)) == 0);
	comm.word = UINT64_C(2) << 32;
	expect(!own_thread_read_comm(&comm, &copy));
	comm.word = UINT64_C(3) << 32;
	comm.info.id = 0;
	expect(!own_thread_read_comm(&comm, &copy));
}

int main(void)
{
	static const struct {
		const char *name;
		void (*body)(void);
	} cases[] = {
		{ "a request for a pass takes 40 ms at most", ask_for_passes },
		{ "a thread rests unless it is asked or over", rest_between_passes },
		{ "the exit waits for the last pass while it makes progress",
		  wait_for_the_last_pass },
		{ "a caller waits for work that lacks a processor", wait_for_work },
		{ "a thread's stack may have to be large", try_larger_stacks },
		{ "work without a thread is dropped", drop_work_without_a_thread },
		{ "a line is written once", say_a_line_once },
		{ "and not into a full pipe", say_nothing_into_a_full_pipe },
		{ "the heart beats as often as it should", beat_in_time },
		{ "a slot is copied as a whole or not at all", read_a_slot },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		thread_test(cases[i].name, cases[i].body);
	return tap_done();
}
