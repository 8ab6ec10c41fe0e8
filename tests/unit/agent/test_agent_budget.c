/* Expensive answers get a tenth of the time, however often clients ask; and what a snapshot of one job leaves out. */
#include "agent/agent.h"

#include <string.h>

#include "cli/cli.h"
#include "common/text.h"
#include "output/sink.h"
#include "tests/tap.h"

#define MS UINT64_C(1000000)

/* A request every millisecond for a minute; each answer takes `cost_ms`. Returns their total time. */
static uint64_t spent_in_a_minute(uint64_t cost_ms)
{
	struct agent_budget budget = { 0 };
	uint64_t spent_ms = 0;

	for (uint64_t now_ms = 1000; now_ms < 61000; now_ms++) {
		if (!agent_budget_allows(&budget, now_ms * MS))
			continue;
		agent_budget_spend(&budget, cost_ms * MS);
		spent_ms += cost_ms;
		now_ms += cost_ms;
	}
	return spent_ms;
}

static void a_tenth_of_the_time(void)
{
	static const uint64_t costs[] = { 1, 7, 80, 500, 1500 };

	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
		uint64_t spent_ms = spent_in_a_minute(costs[i]);

		EXPECT_THAT("not more, except for the first",
			    spent_ms <= 6000 + AGENT_BUDGET_BURST_NS / MS + costs[i]);
		EXPECT_THAT("and not much less", spent_ms >= 4500);
	}
}

static void who_comes_seldom_is_always_served(void)
{
	struct agent_budget budget = { 0 };

	for (uint64_t second = 1; second < 100; second++) {
		EXPECT(agent_budget_allows(&budget, second * 1000 * MS));
		agent_budget_spend(&budget, 90 * MS);
	}
}

static void time_gives_back(void)
{
	struct agent_budget budget = { 0 };

	EXPECT(agent_budget_allows(&budget, 1000 * MS));
	agent_budget_spend(&budget, 500 * MS);
	EXPECT(!agent_budget_allows(&budget, 1001 * MS));
	EXPECT(!agent_budget_allows(&budget, 2990 * MS));
	EXPECT(agent_budget_allows(&budget, 3010 * MS));
	EXPECT_THAT("never more than the burst", agent_budget_allows(&budget, 1000000 * MS));
	agent_budget_spend(&budget, AGENT_BUDGET_BURST_NS + MS);
	EXPECT(!agent_budget_allows(&budget, 1000001 * MS));
}

static void operations_come_in_steps(void)
{
	size_t steps = 0, last = SIZE_MAX;

	for (uint64_t asked = 0; asked <= AGENT_SNAPSHOT_OPERATIONS_MAX; asked++) {
		size_t given = agent_snapshot_operations(asked);

		if (given < asked)
			EXPECT_THAT("never less than requested", false);
		steps += given != last;
		last = given;
	}
	EXPECT_THAT("only a few steps", steps == 6);
	EXPECT(agent_snapshot_operations(0) == 0 && agent_snapshot_operations(1) == 512);
	EXPECT(agent_snapshot_past(0) == 0 && agent_snapshot_past(1) == 1024 &&
	       agent_snapshot_past(4096) == 4096 && agent_snapshot_past(4097) == 16384);
	EXPECT(agent_snapshot_operations(4096) == 4096 && agent_snapshot_operations(4097) == 20000);
}

/* Is the counter of the cgroup of process 42, which is of another job, in the snapshot? */
static bool shows_others(struct agent_look *look, const struct agent_snapshot_wanted *wanted)
{
	struct sink sink;
	bool is_there;

	sink_init_memory(&sink);
	agent_snapshot_write(&sink, look, "node", wanted);
	EXPECT(memmem(sink.bytes, sink.used, "memory_available", 16) != NULL);
	is_there = memmem(sink.bytes, sink.used, "process_throttled_us 42", 23) != NULL;
	sink_release(&sink);
	return is_there;
}

static void facts_of_other_jobs_are_not_shown(void)
{
	struct agent_snapshot_wanted wanted = { .operations = 0 };
	struct cli_host_watch host = { .facts.begin_ns = 0 };
	struct agent_look look = { .host = &host };

	host_facts_init(&host.facts);
	host_facts_take_line(&host.facts, "time 1699999000 1700000000", 1);
	host_facts_take_line(&host.facts, "series memory_available - 250 1700000000 1700000000:250",
			     1);
	host_facts_take_line(
		&host.facts,
		"series process_throttled_us 42 7 1700000000 1699999000:0 1699999900:7", 1);
	EXPECT_THAT("a snapshot of all has the cgroups of all", shows_others(&look, &wanted));
	wanted.has_job = true;
	text_copy(wanted.job, sizeof(wanted.job), "mine");
	EXPECT_THAT("one of a job has none of other jobs", !shows_others(&look, &wanted));
	host_facts_release(&host.facts);
}

int main(void)
{
	facts_of_other_jobs_are_not_shown();
	a_tenth_of_the_time();
	who_comes_seldom_is_always_served();
	time_gives_back();
	operations_come_in_steps();
	return tap_done();
}
