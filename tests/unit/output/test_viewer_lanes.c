#include "output/viewer.h"

#include <stdlib.h>

#include "tests/tap.h"

static uint32_t take(struct viewer_lanes *lanes, struct viewer_group *group, uint64_t start_ns,
		     uint64_t end_ns)
{
	const struct viewer_lane *lane;
	bool is_new;

	lane = viewer_lanes_take(lanes, group, &start_ns, &end_ns, &is_new);
	return lane ? lane->track : 0;
}

static void test_lanes(void)
{
	struct viewer_lanes lanes;
	struct viewer_group *world, *tp;
	uint64_t start = 1500, end = 2500;
	const struct viewer_lane *lane;
	bool is_new;

	viewer_lanes_init(&lanes);
	world = viewer_lanes_group(&lanes, 1, &is_new);
	EXPECT(world && is_new);
	EXPECT(viewer_lanes_group(&lanes, 1, &is_new) == world && !is_new);
	tp = viewer_lanes_group(&lanes, 2, &is_new);
	EXPECT(tp && tp != world && is_new);
	EXPECT_THAT("tracks are numbered from 1", take(&lanes, world, 10000, 20000) == 1);
	EXPECT_THAT("a disjoint slice shares the lane", take(&lanes, world, 30000, 40000) == 1);
	EXPECT_THAT("an overlapping slice gets another lane",
		    take(&lanes, world, 35000, 50000) == 2);
	EXPECT_THAT("other groups have tracks of their own", take(&lanes, tp, 10000, 20000) == 3);
	EXPECT_THAT("the first free lane is used", take(&lanes, world, 60000, 70000) == 1);
	EXPECT_THAT("an earlier slice does not take an occupied lane",
		    take(&lanes, world, 100, 200) == 4);

	start = 69500;
	end = 80000;
	lane = viewer_lanes_take(&lanes, world, &start, &end, &is_new);
	EXPECT_THAT("an overlap below a microsecond moves the slice instead",
		    lane->track == 1 && start == 70001 && end == 80501);
	start = 70000;
	end = 80000;
	lane = viewer_lanes_take(&lanes, tp, &start, &end, &is_new);
	EXPECT(lane->track == 3 && start == 70000);
	start = 80000;
	end = 80005;
	lane = viewer_lanes_take(&lanes, tp, &start, &end, &is_new);
	EXPECT_THAT("slices do not touch", lane->track == 3 && start == 80001 && end == 80006);
	viewer_lanes_release(&lanes);
}

static void test_open(void)
{
	struct viewer_lanes lanes;
	struct viewer_group *group;
	bool is_new, is_stack = true;

	viewer_lanes_init(&lanes);
	group = viewer_lanes_group(&lanes, 1, &is_new);
	take(&lanes, group, 10000, 20000);
	for (unsigned int i = 0; i < VIEWER_LANE_STACK; i++)
		is_stack &= take(&lanes, group, 30000 + i, VIEWER_OPEN) == 1;
	EXPECT_THAT("slices without end nest", is_stack);
	EXPECT_THAT("nesting is limited", take(&lanes, group, 31000, VIEWER_OPEN) == 2);
	EXPECT_THAT("nothing follows them on their lane", take(&lanes, group, 40000, 50000) == 3);
	EXPECT_THAT("nor one that started before", take(&lanes, group, 30500, VIEWER_OPEN) == 4);
	viewer_lanes_release(&lanes);
}

static void test_bounds(void)
{
	struct viewer_lanes lanes;
	struct viewer_group *group;
	bool is_new;

	viewer_lanes_init(&lanes);
	group = viewer_lanes_group(&lanes, 1, &is_new);
	for (unsigned int i = 0; i < VIEWER_LANES_MAX; i++)
		take(&lanes, group, 10000, 20000);
	EXPECT_THAT("the number of lanes is limited", take(&lanes, group, 10000, 20000) == 0);
	EXPECT_THAT("free lanes are still used", take(&lanes, group, 30000, 40000) == 1);
	for (uint64_t i = 2; i <= VIEWER_GROUPS_MAX; i++)
		viewer_lanes_group(&lanes, i * i, &is_new);
	EXPECT_THAT("the number of groups is limited",
		    viewer_lanes_group(&lanes, 3, &is_new) == NULL && !is_new);
	EXPECT_THAT("which is not an error", lanes.status == OK);
	EXPECT(viewer_lanes_group(&lanes, 4, &is_new) != NULL && !is_new);
	viewer_lanes_release(&lanes);
}

/* In any order, slices of a track never overlap, and move by at most a microsecond. */
static void test_any_order(void)
{
	enum { COUNT = 20000 };
	static struct {
		uint64_t end_ns;
	} last[VIEWER_LANES_MAX + 1];
	struct viewer_lanes lanes;
	struct viewer_group *group;
	bool is_new, is_apart = true, is_near = true;
	uint64_t random = 1;

	viewer_lanes_init(&lanes);
	group = viewer_lanes_group(&lanes, 1, &is_new);
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t start, end, wanted, length;
		const struct viewer_lane *lane;

		random = random * 6364136223846793005u + 1442695040888963407u;
		wanted = start = i * 1000 + (random >> 40) % 5000;
		length = (random >> 20) % 3000;
		end = start + length;
		lane = viewer_lanes_take(&lanes, group, &start, &end, &is_new);
		is_near &= start - wanted <= VIEWER_SLIDE_NS && end - start == length;
		is_apart &= start > last[lane->track].end_ns || last[lane->track].end_ns == 0;
		last[lane->track].end_ns = end;
	}
	EXPECT_THAT("slices of a lane are disjoint", is_apart);
	EXPECT_THAT("slices move by at most a microsecond and keep their length", is_near);
	EXPECT_THAT("lanes are reused", group->count < 20);
	viewer_lanes_release(&lanes);
}

static void test_order(void)
{
	struct viewer_order order;
	struct viewer_item item = { .op = { .number = 0 } };
	uint64_t random = 7, before = 0;
	bool is_sorted = true;

	EXPECT(viewer_order_init(&order));
	for (unsigned int i = 0; i < VIEWER_ORDER_MAX; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		item.place.start_ns = random >> 50;
		item.place.end_ns = item.place.start_ns + i;
		viewer_order_put(&order, &item);
	}
	EXPECT(viewer_order_is_full(&order));
	for (unsigned int i = 0; i < VIEWER_ORDER_MAX; i++) {
		viewer_order_take(&order, &item);
		is_sorted &= item.place.start_ns >= before;
		before = item.place.start_ns;
	}
	EXPECT_THAT("the one that starts first comes first", is_sorted && order.count == 0);
	item.place = (struct viewer_place){ VIEWER_TIMED, 5, 10 };
	viewer_order_put(&order, &item);
	item.place.end_ns = 20;
	viewer_order_put(&order, &item);
	viewer_order_take(&order, &item);
	EXPECT_THAT("if two start together, the longer one first", item.place.end_ns == 20);
	viewer_order_release(&order);
}

int main(void)
{
	test_lanes();
	test_open();
	test_bounds();
	test_any_order();
	test_order();
	return tap_done();
}
