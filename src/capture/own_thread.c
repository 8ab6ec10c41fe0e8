#include "capture/own_thread.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "capture/recorder.h"

enum { STACK_BYTES = 256 * 1024, STACK_BYTES_MOST = 64 * 1024 * 1024 };
/* For a line: no longer with a reader that does not take it, nor with a machine that does not let our thread begin.
 * Looks are counted, not time: while the machine stands still nobody had a chance. */
enum { SAY_MS = 200, BEGIN_MS = 2000, LOOK_MS = 10 };

enum status own_thread_start(void *(*run)(void *), const char *name, pthread_cond_t *changed)
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
	/* The job's thread-local variables lie on the stack too, however large they are. */
	for (size_t stack = STACK_BYTES; error == EINVAL && stack <= STACK_BYTES_MOST; stack *= 4) {
		pthread_attr_setstacksize(&attributes, stack);
		error = pthread_create(&thread, &attributes, run, NULL);
	}
	if (error == 0)
		pthread_setname_np(thread, name);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	errno = error;
	return error == 0 ? OK : ERR_SYSTEM;
}

struct timespec own_thread_time_after(int milliseconds)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_sec += milliseconds / 1000;
	time.tv_nsec += milliseconds % 1000 * 1000000l;
	if (time.tv_nsec >= 1000000000l) {
		time.tv_sec++;
		time.tv_nsec -= 1000000000l;
	}
	return time;
}

void own_thread_sweep(uint64_t now_ns)
{
	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		struct region_live *live = &recorder.region.live[i];
		uint64_t word = load_acquire(&live->word);
		uint64_t done = load_relaxed(&live->op.done_ns);

		if (region_slot_is_used(word) && LIVE_OPEN(word) == 0 && done != 0 &&
		    done + OWN_THREAD_SWEEP_NS < now_ns)
			live_retire(live, REGION_GENERATION(word) & HANDLE_GENERATION_MASK, false);
	}
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
	/* Word by word: its owner may be writing. */
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

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const char *line;
	bool has_begun;
	bool is_said;
} speech = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *speak(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&speech.lock);
	speech.has_begun = true;
	pthread_mutex_unlock(&speech.lock);
	own_thread_say(speech.line);
	pthread_mutex_lock(&speech.lock);
	speech.is_said = true;
	pthread_cond_broadcast(&speech.changed);
	pthread_mutex_unlock(&speech.lock);
	return NULL;
}

void own_thread_say_for(const char *line)
{
	int before_ms = 0, said_ms = 0;

	speech.line = line;
	if (own_thread_start(speak, "ringside-says", &speech.changed) != OK)
		return;
	pthread_mutex_lock(&speech.lock);
	while (!speech.is_said && before_ms < BEGIN_MS && said_ms < SAY_MS) {
		struct timespec until = own_thread_time_after(LOOK_MS);

		*(speech.has_begun ? &said_ms : &before_ms) += LOOK_MS;
		pthread_cond_timedwait(&speech.changed, &speech.lock, &until);
	}
	pthread_mutex_unlock(&speech.lock);
}
