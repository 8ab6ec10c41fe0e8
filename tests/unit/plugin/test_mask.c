/*
 * Which events are requested from NCCL. The expected bits are spelled out: 0x1 Group, 0x2 Coll, 0x4
 * P2p, 0x8 ProxyOp, 0x10 ProxyStep, 0x40 KernelCh, 0x100 GroupApi, 0x200 CollApi, 0x400 P2pApi,
 * 0x800 KernelLaunch, 0x1000 CeColl.
 */
#include "plugin/settings.h"

#include <string.h>
#include <sys/statvfs.h>

#include "tests/tap.h"

static const struct settings automatic = { .proxy = SWITCH_AUTO,
					   .steps = SWITCH_AUTO,
					   .launch = SWITCH_AUTO };

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
}

static void kernel_events_can_be_switched(void)
{
	struct settings settings = automatic;

	settings.times = TIMES_KERNEL;
	for (unsigned int version = 1; version <= 7; version++) {
		struct mask_choice choice = mask_choose(version, &settings, plenty);

		EXPECT((choice.kernel == KERNEL_EVENTS_ON) == (version >= 3));
		EXPECT((choice.kernel == KERNEL_EVENTS_ON) == !!(choice.mask & 0x40));
		EXPECT(choice.times == (version >= 3 ? TIMES_KERNEL : TIMES_OFF));
		EXPECT(version < 3 || strstr(choice.kernel_reason, "known risk") != NULL);
	}
}

/* CUDA events need the launches that NCCL shows since 2.28. */
static void times_follow_settings_and_release(void)
{
	struct settings settings = automatic;

	for (unsigned int version = 1; version <= 7; version++) {
		struct mask_choice choice = mask_choose(version, &settings, plenty);

		EXPECT(choice.times == (version >= 5 ? TIMES_AUTO : TIMES_OFF));
		EXPECT((choice.times == TIMES_OFF) == (choice.times_reason[0] != '\0'));
	}
	EXPECT(strstr(mask_choose(4, &settings, plenty).times_reason, "RINGSIDE_TIMES=kernel"));
	settings.times = TIMES_ALL;
	EXPECT_EQUAL(mask_choose(6, &settings, scarce).times, TIMES_ALL);
	settings.times = TIMES_OFF;
	EXPECT_EQUAL(mask_choose(6, &settings, plenty).times, TIMES_OFF);
	EXPECT(strstr(mask_choose(6, &settings, plenty).times_reason, "RINGSIDE_TIMES"));
	settings.times = TIMES_AUTO;
	settings.is_launch_disturbed = true;
	EXPECT_EQUAL(mask_choose(6, &settings, plenty).times, TIMES_OFF);
	EXPECT(strstr(mask_choose(6, &settings, plenty).times_reason, "NCCL_LAUNCH_MODE"));
	settings = automatic;
	settings.launch = SWITCH_OFF;
	EXPECT_EQUAL(mask_choose(6, &settings, plenty).times, TIMES_OFF);
}

/* NCCL 2.28 to 2.30 crashes if /dev/shm is too small for it: no setting overrules that. */
static void without_room_there_are_none(void)
{
	struct settings settings = automatic;
	struct mask_choice choice;

	settings.times = TIMES_KERNEL;
	for (unsigned int version = 5; version <= 6; version++) {
		choice = mask_choose(version, &settings, scarce);
		EXPECT(choice.kernel == KERNEL_EVENTS_OFF && !(choice.mask & 0x40));
		EXPECT(choice.times == TIMES_OFF && strstr(choice.times_reason, "159 MiB free"));
		EXPECT_EQUAL(mask_choose(version, &settings, 0).kernel, KERNEL_EVENTS_OFF);
		EXPECT_EQUAL(mask_choose(version, &settings, 160 * MIB).kernel, KERNEL_EVENTS_ON);
	}
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

/* Users of NCCL Inspector expect a line with a time for each operation. */
static void inspector_times_every_launch(void)
{
	struct settings settings = automatic;

	settings.inspector.is_on = true;
	for (unsigned int version = 1; version <= 7; version++)
		for (int is_prom = 0; is_prom < 2; is_prom++) {
			struct mask_choice choice;

			settings.inspector.is_prom = is_prom;
			choice = mask_choose(version, &settings, plenty);
			EXPECT(choice.times == (version >= 5 ? TIMES_ALL : TIMES_OFF));
			EXPECT(!(choice.mask & 0x40));
		}
	settings.times = TIMES_KERNEL;
	EXPECT_EQUAL(mask_choose(5, &settings, plenty).times, TIMES_KERNEL);
	settings.times = TIMES_OFF;
	EXPECT_EQUAL(mask_choose(5, &settings, plenty).times, TIMES_OFF);
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
	times_follow_settings_and_release();
	without_room_there_are_none();
	the_rest_can_be_switched();
	inspector_times_every_launch();
	free_memory_is_known();
	return tap_done();
}
