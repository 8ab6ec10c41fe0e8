/*
 * Memory order: the only place that names it. Words shared by threads or processes are plain
 * integers, accessed only through these macros.
 *
 *	relaxed   the word is whole; nothing is implied about other words
 *	release   what was written before is visible to a thread that acquires this word
 *	acquire   what the releasing thread wrote before is visible from here on
 *
 * Every release or acquire in the code names its partner in a comment.
 */
#ifndef ORDER_H
#define ORDER_H

#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define ORDER_IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ORDER_IS_WATCHED 1
#endif
#endif

/*
 * An aligned word accessed by one instruction is whole on every machine we build for, and volatile
 * makes it one instruction. gcc's atomics guarantee the same but compute each address separately on
 * aarch64, which cost a sixth of the hot path. Builds for the thread sanitizer use the atomics.
 */
#ifdef ORDER_IS_WATCHED
#define load_relaxed(word) __atomic_load_n((word), __ATOMIC_RELAXED)
#define store_relaxed(word, value) __atomic_store_n((word), (value), __ATOMIC_RELAXED)
#else
#define load_relaxed(word) (*(const volatile __typeof__(*(word)) *)(word))
#define store_relaxed(word, value) ((void)(*(volatile __typeof__(*(word)) *)(word) = (value)))
#endif
#define load_acquire(word) __atomic_load_n((word), __ATOMIC_ACQUIRE)
#define store_release(word, value) __atomic_store_n((word), (value), __ATOMIC_RELEASE)

/* These return the previous value. */
#define add_relaxed(word, value) __atomic_fetch_add((word), (value), __ATOMIC_RELAXED)
#define add_release(word, value) __atomic_fetch_add((word), (value), __ATOMIC_RELEASE)
#define or_relaxed(word, value) __atomic_fetch_or((word), (value), __ATOMIC_RELAXED)
#define and_relaxed(word, value) __atomic_fetch_and((word), (value), __ATOMIC_RELAXED)
#define swap_relaxed(word, value) __atomic_exchange_n((word), (value), __ATOMIC_RELAXED)
#define swap_acq_rel(word, value) __atomic_exchange_n((word), (value), __ATOMIC_ACQ_REL)

/* On failure *expected holds what was found. */
#define swap_if_acquire(word, expected, value)                                        \
	__atomic_compare_exchange_n((word), (expected), (value), 0, __ATOMIC_ACQUIRE, \
				    __ATOMIC_RELAXED)
#define swap_if_acq_rel(word, expected, value)                                        \
	__atomic_compare_exchange_n((word), (expected), (value), 0, __ATOMIC_ACQ_REL, \
				    __ATOMIC_RELAXED)

/*
 * A release fence orders everything before it with relaxed stores after it; acquire is the reverse.
 */
#define fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#define fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
/*
 * Orders a store before it with a load after it: of two threads that do so, one sees the other's
 * store.
 */
#define fence_full() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/*
 * For a word that one thread at a time writes and others only read. Cheaper than an atomic add; if
 * the rule is broken, a count is lost but there is no data race.
 */
#define bump_relaxed(word, value) store_relaxed((word), load_relaxed(word) + (value))

/* The same, returning the previous value. */
static inline uint64_t bump_relaxed_get(uint64_t *word)
{
	uint64_t before = load_relaxed(word);

	store_relaxed(word, before + 1);
	return before;
}

/*
 * Many words that another thread may read at the same time. It gets old or new ones, and learns
 * from another word that it must not use them. No ordering, and no tearing within a word. Compilers
 * emit wide stores only for the plain form; builds for the thread sanitizer use the atomics.
 */
static inline void words_clear(uint64_t *words, unsigned int count)
{
#ifdef ORDER_IS_WATCHED
	for (unsigned int i = 0; i < count; i++)
		store_relaxed(&words[i], 0);
#else
	__builtin_memset(words, 0, count * sizeof(*words));
#endif
}

static inline void words_copy(void *to, const void *from, unsigned int count)
{
#ifdef ORDER_IS_WATCHED
	for (unsigned int i = 0; i < count; i++)
		store_relaxed((uint64_t *)to + i, load_relaxed((const uint64_t *)from + i));
#else
	__builtin_memcpy(to, from, count * sizeof(uint64_t));
#endif
}

#endif
