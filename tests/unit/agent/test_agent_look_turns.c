/*
 * When the agent scans, judges, reads facts of its host and asks for kernel events, and what it logs. What takes time or
 * needs processes is played; the files are included for that.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "common/clock.h"
#include "doctor/doctor.h"

static uint64_t play_clock(clockid_t clock);
static int play_log(enum serve_level level, const char *format, ...) PRINTF_LIKE(2, 3);
static enum status play_live_look(struct live *live, struct recording *recording, uint64_t now_ns,
				  uint64_t wall_ns);
static void play_look_begin(struct watch *watch, unsigned int flags, uint64_t now_ns);
static enum status play_look_step(struct watch *watch, uint64_t effort, bool *is_over);
static bool play_is_searching(const struct watch *watch);
static bool play_heed(struct watch *watch);
static bool play_judge_begin(struct live *live, uint64_t now_ns, struct live_judgement *judgement);
static void play_judge_compare(const struct live *live, struct live_judgement *judgement);
static void play_judge_end(struct live *live, struct live_judgement *judgement, uint64_t cpu_ns);
static bool play_host_take(struct cli_host *host, struct host_facts *facts, uint64_t now_ns,
			   uint64_t wall_ns);
static void play_host_read(struct cli_host_watch *watch, const struct recording *recording,
			   bool has_traces, uint64_t now_ns);
static void play_support(struct verdicts *verdicts, const struct job *job,
			 const struct host_facts *own, bool has_notes);
static void play_log_read(struct host_log *log, struct host_facts *facts, uint64_t wall_ns);
static enum live_doubt play_doubt(const struct live *live, uint32_t comm, double *figure);
static void play_ask(struct recording_ask *ask, const struct recording_process *process,
		     uint32_t seconds);
static bool play_answered(struct recording_ask *ask, const struct recording_process *process);

#define clock_system_ns play_clock
#define serve_log play_log
#define live_look play_live_look
#define watch_look_begin play_look_begin
#define watch_look_step play_look_step
#define watch_is_searching play_is_searching
#define watch_heed play_heed
#define live_judge_begin play_judge_begin
#define live_judge_compare play_judge_compare
#define live_judge_end play_judge_end
#define cli_host_take play_host_take
#define cli_host_watch_read play_host_read
#define host_support play_support
#define host_log_read play_log_read
#define live_doubt(live, comm, figure) play_doubt(live, comm, figure)
#define recording_ask_times play_ask
#define recording_ask_answered play_answered
#include "agent/agent_judge.c"
#include "agent/agent_kernel.c"
#include "agent/agent_look.c"
#include "agent/agent_textfile.c"
#undef live_doubt

#include <poll.h>

#include "tests/support/scratch.h"
#include "tests/tap.h"

#define SECOND SECOND_NS
#define BEGIN (1000 * SECOND)

/* ---- the stage -------------------------------------------------------------------------------- */

static struct {
	uint64_t now_ns, cpu_ns, step_cpu_ns;
	enum status read, thought;
	int steps; /* until everything is read */
	bool is_searching, is_news;
	bool wants_judgement, is_cut;
	uint64_t judged_at_ns, ended_cpu_ns;
	struct live_judgement ended;
	int host_reads, host_supports, log_reads, host_pid;
	bool is_host_done;
	enum live_doubt doubt;
	int asked;
	bool is_answered;
	enum recording_answer answer;
} play;
static char said[2000];
static struct agent_look look;
static struct watch_settings settings;
static struct live_limits limits;

static uint64_t play_clock(clockid_t clock)
{
	if (clock != CLOCK_PROCESS_CPUTIME_ID)
		return play.now_ns;
	play.cpu_ns += play.step_cpu_ns;
	return play.cpu_ns;
}

static int play_log(enum serve_level level, const char *format, ...)
{
	char line[600];
	va_list list;

	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	text_append(said, sizeof(said), "%s\n", line);
	return level == SERVE_ERROR ? 1 : 0;
}

/* What was logged since. */
static bool is_said(const char *wanted)
{
	bool is_same = strcmp(said, wanted) == 0;

	if (!is_same)
		printf("# got %s# wanted %s", said, wanted);
	said[0] = '\0';
	return is_same;
}

static enum status play_live_look(struct live *live, struct recording *recording, uint64_t now_ns,
				  uint64_t wall_ns)
{
	(void)now_ns, (void)wall_ns;
	live->job.recording = recording;
	return play.thought;
}

static void play_look_begin(struct watch *watch, unsigned int flags, uint64_t now_ns)
{
	(void)flags, (void)now_ns;
	watch->looks++;
}

static enum status play_look_step(struct watch *watch, uint64_t effort, bool *is_over)
{
	(void)watch;
	*is_over = effort == 4 << 20 && --play.steps <= 0;
	return play.read;
}

static bool play_is_searching(const struct watch *watch)
{
	(void)watch;
	return play.is_searching;
}

static bool play_heed(struct watch *watch)
{
	(void)watch;
	return play.is_news;
}

static bool play_judge_begin(struct live *live, uint64_t now_ns, struct live_judgement *judgement)
{
	(void)live;
	play.judged_at_ns = now_ns;
	*judgement = (struct live_judgement){ .key = 7, .monotonic_ns = now_ns };
	verdicts_init(&judgement->found);
	return play.wants_judgement;
}

/* In the child. */
static void play_judge_compare(const struct live *live, struct live_judgement *judgement)
{
	struct verdict *verdict;

	(void)live;
	judgement->is_judged = true;
	verdict = verdicts_add(&judgement->found, VERDICT_SLOW_RANK, VERDICT_WARNING);
	verdict_title(verdict, "one");
	verdict_evidence(verdict, "first line");
	verdict_evidence(verdict, "second line");
	verdict_advice(verdict, "do this");
	verdict = verdicts_add(&judgement->found, VERDICT_SLOW_LINK, VERDICT_ERROR);
	verdict_title(verdict, "two");
	verdict_missing(verdict, "a caveat");
	if (play.is_cut)
		abort();
}

static void play_judge_end(struct live *live, struct live_judgement *judgement, uint64_t cpu_ns)
{
	(void)live;
	play.ended_cpu_ns = cpu_ns;
	play.ended = *judgement;
}

static bool play_host_take(struct cli_host *host, struct host_facts *facts, uint64_t now_ns,
			   uint64_t wall_ns)
{
	(void)facts, (void)now_ns, (void)wall_ns;
	if (play.is_host_done)
		host->child.begun_ns = 0;
	return play.is_host_done;
}

static void play_host_read(struct cli_host_watch *watch, const struct recording *recording,
			   bool has_traces, uint64_t now_ns)
{
	(void)recording, (void)has_traces, (void)now_ns;
	play.host_reads++;
	watch->reading.child.begun_ns = (uint64_t)play.host_pid;
}

static void play_support(struct verdicts *verdicts, const struct job *job,
			 const struct host_facts *own, bool has_notes)
{
	(void)verdicts, (void)job, (void)own, (void)has_notes;
	play.host_supports++;
}

static void play_log_read(struct host_log *log, struct host_facts *facts, uint64_t wall_ns)
{
	(void)log, (void)facts, (void)wall_ns;
	play.log_reads++;
}

static enum live_doubt play_doubt(const struct live *live, uint32_t comm, double *figure)
{
	(void)live;
	*figure = comm + 2.5;
	return play.doubt;
}

static void play_ask(struct recording_ask *ask, const struct recording_process *process,
		     uint32_t seconds)
{
	(void)process;
	play.asked++;
	*ask = (struct recording_ask){ .request = seconds, .answer = RECORDING_PENDING };
}

static bool play_answered(struct recording_ask *ask, const struct recording_process *process)
{
	(void)process;
	if (!play.is_answered)
		return false;
	ask->answer = play.answer;
	text_copy(ask->reason, sizeof(ask->reason), "a reason");
	return true;
}

static void begin(void)
{
	static struct recording_process lone, *list[] = { &lone };

	memset(&play, 0, sizeof(play));
	play.now_ns = BEGIN;
	play.steps = 1;
	said[0] = '\0';
	settings = (struct watch_settings){ .directory = scratch_dir.path };
	EXPECT(agent_look_init(&look, &settings, &limits) == OK && look.start_wall_ns == BEGIN);
	/* Tests only count it. */
	look.watch.recording.processes = list;
}

static void end(void)
{
	look.watch.recording = (struct recording){ .count = 0 };
	look.watch.refused_count = 0;
	look.watch.refused = NULL;
	look.live.job.recording = NULL;
	verdicts_release(&look.live.verdicts);
	agent_look_release(&look);
}

/* A whole scan. */
static void scan(uint64_t now_ns)
{
	uint64_t number = look.number;

	look.next_ns = now_ns;
	play.steps = 1;
	play.now_ns = now_ns;
	while (look.number == number)
		if (!agent_look_step(&look, now_ns))
			abort();
}

/* ---- scans ------------------------------------------------------------------------------------ */

static void test_steps(void)
{
	begin();
	play.steps = 2;
	play.step_cpu_ns = MS_NS;
	look.next_ns = BEGIN + 1;
	EXPECT(!agent_look_step(&look, BEGIN) && !look.is_scanning);
	EXPECT(agent_look_step(&look, BEGIN + 1) && look.is_scanning && !look.is_read &&
	       look.begun_ns == BEGIN + 1 && look.next_ns == UINT64_MAX && look.watch.looks == 1);
	play.now_ns = BEGIN + 5;
	EXPECT(agent_look_step(&look, BEGIN + 3) && look.is_read && look.number == 0);
	EXPECT(agent_look_step(&look, BEGIN + 4) && !look.is_scanning && look.number == 1);
	EXPECT_THAT("a scan costs the time of its steps",
		    look.steps_ns == 3 * MS_NS && look.last_cost_ns == 3 * MS_NS &&
			    look.cost_ns == 0 && look.last_ns == BEGIN + 1);
	EXPECT_THAT("and lasts as long as they do", look.spent_ns == 2);
	EXPECT_THAT("without processes there is a pause of 10 s",
		    look.next_ns == BEGIN + 1 + 10 * SECOND);
	scan(BEGIN + 20 * SECOND);
	EXPECT_EQUAL(look.cost_ns, 2 * MS_NS);
	scan(BEGIN + 40 * SECOND);
	EXPECT(look.cost_ns == 2 * MS_NS && look.watch.looks == 3 && look.failures == 0);
	end();
}

static void test_pauses(void)
{
	static const struct {
		uint64_t cost_us, pause_ms;
	} cases[] = {
		{ 0, 1000 },	 { 4999, 1000 },  { 5000, 1000 },  { 5001, 1000 },
		{ 10000, 2000 }, { 19000, 3800 }, { 20000, 4000 }, { 21000, 4000 },
	};

	begin();
	look.watch.recording.count = 1;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		look.cost_ns = cases[i].cost_us * 1000;
		EXPECT_EQUAL(pause_of(&look, BEGIN) / MS_NS, cases[i].pause_ms);
		EXPECT_EQUAL(fair_pause(&look) / MS_NS, cases[i].pause_ms);
	}
	look.cost_ns = 0;
	play.is_searching = true;
	EXPECT_EQUAL(pause_of(&look, BEGIN), 100 * MS_NS);
	play.is_searching = false;
	look.watch.recording.count = 0;
	look.busy_until_ns = BEGIN + 1;
	EXPECT_EQUAL(pause_of(&look, BEGIN), SECOND);
	EXPECT_EQUAL(pause_of(&look, BEGIN + 1), 10 * SECOND);
	note_cost(&look, 7);
	note_cost(&look, 5);
	EXPECT(look.cost_ns == 5 && look.last_cost_ns == 5);
	note_cost(&look, 9);
	EXPECT_THAT("the cheaper one of two", look.cost_ns == 5 && look.last_cost_ns == 9);
	end();
}

static void test_fresh(void)
{
	begin();
	look.next_ns = 7;
	EXPECT(!agent_look_fresh(&look, BEGIN) && look.next_ns == BEGIN);
	look.last_ns = BEGIN;
	look.next_ns = 7;
	EXPECT(agent_look_fresh(&look, BEGIN + SECOND - 1) && look.next_ns == 7);
	EXPECT(!agent_look_fresh(&look, BEGIN + SECOND) && look.next_ns == BEGIN + SECOND);
	look.is_scanning = true;
	look.next_ns = 7;
	EXPECT(agent_look_fresh(&look, BEGIN + 2 * SECOND - 1));
	EXPECT(!agent_look_fresh(&look, BEGIN + 2 * SECOND) && look.next_ns == 7);
	look.is_scanning = false;
	end();
}

static void test_heed(void)
{
	begin();
	look.last_ns = BEGIN;
	look.next_ns = BEGIN + 10 * SECOND;
	agent_look_heed(&look, BEGIN + 5);
	EXPECT_THAT("nothing new", look.next_ns == BEGIN + 10 * SECOND && look.busy_until_ns == 0);
	play.is_news = true;
	agent_look_heed(&look, BEGIN + 5);
	EXPECT_THAT("something new is looked at within a second",
		    look.next_ns == BEGIN + SECOND && look.busy_until_ns == BEGIN + 5 + 4 * SECOND);
	look.next_ns = BEGIN + 3;
	agent_look_heed(&look, BEGIN + 5);
	EXPECT_EQUAL(look.next_ns, BEGIN + 3);
	look.is_scanning = true;
	look.begun_ns = BEGIN + 7;
	look.next_ns = UINT64_MAX;
	agent_look_heed(&look, BEGIN + 8);
	EXPECT_EQUAL(look.next_ns, BEGIN + 7 + SECOND);
	look.is_read = true;
	look.watch.recording.count = 1;
	look.cost_ns = look.last_cost_ns = 20 * MS_NS;
	play.step_cpu_ns = 20 * MS_NS;
	agent_look_step(&look, BEGIN + 9);
	EXPECT_THAT("what came during a scan makes the next one due earlier",
		    !look.is_scanning && look.next_ns == BEGIN + 7 + SECOND);
	end();
}

static void test_failures(void)
{
	begin();
	scan(BEGIN);
	EXPECT(is_said("") && look.status == OK);
	play.read = ERR_FORMAT;
	scan(BEGIN + SECOND);
	EXPECT(look.status == ERR_FORMAT && look.failures == 1);
	{
		char wanted[100];

		text_format(wanted, sizeof(wanted), "cannot scan processes: %s\n",
			    status_text(ERR_FORMAT));
		EXPECT(is_said(wanted));
	}
	scan(BEGIN + 2 * SECOND);
	EXPECT(is_said("") && look.failures == 2);
	play.read = OK;
	scan(BEGIN + 3 * SECOND);
	EXPECT(is_said("scanning processes works again\n") && look.failures == 2);
	play.thought = ERR_SYSTEM;
	errno = ENOMEM;
	scan(BEGIN + 4 * SECOND);
	EXPECT(is_said("cannot scan processes: Cannot allocate memory\n") &&
	       look.status == ERR_SYSTEM && look.live.job.recording == NULL);
	end();
}

static void test_refused(void)
{
	struct watch_refused refused[3] = { { .path = "/a", .why = "old" },
					    { .path = "/b", .why = "new" },
					    { .path = "/c", .why = "odd" } };

	begin();
	look.watch.refused = refused;
	look.watch.refused_count = 1;
	scan(BEGIN);
	EXPECT(is_said("cannot read /a: old\n"));
	look.watch.refused_count = 3;
	scan(BEGIN);
	EXPECT(is_said("cannot read /b: new; and 1 more files\n") && refused[2].is_told);
	scan(BEGIN);
	EXPECT(is_said(""));
	end();
}

static void test_left_out(void)
{
	struct recording_left_out list[AGENT_LOOK_TOLD + 1] = { { 5, 2, 1, false },
								{ 7, 3, 0, true } };

	begin();
	look.watch.recording.left_out = list;
	look.watch.recording.left_out_count = 1;
	scan(BEGIN);
	EXPECT(is_said("user 5 has more than the agent follows: 2 processes and the rest of 1 "
		       "directories are left out\n"));
	look.watch.recording.left_out_count = 2;
	scan(BEGIN);
	EXPECT(is_said("user 7: a file or process does not answer, and is not asked again for a "
		       "while\n"
		       "user 7 has more than the agent follows: 3 processes and the rest of 0 "
		       "directories are left out\n") &&
	       look.told_count == 2);
	list[0] = list[1];
	look.watch.recording.left_out_count = 1;
	scan(BEGIN);
	EXPECT(is_said("") && look.told_count == 1);
	list[0].owner = 5;
	scan(BEGIN);
	EXPECT_THAT("a user that was fine meanwhile is logged again",
		    strncmp(said, "user 5: ", 8) == 0);
	for (uint32_t i = 0; i < ARRAY_LENGTH(list); i++)
		list[i].owner = 100 + i;
	look.watch.recording.left_out_count = ARRAY_LENGTH(list);
	scan(BEGIN);
	EXPECT_EQUAL(look.told_count, AGENT_LOOK_TOLD);
	end();
}

/* ---- judging ---------------------------------------------------------------------------------- */

static void wait_for_judge(void)
{
	bool is_due = true;

	while (look.judge.begun_ns != 0) {
		uint64_t next_ns = agent_look_judge(&look, BEGIN + 9);

		is_due &= next_ns == (look.judge.begun_ns ? BEGIN + 9 + 100 * MS_NS : UINT64_MAX);
		poll(NULL, 0, 1);
	}
	EXPECT_THAT("the child is looked at ten times per second", is_due);
}

static void test_judge(void)
{
	begin();
	EXPECT_EQUAL(agent_look_judge(&look, BEGIN), UINT64_MAX);
	scan(BEGIN + 3);
	EXPECT(agent_look_judge(&look, BEGIN + 5) == UINT64_MAX && look.judged_look == 1 &&
	       play.judged_at_ns == BEGIN + 3 && look.judge.begun_ns == 0);
	play.wants_judgement = true;
	EXPECT_EQUAL(agent_look_judge(&look, BEGIN + 5), UINT64_MAX);
	look.status = ERR_SYSTEM;
	look.number = 2;
	EXPECT_EQUAL(agent_look_judge(&look, BEGIN + 5), UINT64_MAX);
	look.status = OK;
	EXPECT_EQUAL(agent_look_judge(&look, BEGIN + 5), BEGIN + 5 + 100 * MS_NS);
	EXPECT(look.judge.until_ns == BEGIN + 5 + 60 * SECOND);
	wait_for_judge();
	EXPECT(look.judgements == 1 && play.ended.is_judged && play.ended.key == 7 &&
	       play.ended.status == OK && look.judged_ns == play.ended_cpu_ns);
	if (EXPECT(play.ended.found.count == 2)) {
		const struct verdict *one = &play.ended.found.list[0];
		const struct verdict *two = &play.ended.found.list[1];

		EXPECT(one->class == VERDICT_SLOW_RANK && strcmp(one->title, "one") == 0 &&
		       one->evidence.count == 2 && one->missing.count == 0 &&
		       one->advice.count == 1 && strcmp(one->evidence.list[0], "first line") == 0 &&
		       strcmp(one->evidence.list[1], "second line") == 0 &&
		       strcmp(one->advice.list[0], "do this") == 0);
		EXPECT(two->class == VERDICT_SLOW_LINK && strcmp(two->title, "two") == 0 &&
		       two->missing.count == 1 && strcmp(two->missing.list[0], "a caveat") == 0);
	}
	verdicts_release(&play.ended.found);
	play.is_cut = true;
	look.number = 3;
	said[0] = '\0';
	agent_look_judge(&look, BEGIN + 5);
	wait_for_judge();
	EXPECT(look.judgements == 2 && play.ended.status == ERR_SYSTEM &&
	       strncmp(said, "cannot judge the speed of a job: ", 33) == 0);
	verdicts_release(&play.ended.found);
	end();
}

/* Output that ends too early, at each place. */
static void test_cut_output(void)
{
	struct live_judgement made = { .key = 9, .found = { .count = 1 } }, judgement;
	struct verdict verdict = { .evidence = { .count = 1 }, .advice = { .count = 1 } };
	static char bytes[sizeof(made) + sizeof(verdict) + 4], copy[sizeof(bytes)];
	struct child child = { .bytes = copy };
	size_t good = 0;

	memcpy(bytes, &made, sizeof(made));
	memcpy(bytes + sizeof(made), &verdict, sizeof(verdict));
	memcpy(bytes + sizeof(made) + sizeof(verdict), "a\0b", 4);
	for (size_t used = 0; used <= sizeof(bytes); used++) {
		memcpy(copy, bytes, used);
		child.used = used;
		verdicts_init(&judgement.found);
		good += take_judgement(&judgement, &child);
		if (used == sizeof(bytes))
			EXPECT(judgement.key == 9 && judgement.found.count == 1 &&
			       strcmp(judgement.found.list[0].advice.list[0], "b") == 0);
		verdicts_release(&judgement.found);
	}
	EXPECT_EQUAL(good, 1);
	child.code = 1;
	verdicts_init(&judgement.found);
	EXPECT(!take_judgement(&judgement, &child));
	verdicts_release(&judgement.found);
	{
		char *list[VERDICT_LINES_MAX], text[VERDICT_LINES_MAX + 1] = "";
		struct rest rest = { text, text + sizeof(text) };
		struct verdict_lines lines = { .count = VERDICT_LINES_MAX };

		EXPECT(take_lines(&rest, &lines, list) && rest.at == text + VERDICT_LINES_MAX);
		rest.at = text;
		lines.count++;
		EXPECT(!take_lines(&rest, &lines, list));
	}
}

/* ---- facts of the host ------------------------------------------------------------------------ */

static void test_host(void)
{
	static struct cli_host_watch host;

	begin();
	EXPECT_EQUAL(agent_look_host(&look, BEGIN), UINT64_MAX);
	look.host = &host;
	EXPECT_EQUAL(agent_look_host(&look, BEGIN), UINT64_MAX);
	look.watch.recording.count = 1;
	look.next_host_ns = BEGIN + 1;
	EXPECT_EQUAL(agent_look_host(&look, BEGIN), BEGIN + 1);
	EXPECT(agent_look_host(&look, BEGIN + 1) == BEGIN + 1 + 30 * SECOND &&
	       play.host_reads == 1);
	play.host_pid = 5;
	look.next_host_ns = BEGIN + 2;
	EXPECT_EQUAL(agent_look_host(&look, BEGIN + 2), BEGIN + 2 + 100 * MS_NS);
	EXPECT_EQUAL(agent_look_host(&look, BEGIN + 3), BEGIN + 3 + 100 * MS_NS);
	EXPECT_EQUAL(play.host_reads, 2);
	play.is_host_done = true;
	EXPECT_EQUAL(agent_look_host(&look, BEGIN + 4), BEGIN + 2 + 30 * SECOND);
	host.reading.child.begun_ns = 0;
	end();
}

static void test_support(void)
{
	static struct cli_host_watch host;

	begin();
	look.host = &host;
	scan(BEGIN);
	EXPECT(play.host_supports == 0 && look.next_host_ns == 0);
	verdicts_add(&look.live.verdicts, VERDICT_STUCK, VERDICT_ERROR);
	look.next_host_ns = 7;
	scan(BEGIN + SECOND);
	EXPECT_THAT("a new verdict wants new facts",
		    look.next_host_ns == BEGIN + SECOND && play.host_supports == 1 &&
			    play.log_reads == 1 && look.supported == 1);
	look.next_host_ns = 7;
	scan(BEGIN + 2 * SECOND);
	EXPECT_THAT("one that is known does not",
		    look.next_host_ns == 7 && play.host_supports == 2);
	play.read = ERR_SYSTEM;
	scan(BEGIN + 3 * SECOND);
	EXPECT(play.host_supports == 2);
	play.read = OK;
	look.host = NULL;
	scan(BEGIN + 4 * SECOND);
	EXPECT(play.host_supports == 2);
	end();
}

/* ---- the agent itself ------------------------------------------------------------------------- */

static void test_self(void)
{
	struct metrics_agent agent;
	uint64_t fds;

	begin();
	look.number = 3;
	look.spent_ns = 4;
	look.judgements = 5;
	look.judged_ns = 6;
	look.watch.unreadable = 8;
	look.watch.left_out = 9;
	agent_look_self(&look, &agent);
	EXPECT(agent.looks == 3 && agent.look_ns == 4 && agent.judgements == 5 &&
	       agent.judge_ns == 6 && agent.unreadable == 8 && agent.left_out == 9 &&
	       agent.start_wall_ns == BEGIN && strcmp(agent.version, RINGSIDE_VERSION) == 0);
	EXPECT_THAT("memory is counted in bytes",
		    agent.resident_bytes > 1 << 20 && agent.resident_bytes < UINT64_C(1) << 40 &&
			    agent.resident_bytes % 4096 == 0);
	fds = agent.open_fds;
	{
		int fd = dup(0);

		agent_look_self(&look, &agent);
		EXPECT_EQUAL(agent.open_fds, fds + 1);
		close(fd);
	}
	{
		struct timeval time = { 3, 5 };

		EXPECT_EQUAL(ns_of(&time), UINT64_C(3000005000));
	}
	look.watch.unreadable = look.watch.left_out = 0;
	end();
}

/* ---- names of files --------------------------------------------------------------------------- */

static void test_names(void)
{
	static const char *const ours[] = { "ringside-gpu-1-2.prom", "ringside-x-0-9.prom",
					    "ringside-gpu-90-09.prom.new",
					    "ringside-a-b-1-2.prom" };
	static const char *const others[] = { "ringside--1-2.prom",   "ringside-1-2.prom",
					      "ringside-x-1-2",	      "ringside-x-1-.prom",
					      "ringside-x--2.prom",   "ringside-x-a-2.prom",
					      "ringside-.prom",	      "ringside-x1-2.prom",
					      "ringside-.new",	      "ringside-",
					      "ringside-x-1-2.promx", "ringside-12.prom" };
	struct recording_comm comm = { .info = { .gpu = 0 } };
	struct recording_process process = { .pid = 4, .start_ticks = 5, .comms = &comm };
	char name[AGENT_TEXTFILE_NAME];

	for (size_t i = 0; i < ARRAY_LENGTH(ours); i++)
		EXPECT_THAT(ours[i], agent_textfile_is_ours(ours[i]));
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
		EXPECT_THAT(others[i], !agent_textfile_is_ours(others[i]));
	process.comm_count = 1;
	agent_textfile_name(&process, name);
	EXPECT(strcmp(name, "ringside-gpu0-4-5.prom") == 0);
	text_copy(comm.info.gpu_uuid, sizeof(comm.info.gpu_uuid), "azAZ09-`{@[/:_");
	agent_textfile_name(&process, name);
	EXPECT(strcmp(name, "ringside-azAZ09-_______-4-5.prom") == 0);
}

static void test_files(void)
{
	struct recording recording = { .count = 0 };
	struct live live = { .job = { .recording = &recording } };
	struct agent_textfile to;
	char path[120], other[120];
	FILE *file;

	begin();
	EXPECT(agent_textfile_open(&to, NULL, 7) == 0 && to.fd == -1 && to.directory == NULL);
	agent_textfile_close(&to);
	text_format(path, sizeof(path), "%s/files", scratch_dir.path);
	EXPECT(agent_textfile_open(&to, path, 7) != 0 &&
	       strncmp(said, "cannot write files in ", 22) == 0);
	mkdir(path, 0700);
	text_format(other, sizeof(other), "%s/files/ringside-x-1-2.prom", scratch_dir.path);
	file = fopen(other, "we");
	fclose(file);
	said[0] = '\0';
	EXPECT(agent_textfile_open(&to, path, 7) == 0 && access(other, F_OK) == -1 && to.fd != -1 &&
	       to.directory == path && is_said(""));
	file = fopen(other, "we");
	fclose(file);
	agent_textfile_write(&to, &live, BEGIN);
	EXPECT(to.next_ns == BEGIN + 7 && access(other, F_OK) == -1 && is_said("") &&
	       !to.is_failing && to.count == 0);
	{
		struct sink text;

		sink_init_memory(&text);
		sink_text(&text, "hello");
		EXPECT(put_file(&to, "ringside-x-3-4.prom", &text));
		EXPECT(faccessat(to.fd, "ringside-x-3-4.prom", F_OK, 0) == 0 &&
		       faccessat(to.fd, "ringside-x-3-4.prom.new", F_OK, 0) == -1);
		mkdirat(to.fd, "directory", 0700);
		EXPECT(!put_file(&to, "directory", &text) &&
		       faccessat(to.fd, "directory.new", F_OK, 0) == -1);
		unlinkat(to.fd, "directory", AT_REMOVEDIR);
		sink_release(&text);
	}
	to.is_failing = true;
	agent_textfile_write(&to, &live, BEGIN);
	text_format(other, sizeof(other), "writing files in %s works again\n", path);
	EXPECT(is_said(other) && !to.is_failing);
	agent_textfile_close(&to);
	EXPECT(to.fd == -1 && to.directory == NULL);
	end();
}

/* ---- kernel events ---------------------------------------------------------------------------- */

enum { PROCESSES = 4 };
static struct recording_process processes[PROCESSES], *process_list[PROCESSES];
static struct watch_process watched[PROCESSES];
static struct job_seat seats[6];
static struct job_comm comms[3];
static uint32_t comm_seats[3][6];
static struct job_group groups[3];
static struct watch watch;
static struct live live;
static struct agent_kernel kernel;

/* Four processes of "llm" in one communicator, of which the last has three ranks. */
static void kernel_begin(void)
{
	static struct region region;

	begin();
	watch = (struct watch){ .recording = { .processes = process_list, .count = PROCESSES },
				.processes = watched };
	for (uint32_t i = 0; i < PROCESSES; i++) {
		processes[i] = (struct recording_process){ .life = RECORDING_ALIVE,
							   .region = &region,
							   .region_path = "/r" };
		process_list[i] = &processes[i];
		watched[i] =
			(struct watch_process){ .file = { .owner = 5, .device = 3, .inode = i } };
	}
	for (uint32_t i = 0; i < 6; i++) {
		seats[i] = (struct job_seat){ .process = i < PROCESSES ? i : PROCESSES - 1 };
		comm_seats[0][i] = i;
	}
	memset(groups, 0, sizeof(groups));
	text_copy(groups[0].name, sizeof(groups[0].name), "llm");
	comms[0] = (struct job_comm){ .group = 0, .seats = comm_seats[0], .seat_count = 6 };
	text_copy(comms[0].label, sizeof(comms[0].label), "world");
	live = (struct live){ .job = { .comms = comms,
				       .comm_count = 1,
				       .seats = seats,
				       .groups = groups,
				       .recording = &watch.recording } };
	kernel = (struct agent_kernel){ .seconds = 30 };
	play.doubt = LIVE_DOUBT_HANG;
}

static void kernel_end(void)
{
	agent_kernel_release(&kernel);
	EXPECT_EQUAL(kernel.count, 0);
	end();
}

static void test_kernel(void)
{
	kernel_begin();
	kernel.seconds = 0;
	agent_kernel_look(&kernel, &live, &watch, BEGIN);
	EXPECT(play.asked == 0);
	kernel.seconds = 30;
	play.doubt = LIVE_NO_DOUBT;
	agent_kernel_look(&kernel, &live, &watch, BEGIN);
	EXPECT(play.asked == 0 && kernel.count == 0);
	play.doubt = LIVE_DOUBT_HANG;
	comms[0].seat_count = 0;
	agent_kernel_look(&kernel, &live, &watch, BEGIN);
	EXPECT(play.asked == 0);
	comms[0].seat_count = 6;
	agent_kernel_look(&kernel, &live, &watch, BEGIN);
	EXPECT_THAT("each process is asked once",
		    play.asked == 4 && kernel.count == 1 && kernel.jobs[0].count == 4 &&
			    kernel.jobs[0].open == 4 && kernel.jobs[0].asked_ns == BEGIN &&
			    kernel.jobs[0].user == 5 && kernel.totals[METRICS_KERNEL_ASKED] == 4);
	EXPECT(is_said("job llm: asked 4 processes to time every operation for 30 s: no calls on "
		       "world for 2 s, and its last calls are not timed\n"));
	agent_kernel_look(&kernel, &live, &watch, BEGIN + 1);
	EXPECT_THAT("no answer yet", play.asked == 4 && is_said("") && kernel.jobs[0].open == 4);
	watched[1].died_ns = 1;
	agent_kernel_look(&kernel, &live, &watch, BEGIN + 1);
	EXPECT(is_said("job llm: 1 of 4 processes cannot time every operation: failed: the process "
		       "ended before answering\n") &&
	       kernel.jobs[0].open == 3 && kernel.totals[METRICS_KERNEL_FAILED] == 1);
	play.is_answered = true;
	play.answer = RECORDING_REFUSED;
	watched[0].file.inode = 77;
	agent_kernel_look(&kernel, &live, &watch, BEGIN + 1);
	EXPECT(is_said("job llm: 3 of 4 processes cannot time every operation: refused: a "
		       "reason\n") &&
	       kernel.jobs[0].open == 0 && kernel.totals[METRICS_KERNEL_FAILED] == 2 &&
	       kernel.totals[METRICS_KERNEL_REFUSED] == 2 &&
	       kernel.totals[METRICS_KERNEL_GRANTED] == 0);
	agent_kernel_look(&kernel, &live, &watch, BEGIN + 600 * SECOND - 1);
	EXPECT(kernel.count == 1 && play.asked == 4 && is_said(""));
	play.doubt = LIVE_NO_DOUBT;
	agent_kernel_look(&kernel, &live, &watch, BEGIN + 600 * SECOND);
	EXPECT_THAT("after ten minutes a job may be asked again", kernel.count == 0);
	kernel_end();
}

static void test_kernel_granted(void)
{
	kernel_begin();
	play.doubt = LIVE_DOUBT_HANG + 1;
	groups[0].name[0] = '\0';
	watched[2].file.owner = 6;
	processes[3].life = RECORDING_KILLED;
	agent_kernel_look(&kernel, &live, &watch, BEGIN);
	EXPECT(is_said("an unnamed job: asked 2 processes to time every operation for 30 s: world "
		       "is "
		       "2.5x slower than before, and its calls are not timed\n") &&
	       play.asked == 2);
	play.is_answered = true;
	play.answer = RECORDING_GRANTED;
	agent_kernel_look(&kernel, &live, &watch, BEGIN);
	EXPECT(is_said("an unnamed job: 2 of 2 processes time every operation for 30 s\n") &&
	       kernel.totals[METRICS_KERNEL_GRANTED] == 2 && kernel.jobs[0].open == 0);
	/* An answer that does not come keeps the job. */
	kernel.jobs[0].open = 1;
	forget_old(&kernel, BEGIN + 700 * SECOND);
	EXPECT_EQUAL(kernel.count, 1);
	kernel_end();
}

static void test_kernel_jobs(void)
{
	kernel_begin();
	text_copy(groups[1].name, sizeof(groups[1].name), "other");
	comms[1] = comms[0];
	comms[1].group = 1;
	comms[2] = comms[0];
	comms[2].group = 2;
	text_copy(groups[2].name, sizeof(groups[2].name), "llm");
	live.job.comm_count = 3;
	processes[0].region = NULL;
	processes[1].region_path = NULL;
	agent_kernel_look(&kernel, &live, &watch, BEGIN);
	EXPECT_THAT("two jobs; a second communicator of one is not asked again",
		    kernel.count == 2 && play.asked == 4 && kernel.jobs[0].count == 2 &&
			    strcmp(kernel.jobs[1].name, "other") == 0);
	EXPECT(find_job(&kernel, "llm", 5) == &kernel.jobs[0] &&
	       find_job(&kernel, "llm", 6) == NULL && find_job(&kernel, "none", 5) == NULL);
	said[0] = '\0';
	for (int i = 0; i < 2; i++)
		free(kernel.jobs[i].asked);
	memset(kernel.jobs, 0, sizeof(kernel.jobs));
	kernel.count = AGENT_KERNEL_JOBS_MAX;
	for (size_t i = 0; i < AGENT_KERNEL_JOBS_MAX; i++)
		kernel.jobs[i].asked_ns = BEGIN;
	agent_kernel_look(&kernel, &live, &watch, BEGIN);
	EXPECT_THAT("64 jobs at most",
		    kernel.count == AGENT_KERNEL_JOBS_MAX && play.asked == 4 && is_said(""));
	kernel_end();
}

int main(void)
{
	scratch_make();
	test_steps();
	test_pauses();
	test_fresh();
	test_heed();
	test_failures();
	test_refused();
	test_left_out();
	test_judge();
	test_cut_output();
	test_host();
	test_support();
	test_self();
	test_names();
	test_files();
	test_kernel();
	test_kernel_granted();
	test_kernel_jobs();
	return tap_done();
}
