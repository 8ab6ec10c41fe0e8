/* What a test sees of the calls, and what it does to them. See fake_control.h. */
#include "tests/fake_gpu/fake_control.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fake_gpu/fake_cuda.h"

enum { FUNCTIONS_MAX = 128, THREADS_MAX = 256, NAME_SIZE = 48 };

#define FAKE_DECLARE(type, member, symbol, parameters) EXPORTED type symbol parameters;
FAKE_CONTROL_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

/* One CUDA function. */
struct point {
	char function[NAME_SIZE];
	uint64_t calls;
	int last_thread;
	unsigned int waiting;
	bool is_blocked;
	unsigned int delay_ms;
	uint64_t fails_at; /* number of the call; 0: every one */
	int code;	   /* 0: none fails */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* The first stands for all functions. */
static struct point points[FUNCTIONS_MAX] = { { .function = "*" } };
static size_t point_count = 1;
static struct {
	int thread;
	uint64_t calls;
} threads[THREADS_MAX];
static bool is_shut_down;
static uint64_t stale_uses;

static struct point *point_find(const char *function)
{
	for (size_t i = 0; i < point_count; i++) {
		if (strcmp(points[i].function, function) == 0)
			return &points[i];
	}
	if (point_count == FUNCTIONS_MAX)
		return &points[FUNCTIONS_MAX - 1];
	(void)snprintf(points[point_count].function, NAME_SIZE, "%s", function);
	return &points[point_count++];
}

static void thread_count(int thread)
{
	for (size_t i = 0; i < THREADS_MAX; i++) {
		if (threads[i].thread != thread && threads[i].thread != 0)
			continue;
		threads[i].thread = thread;
		threads[i].calls++;
		return;
	}
}

static void point_count_call(struct point *point, int thread)
{
	point->calls++;
	point->last_thread = thread;
}

static void point_wait(struct point *point)
{
	points[0].waiting++;
	point->waiting++;
	while (point->is_blocked || points[0].is_blocked)
		pthread_cond_wait(&changed, &lock);
	points[0].waiting--;
	point->waiting--;
}

static int point_code(const struct point *point)
{
	return point->fails_at == 0 || point->fails_at == point->calls ? point->code : 0;
}

cuda_result fake_control_enter(const char *function)
{
	int thread = (int)gettid();
	unsigned int delay_ms;
	cuda_result result;
	struct point *point;

	pthread_mutex_lock(&lock);
	point = point_find(function);
	thread_count(thread);
	point_count_call(point, thread);
	point_count_call(&points[0], thread);
	/* The numbers of this call, before others come. */
	result = point_code(point) != 0 ? point_code(point) : point_code(&points[0]);
	point_wait(point);
	delay_ms = point->delay_ms + points[0].delay_ms;
	pthread_mutex_unlock(&lock);
	if (delay_ms > 0)
		(void)nanosleep(&(struct timespec){ .tv_sec = delay_ms / 1000,
						    .tv_nsec = delay_ms % 1000 * 1000000L },
				NULL);
	pthread_mutex_lock(&lock);
	if (is_shut_down)
		result = CUDA_DEINITIALIZED;
	pthread_mutex_unlock(&lock);
	return result;
}

cuda_result fake_stale(cuda_result result)
{
	pthread_mutex_lock(&lock);
	stale_uses++;
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- for tests ------------------------------------------------------------------------------- */

void fake_cuda_clear(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < point_count; i++) {
		struct point *point = &points[i];

		point->calls = 0;
		point->last_thread = 0;
		point->is_blocked = false;
		point->delay_ms = 0;
		point->code = 0;
	}
	memset(threads, 0, sizeof(threads));
	is_shut_down = false;
	stale_uses = 0;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void fake_cuda_fail(const char *function, unsigned int nth, int code)
{
	struct point *point;

	pthread_mutex_lock(&lock);
	point = point_find(function);
	point->fails_at = nth == 0 ? 0 : point->calls + nth;
	point->code = code;
	pthread_mutex_unlock(&lock);
}

void fake_cuda_block(const char *function, bool is_blocked)
{
	pthread_mutex_lock(&lock);
	point_find(function)->is_blocked = is_blocked;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

unsigned int fake_cuda_blocked(const char *function)
{
	unsigned int waiting;

	pthread_mutex_lock(&lock);
	waiting = point_find(function)->waiting;
	pthread_mutex_unlock(&lock);
	return waiting;
}

void fake_cuda_delay(const char *function, unsigned int milliseconds)
{
	pthread_mutex_lock(&lock);
	point_find(function)->delay_ms = milliseconds;
	pthread_mutex_unlock(&lock);
}

void fake_cuda_shut_down(bool is_down)
{
	pthread_mutex_lock(&lock);
	is_shut_down = is_down;
	pthread_mutex_unlock(&lock);
}

uint64_t fake_cuda_calls(const char *function)
{
	uint64_t calls;

	pthread_mutex_lock(&lock);
	calls = point_find(function)->calls;
	pthread_mutex_unlock(&lock);
	return calls;
}

uint64_t fake_cuda_calls_by(int thread)
{
	uint64_t calls = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < THREADS_MAX; i++) {
		if (threads[i].thread == thread)
			calls = threads[i].calls;
	}
	pthread_mutex_unlock(&lock);
	return calls;
}

int fake_cuda_last_thread(const char *function)
{
	int thread;

	pthread_mutex_lock(&lock);
	thread = point_find(function)->last_thread;
	pthread_mutex_unlock(&lock);
	return thread;
}

uint64_t fake_cuda_stale_uses(void)
{
	uint64_t uses;

	pthread_mutex_lock(&lock);
	uses = stale_uses;
	pthread_mutex_unlock(&lock);
	return uses;
}
