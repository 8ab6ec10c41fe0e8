/* What NCCL's RAS adds to verdicts: only facts about this job, and never less than without it. */
#include "doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "tests/tap.h"
#include "tests/support/expected_verdicts.h"

enum { RANKS = 3, PID = 1000, HASH = 0x77 };

static struct recording_process processes[RANKS];
static struct recording_comm comms[RANKS];
static struct recording_process *list[RANKS];
static struct recording recording = { .processes = list, .count = RANKS };

static void make_recording(void)
{
	for (int i = 0; i < RANKS; i++) {
		processes[i] = (struct recording_process){ .pid = PID + i,
							   .rank = i,
							   .life = RECORDING_ALIVE,
							   .comms = &comms[i],
							   .comm_count = 1 };
		text_copy(processes[i].host, sizeof(processes[i].host), "node1");
		text_copy(processes[i].job, sizeof(processes[i].job), "j7");
		comms[i].info = (struct comm_info){ .hash = HASH, .rank = i, .nranks = RANKS };
		list[i] = &processes[i];
	}
}

#define COMM(ranks, missing)                                                                       \
	"{\"nccl_version\":\"2.30.7\",\"communicators\":[{\"hash\":\"0x77\",\"size\":3,\"ranks\":" \
	"[" ranks "],\"missing_ranks\":[" missing "]}]}"
#define RANK(rank, pid, error, count)                                                           \
	"{\"rank\":" #rank ",\"host\":\"10.0.0.1\",\"pid\":" #pid                               \
	",\"status\":{\"async_error\":" #error "},\"collective_counts\":{\"AllReduce\":" #count \
	"}},"
#define GONE(rank, pid, is_dead)            \
	"{\"rank\":" #rank ",\"pid\":" #pid \
	",\"status\":{\"unresponsive\":true,\"considered_dead\":" #is_dead "}}"
#define CALM COMM(RANK(0, 1000, 0, 11) RANK(1, 1001, 0, 11) RANK(2, 1002, 0, 11), "")

/* All verdicts, below what RAS said. */
static struct expected_text found;

static void ask(struct verdicts *verdicts, const char *text)
{
	struct ras_status ras;
	char heading[1001];

	ras_status_init(&ras);
	if (ras_status_read(&ras, text, strlen(text)) != OK ||
	    ras_find(verdicts, &recording, &ras, "RAS") != OK)
		abort();
	ras_status_release(&ras);
	text_copy(heading, sizeof(heading), text);
	expected_put_verdicts(&found, heading, verdicts);
}

static struct verdicts hang_with(enum verdict_class class, int rank, const char *text)
{
	struct verdicts verdicts;
	struct verdict *hang;

	verdicts_init(&verdicts);
	hang = verdicts_add(&verdicts, class, VERDICT_ERROR);
	hang->rank = rank;
	hang->pid = PID + rank;
	hang->comm_hash = HASH;
	hang->confidence = 0.8;
	text_copy(hang->host, sizeof(hang->host), "node1");
	ask(&verdicts, text);
	return verdicts;
}

static bool has_line(const struct verdict_lines *lines, const char *part)
{
	for (size_t i = 0; i < lines->count; i++)
		if (strstr(lines->list[i], part) != NULL)
			return true;
	return false;
}

static void next_to_a_hang(void)
{
	struct verdicts verdicts =
		hang_with(VERDICT_NEVER_ISSUED, 2,
			  COMM(RANK(0, 1000, 0, 11) RANK(1, 1001, 0, 11) RANK(2, 1002, 0, 10), ""));

	EXPECT_THAT("a rank that is behind in both is more certain",
		    has_line(&verdicts.list[0].evidence, "it has launched 10 AllReduce") &&
			    verdicts.list[0].confidence > 0.89 && verdicts.count == 1);
	verdicts_release(&verdicts);

	verdicts = hang_with(VERDICT_NEVER_ISSUED, 2, CALM);
	EXPECT_THAT("RAS saying OK changes nothing", verdicts.list[0].evidence.count == 0 &&
							     verdicts.list[0].confidence == 0.8 &&
							     verdicts.count == 1);
	verdicts_release(&verdicts);

	verdicts = hang_with(VERDICT_PROCESS_DEAD, 1,
			     COMM(RANK(0, 1000, 6, 11) RANK(2, 1002, 6, 11), GONE(1, 1001, true)));
	EXPECT_THAT("a dead process does not answer, its peers have errors",
		    has_line(&verdicts.list[0].evidence, "has not answered for a minute") &&
			    has_line(&verdicts.list[0].evidence,
				     "these ranks have an asynchronous error: 0, 2; the first: "
				     "remote process error") &&
			    verdicts.list[0].confidence > 0.89 && verdicts.count == 1);
	verdicts_release(&verdicts);

	verdicts = hang_with(VERDICT_NEVER_ISSUED, 2,
			     COMM(RANK(0, 1000, 0, 11) RANK(2, 1002, 0, 11), GONE(1, 1001, false)));
	EXPECT_THAT("another rank that does not answer is evidence, and nobody is more certain",
		    has_line(&verdicts.list[0].evidence, "these ranks do not answer: 1") &&
			    verdicts.list[0].confidence == 0.8);
	verdicts_release(&verdicts);
}

static struct verdicts alone(const char *text)
{
	struct verdicts verdicts;

	verdicts_init(&verdicts);
	ask(&verdicts, text);
	return verdicts;
}

static void without_a_hang(void)
{
	struct verdicts verdicts =
		alone(COMM(RANK(0, 1000, 0, 11) RANK(1, 1001, 3, 11), GONE(2, 1002, false)));

	EXPECT_EQUAL(verdicts.count, 2);
	EXPECT_THAT("a rank does not answer",
		    strcmp(verdicts.list[0].title, "rank 2 does not answer NCCL's RAS") == 0 &&
			    verdicts.list[0].rank == 2 && verdicts.list[0].confidence <= 0.5);
	EXPECT_THAT("and another has an error",
		    strstr(verdicts.list[1].title, "on rank 1: internal error") != NULL &&
			    verdicts.list[1].severity == VERDICT_WARNING);
	verdicts_release(&verdicts);

	verdicts = alone(COMM(RANK(0, 1000, 0, 11) RANK(1, 1001, 0, 9) RANK(2, 1002, 0, 11), ""));
	EXPECT_THAT("counts differ while a job runs: no finding", verdicts.count == 0);
	verdicts_release(&verdicts);

	processes[2].life = RECORDING_ENDED;
	verdicts = alone(COMM(RANK(0, 1000, 0, 11) RANK(1, 1001, 0, 11), GONE(2, 1002, true)));
	EXPECT_THAT("nor is a rank that ended one", verdicts.count == 0);
	verdicts_release(&verdicts);
	processes[2].life = RECORDING_ALIVE;
}

static void answers_of_others(void)
{
	static const char *const strangers[] = {
		/* Another process id. */
		COMM(RANK(0, 1000, 6, 11) RANK(1, 4711, 6, 11), GONE(2, 1002, true)),
		/* No process id at all. */
		COMM(RANK(0, 0, 6, 11), GONE(2, 0, true)),
		/* Another communicator. */
		"{\"communicators\":[{\"hash\":\"0x78\",\"size\":3,\"ranks\":["
		"{\"rank\":0,\"pid\":1000,\"status\":{\"async_error\":6}}]}]}",
		/* Another size. */
		"{\"communicators\":[{\"hash\":\"0x77\",\"size\":4,\"ranks\":["
		"{\"rank\":0,\"pid\":1000,\"status\":{\"async_error\":6}}]}]}",
	};

	for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++) {
		struct verdicts verdicts = hang_with(VERDICT_NEVER_ISSUED, 2, strangers[i]);

		EXPECT_THAT("the answer of another job is not used, and that is reported",
			    verdicts.count == 2 && verdicts.list[0].evidence.count == 0 &&
				    verdicts.list[0].confidence == 0.8 &&
				    verdicts.list[1].class == VERDICT_BLIND &&
				    strcmp(verdicts.list[1].rule, "ras") == 0 &&
				    !verdicts.list[1].is_unjudged);
		verdicts_release(&verdicts);
	}
}

/* Ranks of two communicators of 20, of which one process is in both and is recorded. Others are known to RAS only. */
static void ranks_without_recordings(void)
{
	static struct recording_comm two[2];
	struct verdicts verdicts;
	char text[8192];

	for (int i = 0; i < RANKS; i++)
		comms[i].info.nranks = 20;
	two[0] = comms[0];
	two[1].info = (struct comm_info){ .hash = 0x78, .rank = 5, .nranks = 20 };
	processes[0].comms = two;
	processes[0].comm_count = 2;
	processes[2].rank = -1;
	for (int silent = 1; silent < 20; silent += silent == 1 ? 8 : 9) {
		text[0] = '\0';
		text_append(text, sizeof(text), "{\"communicators\":[");
		for (int c = 0; c < 2; c++) {
			text_append(text, sizeof(text),
				    "%s{\"hash\":\"0x%x\",\"size\":20,\"ranks\":[{\"rank\":%d,"
				    "\"pid\":1000,\"status\":{\"async_error\":2}},"
				    "{\"rank\":%d,\"pid\":3000,\"host\":\"n3\",\"status\":"
				    "{\"async_error\":3}}],\"missing_ranks\":[",
				    c == 0 ? "" : ",", HASH + c, c == 0 ? 0 : 5, c == 0 ? 19 : 18);
			for (int i = 0; i < silent; i++)
				text_append(text, sizeof(text),
					    "%s{\"rank\":%d,\"pid\":%d,\"host\":\"%s\",\"status\":"
					    "{\"unresponsive\":true,\"considered_dead\":%s}}",
					    i == 0 ? "" : ",", i + 2 + c,
					    i == 0 && c == 0 ? 1002
					    : i == 3	     ? 0
							     : 2000 + i,
					    i == 2	       ? ""
					    : i == 4 && c == 1 ? "elsewhere"
							       : "n1",
					    i % 4 == 1 ? "true" : "false");
			text_append(text, sizeof(text), "]}");
		}
		text_append(text, sizeof(text), "]}");
		verdicts = alone(text);
		EXPECT(verdicts.count == (silent == 1 ? 2 : 3));
		verdicts_release(&verdicts);
		/* The hang is of a process that RAS says nothing about. */
		verdicts = hang_with(VERDICT_NEVER_ISSUED, 1, text);
		verdicts_release(&verdicts);
	}
	make_recording();
}

/* The rank that is blamed, in every way; twice in the answer, which counts once. */
static void blamed(void)
{
	static const struct {
		enum verdict_class class;
		const char *text;
	} cases[] = {
		{ VERDICT_PROCESS_STOPPED, COMM(RANK(0, 1000, 0, 11), GONE(1, 1001, false)) },
		{ VERDICT_NEVER_ISSUED, COMM(RANK(0, 1000, 0, 11), GONE(1, 1001, false)) },
		{ VERDICT_PROCESS_DEAD,
		  COMM(RANK(0, 1000, 0, 11), GONE(1, 1001, true) "," GONE(1, 1001, true)) },
		{ VERDICT_NEVER_ISSUED,
		  COMM(RANK(0, 1000, 0, 11) RANK(1, 1001, 2, 9) RANK(1, 1001, 2, 9), "") },
		{ VERDICT_DEADLOCK, COMM(RANK(0, 1000, 0, 11) RANK(1, 1001, 0, 9), "") },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct verdicts verdicts = hang_with(cases[i].class, 1, cases[i].text);

		EXPECT(verdicts.count == 1 && verdicts.list[0].evidence.count > 0);
		verdicts_release(&verdicts);
	}
}

/* For one job of several: only its processes and its hangs count. */
static void one_job(void)
{
	static const char *const jobs[] = { "j7", "j8", NULL };
	static const char answer[] =
		COMM(RANK(0, 1000, 2, 11) RANK(1, 1001, 0, 9), GONE(2, 1002, true));

	for (int earlier = 0; earlier < 2; earlier++)
		for (int i = 0; i < 3; i++) {
			struct verdicts verdicts;
			struct ras_status ras;
			bool is_ours = i != 0;

			verdicts_init(&verdicts);
			verdicts_add(&verdicts, VERDICT_SLOW_RANK, VERDICT_ERROR)->pid = PID;
			for (int job = 0; job < 4; job++) {
				struct verdict *hang = verdicts_add(&verdicts, VERDICT_NEVER_ISSUED,
								    VERDICT_ERROR);

				hang->rank = job % 2 + 1;
				hang->pid = PID + hang->rank;
				hang->comm_hash = job == 3 ? HASH + 1 : HASH;
				hang->confidence = 0.8;
				text_copy(hang->host, sizeof(hang->host),
					  job == 2 ? "node2" : "node1");
				text_copy(hang->job, sizeof(hang->job), job == 0 ? "j8" : "j7");
			}
			for (int p = 0; p < RANKS; p++)
				processes[p].is_earlier_run = earlier;
			ras_status_init(&ras);
			if (ras_status_read(&ras, answer, strlen(answer)) != OK)
				abort();
			EXPECT_EQUAL(ras_support(&verdicts, &recording, &ras, jobs[i], &is_ours),
				     OK);
			EXPECT_THAT("whether it is the answer of this job",
				    is_ours == (i != 1 && !earlier));
			expected_put_verdicts(&found, jobs[i] ? jobs[i] : "all jobs", &verdicts);
			ras_status_release(&ras);
			verdicts_release(&verdicts);
		}
	make_recording();
}

/* A recording without communicators, and one whose ranks are not known yet: nobody can be a stranger. */
static void no_places(void)
{
	struct verdicts verdicts;

	for (int i = 0; i < RANKS; i++)
		comms[i].info.rank = -1;
	verdicts = alone(CALM);
	EXPECT(verdicts.count == 0);
	verdicts_release(&verdicts);
	make_recording();
	for (int i = 0; i < RANKS; i++)
		comms[i].info.hash = 0;
	verdicts = alone(CALM);
	EXPECT(verdicts.count == 0);
	verdicts_release(&verdicts);
	make_recording();
	/* Sizes that are not known contradict nothing. */
	for (int i = 0; i < RANKS; i++)
		comms[i].info.nranks = 0;
	verdicts = alone(COMM(RANK(0, 1000, 2, 11), ""));
	EXPECT(verdicts.count == 1);
	verdicts_release(&verdicts);
	make_recording();
	verdicts = alone("{\"communicators\":[]}");
	EXPECT_THAT("an answer without ranks is nobody's", verdicts.count == 0);
	verdicts_release(&verdicts);
}

int main(void)
{
	make_recording();
	next_to_a_hang();
	without_a_hang();
	answers_of_others();
	ranks_without_recordings();
	blamed();
	one_job();
	no_places();
	expected_compare(&found, "tests/unit/doctor/expected/ras_find.txt");
	return tap_done();
}
