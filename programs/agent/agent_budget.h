/*
 * Processor time for answers that anybody can ask for in ever new ways, so that keeping the last one does not help:
 * a tenth of all time, and AGENT_BUDGET_BURST_NS of it at once. There is one thread, and it has others to serve.
 */
#ifndef AGENT_BUDGET_H
#define AGENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum { AGENT_BUDGET_SHARE = 10 };
#define AGENT_BUDGET_BURST_NS UINT64_C(300000000)

/* All zero: all of the burst is there. */
struct agent_budget {
	uint64_t spent_ns; /* of which time has not yet made up for */
	uint64_t since_ns; /* monotonic: as of then */
};

/* May something be begun now? What it takes in the end is only known then, so one may go beyond. */
bool agent_budget_allows(struct agent_budget *budget, uint64_t now_ns);
void agent_budget_spend(struct agent_budget *budget, uint64_t spent_ns);

#endif
