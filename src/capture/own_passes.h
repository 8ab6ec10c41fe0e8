/*
 * A thread of the recorder's own that makes pass after pass: its rest between them, those who ask for a pass, and
 * the exit of the job, which waits for it, but not for ever.
 */
#ifndef OWN_PASSES_H
#define OWN_PASSES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct own_passes {
	/* Held for moments, never during a write. Guards what follows, and what the owner likes. */
	pthread_mutex_t account;
	pthread_cond_t changed; /* is_asked, is_over, is_finished; see own_thread_start() */
	uint64_t count;		/* finished passes */
	uint64_t progress;	/* grows with everything that is done: the owner sees to it */
	bool is_asked;		/* somebody waits for a pass */
	bool is_mute; /* the last who asked got no answer in time, and no pass has ended since */
	bool is_over; /* one last pass */
	bool is_finished;  /* it is done */
	bool is_abandoned; /* nobody waits any longer: what is left is accounted for */
};

#define OWN_PASSES_INIT                              \
	{                                            \
		.account = PTHREAD_MUTEX_INITIALIZER \
	}

/* Between two passes; not for long when the last one found something. False: it is over. */
bool own_passes_rest(struct own_passes *passes, bool has_found);

bool own_passes_are_abandoned(struct own_passes *passes);

/* The last pass is done. With the account held. */
void own_passes_end(struct own_passes *passes);

/* A whole pass from now on, waiting a short time for it; not at all while one who asked before still has no answer. In
 * init only. */
void own_passes_ask(struct own_passes *passes);

/* Ask for the last pass, and wait for it for as long as the thread gets on. False: it does not, and is abandoned.
 * With the account held. */
bool own_passes_finish(struct own_passes *passes);

#endif
