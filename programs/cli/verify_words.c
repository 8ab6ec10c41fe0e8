#include "programs/cli/verify_judge.h"

#include "common/op_layout.h"

const char *verify_lost_words(unsigned int reason)
{
	static const char *const words[] = {
		[LOST_NO_COMM] = "more communicators were alive than the region holds",
		[LOST_RING_BUSY] = "a writer was overtaken by a whole lap of the ring",
		[LOST_RING_OVERRUN] = "overwritten in the ring before the trace thread came by; a "
				      "larger RINGSIDE_BUFFER helps",
		[LOST_QUOTA] = "the trace file reached its quota; see RINGSIDE_QUOTA",
		[LOST_NO_SPACE] = "the disk of the trace file was full",
		[LOST_WRITE_ERROR] = "the trace file could not be written",
		[LOST_OFF] = "shown while recording was switched off",
		[LOST_DETAIL_OVERRUN] = "details were overwritten before the trace thread came by",
		[LOST_DETAIL_QUOTA] = "details were not written: quota, full disk or write error",
		[LOST_PROXY_SLOT] = "proxy operations were not followed: their table was full",
		[LOST_TOTALS] = "operations were added up under 'other': the table of totals was "
				"full",
		[LOST_LATE_CHILD] =
			"kernel or network events came after their operation was let go",
		[LOST_INSPECTOR] =
			"operations are not in NCCL Inspector's file: it could not be written "
			"in time",
		[LOST_NOT_SHOWN] = "NCCL did not show them: someone else switched profiler events "
				   "off for a while",
	};

	return reason < ARRAY_LENGTH(words) ? words[reason] : NULL;
}

const char *verify_odd_words(unsigned int reason)
{
	static const char *const words[] = {
		[ODD_NULL_HANDLE] = "events came without a handle",
		[ODD_STALE_HANDLE] = "events came for operations that were let go already",
		[ODD_FOREIGN_HANDLE] = "events came with handles that were never given out",
		[ODD_UNKNOWN_CONTEXT] = "events came for communicators that are not known",
		[ODD_NULL_DESCRIPTOR] = "events came without a description",
		[ODD_UNKNOWN_EVENT] = "events came of a kind that is not known",
		[ODD_UNKNOWN_STATE] = "states came that are not known",
		[ODD_REPEATED_STOP] = "events were stopped again",
		[ODD_REPEATED_START] = "transfers were started again",
		[ODD_REPEATED_STATE] = "states of transfers came again",
		[ODD_FOREIGN_PROCESS] = "proxy operations were for other processes",
		[ODD_CHANNEL] = "channels of communicators gave GPU times that are not believed",
	};

	return reason < ARRAY_LENGTH(words) ? words[reason] : NULL;
}
