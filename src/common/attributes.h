/* Compiler attributes and small macros under the names this project uses. */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORTED __attribute__((visibility("default")))
#define PRINTF_LIKE(nth, first) __attribute__((format(printf, nth, first)))
/* Slow paths go out of line so that their locals do not enlarge the fast path's frame. */
#define COLD __attribute__((cold, noinline))
/* Out of line as well, but neither slow nor rare. */
#define APART __attribute__((noinline))

/*
 * Functions that NCCL calls while the job runs. Nothing reachable from them may allocate, lock,
 * wait or make a system call; scripts/check-hot-path starts at this section.
 */
#define CALLBACK __attribute__((section(".text.callback")))

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* For comparison functions with several keys: return ORDER(a->x, b->x) ?: ORDER(a->y, b->y); */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#define CACHE_LINE 64
/* Two cache lines, because processors prefetch lines in pairs. */
#define ON_OWN_LINE __attribute__((aligned(2 * CACHE_LINE)))

#endif
