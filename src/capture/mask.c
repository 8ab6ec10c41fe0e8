#include "capture/mask.h"

#include <sys/statvfs.h>

#include "abi/abi_common.h"
#include "base/text.h"

/* NCCL 2.28 to 2.30 takes about 33 MiB of /dev/shm per communicator for kernel events, and crashes
 * when there is too little. Room for a handful must be free. */
#define KERNEL_SHM_BYTES (UINT64_C(40) << 20)
enum { KERNEL_COMMS = 4, NODE_PROCESSES = 8 };

uint64_t mask_free_shm_bytes(void)
{
	struct statvfs fs;

	if (statvfs("/dev/shm", &fs) != 0)
		return 0;
	/* A tmpfs without limit says that it has no blocks at all. */
	return fs.f_blocks == 0 ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}

bool mask_has_shm(uint64_t free_shm_bytes, uint32_t communicators)
{
	return free_shm_bytes / KERNEL_SHM_BYTES / NODE_PROCESSES >
	       (uint64_t)communicators + KERNEL_COMMS;
}

/* Whoever turned NCCL Inspector on wants its times, and knows what they cost; where it runs, that is. */
static enum settings_switch kernel_wish(unsigned int interface, const struct settings *settings)
{
	bool is_inspector = settings->inspector.is_on && interface >= 5;

	return settings->kernel == SWITCH_AUTO && is_inspector ? SWITCH_ON : settings->kernel;
}

static enum kernel_events decide(struct mask_choice *choice, enum kernel_events events,
				 const char *reason, const char *more)
{
	text_format(choice->kernel_reason, sizeof(choice->kernel_reason), "%s%s", reason, more);
	return events;
}

/* A wish does not make room. */
static enum kernel_events without_room(struct mask_choice *choice, uint64_t free_bytes)
{
	text_format(choice->kernel_reason, sizeof(choice->kernel_reason),
		    "only %llu MiB free in /dev/shm: NCCL takes 33 MiB per communicator for them "
		    "and crashes without",
		    (unsigned long long)(free_bytes >> 20));
	return KERNEL_EVENTS_OFF;
}

static enum kernel_events choose_kernel(unsigned int interface, const struct settings *settings,
					uint64_t free_bytes, struct mask_choice *choice)
{
	const struct kernel_policy *policy = kernel_policy_of(interface);
	enum settings_switch wish = kernel_wish(interface, settings);
	bool takes_shm = interface == 5 || interface == 6;
	enum kernel_events standard;

	if (policy == NULL || policy->by_default == KERNEL_EVENTS_ABSENT)
		return decide(choice, KERNEL_EVENTS_ABSENT, policy != NULL ? policy->why : "", "");
	standard = settings->is_allgatherv_off ? policy->no_allgatherv : policy->by_default;
	if (wish == SWITCH_OFF)
		return decide(choice, KERNEL_EVENTS_OFF, "switched off by RINGSIDE_EVENTS", "");
	if (wish == SWITCH_ON) {
		if (takes_shm && free_bytes / KERNEL_SHM_BYTES < KERNEL_COMMS)
			return without_room(choice, free_bytes);
		return decide(choice, KERNEL_EVENTS_ON,
			      "switched on by a setting; known risk: ", policy->risk);
	}
	if (wish == SWITCH_SAMPLE && !policy->can_sample)
		return decide(choice, KERNEL_EVENTS_OFF, "they cannot be sampled: ", policy->why);
	if (wish != SWITCH_SAMPLE && standard != KERNEL_EVENTS_SAMPLED)
		return decide(choice, standard, policy->why, "");
	if (!mask_has_shm(free_bytes, 0))
		return without_room(choice, free_bytes);
	if (wish == SWITCH_SAMPLE)
		return decide(choice, KERNEL_EVENTS_SAMPLED, "sampled: RINGSIDE_EVENTS says so",
			      "");
	return decide(choice, KERNEL_EVENTS_SAMPLED, policy->why, "");
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
	choice.kernel = choose_kernel(interface, settings, free_shm_bytes, &choice);
	if (choice.kernel == KERNEL_EVENTS_ON)
		choice.mask |= ABI_KERNEL_CH;
	return choice;
}
