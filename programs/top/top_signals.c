#include "programs/top/top_signals.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t ending, stopped, continued, resized;

static void note(int signal)
{
	switch (signal) {
	case SIGTSTP:
		stopped = 1;
		break;
	case SIGCONT:
		continued = 1;
		break;
	case SIGWINCH:
		resized = 1;
		break;
	default:
		ending = signal;
		break;
	}
}

static const int ours[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH };

void top_signals_init(struct top_signals *signals)
{
	struct sigaction action = { .sa_handler = note };
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		struct sigaction before;

		/* Who starts us may want some ignored: nohup, a shell without job control. */
		if (sigaction(ours[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN)
			continue;
		sigaction(ours[i], &action, NULL);
		sigaddset(&blocked, ours[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, &signals->waiting);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		sigdelset(&signals->waiting, ours[i]);
}

int top_signals_end(void)
{
	return ending;
}

static bool take(volatile sig_atomic_t *flag)
{
	bool was_set = *flag != 0;

	*flag = 0;
	return was_set;
}

bool top_signals_take_stop(void)
{
	return take(&stopped);
}

bool top_signals_take_continue(void)
{
	return take(&continued);
}

bool top_signals_take_resize(void)
{
	return take(&resized);
}

/* With its default action, and let through: the signal comes right there. */
static void send_to_self(int signal)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, before;
	sigset_t only, mask;

	sigaction(signal, &plain, &before);
	sigemptyset(&only);
	sigaddset(&only, signal);
	raise(signal);
	sigprocmask(SIG_UNBLOCK, &only, &mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(signal, &before, NULL);
}

void top_signals_stop(void)
{
	send_to_self(SIGTSTP);
}

void top_signals_die(int signal)
{
	send_to_self(signal);
	_exit(128 + signal);
}
