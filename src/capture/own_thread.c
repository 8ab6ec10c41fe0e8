#include "capture/own_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "capture/recorder.h"

enum {
	STACK_BYTES = 256 * 1024,
	STACK_BYTES_MOST = 64 * 1024 * 1024,
	LOOK_MS = 5,	 /* how often a waiting thread looks at what it waits for */
	BUSY_MS = 1000,	 /* no longer with a machine that does not let our thread run */
	READY_MS = 1000, /* how long a thread with something to say waits for a reader */
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
	/* The job's thread-local variables lie on the stack too, however large they are. */
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

/* Does a thread of ours want nothing but the processor? One that does not know its number has not begun. */
static bool is_busy(pid_t tid)
{
	char path[64], text[256];
	const char *at;
	ssize_t got;
	int fd;

	if (tid == 0)
		return true;
	text_format(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	at = strrchr(text, ')');
	return at != NULL && at[1] == ' ' && at[2] == 'R';
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

/* Something that a thread of its own does while another waits for it, or has left. */
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

bool own_thread_try(const struct own_work *work, void *data, int patience_ms)
{
	struct own_task *task = calloc(1, sizeof(*task));
	bool is_done;

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
	pthread_mutex_lock(&task->lock);
	is_done = own_thread_wait(&task->lock, &task->changed, &task->tid, &task->is_done,
				  patience_ms);
	task->is_left = !is_done;
	pthread_mutex_unlock(&task->lock);
	/* It has let go of the lock, or is about to: it does not touch the task after that. */
	if (is_done)
		free_task(task);
	return is_done;
}

static void speak(void *line)
{
	struct pollfd stream = { .fd = STDERR_FILENO, .events = POLLOUT };

	poll(&stream, 1, READY_MS);
	own_thread_say(line);
}

void own_thread_say_for(const char *line, int patience_ms)
{
	static const struct own_work work = { "ringside-says", speak, free };
	char *copy = strdup(line);

	if (copy != NULL && own_thread_try(&work, copy, patience_ms))
		free(copy);
}
