/*
 * A thread of the recorder, with clocks that move only when a test moves them and a disk that fails as
 * a test says. A test starts the thread by itself in a process of its own, lets it make whole passes,
 * and looks at what it wrote.
 */
#ifndef THREAD_PLAY_H
#define THREAD_PLAY_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "common/clock.h"
#include "plugin/threads.h"
#include "tests/unit/plugin/defect_process.h"

#define THREAD_WALL_NS (UINT64_C(1700000000) * SECOND_NS)
#define THREAD_BEGIN_NS (UINT64_C(5000) * SECOND_NS)

/* ---- what replaces libc ------------------------------------------------------------------------- */

/* Weak: several files of a program define them. */
__attribute__((weak)) uint32_t thread_rests; /* how often a thread has begun to rest */
__attribute__((weak)) uint32_t thread_has_wall;
__attribute__((weak)) void (*thread_on_rest)(void); /* NULL: nothing happens */
__attribute__((weak)) uint32_t thread_is_past;	    /* the monotonic clock shows 0: no wait lasts */

/* Besides the pause between two passes, nobody here reads the monotonic clock through libc. */
__attribute__((weak)) int clock_gettime(clockid_t id, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, id, time);

	if (id == CLOCK_MONOTONIC) {
		/* Pairs with the acquire in thread_pass(). */
		__atomic_add_fetch(&thread_rests, 1, __ATOMIC_RELEASE);
		if (thread_on_rest != NULL)
			thread_on_rest();
		if (load_relaxed(&thread_is_past))
			*time = (struct timespec){ 0 };
	}
	if (id == CLOCK_REALTIME && load_relaxed(&thread_has_wall))
		*time = (struct timespec){ .tv_sec = (time_t)(THREAD_WALL_NS / SECOND_NS) };
	return result;
}

/* What the next writes do: write this many bytes at most, or fail with this error, negative. */
enum { THREAD_WRITES = 8, THREAD_WHOLE = 1 << 30 };
__attribute__((weak)) int thread_plan[THREAD_WRITES];
__attribute__((weak)) uint32_t thread_planned, thread_writes;
__attribute__((weak)) uint64_t thread_sizes[THREAD_WRITES]; /* that were asked for */

/* 1: no write returns; 2: and one has begun. */
__attribute__((weak)) uint32_t thread_is_stuck;

__attribute__((weak)) ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	uint32_t which = load_relaxed(&thread_writes), stuck = 1;
	int most = which < load_acquire(&thread_planned) ? load_relaxed(&thread_plan[which])
							 : THREAD_WHOLE;

	__atomic_compare_exchange_n(&thread_is_stuck, &stuck, 2, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
	while (load_acquire(&thread_is_stuck) != 0)
		syscall(SYS_sched_yield);
	if (which < THREAD_WRITES)
		store_relaxed(&thread_sizes[which], (uint64_t)size);
	store_release(&thread_writes, which + 1);
	if (most < 0) {
		errno = -most;
		return -1;
	}
	if (most == 0)
		return 0;
	return syscall(SYS_pwrite64, fd, bytes, size < (size_t)most ? size : (size_t)most, offset);
}

__attribute__((weak)) uint32_t thread_cannot_cut;

__attribute__((weak)) int ftruncate(int fd, off_t length)
{
	if (load_relaxed(&thread_cannot_cut)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_ftruncate, fd, length);
}

/* What happens when a thread of the recorder lets others run; NULL: nothing. */
__attribute__((weak)) void (*thread_on_yield)(void);

__attribute__((weak)) int sched_yield(void)
{
	if (thread_on_yield != NULL && syscall(SYS_gettid) != getpid())
		thread_on_yield();
	return (int)syscall(SYS_sched_yield);
}

/* ---- a process ---------------------------------------------------------------------------------- */

/* In the child: the first thing that is wrong ends it. */
#define expect(condition)                                                \
	do {                                                             \
		if (!(condition)) {                                      \
			printf("# line %d: %s\n", __LINE__, #condition); \
			fflush(stdout);                                  \
			_exit(1);                                        \
		}                                                        \
	} while (0)

static char thread_dir[48], thread_error[64];

static inline void thread_test(const char *name, void (*body)(void))
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	if (scratch_dir.path[0] == '\0')
		scratch_make();
	text_format(thread_dir, sizeof(thread_dir), "%.30s/XXXXXX", scratch_dir.path);
	if (mkdtemp(thread_dir) == NULL)
		exit(1);
	child = fork();
	if (child == 0) {
		defect_is_child = true;
		alarm(DEFECT_PATIENCE_S);
		defect_clean_settings();
		setenv("RINGSIDE_SHM", thread_dir, 1);
		setenv("RINGSIDE_MODE", "flight", 1);
		setenv("RINGSIDE_HEARTBEAT", "0", 1); /* no other thread reads the clock */
		text_format(thread_error, sizeof(thread_error), "%s/said", thread_dir);
		if (freopen(thread_error, "w", stderr) == NULL)
			_exit(2);
		body();
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (!EXPECT_THAT(name, status == 0))
		printf("# status 0x%x\n", (unsigned int)status);
}

/* ---- time --------------------------------------------------------------------------------------- */

/* Threads read the clock meanwhile; it is one word. */
__attribute__((no_sanitize("thread"))) static inline void thread_now(uint64_t ns)
{
	*(volatile uint64_t *)&recorder.clock.base_ns = ns;
}

/* From now on both clocks move only when a test moves them. */
static inline void thread_freeze(void)
{
	recorder.clock = (struct clock_source){ .kind = CLOCK_KIND_COUNTER };
	thread_now(THREAD_BEGIN_NS);
	store_relaxed(&thread_has_wall, 1);
}

/* Until a pass that began after this call is over. `ask` requests a pass. */
static inline void thread_pass(void (*ask)(void))
{
	uint32_t before = load_acquire(&thread_rests);

	while (load_acquire(&thread_rests) - before < 2) {
		ask();
		sched_yield();
	}
}

/* The disk does not answer from now on; returns when a write waits for it. */
static inline void thread_wait_until_stuck(void)
{
	while (load_acquire(&thread_is_stuck) != 2)
		sched_yield();
	/* Whoever waits for the thread has no patience. */
	store_relaxed(&thread_is_past, 1);
}

static inline void thread_plan_writes(uint32_t count, const int *plan)
{
	for (uint32_t i = 0; i < count; i++)
		store_relaxed(&thread_plan[i], plan[i]);
	store_relaxed(&thread_writes, 0);
	store_release(&thread_planned, count);
}

/* ---- rings -------------------------------------------------------------------------------------- */

/* All of them appear at once. */
static inline void thread_put_ops(const struct op_record *ops, uint32_t count)
{
	uint64_t head = load_relaxed(&recorder.region.header->ring_head);

	for (uint32_t i = 0; i < count; i++) {
		struct op_record *slot =
			&recorder.region.ring[(head + i) & (recorder.region.ring_count - 1)];

		words_copy((uint64_t *)(void *)slot + 1,
			   (const uint64_t *)(const void *)&ops[i] + 1, OP_RECORD_WORDS - 1);
		store_release(&slot->sequence, head + i + 1);
	}
	store_release(&recorder.region.header->ring_head, head + count);
}

static inline void thread_put_details(const struct op_detail *details, uint32_t count)
{
	uint64_t head = load_relaxed(&recorder.region.header->details_head);

	for (uint32_t i = 0; i < count; i++) {
		struct op_detail *slot =
			&recorder.region.details[(head + i) & (recorder.region.detail_count - 1)];

		words_copy((uint64_t *)(void *)slot + 1,
			   (const uint64_t *)(const void *)&details[i] + 1, OP_DETAIL_WORDS - 1);
		store_release(&slot->sequence, head + i + 1);
	}
	store_release(&recorder.region.header->details_head, head + count);
}

#endif
