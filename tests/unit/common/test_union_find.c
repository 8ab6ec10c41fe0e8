#include "common/union_find.h"

#include <stdbool.h>

#include "tests/tap.h"

enum { COUNT = 1000 };

static void test_smallest(void)
{
	uint32_t parents[COUNT];
	bool is_smallest = true;

	union_find_init(parents, COUNT);
	EXPECT_THAT("at first each number is a set of its own",
		    union_find_root(parents, 0) == 0 && union_find_root(parents, 7) == 7);
	union_find_join(parents, 7, 5);
	union_find_join(parents, 5, 9);
	EXPECT_THAT("the smallest is the root, whichever is given first",
		    union_find_root(parents, 5) == 5 && union_find_root(parents, 7) == 5 &&
			    union_find_root(parents, 9) == 5);
	union_find_join(parents, 9, 3);
	EXPECT_THAT("also of a set that joins a smaller one",
		    union_find_root(parents, 7) == 3 && union_find_root(parents, 5) == 3);
	EXPECT_THAT("others stay apart",
		    union_find_root(parents, 4) == 4 && union_find_root(parents, 8) == 8);
	union_find_join(parents, 7, 9);
	EXPECT_THAT("two of one set stay one", union_find_root(parents, 7) == 3);

	union_find_init(parents, COUNT);
	for (uint32_t i = COUNT - 1; i >= 2; i--)
		union_find_join(parents, i, i - 2);
	for (uint32_t i = 0; i < COUNT; i++)
		is_smallest = is_smallest && union_find_root(parents, i) == i % 2;
	EXPECT_THAT("two long chains are two sets", is_smallest);
}

static void test_chosen(void)
{
	uint32_t parents[COUNT];

	union_find_init(parents, COUNT);
	union_find_join_to(parents, 2, 6);
	EXPECT_THAT("the root can be chosen", union_find_root(parents, 2) == 6);
	union_find_join_to(parents, 2, 4);
	EXPECT_THAT("then it is that of all of the set",
		    union_find_root(parents, 6) == 4 && union_find_root(parents, 2) == 4);
	union_find_join_to(parents, 2, 6);
	EXPECT_THAT("two of one set keep theirs", union_find_root(parents, 6) == 4);
}

int main(void)
{
	test_smallest();
	test_chosen();
	return tap_done();
}
