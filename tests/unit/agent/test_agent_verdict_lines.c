/*
 * What is logged and passed to the hook about verdicts and notices, as a whole. Log, hook and questions about hung jobs
 * are played; the file is included for that.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"

static int play_log(enum serve_level level, const char *format, ...) PRINTF_LIKE(2, 3);
static bool play_has_turn(const struct serve_hook *hook, uint64_t user, uint64_t now_ns);
static bool play_give(struct serve_hook *hook, struct serve_hook_event *event, bool may_wait,
		      uint64_t now_ns);
#define serve_log play_log
#define serve_hook_has_turn play_has_turn
#define serve_hook_give play_give
#include "serve/serve_verdicts.c"
#include "agent/agent_notices.c"

#include "tests/support/expected_verdicts.h"

#define SECOND SECOND_NS
#define BEGIN (1000 * SECOND)
#define WALL UINT64_C(1700000000123456789)

/* ---- the stage -------------------------------------------------------------------------------- */

static struct expected_text text;
static struct serve_verdicts verdicts;
static struct agent_notices notices;
static struct serve_hook hook = { .command = "/hook" };
static struct verdicts active;
static struct live live;
static bool has_turn, is_given, is_pending;

static int play_log(enum serve_level level, const char *format, ...)
{
	char line[3000];
	va_list list;

	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	expected_put(&text, "<%d>%s\n", (int)level, line);
	return 0;
}

static bool play_has_turn(const struct serve_hook *of, uint64_t user, uint64_t now_ns)
{
	(void)of, (void)user, (void)now_ns;
	return has_turn;
}

static bool play_give(struct serve_hook *of, struct serve_hook_event *event, bool may_wait,
		      uint64_t now_ns)
{
	(void)of;
	expected_put(&text, "hook at +%.0f s, user %llx%s: %s\n", (double)(now_ns - BEGIN) / 1e9,
		     (unsigned long long)event->user, may_wait ? ", may wait" : "", event->about);
	for (size_t i = 0; i < event->variable_count; i++) {
		expected_put(&text, "  %s\n", event->variables[i]);
		free(event->variables[i]);
	}
	expected_put(&text, "  %.*s", (int)event->input_length, event->input ? event->input : "");
	free(event->input);
	*event = (struct serve_hook_event){ .input = NULL };
	return is_given;
}

static bool play_is_pending(const void *context, const struct verdict *verdict, uint64_t now_ns)
{
	(void)context, (void)verdict, (void)now_ns;
	return is_pending;
}

static void heading(const char *words)
{
	expected_put(&text, "=== %s\n", words);
}

static void begin(void)
{
	memset(&verdicts, 0, sizeof(verdicts));
	memset(&notices, 0, sizeof(notices));
	verdicts_init(&active);
	has_turn = is_given = true;
	is_pending = false;
	hook.left_out = 0;
}

static void end(void)
{
	serve_verdicts_release(&verdicts);
	verdicts_release(&active);
	EXPECT_EQUAL(verdicts.count, 0);
}

static struct verdict *add(enum verdict_class class, enum verdict_severity severity, int64_t rank)
{
	struct verdict *verdict = verdicts_add(&active, class, severity);

	verdict->rank = rank;
	text_copy(verdict->job, sizeof(verdict->job), "llm");
	verdict_title(verdict, "rank %d is late", (int)rank);
	return verdict;
}

static void pass(uint64_t second, const struct watch *watch)
{
	const struct serve_verdicts_to to = {
		.hook = &hook, .host = "here", .watch = watch, .is_pending = play_is_pending
	};

	serve_verdicts_pass(&verdicts, &active, WALL + second * SECOND, &to,
			    BEGIN + second * SECOND);
}

/* ---- verdicts --------------------------------------------------------------------------------- */

static void test_whole(void)
{
	struct verdict *verdict;

	begin();
	verdict = add(VERDICT_NETWORK_STUCK, VERDICT_ERROR, 3);
	verdict->confidence = 0.875;
	verdict->job_start_wall_ns = WALL - 100 * SECOND;
	verdict->since_wall_ns = WALL - 5 * SECOND;
	verdict->pid = 71;
	verdict->gpu = 0;
	verdict->peer = 4;
	verdict->comm_rank = 5;
	text_copy(verdict->host, sizeof(verdict->host), "node1");
	text_copy(verdict->peer_host, sizeof(verdict->peer_host), "node2");
	text_copy(verdict->channels, sizeof(verdict->channels), "0-7");
	text_copy(verdict->comm, sizeof(verdict->comm), "world");
	text_copy(verdict->function, sizeof(verdict->function), "AllReduce");
	text_copy(verdict->place, sizeof(verdict->place), "in train.py:8");
	verdict_evidence(verdict, "first evidence.");
	verdict_evidence(verdict, "second");
	verdict_missing(verdict, "a caveat");
	verdict_advice(verdict, "Look there.");
	verdict_advice(verdict, "$ ringside ps");
	heading("everything about one verdict");
	pass(0, NULL);
	heading("nothing new");
	pass(9, NULL);
	verdicts_release(&active);
	pass(18, NULL);
	heading("it clears ten seconds after it was last there");
	pass(19, NULL);
	end();
	begin();
	verdict = add(VERDICT_SLOW_RANK, VERDICT_WARNING, -1);
	verdict->job[0] = '\0';
	verdict_advice(verdict, "Look there.");
	heading("little about one");
	pass(0, NULL);
	EXPECT(verdicts.totals[VERDICT_SLOW_RANK] == 1);
	end();
	expected_compare(&text, "tests/unit/agent/expected/serve_verdict_lines");
}

/* When it is reported again. */
static void test_again(void)
{
	struct verdict *verdict;

	begin();
	is_pending = true;
	add(VERDICT_NEVER_ISSUED, VERDICT_WARNING, 3);
	heading("its job is being asked");
	pass(0, NULL);
	EXPECT(verdicts.count == 1 && verdicts.reported[0].as_reported.count == 0);
	is_pending = false;
	heading("the answer is there");
	pass(1, NULL);
	heading("a warning becomes an error");
	active.list[0].severity = VERDICT_ERROR;
	pass(2, NULL);
	heading("and a warning again");
	active.list[0].severity = VERDICT_WARNING;
	pass(3, NULL);
	heading("in another run of the job");
	active.list[0].job_start_wall_ns = WALL + 1;
	pass(4, NULL);
	EXPECT(verdicts.count == 1 && verdicts.totals[VERDICT_NEVER_ISSUED] == 2);
	heading("which began when the verdict was first there");
	active.list[0].job_start_wall_ns = WALL + 4 * SECOND;
	pass(5, NULL);
	heading("one that the hook does not take");
	is_given = false;
	verdict = add(VERDICT_NEVER_ISSUED, VERDICT_ERROR, 4);
	pass(6, NULL);
	EXPECT(verdicts.reported[1].is_due && !verdicts.reported[1].is_hook_called);
	heading("is tried again");
	is_given = true;
	pass(7, NULL);
	EXPECT(!verdicts.reported[1].is_due && verdicts.reported[1].is_hook_called);
	heading("over the rate limit it is late");
	has_turn = false;
	verdict = add(VERDICT_NEVER_ISSUED, VERDICT_ERROR, 5);
	pass(8, NULL);
	pass(9, NULL);
	EXPECT_THAT("and counted once", hook.left_out == 1 && verdicts.reported[2].is_late);
	heading("the cause is elsewhere");
	has_turn = true;
	verdict = &active.list[2];
	verdict->class = VERDICT_ELSEWHERE;
	verdict->rank = 9;
	pass(10, NULL);
	EXPECT(verdicts.reported[3].is_due);
	verdicts_release(&active);
	heading("all clear; the hook hears of those that it was called for");
	pass(30, NULL);
	end();
	begin();
	hook.command = NULL;
	add(VERDICT_NEVER_ISSUED, VERDICT_ERROR, 4);
	heading("no hook");
	pass(0, NULL);
	hook.command = "/hook";
	end();
	expected_compare(&text, "tests/unit/agent/expected/serve_verdicts_again");
}

static void test_users(void)
{
	static struct recording_process processes[4], *list[4];
	static struct watch_process watched[4];
	struct watch watch = { .recording = { .processes = list, .count = 4 },
			       .processes = watched };
	struct verdict verdict = { .job = "llm", .host = "n1", .pid = 30 };

	for (int i = 0; i < 4; i++) {
		processes[i] = (struct recording_process){
			.job = "llm", .host = "n1", .pid = 10 * (i + 1), .pid_here = -1
		};
		watched[i].file.owner = 100 + (uint32_t)i;
		list[i] = &processes[i];
	}
	EXPECT_THAT("the user of the culprit", user_of(&verdict, &watch) == 103);
	text_copy(processes[2].host, sizeof(processes[2].host), "n2");
	EXPECT_THAT("of another host's process the first one's", user_of(&verdict, &watch) == 101);
	text_copy(processes[0].job, sizeof(processes[0].job), "other");
	EXPECT_EQUAL(user_of(&verdict, &watch), 102);
	verdict.pid = -1;
	processes[3].pid = -1;
	EXPECT_EQUAL(user_of(&verdict, &watch), 102);
	verdict.pid = 10;
	EXPECT_THAT("not of a process of another job", user_of(&verdict, &watch) == 102);
	text_copy(verdict.job, sizeof(verdict.job), "none");
	EXPECT_EQUAL(user_of(&verdict, &watch), 0);
	EXPECT(user_of(&verdict, NULL) == hash_bytes("none", 4));
}

static void test_many(void)
{
	begin();
	hook.command = NULL;
	for (int i = 0; i < SERVE_VERDICTS_OF_USER + 2; i++)
		add(VERDICT_NEVER_ISSUED, VERDICT_ERROR, i);
	pass(0, NULL);
	EXPECT(verdicts.count == SERVE_VERDICTS_OF_USER && verdicts.is_full);
	EXPECT_EQUAL(verdicts.totals[VERDICT_NEVER_ISSUED], SERVE_VERDICTS_OF_USER);
	for (size_t i = 0; i < active.count; i++)
		text_format(active.list[i].job, sizeof(active.list[i].job), "job %zu", i);
	free(text.text);
	text = (struct expected_text){ .text = NULL };
	pass(9, NULL);
	EXPECT(verdicts.count > SERVE_VERDICTS_OF_USER);
	verdicts_release(&active);
	free(text.text);
	text = (struct expected_text){ .text = NULL };
	pass(10, NULL);
	EXPECT_THAT("what is full stays so while there are many",
		    verdicts.is_full == (verdicts.count >= SERVE_VERDICTS_OF_USER));
	pass(30, NULL);
	EXPECT(!verdicts.is_full && verdicts.count == 0);
	free(text.text);
	text = (struct expected_text){ .text = NULL };
	for (size_t i = 0; i < SERVE_VERDICTS_MAX; i++)
		verdicts.reported[i] = (struct serve_verdict){ .key = i, .user = i };
	verdicts.count = SERVE_VERDICTS_MAX - 1;
	EXPECT(is_room(&verdicts, 1) && text.text == NULL);
	verdicts.count = SERVE_VERDICTS_MAX;
	EXPECT(!is_room(&verdicts, 1) && !is_room(&verdicts, 2));
	for (size_t i = 0; i < SERVE_VERDICTS_OF_USER; i++)
		verdicts.reported[i].user = 5;
	verdicts.count = SERVE_VERDICTS_OF_USER;
	verdicts.is_full = false;
	EXPECT(!is_room(&verdicts, 5) && is_room(&verdicts, 6));
	verdicts.count = SERVE_VERDICTS_OF_USER - 1;
	EXPECT(is_room(&verdicts, 5));
	verdicts.count = 0;
	hook.command = "/hook";
	end();
	expected_compare(&text, "tests/unit/agent/expected/serve_verdicts_full");
}

static void test_texts(void)
{
	struct verdict verdict = { .confidence = 1 };
	char line[STEP], since[40];

	EXPECT(strcmp(first_of(&verdict.evidence, line), "") == 0);
	EXPECT(strcmp(next_step(&verdict, line), "") == 0);
	verdict_evidence(&verdict, ".");
	EXPECT(strcmp(first_of(&verdict.evidence, line), "") == 0);
	verdict_advice(&verdict, "a.b");
	verdict_advice(&verdict, "$x");
	EXPECT(strcmp(next_step(&verdict, line), "a.b") == 0);
	EXPECT(strcmp(since_text(since, 0), "") == 0 &&
	       strcmp(since_text(since, 1), "since 1970-01-01T00:00:00Z, ") == 0 &&
	       strcmp(since_text(since, 86401 * SECOND), "since 1970-01-02T00:00:01Z, ") == 0);
	free(verdict.evidence.list[0]);
	free(verdict.evidence.list);
	free(verdict.advice.list[0]);
	free(verdict.advice.list[1]);
	free(verdict.advice.list);
}

/* ---- notices ---------------------------------------------------------------------------------- */

static struct live_notice list[3];
static struct job_comm comms[2];
static struct job_seat seats[2];
static struct job_rank ranks[2];
static struct job_group groups[2];

static void notice(int at, enum live_notice_kind kind, uint32_t comm, uint32_t seat,
		   const char *title)
{
	list[at] = (struct live_notice){ .kind = kind, .comm = comm, .seat = seat };
	text_copy(list[at].title, sizeof(list[at].title), title);
}

static void report(uint64_t second)
{
	agent_notices_report(&notices, &live, BEGIN + second * SECOND);
}

static void test_notices(void)
{
	struct verdict *verdict;

	begin();
	text_copy(groups[0].name, sizeof(groups[0].name), "llm");
	text_copy(groups[1].name, sizeof(groups[1].name), "other");
	text_copy(comms[0].label, sizeof(comms[0].label), "world");
	text_copy(comms[1].label, sizeof(comms[1].label), "tp");
	comms[1].group = 1;
	seats[1].rank = 1;
	ranks[1].group = 1;
	text_copy(ranks[0].label, sizeof(ranks[0].label), "5");
	text_copy(ranks[1].label, sizeof(ranks[1].label), "7");
	live = (struct live){ .notices = list,
			      .job = { .comms = comms,
				       .comm_count = 2,
				       .seats = seats,
				       .seat_count = 2,
				       .ranks = ranks,
				       .rank_count = 2,
				       .groups = groups,
				       .group_count = 2 } };
	heading("kinds that always have a verdict");
	notice(0, LIVE_HANG, 0, 0, "hang");
	notice(1, LIVE_MISSING, 0, 0, "missing");
	notice(2, LIVE_SLOW, 0, 0, "slow");
	live.notice_count = 3;
	report(0);
	list[0].kind = LIVE_MISMATCH;
	live.notice_count = 1;
	report(0);
	EXPECT_EQUAL(notices.count, 0);
	heading("a late rank, a dead one, and loss");
	notice(0, LIVE_BEHIND, 0, 0, "rank 5 is late");
	text_copy(list[0].text, sizeof(list[0].text), "by 7 s");
	text_copy(list[0].hint, sizeof(list[0].hint), "ringside ps");
	notice(1, LIVE_DEAD, UINT32_MAX, 1, "rank 7 is dead");
	notice(2, LIVE_LOSS, UINT32_MAX, UINT32_MAX, "lost");
	live.notice_count = 3;
	report(0);
	EXPECT(notices.count == 3 && strcmp(notices.reported[0].job, "llm") == 0 &&
	       strcmp(notices.reported[0].comm, "world") == 0 &&
	       strcmp(notices.reported[0].rank, "5") == 0 &&
	       strcmp(notices.reported[1].job, "other") == 0 &&
	       notices.reported[1].comm[0] == '\0' && strcmp(notices.reported[1].rank, "7") == 0 &&
	       notices.reported[2].job[0] == '\0');
	heading("they last, with another title");
	text_copy(list[0].title, sizeof(list[0].title), "rank 5 is very late");
	report(5);
	EXPECT_EQUAL(notices.reported[0].last_ns, BEGIN + 5 * SECOND);
	heading("another one");
	list[2].seat = 1;
	report(6);
	EXPECT_EQUAL(notices.count, 4);
	heading("gone for less than ten seconds");
	live.notice_count = 0;
	report(14);
	EXPECT_EQUAL(notices.count, 4);
	heading("one for ten");
	report(15);
	EXPECT_EQUAL(notices.count, 3);
	heading("all for ten: a death does not clear");
	report(16);
	EXPECT_EQUAL(notices.count, 0);
	heading("a verdict replaces a notice");
	live.notice_count = 1;
	report(20);
	verdicts_init(&live.verdicts);
	verdict = verdicts_add(&live.verdicts, VERDICT_NEVER_ISSUED, VERDICT_ERROR);
	text_copy(verdict->job, sizeof(verdict->job), "llm");
	text_copy(verdict->comm, sizeof(verdict->comm), "world");
	text_copy(verdict->rank_label, sizeof(verdict->rank_label), "5");
	report(21);
	report(40);
	EXPECT_EQUAL(notices.count, 0);
	EXPECT(is_reported(&live, LIVE_BEHIND, "llm", "world", "") &&
	       !is_reported(&live, LIVE_BEHIND, "llm", "", "5") &&
	       !is_reported(&live, LIVE_BEHIND, "llm", "tp", "5") &&
	       !is_reported(&live, LIVE_BEHIND, "other", "world", "5") &&
	       !is_reported(&live, LIVE_DEAD, "llm", "world", "5") &&
	       !is_reported(&live, LIVE_STRAGGLER, "llm", "world", "5"));
	verdict = &live.verdicts.list[0];
	verdict->class = VERDICT_PROCESS_DEAD;
	EXPECT(is_reported(&live, LIVE_DEAD, "llm", "", "5") &&
	       !is_reported(&live, LIVE_DEAD, "llm", "", "6") &&
	       !is_reported(&live, LIVE_STRAGGLER, "llm", "", "5"));
	verdict->class = VERDICT_SLOW_RANK;
	EXPECT(is_reported(&live, LIVE_STRAGGLER, "llm", "", "5") &&
	       !is_reported(&live, LIVE_BEHIND, "llm", "world", "5") &&
	       !is_reported(&live, LIVE_STRAGGLER, "llm", "", ""));
	verdict->rank_label[0] = '\0';
	EXPECT(!is_reported(&live, LIVE_STRAGGLER, "llm", "", ""));
	verdicts_release(&live.verdicts);
	for (unsigned int kind = 0; kind < LIVE_NOTICE_KINDS; kind++)
		EXPECT_EQUAL(level_of((enum live_notice_kind)kind),
			     kind <= LIVE_DEAD ? SERVE_ERROR : SERVE_WARNING);
	seats[1].rank = 2;
	EXPECT(strcmp(notice_rank(&live, &list[1]), "") == 0);
	seats[1].rank = 1;
	comms[1].group = 2;
	notice(0, LIVE_LOSS, 1, 0, "x");
	EXPECT(strcmp(notice_job(&live, &list[0]), "") == 0);
	notice(0, LIVE_LOSS, 2, 2, "x");
	EXPECT(strcmp(notice_job(&live, &list[0]), "") == 0 &&
	       strcmp(notice_comm(&live, &list[0]), "") == 0 &&
	       strcmp(notice_rank(&live, &list[0]), "") == 0);
	end();
	expected_compare(&text, "tests/unit/agent/expected/agent_notices");
}

static void test_many_notices(void)
{
	begin();
	live.notice_count = 0;
	for (size_t i = 0; i < LIVE_NOTICES_MAX; i++)
		text_format(notices.reported[i].key, sizeof(notices.reported[i].key), "k%zu", i);
	notices.count = LIVE_NOTICES_MAX;
	notice(0, LIVE_LOSS, UINT32_MAX, UINT32_MAX, "x");
	notice_seen(&notices, &live, &list[0], BEGIN);
	EXPECT(notices.count == LIVE_NOTICES_MAX && text.text == NULL);
	notices.count--;
	notice_seen(&notices, &live, &list[0], BEGIN);
	EXPECT(notices.count == LIVE_NOTICES_MAX && text.text != NULL);
	free(text.text);
	text = (struct expected_text){ .text = NULL };
	end();
}

int main(void)
{
	test_whole();
	test_again();
	test_users();
	test_many();
	test_texts();
	test_notices();
	test_many_notices();
	return tap_done();
}
