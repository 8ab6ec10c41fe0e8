/* Tests print TAP: one line per expectation, the plan at the end, exit code 1 if one failed. */
#ifndef TAP_H
#define TAP_H

#include <stdio.h>

/* Sanitizers make each call ten times slower: loops that only repeat run less often. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TAP_IS_SLOW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define TAP_IS_SLOW 1
#endif
#endif
#ifndef TAP_IS_SLOW
#define TAP_IS_SLOW 0
#endif

/* What has one thread has no races: tests that are mostly of that kind run only the others then. */
#ifdef __SANITIZE_THREAD__
#define TAP_FINDS_RACES 1
#else
#define TAP_FINDS_RACES 0
#endif

static int tap_count;
static int tap_failed;

static inline int tap_line(int is_ok, const char *what, const char *file, int line)
{
	printf("%sok %d - %s\n", is_ok ? "" : "not ", ++tap_count, what);
	if (!is_ok) {
		tap_failed++;
		printf("# failed at %s:%d\n", file, line);
	}
	fflush(stdout);
	return is_ok;
}

/* Use a sentence where the expression does not explain itself. */
#define EXPECT(condition) tap_line(!!(condition), #condition, __FILE__, __LINE__)
#define EXPECT_THAT(sentence, condition) tap_line(!!(condition), (sentence), __FILE__, __LINE__)
#define EXPECT_EQUAL(got, wanted)                                                              \
	do {                                                                                   \
		long long tap_got = (long long)(got), tap_wanted = (long long)(wanted);        \
		if (!tap_line(tap_got == tap_wanted, #got " == " #wanted, __FILE__, __LINE__)) \
			printf("#   got %lld, wanted %lld\n", tap_got, tap_wanted);            \
	} while (0)

static inline int tap_skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 0;
}

static inline int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif
