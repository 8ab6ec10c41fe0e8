/* Verdicts about ranks and links that stand out. */
#include <string.h>

#include "doctor/doctor.h"
#include "tests/tap.h"
#include "tests/support/expected_verdicts.h"
#include "tests/support/hand_ring.h"
#include "tests/support/poisoned_rest.h"

static struct hand_ring ring;
static struct verdicts verdicts;
static struct expected_text found;

static void tell_in(part_of of, const char *test)
{
	struct slow_options options = { 0 };

	hand_ring_play(&ring, of);
	poison_job(&ring.report.job);
	verdicts_init(&verdicts);
	if (slow_find(&verdicts, &ring.report, &options) != OK)
		abort();
	verdicts_sort(&verdicts);
	expected_put_verdicts(&found, test, &verdicts);
}

#define tell(of) tell_in(of, __func__)

static void over(void)
{
	verdicts_release(&verdicts);
	hand_ring_over(&ring);
}

static const struct verdict *told(enum verdict_class class, int64_t rank)
{
	for (size_t i = 0; i < verdicts.count; i++)
		if (verdicts.list[i].class == class && verdicts.list[i].rank == rank)
			return &verdicts.list[i];
	return NULL;
}

static struct part short_of_processor(int rank, int match)
{
	struct part part = calm();

	(void)match;
	part.wire_ns *= rank == SENDER ? 4 : 1;
	part.flush_ns *= rank == SENDER ? 8 : 1;
	return part;
}

static void test_short_of_processor(void)
{
	const struct verdict *verdict;

	tell(short_of_processor);
	verdict = told(VERDICT_SLOW_RANK, SENDER);
	EXPECT_THAT("a rank short of CPU is reported as such, not as a slow link",
		    verdicts.count == 1 && verdict != NULL &&
			    strstr(verdict->title, "short of CPU") != NULL);
	EXPECT_THAT("with the evidence that it is not the link",
		    verdict != NULL && verdict->evidence.count == 1 &&
			    strstr(verdict->evidence.list[0], "not the link") != NULL);
	over();
}

/* Its receiver arrives 20 ms late, and a window of sixteen transfers waits for it. */
static struct part late_receiver(int rank, int match)
{
	struct part part = calm();

	(void)match;
	part.duration_ns += rank != RECEIVER ? 20 * MS : 0;
	part.wire_ns += rank == SENDER ? 20 * MS * WINDOW * CONNECTIONS / STEPS : 0;
	return part;
}

static void test_late_receiver(void)
{
	tell(late_receiver);
	EXPECT_THAT("the straggler is reported, not the link to it",
		    verdicts.count == 1 && told(VERDICT_SLOW_RANK, RECEIVER) != NULL);
	over();
}

static struct part late_and_slow(int rank, int match)
{
	struct part part = late_receiver(rank, match);

	part.wire_ns += rank == SENDER ? 10 * MS : 0;
	return part;
}

static void test_late_and_slow(void)
{
	tell(late_and_slow);
	EXPECT_THAT("a slow link of a collective makes no rank late: both are reported",
		    verdicts.count == 2 && told(VERDICT_SLOW_RANK, RECEIVER) != NULL &&
			    told(VERDICT_SLOW_LINK, SENDER) != NULL);
	over();
}

static struct part stalls(int rank, int match)
{
	struct part part = calm();

	part.wire_ns *= rank == SENDER && match % 4 == 0 ? 100 : 1;
	return part;
}

/* Is there a command that ends like this? */
static bool has_advice(const struct verdict *verdict, const char *end)
{
	for (size_t i = 0; i < verdict->advice.count; i++) {
		const char *line = verdict->advice.list[i];
		const char *at = strstr(line, end);

		if (line[0] == '$' && at != NULL && strlen(at) == strlen(end))
			return true;
	}
	return false;
}

static void test_stalls(void)
{
	const struct verdict *verdict;

	tell(stalls);
	verdict = told(VERDICT_SLOW_LINK, SENDER);
	EXPECT_THAT("a link on which some sends stall is intermittent",
		    verdict != NULL && verdict->confidence < 0.8 && verdict->evidence.count > 1 &&
			    strstr(verdict->evidence.list[1], "intermittent") != NULL);
	EXPECT_THAT("its port is checked with the command that hangs and runbooks name",
		    verdict != NULL && has_advice(verdict, " ibstat"));
	over();
}

int main(void)
{
	test_short_of_processor();
	test_late_receiver();
	test_late_and_slow();
	test_stalls();
	expected_compare(&found, "tests/unit/doctor/expected/slow_straggler.txt");
	return tap_done();
}
