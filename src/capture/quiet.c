#include "capture/quiet.h"

#include <time.h>

static void fill(sigset_t *ours)
{
	sigemptyset(ours);
	sigaddset(ours, SIGPIPE);
	sigaddset(ours, SIGXFSZ);
}

void quiet_begin(struct quiet *quiet)
{
	sigset_t ours;

	fill(&ours);
	sigemptyset(&quiet->pending);
	sigpending(&quiet->pending);
	pthread_sigmask(SIG_BLOCK, &ours, &quiet->before);
}

void quiet_end(const struct quiet *quiet)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t ours, found;

	fill(&ours);
	if (sigismember(&quiet->pending, SIGPIPE))
		sigdelset(&ours, SIGPIPE);
	if (sigismember(&quiet->pending, SIGXFSZ))
		sigdelset(&ours, SIGXFSZ);
	/* Each is at most once pending. */
	sigemptyset(&found);
	sigpending(&found);
	if (sigismember(&found, SIGPIPE) || sigismember(&found, SIGXFSZ))
		while (sigtimedwait(&ours, NULL, &at_once) > 0)
			continue;
	pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}
