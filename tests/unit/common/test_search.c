/* Binary search: every list of up to nine numbers with repetitions, every number in and beside it. */
#include "common/search.h"

#include <stdbool.h>
#include <stdint.h>

#include "tests/tap.h"

enum { MOST = 9 };

static size_t one_by_one(const unsigned int *sorted, size_t count, unsigned int wanted)
{
	size_t at = 0;

	while (at < count && sorted[at] < wanted)
		at++;
	return at;
}

/* Bit i of `steps`: the element i is greater than the one before. */
static void make(unsigned int *sorted, size_t count, unsigned int steps)
{
	unsigned int number = 1;

	for (size_t i = 0; i < count; i++) {
		number += steps >> i & 1 ? 2 : 0;
		sorted[i] = number;
	}
}

static void test_all(void)
{
	unsigned int sorted[MOST];
	bool is_right = true;

	for (size_t count = 0; count <= MOST; count++)
		for (unsigned int steps = 0; steps < 1u << count; steps++) {
			make(sorted, count, steps);
			for (unsigned int wanted = 0; wanted < 2 * MOST + 3; wanted++)
				is_right =
					is_right && SEARCH_FIRST(i, count, sorted[i] >= wanted) ==
							    one_by_one(sorted, count, wanted);
		}
	EXPECT_THAT("the first that is not less, or the end of the list", is_right);
}

static void test_large(void)
{
	const size_t far = SIZE_MAX - 5;
	size_t steps = 0;

	EXPECT_THAT("indexes do not overflow", SEARCH_FIRST(i, SIZE_MAX, i >= far) == far);
	EXPECT_THAT("none", SEARCH_FIRST(i, SIZE_MAX, i == SIZE_MAX) == SIZE_MAX);
	(void)SEARCH_FIRST(i, 1000000, (steps++, i >= 123456));
	EXPECT_THAT("each step halves what is left", steps <= 20);
}

int main(void)
{
	test_all();
	test_large();
	return tap_done();
}
