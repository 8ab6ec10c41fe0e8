#include <locale.h>
#include <math.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "tests/tap.h"
#include "top/top.h"

static bool is_line(const struct top_canvas *canvas, const char *wanted)
{
	struct sink sink;
	bool is_same;

	sink_init_memory(&sink);
	top_canvas_write(canvas, &sink);
	is_same = strcmp(sink_string(&sink), wanted) == 0;
	if (!is_same)
		printf("#   got '%s'\n", sink_string(&sink));
	sink_release(&sink);
	return is_same;
}

static void test_numbers(void)
{
	char to[TOP_TEXT_NUMBER];

	EXPECT(strcmp(top_text_rate(to, 0), "0") == 0);
	EXPECT(strcmp(top_text_rate(to, 0.04), "0.04") == 0);
	EXPECT(strcmp(top_text_rate(to, 7.96), "8.0") == 0);
	EXPECT(strcmp(top_text_rate(to, 9.96), "10") == 0);
	EXPECT(strcmp(top_text_rate(to, 999.4), "999") == 0);
	EXPECT(strcmp(top_text_rate(to, 1234), "1.2k") == 0);
	EXPECT(strcmp(top_text_rate(to, 123456), "123k") == 0);
	EXPECT(strcmp(top_text_rate(to, 2.5e6), "2.5M") == 0);
	EXPECT(strcmp(top_text_rate(to, NAN), "-") == 0);
	EXPECT(strcmp(top_text_bandwidth(to, 182.4e9), "182 GB/s") == 0);
	EXPECT(strcmp(top_text_bandwidth(to, 1.236e9), "1.24 GB/s") == 0);
	EXPECT(strcmp(top_text_bandwidth(to, 999.7e6), "1.00 GB/s") == 0);
	EXPECT(strcmp(top_text_bandwidth(to, 12), "12 B/s") == 0);
	EXPECT(strcmp(top_text_bandwidth(to, NAN), "-") == 0);
	EXPECT(strcmp(top_text_share(to, 0.123), "12%") == 0);
	EXPECT(strcmp(top_text_share(to, 0.001), "<1%") == 0);
	EXPECT(strcmp(top_text_share(to, 0), "0%") == 0);
	EXPECT(strcmp(top_text_share(to, 1e9), "999%") == 0);
	EXPECT(strcmp(top_text_age(to, 0), "-") == 0);
	EXPECT(strcmp(top_text_age(to, 7), "1us") == 0);
	EXPECT(strcmp(top_text_age(to, 12345678), "12ms") == 0);
	EXPECT(strcmp(top_text_age(to, 24150000000), "24.1s") == 0);
	EXPECT(strcmp(top_text_age(to, 192 * SECOND_NS), "3m12s") == 0);
	EXPECT(strcmp(top_text_age(to, 7500 * SECOND_NS), "2h05m") == 0);
	EXPECT(strcmp(top_text_age(to, 3 * 86400 * SECOND_NS), "3d00h") == 0);
	EXPECT_THAT("no age is wider than its column", strlen(top_text_age(to, UINT64_MAX)) <= 6);
}

/* A number never gets wider because it is rounded: the limits on both sides. */
static void test_number_limits(void)
{
	static const struct {
		double per_s;
		const char *text;
	} rates[] = {
		{ 0.0949, "0.09" }, { 0.095, "0.1" },	{ 9.94, "9.9" },       { 9.95, "10" },
		{ 999.49, "999" },  { 999.5, "1.0k" },	{ 99949, "99.9k" },    { 99950, "100k" },
		{ 999499, "999k" }, { 999500, "1.0M" }, { 99.949e6, "99.9M" }, { 99.95e6, "100M" },
		{ -1, "-" },	    { INFINITY, "-" },
	};
	static const struct {
		double bytes_per_s;
		const char *text;
	} bandwidths[] = {
		{ 0, "0 B/s" },	       { 999.4, "999 B/s" },  { 999.5, "1.00 kB/s" },
		{ 9994, "9.99 kB/s" }, { 9996, "10.0 kB/s" }, { 99940, "99.9 kB/s" },
		{ 99951, "100 kB/s" }, { 5e12, "5.00 TB/s" }, { 5e15, "5.00 PB/s" },
		{ 5e18, "5000 PB/s" }, { -1, "-" },	      { 9995, "10.0 kB/s" },
		{ 99950, "100 kB/s" },
	};
	static const struct {
		uint64_t ns;
		const char *text;
	} ages[] = {
		{ 1, "1us" },
		{ US_NS - 1, "1us" },
		{ 2 * US_NS, "2us" },
		{ MS_NS - 1, "999us" },
		{ MS_NS, "1ms" },
		{ SECOND_NS - 1, "999ms" },
		{ SECOND_NS, "1.0s" },
		{ 60 * SECOND_NS - 1, "59.9s" },
		{ 60 * SECOND_NS, "1m00s" },
		{ 3600 * SECOND_NS - 1, "59m59s" },
		{ 3600 * SECOND_NS, "1h00m" },
		{ 86400 * SECOND_NS - 1, "23h59m" },
		{ 86400 * SECOND_NS, "1d00h" },
		{ UINT64_C(99) * 86400 * SECOND_NS + 3600 * SECOND_NS, "99d01h" },
		{ UINT64_C(100) * 86400 * SECOND_NS, ">99d" },
	};
	char to[TOP_TEXT_NUMBER];

	for (size_t i = 0; i < ARRAY_LENGTH(rates); i++)
		EXPECT_THAT(rates[i].text,
			    strcmp(top_text_rate(to, rates[i].per_s), rates[i].text) == 0);
	for (size_t i = 0; i < ARRAY_LENGTH(bandwidths); i++)
		EXPECT_THAT(bandwidths[i].text,
			    strcmp(top_text_bandwidth(to, bandwidths[i].bytes_per_s),
				   bandwidths[i].text) == 0);
	for (size_t i = 0; i < ARRAY_LENGTH(ages); i++)
		EXPECT_THAT(ages[i].text, strcmp(top_text_age(to, ages[i].ns), ages[i].text) == 0);
	EXPECT(strcmp(top_text_share(to, 0.0099), "<1%") == 0 &&
	       strcmp(top_text_share(to, 0.01), "1%") == 0 &&
	       strcmp(top_text_share(to, 9.99), "999%") == 0 &&
	       strcmp(top_text_share(to, -0.1), "-") == 0);
}

/* Marks that change what is around them are shown as '?'; their neighbours are not. */
static void test_marks(void)
{
	static const char *const marks[] = {
		"\u00ad", "\u061c", "\u180e", "\u200b", "\u200f", "\u2028", "\u202e",	  "\u2060",
		"\u206f", "\ufe00", "\ufe0f", "\ufeff", "\ufff9", "\ufffb", "\U000e0001", "\x7f",
	};
	static const char *const others[] = { "\u2010",	    "\u2027",	  "\u2070",
					      "\ufffd",	    "\u00e9",	  "\u0800",
					      "\U00010000", "\U0001f600", "~" };
	struct top_canvas canvas;
	char wanted[16];

	top_canvas_init(&canvas, true);
	for (size_t i = 0; i < ARRAY_LENGTH(marks); i++) {
		top_canvas_clear(&canvas, 6, 1);
		top_canvas_text(&canvas, 0, 0, 6, TOP_PLAIN, marks[i]);
		EXPECT(is_line(&canvas, "?\n"));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		top_canvas_clear(&canvas, 6, 1);
		top_canvas_text(&canvas, 0, 0, 6, TOP_PLAIN, others[i]);
		snprintf(wanted, sizeof(wanted), "%s\n", others[i]);
		EXPECT(is_line(&canvas, wanted));
	}
	top_canvas_release(&canvas);
}

static void test_style(void)
{
	struct top_canvas canvas;
	unsigned int wrong = 0;

	top_canvas_init(&canvas, true);
	top_canvas_clear(&canvas, 6, 2);
	top_canvas_text(&canvas, 1, 0, 2, TOP_ALARM, "ab");
	top_canvas_style(&canvas, 1, TOP_WARNING, false);
	for (unsigned int i = 0; i < 6; i++) {
		wrong += top_canvas_cell(&canvas, 0, i)->style != TOP_PLAIN;
		wrong += top_canvas_cell(&canvas, 1, i)->style != (i < 2 ? TOP_ALARM : TOP_WARNING);
	}
	EXPECT_THAT("a row gets a style where it has none", wrong == 0);
	top_canvas_style(&canvas, 1, TOP_WARNING, true);
	EXPECT_THAT("or everywhere", top_canvas_cell(&canvas, 1, 0)->style == TOP_WARNING &&
					     top_canvas_cell(&canvas, 1, 5)->style == TOP_WARNING);
	top_canvas_style(&canvas, 2, TOP_ALARM, true);
	EXPECT(top_canvas_cell(&canvas, 1, 5)->style == TOP_WARNING);
	top_canvas_release(&canvas);
}

static void test_widths(void)
{
	size_t skip;

	EXPECT_EQUAL(top_text_width("dp", true), 2);
	EXPECT_THAT("a wide character takes two columns", top_text_width("訓練", true) == 4);
	EXPECT_THAT("a combining mark takes none", top_text_width("e\xcc\x81", true) == 1);
	EXPECT_THAT("a bidirectional control is one '?'",
		    top_text_width("\xe2\x80\xae", true) == 1);
	EXPECT_THAT("each invalid UTF-8 byte is one '?'",
		    top_text_width("\xff\xc0\xaf", true) == 3);
	EXPECT_THAT("C1 control characters are one '?'", top_text_width("\xc2\x9b", true) == 1);
	EXPECT_THAT("without UTF-8 a character is one '?'", top_text_width("訓練", false) == 2);
	EXPECT_EQUAL(top_text_line("one two three", 8, true, &skip), 7);
	EXPECT_EQUAL(skip, 1);
	EXPECT_THAT("a word longer than the line is split",
		    top_text_line("incomprehensible", 5, true, &skip) == 5 && skip == 0);
	EXPECT_THAT("a line is never empty", top_text_line("訓練", 1, true, &skip) == 3);
}

static void test_canvas(void)
{
	struct top_canvas canvas;

	top_canvas_init(&canvas, true);
	EXPECT(top_canvas_clear(&canvas, 6, 1) == OK);
	EXPECT_EQUAL(top_canvas_text(&canvas, 0, 0, 6, TOP_PLAIN, "abcdefgh"), 6);
	EXPECT_THAT("cut text ends with ~", is_line(&canvas, "abcde~\n"));
	top_canvas_clear(&canvas, 6, 1);
	top_canvas_text(&canvas, 0, 0, 4, TOP_PLAIN, "a訓練");
	EXPECT_THAT("a wide character that does not fit is not drawn", is_line(&canvas, "a訓~\n"));
	EXPECT(top_canvas_cell(&canvas, 0, 2)->is_second);
	top_canvas_clear(&canvas, 6, 1);
	top_canvas_text(&canvas, 0, 0, 6, TOP_PLAIN,
			"\xcc\x81"
			"e\xcc\x81\xcc\x82\xcc\x83\xcc\x84x");
	EXPECT_THAT("at most two combining marks per character are kept, and none without a base",
		    is_line(&canvas, "e\xcc\x81\xcc\x82x\n"));
	top_canvas_clear(&canvas, 6, 1);
	top_canvas_right(&canvas, 0, 0, 6, TOP_ALARM, "訓");
	EXPECT_THAT("right alignment counts wide characters", is_line(&canvas, "    訓\n"));
	EXPECT_EQUAL(top_canvas_cell(&canvas, 0, 4)->style, TOP_ALARM);
	top_canvas_clear(&canvas, 6, 1);
	top_canvas_right(&canvas, 0, 0, 4, TOP_PLAIN, "abcdef");
	EXPECT(is_line(&canvas, "abc~\n"));
	top_canvas_clear(&canvas, 6, 1);
	top_canvas_text(&canvas, 0, 0, 6, TOP_PLAIN, "訓\xcc\x81x");
	EXPECT_THAT("a mark after a wide character belongs to it",
		    top_canvas_cell(&canvas, 0, 0)->characters[1] == 0x301 &&
			    top_canvas_cell(&canvas, 0, 1)->characters[1] == 0 &&
			    top_canvas_cell(&canvas, 0, 2)->characters[1] == 0);
	EXPECT_EQUAL(top_canvas_text(&canvas, 0, 3, 0, TOP_PLAIN, "x"), 0);
	EXPECT(is_line(&canvas, "訓\xcc\x81x\n"));
	EXPECT_THAT("drawing outside the canvas is ignored",
		    top_canvas_text(&canvas, 1, 0, 6, TOP_PLAIN, "x") == 0 &&
			    top_canvas_text(&canvas, 0, 6, 6, TOP_PLAIN, "x") == 0 &&
			    top_canvas_text(&canvas, 0, 5, 99, TOP_PLAIN, "xy") == 1);
	EXPECT_THAT("an oversized canvas is limited", top_canvas_clear(&canvas, 1000000, 2) == OK &&
							      canvas.width == TOP_CANVAS_WIDTH_MAX);
	canvas.is_utf8 = false;
	top_canvas_clear(&canvas, 6, 1);
	top_canvas_text(&canvas, 0, 0, 6, TOP_PLAIN, "a訓\x1b[2J");
	EXPECT_THAT("without UTF-8 the output is ASCII", is_line(&canvas, "a??[2J\n"));
	top_canvas_release(&canvas);
}

static void test_minute(void)
{
	struct live_point points[60];
	struct live_history history = { .points = points, .count = 60, .next = 60 };
	uint64_t now_ns = 1000 * SECOND_NS;
	char to[TOP_BARS_TEXT];

	for (uint64_t i = 0; i < 60; i++)
		points[i] = (struct live_point){ .wall_ns = now_ns - (59 - i) * SECOND_NS,
						 .busbw = i < 30 ? 1e9f : 8e9f };
	EXPECT(strcmp(top_bars_minute(to, &history, now_ns, 8, true), "▁▁▁▁████") == 0);
	EXPECT(strcmp(top_bars_minute(to, &history, now_ns, 8, false), "____####") == 0);
	for (int i = 45; i < 60; i++)
		points[i].busbw = NAN;
	EXPECT_THAT("blank where nothing finished",
		    strcmp(top_bars_minute(to, &history, now_ns, 8, true), "▁▁▁▁██  ") == 0);
	EXPECT_THAT("a history that stopped moves left",
		    strcmp(top_bars_minute(to, &history, now_ns + 30 * SECOND_NS, 8, true),
			   "██      ") == 0);
	for (uint64_t i = 0; i < 35; i++)
		points[i] = (struct live_point){ .wall_ns = now_ns - (34 - i) * SECOND_NS,
						 .busbw = i < 5 ? 8e9f : 1e9f };
	history.count = 35;
	history.next = 35;
	EXPECT_THAT("the highest bar is full, wherever it is",
		    strcmp(top_bars_minute(to, &history, now_ns, 4, true), "██▁▁") == 0);
	for (int i = 0; i < 35; i++)
		points[i].busbw = 0;
	EXPECT_THAT("no bandwidth at all is a flat line",
		    strcmp(top_bars_minute(to, &history, now_ns, 4, true), "▁▁▁▁") == 0);
	history.next = 60;
	history.count = 1;
	points[0] = (struct live_point){ .wall_ns = now_ns, .busbw = 5 };
	EXPECT_THAT("one refresh is one block",
		    strcmp(top_bars_minute(to, &history, now_ns, 8, true), "       █") == 0);
	history.count = 2;
	points[1] = (struct live_point){ .wall_ns = now_ns, .busbw = 5 };
	points[0].wall_ns = now_ns - 60 * SECOND_NS;
	EXPECT_THAT("refreshes far apart leave no holes",
		    strcmp(top_bars_minute(to, &history, now_ns, 4, true), "████") == 0);
	for (uint64_t i = 0; i < 9; i++)
		points[i] = (struct live_point){ .wall_ns = now_ns - (7 - i) * 7500000000,
						 .busbw = (float)(i + 1) };
	history.next = history.count = 9;
	EXPECT_THAT("eighths of the highest; what is later than now is left out",
		    strcmp(top_bars_minute(to, &history, now_ns, 8, true), "▁▂▃▄▅▆▇█") == 0);
	history.count = 0;
	EXPECT(strcmp(top_bars_minute(to, &history, now_ns, 3, true), "   ") == 0);
	EXPECT(strcmp(top_bars_minute(to, &history, now_ns, 0, true), "") == 0);
	EXPECT(strlen(top_bars_minute(to, &history, now_ns, 9999, true)) == TOP_BARS_COLUMNS);
}

static void test_share(void)
{
	char to[TOP_BARS_TEXT];

	EXPECT(strcmp(top_bars_share(to, 0.5, 4, true), "██  ") == 0);
	EXPECT(strcmp(top_bars_share(to, 0.5625, 2, true), "█▏") == 0);
	EXPECT_THAT("a small value is drawn",
		    strcmp(top_bars_share(to, 0.0001, 4, true), "▏   ") == 0);
	EXPECT(strcmp(top_bars_share(to, NAN, 2, true), "  ") == 0);
	EXPECT(strcmp(top_bars_share(to, 77, 2, true), "██") == 0);
	EXPECT(strcmp(top_bars_share(to, 0.5, 4, false), "##  ") == 0);
	EXPECT(strcmp(top_bars_share(to, 0.01, 4, false), "#   ") == 0);
	EXPECT(strcmp(top_bars_share(to, -0.5, 2, true), "  ") == 0);
	for (int i = 0; i <= 16; i++) {
		static const char *const eighths[] = {
			" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"
		};
		char wanted[16];

		snprintf(wanted, sizeof(wanted), "%s%s", eighths[i < 8 ? i : 8],
			 eighths[i < 8 ? 0 : i - 8]);
		EXPECT(strcmp(top_bars_share(to, i / 16.0, 2, true), wanted) == 0);
		snprintf(wanted, sizeof(wanted), "%s%s", i > 0 ? "#" : " ", i >= 12 ? "#" : " ");
		EXPECT(strcmp(top_bars_share(to, i / 16.0, 2, false), wanted) == 0);
	}
}

int main(void)
{
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		return tap_skip_all("locale C.UTF-8 is not available");
	test_numbers();
	test_number_limits();
	test_marks();
	test_style();
	test_widths();
	test_canvas();
	test_minute();
	test_share();
	return tap_done();
}
