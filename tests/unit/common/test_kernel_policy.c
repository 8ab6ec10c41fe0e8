/* What is requested by default, and what NCCL does not show. */
#include "common/nccl_interface.h"

#include <string.h>

#include "common/attributes.h"
#include "tests/tap.h"

static void every_interface_has_a_policy(void)
{
	for (unsigned int interface = 1; interface <= 7; interface++) {
		const struct kernel_policy *policy = kernel_policy_of(interface);

		EXPECT(policy != NULL && policy->why[0] != '\0');
		EXPECT_THAT("they are never the default", policy->by_default != KERNEL_EVENTS_ON);
	}
	EXPECT(kernel_policy_of(0) == NULL && kernel_policy_of(8) == NULL);
}

static void nothing_that_hangs_is_requested_by_default(void)
{
	EXPECT_EQUAL(kernel_policy_of(3)->by_default, KERNEL_EVENTS_OFF);
	EXPECT_EQUAL(kernel_policy_of(4)->by_default, KERNEL_EVENTS_OFF);
	EXPECT_EQUAL(kernel_policy_of(5)->by_default, KERNEL_EVENTS_OFF);
	EXPECT_EQUAL(kernel_policy_of(6)->by_default, KERNEL_EVENTS_OFF);
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

static void states_have_names(void)
{
	EXPECT(strcmp(kernel_events_name(KERNEL_EVENTS_ABSENT), "off") == 0 &&
	       strcmp(kernel_events_name(KERNEL_EVENTS_ON), "on") == 0 &&
	       strcmp(kernel_events_name(KERNEL_EVENTS_OFF), "off") == 0 &&
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
	return tap_done();
}
