/* What is known of the process, and what is in effect in it: decided once, by the first communicator. */
#ifndef PROCESS_INFO_H
#define PROCESS_INFO_H

#include "capture/environment.h"
#include "capture/identity.h"
#include "capture/mask.h"
#include "capture/recorder.h"
#include "capture/settings.h"

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
