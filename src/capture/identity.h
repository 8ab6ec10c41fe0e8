/* Who this process is, and which GPU a communicator uses. In init only: it reads files. */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/comm_layout.h"

struct identity {
	char host[256];
	char boot_id[40];
	char exe[256];
	char job[128];	     /* "local" when no launcher told one */
	char rank[32];	     /* global rank, or "x" */
	char local_rank[32]; /* "" unknown */
	char world_size[32]; /* "" unknown */
	uint64_t pid;
	uint64_t pid_namespace;
	uint64_t start_ticks;
};

/* `job` is the user's own word for it, "" none. */
void identity_read(struct identity *identity, const char *job);

/* Copy a communicator's name from a pointer that may dangle; sets COMM_FLAG_NAME_*. */
void identity_comm_name(struct comm_info *info, const char *name);

/* The current CUDA device, through a libcuda that is already loaded. Leaves "" and -1 when unknown. */
void identity_gpu(struct comm_info *info);

#endif
