/*
 * Which events are requested from NCCL. The expected bits are spelled out: 0x1 Group, 0x2 Coll, 0x4
 * P2p, 0x8 ProxyOp, 0x10 ProxyStep, 0x40 KernelCh, 0x100 GroupApi, 0x200 CollApi, 0x400 P2pApi,
 * 0x800 KernelLaunch, 0x1000 CeColl.
 */
#include "plugin/settings.h"

#include <string.h>
#include <sys/statvfs.h>

#include "tests/tap.h"

static const struct settings automatic = {
	.kernel = SWITCH_AUTO, .proxy = SWITCH_AUTO, .steps = SWITCH_AUTO, .launch = SWITCH_AUTO
};

#define MIB (UINT64_C(1) << 20)
static const uint64_t plenty = 4096 * MIB, scarce = 159 * MIB;

static void each_version_is_asked_for_what_it_has(void)
{
	EXPECT_EQUAL(mask_choose(1, &automatic, plenty).mask, 0x1f);
	EXPECT_EQUAL(mask_choose(2, &automatic, plenty).mask, 0x1f);
	EXPECT_EQUAL(mask_choose(3, &automatic, plenty).mask, 0x1f);
	EXPECT_EQUAL(mask_choose(4, &automatic, plenty).mask, 0x1f);
	EXPECT_EQUAL(mask_choose(5, &automatic, plenty).mask, 0xf1f);
	EXPECT_EQUAL(mask_choose(6, &automatic, plenty).mask, 0x1f1f);
	EXPECT_EQUAL(mask_choose(7, &automatic, plenty).mask, 0x1f1f);
}

/* All kernel events are requested only if the user asks for them: they hang or slow down jobs. */
static void kernel_events_follow_the_policy(void)
{
	struct settings settings = automatic;

	for (unsigned int version = 1; version <= 7; version++) {
		struct mask_choice choice = mask_choose(version, &settings, plenty);

		EXPECT_EQUAL(choice.kernel, kernel_policy_of(version)->by_default);
		EXPECT(!(choice.mask & 0x40));
		EXPECT_THAT("there is a reason", choice.kernel_reason[0] != '\0');
	}
	settings.is_allgatherv_off = true;
	for (unsigned int version = 1; version <= 7; version++)
		EXPECT_EQUAL(mask_choose(version, &settings, plenty).kernel,
			     kernel_policy_of(version)->no_allgatherv);
}

static void kernel_events_can_be_switched(void)
{
	struct settings settings = automatic;

	settings.kernel = SWITCH_ON;
	for (unsigned int version = 1; version <= 7; version++) {
		struct mask_choice choice = mask_choose(version, &settings, plenty);

		EXPECT((choice.kernel == KERNEL_EVENTS_ON) == (version >= 3));
		EXPECT((choice.kernel == KERNEL_EVENTS_ON) == !!(choice.mask & 0x40));
		EXPECT(version < 3 || strstr(choice.kernel_reason, "known risk") != NULL);
	}
	settings.kernel = SWITCH_OFF;
	for (unsigned int version = 3; version <= 7; version++) {
		struct mask_choice choice = mask_choose(version, &settings, plenty);

		EXPECT(choice.kernel == KERNEL_EVENTS_OFF &&
		       strstr(choice.kernel_reason, "RINGSIDE_EVENTS"));
	}
	settings.kernel = SWITCH_SAMPLE;
	for (unsigned int version = 3; version <= 7; version++)
		EXPECT((mask_choose(version, &settings, plenty).kernel == KERNEL_EVENTS_SAMPLED) ==
		       (version == 5 || version == 6));
}

/* NCCL 2.28 to 2.30 crashes if /dev/shm is too small for it: no setting overrules that. */
static void without_room_there_are_none(void)
{
	struct settings settings = automatic;
	struct mask_choice choice;

	choice = mask_choose(5, &settings, scarce);
	EXPECT(choice.kernel == KERNEL_EVENTS_OFF &&
	       strstr(choice.kernel_reason, "159 MiB free") != NULL);
	settings.kernel = SWITCH_ON;
	for (unsigned int version = 5; version <= 6; version++) {
		choice = mask_choose(version, &settings, scarce);
		EXPECT(choice.kernel == KERNEL_EVENTS_OFF && !(choice.mask & 0x40));
		EXPECT_EQUAL(mask_choose(version, &settings, 0).kernel, KERNEL_EVENTS_OFF);
		EXPECT_EQUAL(mask_choose(version, &settings, 160 * MIB).kernel, KERNEL_EVENTS_ON);
	}
	EXPECT(mask_has_shm(plenty, 0) && !mask_has_shm(plenty, 100) && !mask_has_shm(0, 0));
}

static void the_rest_can_be_switched(void)
{
	struct settings settings = automatic;

	settings.proxy = SWITCH_OFF;
	EXPECT_EQUAL(mask_choose(5, &settings, plenty).mask & 0x18, 0);
	EXPECT_EQUAL(mask_choose(4, &settings, plenty).mask & 0x18, 0);
	settings = automatic;
	settings.steps = SWITCH_OFF;
	EXPECT_EQUAL(mask_choose(5, &settings, plenty).mask & 0x18, 0x8);
	EXPECT_THAT("NCCL 2.27 crashes without steps",
		    (mask_choose(4, &settings, plenty).mask & 0x18) == 0x18);
	settings = automatic;
	settings.launch = SWITCH_OFF;
	EXPECT_EQUAL(mask_choose(7, &settings, plenty).mask & 0xf00, 0x700);
}

/* Turning on NCCL Inspector asks for its times, on releases that have Inspector. */
static void inspector_asks_for_kernels(void)
{
	struct settings settings = automatic;

	settings.inspector.is_on = true;
	EXPECT(mask_choose(4, &settings, plenty).kernel != KERNEL_EVENTS_ON);
	for (unsigned int version = 5; version <= 7; version++)
		EXPECT_EQUAL(mask_choose(version, &settings, plenty).kernel, KERNEL_EVENTS_ON);
	settings.kernel = SWITCH_OFF;
	EXPECT_EQUAL(mask_choose(5, &settings, plenty).kernel, KERNEL_EVENTS_OFF);
}

static void a_sample_says_who_asked_for_it(void)
{
	static const char asked[] = "sampling requested by RINGSIDE_EVENTS";
	struct settings settings = automatic;

	settings.kernel = SWITCH_SAMPLE;
	EXPECT(strcmp(mask_choose(5, &settings, plenty).kernel_reason, asked) == 0);
	settings.kernel = SWITCH_AUTO;
	settings.is_allgatherv_off = true;
	for (unsigned int version = 5; version <= 6; version++)
		EXPECT(strcmp(mask_choose(version, &settings, plenty).kernel_reason, asked) != 0);
}

static void free_memory_is_known(void)
{
	uint64_t bytes = mask_free_shm_bytes();
	struct statvfs fs;

	EXPECT(statvfs("/dev/shm", &fs) == 0);
	EXPECT_EQUAL(bytes == UINT64_MAX, fs.f_blocks == 0);
	EXPECT(fs.f_blocks == 0 || bytes <= (uint64_t)fs.f_blocks * fs.f_frsize);
}

int main(void)
{
	each_version_is_asked_for_what_it_has();
	kernel_events_follow_the_policy();
	kernel_events_can_be_switched();
	without_room_there_are_none();
	the_rest_can_be_switched();
	inspector_asks_for_kernels();
	a_sample_says_who_asked_for_it();
	free_memory_is_known();
	return tap_done();
}
