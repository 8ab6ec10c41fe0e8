#include "programs/bench/bench_budget.h"

#include "bench/bench_result.h"

uint32_t budget_calls_limit(int nranks)
{
	uint64_t bytes = sizeof(struct bench_call) * (uint64_t)(nranks > 0 ? nranks : 1);
	uint64_t limit = BUDGET_CALLS_BYTES / bytes;

	if (limit == 0)
		return 1;
	return limit < BUDGET_CALLS_MAX ? (uint32_t)limit : BUDGET_CALLS_MAX;
}

uint32_t budget_calls(const struct bench_plan *plan, double call_ns, int nranks)
{
	uint32_t limit = budget_calls_limit(nranks), calls = plan->calls ? plan->calls : limit;
	double fitting;

	if (plan->seconds > 0 && call_ns > 0) {
		fitting = plan->seconds * 1e9 / call_ns;
		if (fitting < plan->least_calls)
			fitting = plan->least_calls;
		if (fitting < calls)
			calls = (uint32_t)fitting;
	}
	if (calls > limit)
		calls = limit;
	return calls ? calls : 1;
}

uint32_t budget_warmups(const struct bench_plan *plan, uint32_t made, double spent_ns,
			double last_ns)
{
	uint32_t left = plan->warmups > made ? plan->warmups - made : 0;
	double left_ns = plan->seconds * 1e9 / 2 - spent_ns;

	if (plan->seconds <= 0)
		return left;
	if (left_ns <= 0)
		return 0;
	if (last_ns > 0 && left_ns / last_ns < left)
		left = (uint32_t)(left_ns / last_ns);
	return left;
}
