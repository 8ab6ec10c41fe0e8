#include "programs/bench/bench_share.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/text.h"

enum { FEW_CHANNELS_FROM = 4 };

void bench_share_environment(int rank, int ranks_per_gpu)
{
	char host[128], name[64] = "";

	/* NCCL takes ranks of the same name for one machine: several machines need it, too. */
	if (gethostname(name, sizeof(name) - 1) == -1)
		name[0] = '\0';
	text_format(host, sizeof(host), "ringside-bench-%s-%d", name, rank);
	setenv("NCCL_HOSTID", host, 1);
	setenv("NCCL_SOCKET_IFNAME", "lo", 0);
	setenv("NCCL_IB_DISABLE", "1", 0);
	if (ranks_per_gpu >= FEW_CHANNELS_FROM)
		setenv("NCCL_MAX_CTAS", "8", 0);
}
