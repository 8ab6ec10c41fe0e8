/* A thread that is cancelled while it makes or ends a communicator: the next one can still do so. */
#include <pthread.h>

#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

static void *be_cancelled(void *type)
{
	void *context;

	pthread_setcanceltype(*(int *)type, NULL);
	pthread_cancel(pthread_self());
	context = play_init(5, 1, 2, 0);
	ncclProfiler_v5.finalize(context);
	pthread_testcancel();
	return NULL;
}

int main(void)
{
	int deferred = PTHREAD_CANCEL_DEFERRED;
	void *context, *result = NULL;
	pthread_t thread;

	/* Without the fix nobody would ever return. */
	alarm(60);
	for (int i = 0; i < 3; i++) {
		EXPECT(pthread_create(&thread, NULL, be_cancelled, &deferred) == 0);
		EXPECT(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	}
	context = play_init(6, 1, 2, 0);
	EXPECT(hot_comm(context) != NULL);
	play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(play_record(1)->count, 8);
	return tap_done();
}
