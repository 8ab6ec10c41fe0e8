/*
 * The callbacks of all interface versions. decode.inc decodes the start events of one version. Stop
 * and state events arrive here for all versions, because the handle says what they are about.
 */
#include "common/op.h"
#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "plugin/abi_v7.h"
#include "plugin/recorder.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* A type is a single bit; its position gives a dense switch. */
#define BIT(type) __builtin_ctz(type)

/*
 * NCCL converts these to bytes when it queues them: Coll and CeColl events carry the number of
 * bytes and ncclInt8. The size is right; only the API event knows the user's datatype.
 */
static bool is_in_bytes(uint8_t function)
{
	return function == OP_ALL_GATHER || function == OP_BROADCAST;
}

/* ---- stops and states ------------------------------------------------------------------------- */

/* v1 to v3 give hash and rank only in their events. */
static APART void hot_learn_comm(const void *context, uint64_t hash, int rank)
{
	struct comm_state *comm = hot_comm(context);

	if (comm == NULL || load_relaxed(&comm->shared->info.rank) >= 0)
		return;
	store_relaxed(&comm->shared->info.hash, hash);
	store_relaxed(&comm->shared->info.rank, rank);
}

/* The handle while recording is off; counts what would have been an operation. */
static COLD void *hot_off_handle(uint64_t type, unsigned int interface)
{
	uint64_t issues = interface >= 5 ? ABI_COLL_API | ABI_P2P_API : ABI_COLL | ABI_P2P;

	if (load_relaxed(&recorder.is_over) && type & issues)
		count_lost(LOST_OFF, 1);
	return handle_ignored();
}

static APART void hot_stop(void *opaque)
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
	case HANDLE_TIMED:
	case HANDLE_IN_GRAPH:
		hot_launch_stop(handle);
		break;
	case HANDLE_GROUP_API:
		hot_group_stop(handle);
		break;
	/* The end of these calls is not the end of the operation. */
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

static APART void hot_state(void *opaque, int state, uint64_t argument, bool has_argument)
{
	struct handle handle = handle_decode(recorder.salt, opaque);

	/* Most events are transfers. */
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
	case HANDLE_TIMED:
	case HANDLE_IN_GRAPH:
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

/* ---- one decoder per version ------------------------------------------------------------------ */

#define ABI_VERSION 1
#include "plugin/decode.inc"
#define ABI_VERSION 2
#include "plugin/decode.inc"
#define ABI_VERSION 3
#include "plugin/decode.inc"
#define ABI_VERSION 4
#include "plugin/decode.inc"
#define ABI_VERSION 5
#include "plugin/decode.inc"
#define ABI_VERSION 6
#include "plugin/decode.inc"
#define ABI_VERSION 7
#include "plugin/decode.inc"
