/*
 * The protocol of NCCL's RAS: as specified, with an older release, and with anything else that
 * listens.
 */
#include <stdlib.h>
#include <string.h>

#include "import/ras.h"
#include "tests/tap.h"

/* The peer sends this, and our next request is as expected. */
static enum status say(struct ras_talk *talk, const char *text, const char *wanted)
{
	enum status status;

	talk->request[0] = '\0';
	status = ras_talk_take(talk, text, strlen(text));
	EXPECT_THAT(wanted[0] ? wanted : "no request is sent", strcmp(talk->request, wanted) == 0);
	return status;
}

static void test_text(void)
{
	struct ras_talk talk;

	ras_talk_init(&talk, RAS_TEXT, 5);
	EXPECT(strcmp(talk.request, "client protocol 2\n") == 0);
	EXPECT_EQUAL(say(&talk, "SERVER PROTO", ""), OK);
	EXPECT_EQUAL(say(&talk, "COL 2\n", "timeout 5\n"), OK);
	EXPECT_EQUAL(talk.protocol, 2);
	EXPECT_EQUAL(say(&talk, "OK\r\n", "verbose status\n"), OK);
	EXPECT(talk.answer == NULL);
	EXPECT_EQUAL(say(&talk, "NCCL version 2.28.9\n", ""), OK);
	EXPECT_EQUAL(say(&talk, "\tdead: \033[31m1\x7f~\x80 \x1f\n", ""), OK);
	EXPECT_EQUAL(ras_talk_end(&talk), OK);
	EXPECT_THAT("the answer is complete, without control bytes",
		    strcmp(talk.answer, "NCCL version 2.28.9\n\tdead: ?[31m1?~? ?\n") == 0);
	EXPECT(!talk.is_cut && !talk.is_json);
	ras_talk_release(&talk);
}

static void test_json(void)
{
	struct ras_talk talk;

	ras_talk_init(&talk, RAS_JSON, 5);
	say(&talk, "server protocol 3\n", "timeout 5\n");
	EXPECT_THAT("another version is accepted", talk.protocol == 3);
	say(&talk, "OK\n", "set format json\n");
	say(&talk, "OK\n", "verbose status\n");
	say(&talk, "{\"nccl_version\":\"2.28.9\"}", "");
	EXPECT_EQUAL(ras_talk_end(&talk), OK);
	EXPECT(talk.is_json && strcmp(talk.answer, "{\"nccl_version\":\"2.28.9\"}") == 0);
	ras_talk_release(&talk);

	ras_talk_init(&talk, RAS_JSON, 5);
	say(&talk, "SERVER PROTOCOL 2\n", "timeout 5\n");
	say(&talk, "OK\n", "set format json\n");
	say(&talk, "ERROR: Unknown command\n", "verbose status\n");
	say(&talk, "Job summary\n", "");
	EXPECT_EQUAL(ras_talk_end(&talk), OK);
	EXPECT_THAT("a release that has no JSON gives text",
		    !talk.is_json && talk.answer_length == 12);
	ras_talk_release(&talk);
}

/* Since 2.31. Earlier releases do not know it, and keep the connection open. */
static void test_diagnostics(void)
{
	struct ras_talk talk;

	ras_talk_init(&talk, RAS_DIAGNOSTICS, 5);
	say(&talk, "SERVER PROTOCOL 2\n", "timeout 5\n");
	say(&talk, "OK\n", "diagnostics\n");
	EXPECT_EQUAL(say(&talk, "n1:7 NCCL DIAG [OK]   ECC: fine\n", ""), OK);
	EXPECT_EQUAL(ras_talk_end(&talk), OK);
	ras_talk_release(&talk);

	ras_talk_init(&talk, RAS_DIAGNOSTICS, 5);
	say(&talk, "SERVER PROTOCOL 2\n", "timeout 5\n");
	say(&talk, "OK\n", "diagnostics\n");
	EXPECT_EQUAL(say(&talk, "ERROR: Unknown comm", ""), OK);
	EXPECT_EQUAL(say(&talk, "and diagnostics\n", ""), ERR_FORMAT);
	EXPECT_THAT("why is reported", strstr(talk.why, "Unknown command diagnostics") != NULL);
	EXPECT_EQUAL(ras_talk_end(&talk), ERR_FORMAT);
	ras_talk_release(&talk);
}

static void test_hostile(void)
{
	static char flood[RAS_ANSWER_MAX / 8];
	struct ras_talk talk;

	ras_talk_init(&talk, RAS_TEXT, 5);
	EXPECT_EQUAL(say(&talk, "HTTP/1.1 400 Bad Request\r\n", ""), ERR_FORMAT);
	EXPECT(strstr(talk.why, "not NCCL's RAS") && strstr(talk.why, "HTTP/1.1 400"));
	EXPECT_EQUAL(ras_talk_take(&talk, "OK\n", 3), ERR_FORMAT);
	EXPECT_EQUAL(ras_talk_end(&talk), ERR_FORMAT);
	ras_talk_release(&talk);

	memset(flood, 'A', sizeof(flood));
	ras_talk_init(&talk, RAS_TEXT, 5);
	EXPECT_THAT("an endless line is rejected",
		    ras_talk_take(&talk, flood, sizeof(flood)) == ERR_FORMAT);
	ras_talk_release(&talk);

	ras_talk_init(&talk, RAS_JSON, 5);
	EXPECT_THAT("answers that come before the requests",
		    ras_talk_take(&talk, "SERVER PROTOCOL 2\nOK\nOK\nx", 25) == OK);
	EXPECT_THAT("are accepted", talk.answer_length == 1);
	for (int i = 0; i < 7; i++)
		EXPECT(ras_talk_take(&talk, flood, sizeof(flood)) == OK);
	EXPECT_THAT("the longest answer is whole",
		    ras_talk_take(&talk, flood, sizeof(flood) - 1) == OK && !talk.is_cut &&
			    talk.answer_length == RAS_ANSWER_MAX);
	EXPECT_THAT("a longer one is cut", ras_talk_take(&talk, flood, 1) == ERR_RANGE &&
						   talk.is_cut &&
						   talk.answer_length == RAS_ANSWER_MAX);
	ras_talk_release(&talk);

	ras_talk_init(&talk, RAS_TEXT, 5);
	EXPECT_THAT("closing at once is no answer", ras_talk_end(&talk) == ERR_FORMAT);
	ras_talk_release(&talk);

	ras_talk_init(&talk, RAS_TEXT, 5);
	ras_talk_take(&talk, "SERVER PROTOCOL 2\nOK\n", 21);
	EXPECT_THAT("nor is closing before it", ras_talk_end(&talk) == ERR_FORMAT);
	ras_talk_release(&talk);

	ras_talk_init(&talk, RAS_TEXT, 5);
	EXPECT_EQUAL(say(&talk, "\x1f \x7f~\x80\n", ""), ERR_FORMAT);
	EXPECT_THAT("control bytes are not shown",
		    strcmp(talk.why, "not NCCL's RAS; the peer says: ? ?~?") == 0);
	ras_talk_release(&talk);

	ras_talk_init(&talk, RAS_TEXT, 5);
	ras_talk_take(&talk, "SERVER PROTOCOL 2\n", 18);
	EXPECT(say(&talk, "ERROR\n", "") == ERR_FORMAT &&
	       strcmp(talk.why, "it rejects the timeout: ERROR") == 0);
	ras_talk_release(&talk);
}

int main(void)
{
	test_text();
	test_json();
	test_diagnostics();
	test_hostile();
	return tap_done();
}
