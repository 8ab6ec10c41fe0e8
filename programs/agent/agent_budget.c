#include "programs/agent/agent_budget.h"

bool agent_budget_allows(struct agent_budget *budget, uint64_t now_ns)
{
	uint64_t made_up_ns = (now_ns - budget->since_ns) / AGENT_BUDGET_SHARE;

	budget->spent_ns -= made_up_ns < budget->spent_ns ? made_up_ns : budget->spent_ns;
	budget->since_ns = now_ns;
	return budget->spent_ns < AGENT_BUDGET_BURST_NS;
}

void agent_budget_spend(struct agent_budget *budget, uint64_t spent_ns)
{
	budget->spent_ns += spent_ns;
}
