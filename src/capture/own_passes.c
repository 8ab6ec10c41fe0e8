#include "capture/own_passes.h"

#include <time.h>

#include "capture/own_thread.h"

enum {
	PASS_MS = 5,	      /* between passes while records come */
	IDLE_PASS_MS = 50,    /* and while none come */
	STANDSTILL_MS = 2000, /* at exit: no longer with a disk that does not answer */
	FINISH_MS = 30000,    /* and no longer with one that is slow */
	LOOK_MS = 20,	      /* how often that is looked at */
	ASK_MS = 40,	      /* in init, when a communicator's slot is wanted */
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

/* How many there were so far. UINT64_MAX: no use to wait for more. */
static uint64_t ask(struct own_passes *passes)
{
	uint64_t count;

	pthread_mutex_lock(&passes->account);
	count = passes->is_mute ? UINT64_MAX : passes->count;
	passes->is_asked = true;
	pthread_cond_broadcast(&passes->changed);
	pthread_mutex_unlock(&passes->account);
	return count;
}

/* Two passes: one may be under way, and have looked before. */
void own_passes_ask(struct own_passes *passes)
{
	struct timespec pause = { .tv_nsec = 1000 * 1000 };
	uint64_t first = ask(passes), count = first;

	if (first == UINT64_MAX)
		return;
	for (int i = 0; i < ASK_MS && count < first + 2; i++, count = ask(passes))
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
	     waited += LOOK_MS, still += LOOK_MS) {
		struct timespec until = own_thread_time_after(LOOK_MS);

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
