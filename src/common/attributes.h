/* Compiler attributes by the names this project uses. */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORTED __attribute__((visibility("default")))
#define PRINTF_LIKE(nth, first) __attribute__((format(printf, nth, first)))
/* Slow paths go out of line so that their locals do not fatten the fast one. */
#define COLD __attribute__((cold, noinline))
/* The same for one that is not slow or rare. */
#define APART __attribute__((noinline))

/* What NCCL calls while the job runs. From here on nothing allocates, locks, waits or calls the system:
 * scripts/check-hot-path starts at these. */
#define CALLBACK __attribute__((section(".text.callback")))

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* For comparison functions, by one thing after the other: return ORDER(a->x, b->x) ?: ORDER(a->y, b->y); */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#define CACHE_LINE 64
/* Neighbours in pairs: processors fetch two lines at a time. */
#define ON_OWN_LINE __attribute__((aligned(2 * CACHE_LINE)))

#endif
