/* With an argument: writes the page with hostile names there, for tests/html/hostile.t. */
#include "output/report.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "tests/tap.h"
#include "tests/support/hand_made.h"

/* With a space: that ends a script even if '>' is escaped. */
#define EVIL "</script ><img src=x onerror=alert(1)>"
#define SEPARATORS "\xe2\x80\xa8\xe2\x80\xa9"

enum { RANKS = 4, CALLS = 200 };

/* Names that look like code, for everything that has a name. */
static void hostile(struct hand_made *hand)
{
	memset(hand, 0, sizeof(*hand));
	for (int rank = 0; rank < RANKS; rank++) {
		struct recording_process *process =
			hand_process(hand, "<!--" EVIL "\xff&amp;\"'", rank,
				     rank < 2 ? "a" EVIL : "b<b>" SEPARATORS);
		uint32_t world = hand_comm(process, 1, EVIL "<script>alert(2)", rank, RANKS, 2);
		uint32_t bad =
			hand_comm(process, 2, "\xff\xfe=cmd()" SEPARATORS "]]>", rank, RANKS, 2);

		for (uint64_t i = 1; i <= CALLS; i++) {
			hand_op(process, world, OP_ALL_REDUCE, i, 1 << 20,
				1000000 + 1000 * (uint64_t)rank, i * 20000000);
			hand_op(process, bad, OP_ALL_GATHER, i, 1 << 16, 500000,
				i * 20000000 + 5000000);
		}
	}
}

static size_t count_of(const char *text, const char *what)
{
	size_t count = 0;

	for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
		count++;
	return count;
}

/* The caller releases the sink. */
static enum status write_page(struct sink *sink, const struct hand_made *hand)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	struct timeline_report report;
	enum status status;

	sink_init_memory(sink);
	html_report_options(&options);
	status = timeline_report_make(&report, &hand->recording, NULL, &options);
	if (status != OK)
		return status;
	status = html_report_write(sink, &report);
	timeline_report_release(&report);
	return status;
}

static void test_escapes(const char *page)
{
	EXPECT_THAT("no name became an element", strstr(page, "<img") == NULL);
	EXPECT_EQUAL(count_of(page, "</script"), 3);
	EXPECT_THAT("no name began a comment", strstr(page, "<!--") == NULL);
	EXPECT_THAT("the name is in the data, escaped",
		    strstr(page, "\\u003c/script \\u003e\\u003cimg") != NULL);
	EXPECT_THAT("the name is escaped in the title",
		    strstr(page, "<title>&lt;!--&lt;/script &gt;") != NULL);
	EXPECT_THAT("line separators are escaped",
		    strstr(page, SEPARATORS) == NULL && strstr(page, "\\u2028\\u2029") != NULL);
	EXPECT_THAT("bytes that are not UTF-8 are replaced", strstr(page, "\xff") == NULL);
}

static void test_parts(const char *page)
{
	static const enum html_asset_name scripts[] = { HTML_ASSET_CHARTS, HTML_ASSET_SCRIPT };
	struct html_asset style = html_asset(HTML_ASSET_STYLE);
	char digest[SHA256_TEXT];

	for (size_t i = 0; i < ARRAY_LENGTH(scripts); i++) {
		struct html_asset script = html_asset(scripts[i]);
		const char *at = memmem(page, strlen(page), script.text, script.length);

		EXPECT_THAT("a script is in the page unchanged",
			    at != NULL && strncmp(at - 8, "<script>", 8) == 0 &&
				    strncmp(at + script.length, "</script>", 9) == 0);
		EXPECT_THAT("the policy has its hash",
			    strstr(page, sha256_base64(script.text, script.length, digest)));
	}
	EXPECT_THAT("the style is in the page",
		    memmem(page, strlen(page), style.text, style.length));
	EXPECT_THAT("all marks are replaced", strstr(page, "@STYLE@") == NULL &&
						      strstr(page, "@DATA@") == NULL &&
						      strstr(page, "@CHARTS_LICENCE@") == NULL);
	EXPECT_THAT("the copyright of the chart library is there",
		    strstr(page, "Copyright (c)") != NULL);
	EXPECT_THAT("nothing is loaded from the network", strstr(page, "src=\"http") == NULL &&
								  strstr(page, "url(") == NULL &&
								  strstr(page, "@import") == NULL);
}

static void test_options(void)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;

	for (size_t i = 0; i < TIMELINE_CUSTOM_MAX + 2; i++)
		html_report_options(&options);
	EXPECT_EQUAL(options.custom_count, TIMELINE_CUSTOM_MAX);
	EXPECT_EQUAL(options.custom_by[0], HTML_POINTS_BY);
}

static void test_text(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	html_write_text(&sink, "a<b>&\"'\xc3\xa9\xff\xe2\x80z\xf0\x9f\x98\x80");
	EXPECT(strcmp(sink_string(&sink),
		      "a&lt;b&gt;&amp;&quot;'\xc3\xa9&#xfffd;&#xfffd;&#xfffd;z\xf0\x9f\x98\x80") ==
	       0);
	sink_release(&sink);
}

/* ---- many iterations --------------------------------------------------------------------------- */

enum { ITERATIONS = 2047 };

/* Two neighbors as one, as the page should have them. */
static void put_pairs(struct sink *to, const struct iterations *from)
{
	sink_text(to, "\"together\":2,\"list\":[");
	for (size_t i = 0; i < from->count; i += 2) {
		const struct iteration *a = &from->list[i], *b = i + 1 < from->count ? a + 1 : NULL;
		uint64_t count = b ? 2 : 1, long_a = a->end_ns - a->start_ns;
		uint64_t long_b = b ? b->end_ns - b->start_ns : 0;
		uint64_t timed_a = a->timed == a->ops, timed_b = b && b->timed == b->ops;

		sink_format(to, "%s[%llu,%llu,%llu,", i ? "," : "", (unsigned long long)a->start_ns,
			    (unsigned long long)((long_a + long_b) / count),
			    (unsigned long long)(long_a > long_b ? long_a : long_b));
		if (timed_a + timed_b > 0)
			sink_unsigned(to,
				      ((timed_a ? a->busy_ns : 0) + (timed_b ? b->busy_ns : 0)) /
					      (timed_a + timed_b));
		else
			sink_text(to, "null");
		sink_format(to, ",%llu,%d]",
			    (unsigned long long)((a->bytes + (b ? b->bytes : 0)) / count),
			    a->is_odd || (b && b->is_odd));
	}
	sink_text(to, "]");
}

/* A chart has 2,000 points at most. Some operations were not timed, and one iteration is longer than the others. */
static void test_iterations(void)
{
	static struct hand_made hand;
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	struct timeline_report report;
	struct sink page, pairs;

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = hand_process(&hand, "", rank, "a\xe2\x80\xa7");

		hand_comm(process, 1, "c\xe2\x82\x90", rank, 2, 1);
		for (uint64_t i = 1; i <= ITERATIONS; i++) {
			uint64_t at_ns = i * 10000000 + (i > 700 ? 8000000 : 0);

			hand_op(process, 1, OP_ALL_REDUCE, 2 * i, (1 << 20) + i, 1000000 + i * 100,
				at_ns);
			if (i % 5 == 2 || i % 5 == 3)
				process->flights[process->flight_count - 1].op.time_source =
					OP_TIME_NONE;
			hand_op(process, 1, OP_ALL_GATHER, 2 * i + 1, 1 << 16, 500000,
				at_ns + 4000000);
		}
	}
	if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK)
		abort();
	EXPECT(report.iterations.is_found && report.iterations.count > 2000);
	sink_init_memory(&page);
	sink_init_memory(&pairs);
	put_pairs(&pairs, &report.iterations);
	EXPECT_EQUAL(html_report_write(&page, &report), OK);
	EXPECT(strstr(sink_string(&page), sink_string(&pairs)) != NULL);
	EXPECT_THAT("a job without a name",
		    strstr(sink_string(&page), "<title>NCCL job - Ringside report</title>") !=
			    NULL);
	EXPECT_THAT("only line separators are escaped",
		    strstr(sink_string(&page), "a\xe2\x80\xa7") != NULL &&
			    strstr(sink_string(&page), "c\xe2\x82\x90") != NULL);
	sink_release(&page);
	sink_release(&pairs);
	timeline_report_release(&report);
	hand_release(&hand);
}

static int write_file(const char *path, const struct sink *page)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool is_written = fd != -1 && write(fd, page->bytes, page->used) == (ssize_t)page->used;

	if (fd != -1)
		close(fd);
	return is_written ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct hand_made hand;
	struct sink page, again;
	enum status status;

	hostile(&hand);
	status = write_page(&page, &hand);
	if (argc > 1)
		return status == OK ? write_file(argv[1], &page) : 1;

	test_options();
	test_text();
	if (!html_report_has_charts()) {
		EXPECT_EQUAL(status, ERR_GONE);
		EXPECT_THAT("nothing is written without the chart library", page.used == 0);
		EXPECT_THAT("the message says what to run",
			    strstr(html_report_missing(), "scripts/install-npm build") != NULL);
	} else {
		EXPECT_EQUAL(status, OK);
		EXPECT(html_report_missing() == NULL);
		test_escapes(sink_string(&page));
		test_parts(sink_string(&page));
		EXPECT_EQUAL(write_page(&again, &hand), OK);
		EXPECT_THAT("the same report gives the same page",
			    again.used == page.used &&
				    memcmp(again.bytes, page.bytes, page.used) == 0);
		sink_release(&again);
		test_iterations();
	}
	sink_release(&page);
	hand_release(&hand);
	return tap_done();
}
