/* What is requested by default, and which collectives are sampled. */
#include "common/nccl_interface.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "tests/tap.h"

static void every_interface_has_a_policy(void)
{
	for (unsigned int interface = 1; interface <= 7; interface++) {
		const struct kernel_policy *policy = kernel_policy_of(interface);

		EXPECT(policy != NULL && policy->why[0] != '\0');
		EXPECT_THAT("all events are never the default",
			    policy->by_default != KERNEL_EVENTS_ON &&
				    policy->no_allgatherv != KERNEL_EVENTS_ON);
		EXPECT_THAT("a default of sampling can sample",
			    policy->no_allgatherv != KERNEL_EVENTS_SAMPLED || policy->can_sample);
	}
	EXPECT(kernel_policy_of(0) == NULL && kernel_policy_of(8) == NULL);
}

static void nothing_that_hangs_is_requested_by_default(void)
{
	EXPECT_EQUAL(kernel_policy_of(3)->by_default, KERNEL_EVENTS_OFF);
	EXPECT_EQUAL(kernel_policy_of(4)->by_default, KERNEL_EVENTS_OFF);
	EXPECT_EQUAL(kernel_policy_of(5)->by_default, KERNEL_EVENTS_OFF);
	EXPECT_EQUAL(kernel_policy_of(6)->by_default, KERNEL_EVENTS_OFF);
	EXPECT_EQUAL(kernel_policy_of(6)->no_allgatherv, KERNEL_EVENTS_OFF);
	EXPECT_EQUAL(kernel_policy_of(7)->by_default, KERNEL_EVENTS_OFF);
}

static void every_release_has_its_interface(void)
{
	EXPECT_EQUAL(op_interface_of_release(0), 0);
	EXPECT_EQUAL(op_interface_of_release(22206), 0);
	EXPECT_EQUAL(op_interface_of_release(22304), 1);
	EXPECT_EQUAL(op_interface_of_release(22501), 2);
	EXPECT_EQUAL(op_interface_of_release(22602), 3);
	EXPECT_EQUAL(op_interface_of_release(22799), 4);
	EXPECT_EQUAL(op_interface_of_release(22800), 5);
	EXPECT_EQUAL(op_interface_of_release(23007), 6);
	EXPECT_EQUAL(op_interface_of_release(23100), 7);
	EXPECT_EQUAL(op_interface_of_release(30000), 7);
}

static void an_interface_has_its_releases(void)
{
	static const char *const releases[] = { "?",	"2.23", "2.24-2.25", "2.26",
						"2.27", "2.28", "2.29-2.30", "2.31 or later" };

	for (unsigned int i = 0; i < ARRAY_LENGTH(releases); i++)
		EXPECT_THAT(releases[i], strcmp(op_interface_releases(i), releases[i]) == 0);
	EXPECT(strcmp(op_interface_releases(OP_INTERFACES + 1), "?") == 0);
	EXPECT(strcmp(op_interface_releases(UINT32_MAX), "?") == 0);
}

/* Each interface has those of all that include it, in the same order, and then no more. */
static void an_interface_has_its_blind_spots(void)
{
	const struct op_blind_spot *spot, *before = NULL;
	size_t count = 0;

	for (; (spot = op_blind_spot(0, count)) != NULL && spot != before && count < 100; count++)
		before = spot;
	EXPECT_THAT("they end", spot == NULL && strcmp(before->name, "inside_node") == 0);
	for (unsigned int interface = 1; interface <= OP_INTERFACES; interface++) {
		size_t index = 0, wrong = 0;

		for (size_t i = 0; i < count; i++) {
			spot = op_blind_spot(0, i);
			if (interface >= spot->first && interface <= spot->last)
				wrong += op_blind_spot(interface, index++) != spot;
		}
		EXPECT(wrong == 0 && index > 5 && op_blind_spot(interface, index) == NULL);
	}
	EXPECT(strcmp(op_blind_spot(4, 5)->name, "symmetric") == 0);
	EXPECT(strcmp(op_blind_spot(5, 5)->name, "symmetric_call_only") == 0);
}

static void a_block_has_one_level(void)
{
	bool is_same = true;

	for (uint64_t n = 0; n < 1000; n++)
		is_same &= sample_level(7, n) == sample_level(7, n / SAMPLE_BLOCK * SAMPLE_BLOCK);
	EXPECT(is_same);
	EXPECT_THAT("levels are bounded", sample_level(7, UINT64_MAX) <= SAMPLE_LEVEL_MOST);
}

/*
 * In any communicator, whatever its hash, 2^-k of the blocks have level k or more, and an iteration
 * of 2^n collectives is not always sampled at the same places.
 */
static void levels_halve(void)
{
	enum { BLOCKS = 1 << 16 };
	bool halves = true, is_spread = true;

	for (uint64_t comm = 1; comm <= 40; comm++) {
		unsigned int at_least[SAMPLE_LEVEL_MOST + 1] = { 0 }, phases[32] = { 0 };

		for (uint64_t block = 0; block < BLOCKS; block++) {
			unsigned int level = sample_level(comm * 0x9e3779b9, block * SAMPLE_BLOCK);

			for (unsigned int k = 0; k <= level; k++)
				at_least[k]++;
			phases[block % 32] += level >= 3;
		}
		for (unsigned int k = 0; k <= 6; k++)
			halves &= abs((int)at_least[k] - (BLOCKS >> k)) < (BLOCKS >> k) / 5;
		for (unsigned int i = 0; i < 32; i++)
			is_spread &= phases[i] > BLOCKS / 32 / 8 / 2;
	}
	EXPECT(halves);
	EXPECT(is_spread);
}

static void states_have_names(void)
{
	EXPECT(strcmp(kernel_events_name(KERNEL_EVENTS_ABSENT), "off") == 0 &&
	       strcmp(kernel_events_name(KERNEL_EVENTS_ON), "on") == 0 &&
	       strcmp(kernel_events_name(KERNEL_EVENTS_ON - 1), "sampled") == 0 &&
	       strcmp(kernel_events_name((enum kernel_events)(KERNEL_EVENTS_ON + 1)), "off") == 0);
	EXPECT(strstr(sampling_state_text(SAMPLING_BY_SHM), "sampling ended") != NULL);
	EXPECT_THAT("one of a later version has none",
		    strcmp(sampling_state_text(SAMPLING_STATES), "") == 0 &&
			    strcmp(sampling_state_text(UINT64_MAX), "") == 0);
}

int main(void)
{
	states_have_names();
	an_interface_has_its_releases();
	an_interface_has_its_blind_spots();
	every_interface_has_a_policy();
	nothing_that_hangs_is_requested_by_default();
	every_release_has_its_interface();
	a_block_has_one_level();
	levels_halve();
	return tap_done();
}
