/*
 * What is known about this process: its identity, the relevant environment variables, the GPU of
 * each communicator, and the info text of the region that contains all of it. Only in init: it
 * reads files.
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
	char job[128];		/* "local" if no launcher set one */
	char rank[32];		/* global rank, or "x" */
	char local_rank[32];	/* "": unknown */
	char world_size[32];	/* "": unknown */
	char pod_namespace[64]; /* of Kubernetes; "": none or unknown */
	uint64_t pid;
	uint64_t pid_namespace;
	uint64_t start_ticks;
};

/* `job` is the name given by the user, "" if none. */
void identity_read(struct identity *identity, const char *job);

/* Copy a communicator's name from a pointer that may dangle; sets COMM_FLAG_NAME_*. */
void identity_comm_name(struct comm_info *info, const char *name);

/* The current CUDA device, from a libcuda that is already loaded. Leaves "" and -1 if unknown. */
void identity_gpu(struct comm_info *info);

/*
 * Environment variables that affect how the job communicates, for the doctor. Secrets are excluded:
 * only names on a list are read, none whose name suggests a secret, and a value that looks like one
 * is not kept (common/secret.h). docs/SETTINGS.md lists them. Only in init: it reads a file and
 * calls getenv, as NCCL does there.
 */
enum { ENVIRONMENT_BYTES = 6144, ENVIRONMENT_VALUE_BYTES = 200 };

struct environment {
	char text[ENVIRONMENT_BYTES]; /* lines "env.NAME=VALUE", the most useful first */
	size_t bytes;
	unsigned int left_out; /* variables that did not fit */
};

void environment_read(struct environment *environment);

/* Is a variable with this name recorded? */
bool environment_has(const char *name);

/*
 * What is known about the process and which settings are in effect; decided once, by the first
 * communicator.
 */
struct process_info {
	unsigned int interface; /* NCCL's, of the first communicator */
	struct settings settings;
	struct identity identity;
	struct environment environment;
	struct mask_choice choice;
	char trace[1000];    /* path of the trace file, "": none */
	char messages[6144]; /* lines for the user, because stderr may be lost */
};

/* Write all of it into the region as lines "key=value", for readers and for the trace file. */
void process_info_write(const struct process_info *process);

/*
 * Add a line for the user as "message.N": stderr may be closed, full or unread. Only for the trace
 * thread after init.
 */
void process_info_add_message(const char *line);

/* Write a one-line summary to NCCL's log. */
void process_info_log(const struct process_info *process, const struct comm_start *start);

#endif
