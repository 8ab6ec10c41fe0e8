/* One rank of a running job: plays its part of the score on a host that plays NCCL. */
#ifndef SIM_WORKER_H
#define SIM_WORKER_H

#include "programs/sim/host.h"
#include "programs/sim/sim_board.h"
#include "programs/sim/sim_score.h"

struct sim_worker {
	const struct sim_job *job;
	const struct sim_score *score;
	struct sim_board *board;
	struct host *host; /* of this process: shared by its ranks */
	int rank;
	bool may_abort; /* of a hung job: its process lives on, so tear its communicators down */
	bool is_over;	/* what sim_worker_run() gave back, where that was on another thread */
};

/* The host of a process in which this rank lives. ERR_NO_SPACE. */
enum status sim_worker_host(struct host **host, const struct sim_job *job, int rank,
			    const char *plugin);

/* Until the rank's end, the job's end, or the board says stop. What came of it is on the board. False:
 * its communicators are still there, and so is what they use. */
bool sim_worker_run(const struct sim_worker *worker);

#endif
