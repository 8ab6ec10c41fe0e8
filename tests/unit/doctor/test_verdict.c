#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/verdict.h"
#include "tests/tap.h"

static void test_names(void)
{
	bool are_different = true;

	for (int a = 0; a < VERDICT_CLASSES; a++) {
		if (verdict_class_name(a)[0] == '\0' || strcmp(verdict_class_name(a), "?") == 0)
			are_different = false;
		for (int b = 0; b < a; b++)
			if (strcmp(verdict_class_name(a), verdict_class_name(b)) == 0)
				are_different = false;
	}
	EXPECT_THAT("every class has a name of its own", are_different);
	EXPECT(strcmp(verdict_class_name(VERDICT_CLASSES), "?") == 0);
	EXPECT(verdict_is_hang(VERDICT_NEVER_ISSUED) && verdict_is_hang(VERDICT_STUCK));
	EXPECT(!verdict_is_hang(VERDICT_SLOW_RANK) && verdict_is_slow(VERDICT_SLOW_RANK));
	EXPECT(verdict_is_slow(VERDICT_BELOW_EXPECTED) && !verdict_is_slow(VERDICT_SETUP));
	EXPECT(!verdict_is_hang(VERDICT_BLIND) && !verdict_is_slow(VERDICT_BLIND));
	EXPECT(strcmp(verdict_severity_name(VERDICT_ERROR), "error") == 0);
	EXPECT(strcmp(verdict_confidence_word(1), "certain") == 0);
	EXPECT(strcmp(verdict_confidence_word(0.95), "certain") == 0);
	EXPECT(strcmp(verdict_confidence_word(0.949), "very likely") == 0);
	EXPECT(strcmp(verdict_confidence_word(0.5), "likely") == 0);
	EXPECT(strcmp(verdict_confidence_word(0.49), "possible") == 0);
	EXPECT_THAT("nearly certain is not rounded to certain",
		    strcmp(verdict_confidence_percent(0.9951).text, ">99%") == 0 &&
			    strcmp(verdict_confidence_percent(0.994).text, "99%") == 0 &&
			    strcmp(verdict_confidence_percent(1).text, "100%") == 0);
}

static void test_unknown(void)
{
	struct verdicts verdicts;
	struct verdict *verdict;

	verdicts_init(&verdicts);
	verdict = verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR);
	EXPECT(verdict->rank == -1 && verdict->pid == -1 && verdict->gpu == -1);
	EXPECT(verdict->peer == -1 && verdict->channel == -1 && verdict->comm_rank == -1);
	EXPECT(verdict->confidence == 1 && verdict->title[0] == '\0' &&
	       verdict->evidence.count == 0);
	verdicts_release(&verdicts);
	EXPECT(verdicts.count == 0);
}

static void test_too_many(void)
{
	struct verdicts verdicts;
	struct verdict *verdict;

	verdicts_init(&verdicts);
	for (int i = 0; i < VERDICTS_MAX + 7; i++) {
		verdict = verdicts_add(&verdicts, VERDICT_SETUP, VERDICT_NOTE);
		verdict_title(verdict, "number %d", i);
		verdict_evidence(verdict, "line of number %d", i);
	}
	EXPECT_EQUAL(verdicts.count, VERDICTS_MAX);
	EXPECT_EQUAL(verdicts.left_out, 7);
	EXPECT_THAT("the last one kept is not changed by those left out",
		    strcmp(verdicts.list[VERDICTS_MAX - 1].title, "number 255") == 0);
	verdicts_release(&verdicts);
}

static void test_lines(void)
{
	char long_text[2000];
	struct verdicts verdicts;
	struct verdict *verdict;
	const char *last;

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	verdicts_init(&verdicts);
	verdict = verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR);
	verdict_title(verdict, "%s", long_text);
	EXPECT_EQUAL(strlen(verdict->title), sizeof(verdict->title) - 1);
	EXPECT_THAT("a truncated title ends in dots",
		    strcmp(verdict->title + strlen(verdict->title) - 4, "x...") == 0);
	verdict_missing(verdict, "%s", long_text);
	last = verdict->missing.list[0];
	EXPECT_THAT("so does a line", strlen(last) < sizeof(long_text) - 1 &&
					      strcmp(last + strlen(last) - 4, "x...") == 0);
	for (int i = 0; i < 3 * VERDICT_LINES_MAX; i++)
		verdict_advice(verdict, "step %d", i);
	EXPECT_EQUAL(verdict->advice.count, VERDICT_LINES_MAX);
	EXPECT(strcmp(verdict->advice.list[0], "step 0") == 0);
	EXPECT_THAT("the last line says that there are more",
		    strstr(verdict->advice.list[VERDICT_LINES_MAX - 1], "left out"));
	verdicts_release(&verdicts);
}

/* As a list of titles: "a b c". */
static const char *order(const struct verdicts *verdicts, char text[200])
{
	text[0] = '\0';
	for (size_t i = 0; i < verdicts->count; i++) {
		size_t used = strlen(text);

		text_format(text + used, 200 - used, "%s%s", i > 0 ? " " : "",
			    verdicts->list[i].title);
	}
	return text;
}

static void add(struct verdicts *verdicts, const char *title, enum verdict_class class,
		enum verdict_severity severity, double gpu_hours, uint32_t victims)
{
	struct verdict *verdict = verdicts_add(verdicts, class, severity);

	verdict_title(verdict, "%s", title);
	verdict->gpu_hours = gpu_hours;
	verdict->victims = victims;
}

static void test_order(void)
{
	struct verdicts verdicts;
	char text[200];

	verdicts_init(&verdicts);
	EXPECT(!verdicts_has_trouble(&verdicts));
	verdicts_sort(&verdicts);
	add(&verdicts, "note", VERDICT_STUCK, VERDICT_NOTE, 9, 9);
	EXPECT_THAT("a note is no trouble", !verdicts_has_trouble(&verdicts));
	add(&verdicts, "blind", VERDICT_BLIND, VERDICT_WARNING, 0, 0);
	EXPECT_THAT("a warning is", verdicts_has_trouble(&verdicts));
	add(&verdicts, "setup", VERDICT_SETUP, VERDICT_WARNING, 0, 0);
	add(&verdicts, "cheap", VERDICT_SLOW_LINK, VERDICT_WARNING, 1, 0);
	add(&verdicts, "dear", VERDICT_SLOW_RANK, VERDICT_WARNING, 2, 0);
	add(&verdicts, "few", VERDICT_NEVER_ISSUED, VERDICT_ERROR, 0, 3);
	add(&verdicts, "many", VERDICT_NETWORK_STUCK, VERDICT_ERROR, 0, 511);
	verdicts_sort(&verdicts);
	EXPECT_THAT("severity, then hangs, slowness, set-up, blindness; within these by cost",
		    strcmp(order(&verdicts, text), "many few dear cheap setup blind note") == 0);
	verdicts_release(&verdicts);
}

static uint64_t key_with(int64_t rank, int64_t peer, const char *host, const char *rule)
{
	struct verdict verdict = { .class = VERDICT_SLOW_LINK, .rank = rank, .peer = peer };

	text_copy(verdict.host, sizeof(verdict.host), host);
	text_copy(verdict.rule, sizeof(verdict.rule), rule);
	text_copy(verdict.title, sizeof(verdict.title), rank == 1 ? "one" : "another");
	return verdict_key(&verdict);
}

static void test_keys(void)
{
	struct verdict now = { .class = VERDICT_STUCK, .rank = 3 }, later = now;

	later.for_ns = 1000;
	later.victims = 5;
	later.confidence = 0.5;
	text_copy(later.title, sizeof(later.title), "different text");
	EXPECT_THAT("time, victims and text do not change the key",
		    verdict_key(&now) == verdict_key(&later));
	later.rank = 4;
	EXPECT(verdict_key(&now) != verdict_key(&later));
	EXPECT(key_with(1, 2, "a", "others") == key_with(1, 2, "a", "others"));
	EXPECT(key_with(1, 2, "a", "others") != key_with(2, 1, "a", "others"));
	EXPECT(key_with(1, 2, "a", "others") != key_with(1, 2, "b", "others"));
	EXPECT(key_with(1, 2, "a", "others") != key_with(1, 2, "a", "past"));
}

/* Where its page can be read. */
static void test_runbook(void)
{
	static const struct {
		const char *base, *page, *where;
	} cases[] = {
		{ NULL, "runbooks/HangNetwork.md", "ringside help hang-network" },
		{ NULL, "runbooks/AZaz.md", "ringside help a-zaz" },
		{ NULL, "setup/p2p-disabled.md", "ringside help p2p-disabled" },
		{ NULL, "setup/Plain", "ringside help plain" },
		{ NULL, "DOCTOR.md#not-judged", "docs/DOCTOR.md#not-judged" },
		{ NULL, "", "" },
		{ "", "runbooks/HangNetwork.md", "ringside help hang-network" },
		{ "/", "runbooks/HangNetwork.md", "ringside help hang-network" },
		{ "https://x/docs", "runbooks/HangNetwork.md",
		  "https://x/docs/runbooks/HangNetwork.md" },
		{ "https://x/docs//", "DOCTOR.md#a", "https://x/docs/DOCTOR.md#a" },
		{ "https://x", "", "" },
	};
	const char *before = getenv("RINGSIDE_RUNBOOKS");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct verdict verdict = { .page = "" };
		char where[VERDICT_RUNBOOK];

		if (cases[i].base != NULL)
			setenv("RINGSIDE_RUNBOOKS", cases[i].base, 1);
		else
			unsetenv("RINGSIDE_RUNBOOKS");
		text_copy(verdict.page, sizeof(verdict.page), cases[i].page);
		EXPECT_THAT(cases[i].where,
			    strcmp(verdict_runbook(&verdict, where), cases[i].where) == 0 &&
				    strcmp(where, cases[i].where) == 0);
	}
	if (before == NULL)
		unsetenv("RINGSIDE_RUNBOOKS");
}

static void test_hours_hung(void)
{
	static const struct {
		enum verdict_class class;
		enum verdict_severity severity;
		const char *host;
		double hours;
	} cases[] = {
		/* Seven ranks wait for half an hour; the one at fault is idle as well. */
		{ VERDICT_NEVER_ISSUED, VERDICT_ERROR, "node1", 4 },
		{ VERDICT_NEVER_ISSUED, VERDICT_ERROR, "", 3.5 },
		{ VERDICT_DEADLOCK, VERDICT_ERROR, "node1", 3.5 },
		{ VERDICT_NEVER_ISSUED, VERDICT_WARNING, "node1", 0 },
		{ VERDICT_SLOW_RANK, VERDICT_ERROR, "node1", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct verdict verdict = { .class = cases[i].class,
					   .severity = cases[i].severity,
					   .victims = 7,
					   .for_ns = UINT64_C(1800000000000) };

		text_copy(verdict.host, sizeof(verdict.host), cases[i].host);
		EXPECT(verdict_hours_hung(&verdict) == cases[i].hours);
	}
}

static void test_channels(void)
{
	static const struct {
		uint64_t channels[4];
		const char *text;
	} cases[] = {
		{ { 0 }, "" },
		{ { 1 }, "0" },
		{ { 0x10ff }, "0-7,12" },
		{ { UINT64_C(1) << 63, 1 }, "63-64" },
		{ { 0, 0, 0, UINT64_C(3) << 62 }, "254-255" },
		{ { 0, 0, 0, UINT64_C(1) << 63 }, "255" },
		{ { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX }, "0-255" },
		{ { 5 }, "0,2" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64] = "";

		verdict_say_channels(text, sizeof(text), cases[i].channels);
		EXPECT_THAT(cases[i].text, strcmp(text, cases[i].text) == 0);
	}
}

int main(void)
{
	test_runbook();
	test_hours_hung();
	test_channels();
	test_names();
	test_unknown();
	test_too_many();
	test_lines();
	test_order();
	test_keys();
	return tap_done();
}
