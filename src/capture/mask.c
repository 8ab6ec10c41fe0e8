#include "capture/mask.h"

#include <sys/statvfs.h>

#include "abi/abi_common.h"
#include "base/text.h"

/* NCCL 2.28 to 2.30 takes about 33 MiB of /dev/shm per communicator for kernel events, and crashes
 * when there is too little. Room for a handful must be free. */
#define KERNEL_SHM_BYTES (UINT64_C(4) * 40 << 20)

uint64_t mask_free_shm_bytes(void)
{
	struct statvfs fs;

	if (statvfs("/dev/shm", &fs) != 0)
		return 0;
	/* A tmpfs without limit says that it has no blocks at all. */
	return fs.f_blocks == 0 ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}

static bool has_room_for_kernel_events(uint64_t free_bytes, struct mask_choice *choice)
{
	if (free_bytes >= KERNEL_SHM_BYTES)
		return true;
	text_format(
		choice->kernel_reason, sizeof(choice->kernel_reason),
		"only %llu MiB free in /dev/shm, NCCL needs 40 MiB per communicator and crashes "
		"without",
		(unsigned long long)(free_bytes >> 20));
	return false;
}

/* Whoever turned NCCL Inspector on wants its times, and knows what they cost; where it runs, that is. */
static enum settings_switch kernel_wish(unsigned int interface, const struct settings *settings)
{
	bool is_inspector = settings->inspector.is_on && interface >= 5;

	return settings->kernel == SWITCH_AUTO && is_inspector ? SWITCH_ON : settings->kernel;
}

static bool choose_kernel(unsigned int interface, enum settings_switch wish,
			  uint64_t free_shm_bytes, struct mask_choice *choice)
{
	const char *reason;
	bool is_on = wish == SWITCH_ON;

	if (interface <= 2)
		reason = "NCCL before 2.26 has none";
	else if (wish == SWITCH_OFF)
		reason = "switched off by RINGSIDE_EVENTS";
	else if (interface <= 4)
		reason = is_on ? "switched on by RINGSIDE_EVENTS although NCCL before 2.28 can "
				 "fail with them"
			       : "NCCL before 2.28 can fail with them";
	else if (interface >= 7)
		reason = is_on ? "switched on by a setting; NCCL 2.31 pays 4-13 % for them on "
				 "mid-size messages"
			       : "NCCL 2.31 pays 4-13 % for them on mid-size messages";
	else if (!has_room_for_kernel_events(free_shm_bytes, choice))
		return false; /* a wish does not make room */
	else
		reason = "costs NCCL about 33 MiB of /dev/shm and one busy proxy thread per "
			 "communicator";
	text_copy(choice->kernel_reason, sizeof(choice->kernel_reason), reason);
	if (interface <= 2 || wish == SWITCH_OFF)
		return false;
	return is_on || interface == 5 || interface == 6;
}

struct mask_choice mask_choose(unsigned int interface, const struct settings *settings,
			       uint64_t free_shm_bytes)
{
	struct mask_choice choice = { .mask = ABI_GROUP | ABI_COLL | ABI_P2P };

	if (settings->proxy != SWITCH_OFF) {
		choice.mask |= ABI_PROXY_OP;
		/* NCCL 2.27 crashes on net plugin callbacks without steps: they stay on there. */
		if (settings->steps != SWITCH_OFF || interface == 4)
			choice.mask |= ABI_PROXY_STEP;
	}
	if (interface >= 5)
		choice.mask |= ABI_GROUP_API | ABI_COLL_API | ABI_P2P_API;
	if (interface >= 5 && settings->launch != SWITCH_OFF)
		choice.mask |= ABI_KERNEL_LAUNCH;
	if (interface >= 6)
		choice.mask |= ABI_CE_COLL;
	choice.has_kernel =
		choose_kernel(interface, kernel_wish(interface, settings), free_shm_bytes, &choice);
	if (choice.has_kernel)
		choice.mask |= ABI_KERNEL_CH;
	return choice;
}
