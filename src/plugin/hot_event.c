/* Where stops and states of all versions arrive: the handle tells what they are about. */
#include "plugin/abi_common.h"
#include "plugin/recorder.h"

void hot_learn_comm(const void *context, uint64_t hash, int rank)
{
	struct comm_state *comm = hot_comm(context);

	if (comm == NULL || load_relaxed(&comm->shared->info.rank) >= 0)
		return;
	store_relaxed(&comm->shared->info.hash, hash);
	store_relaxed(&comm->shared->info.rank, rank);
}

COLD void *hot_off_handle(uint64_t type, unsigned int interface)
{
	uint64_t issues = interface >= 5 ? ABI_COLL_API | ABI_P2P_API : ABI_COLL | ABI_P2P;

	if (load_relaxed(&recorder.is_over) && type & issues)
		count_lost(LOST_OFF, 1);
	return handle_ignored();
}

void hot_stop(void *opaque)
{
	struct handle handle = handle_decode(recorder.salt, opaque);

	if (LIKELY(handle_is(handle, HANDLE_STEP))) {
		hot_step_stop(handle);
		return;
	}
	switch (handle_kind(handle)) {
	case HANDLE_KERNEL:
		hot_kernel_stop(handle);
		break;
	case HANDLE_PROXY:
		hot_proxy_stop(handle);
		break;
	case HANDLE_LAUNCH:
		hot_launch_stop(handle);
		break;
	case HANDLE_GROUP_API:
		hot_group_stop(handle);
		break;
	/* The end of these calls says nothing about the end of the operation. */
	case HANDLE_CALL:
	case HANDLE_CAPTURED:
	case HANDLE_TASK:
	case HANDLE_UNTRACKED:
	case HANDLE_IGNORED:
		break;
	default:
		count_odd(opaque == NULL ? ODD_NULL_HANDLE : ODD_FOREIGN_HANDLE);
	}
}

void hot_state(void *opaque, int state, uint64_t argument, bool has_argument)
{
	struct handle handle = handle_decode(recorder.salt, opaque);

	/* Transfers are most of what comes. */
	if (LIKELY(handle_is(handle, HANDLE_STEP))) {
		hot_step_state(handle, state, argument);
		return;
	}
	switch (handle_kind(handle)) {
	case HANDLE_KERNEL:
		if (LIKELY(state == ABI_KERNEL_CH_STOP && has_argument))
			hot_kernel_state(handle, argument);
		else
			count_odd(ODD_UNKNOWN_STATE);
		break;
	case HANDLE_PROXY:
		hot_proxy_state(handle, state, argument);
		break;
	case HANDLE_GROUP_API:
	case HANDLE_LAUNCH:
	case HANDLE_CALL:
	case HANDLE_CAPTURED:
	case HANDLE_TASK:
	case HANDLE_UNTRACKED:
	case HANDLE_IGNORED:
		break;
	default:
		count_odd(opaque == NULL ? ODD_NULL_HANDLE : ODD_FOREIGN_HANDLE);
	}
}
