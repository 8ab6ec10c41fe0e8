/*
 * Signals are blocked but for the time in which the loop waits, so that none comes between two
 * steps of drawing, and none is missed.
 */
#ifndef TOP_SIGNALS_H
#define TOP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct top_signals {
	sigset_t waiting; /* the mask for ppoll() */
};

void top_signals_init(struct top_signals *signals);

/* SIGTERM, SIGINT, SIGHUP or SIGQUIT that came; 0 none. */
int top_signals_end(void);

/* SIGTSTP (^Z), SIGCONT, SIGWINCH came since the last call. */
bool top_signals_take_stop(void);
bool top_signals_take_continue(void);
bool top_signals_take_resize(void);

/* Stop as everybody does, until somebody continues us. The terminal must be the shell's again. */
void top_signals_stop(void);

/* End as the signal would have ended us: the shell then knows. */
void top_signals_die(int signal) __attribute__((noreturn));

#endif
