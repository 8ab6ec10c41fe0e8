/*
 * Who this process is, which variables it was started with, which GPU a communicator uses; and all of it as the
 * info text of the region. In init only: it reads files.
 */
#ifndef PROCESS_INFO_H
#define PROCESS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "plugin/recorder.h"
#include "plugin/settings.h"

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

/*
 * Which variables the job was started with, as far as they decide how it communicates: for the doctor. Secrets stay
 * out: only the names of a list are looked at, none whose name speaks of secrets, and of a value that looks like one
 * nothing is kept (common/secret.h). docs/SETTINGS.md says which. In init only: it reads a file and calls getenv, as NCCL does there.
 */
enum { ENVIRONMENT_BYTES = 6144, ENVIRONMENT_VALUE_BYTES = 200 };

struct environment {
	char text[ENVIRONMENT_BYTES]; /* lines "env.NAME=VALUE", the most telling first */
	size_t bytes;
	unsigned int left_out; /* variables that were meant to be here and found no room */
};

void environment_read(struct environment *environment);

/* Is a variable of this name recorded? */
bool environment_has(const char *name);

/* What is known of the process, and what is in effect in it: decided once, by the first communicator. */
struct process_info {
	unsigned int interface; /* NCCL's, of the first communicator */
	struct settings settings;
	struct identity identity;
	struct environment environment;
	struct mask_choice choice;
	char trace[1000];    /* path of the trace file, "" none */
	char messages[6144]; /* lines for the user; on stderr they may be lost */
};

/* All of it into the region, as lines "key=value": for readers, and for the trace file. */
void process_info_write(const struct process_info *process);

/* One more line for the user, as "message.N": stderr may be closed, full, or read by nobody. By the trace thread, when
 * init is over; by nobody else. */
void process_info_add_message(const char *line);

/* The most telling of it as one line into NCCL's log. */
void process_info_log(const struct process_info *process, const struct comm_start *start);

#endif
