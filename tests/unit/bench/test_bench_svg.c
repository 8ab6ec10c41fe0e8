/* Charts are well-formed XML for any input: checked with a small parser. */
#include "bench/bench_plot.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "tests/tap.h"

/* ---- XML --------------------------------------------------------------------------------------- */

enum { DEPTH_MAX = 16 };

struct xml {
	const char *at;
	const char *problem;
	char open[DEPTH_MAX][32];
	size_t depth;
	size_t elements;
};

static size_t name_length(const char *at)
{
	size_t length = 0;

	while (isalnum((unsigned char)at[length]) || at[length] == '-' || at[length] == ':')
		length++;
	return length;
}

/* &amp; etc.; no other '&' is allowed. */
static void check_entity(struct xml *xml)
{
	static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;" };

	for (size_t i = 0; i < 4; i++)
		if (strncmp(xml->at, known[i], strlen(known[i])) == 0) {
			xml->at += strlen(known[i]);
			return;
		}
	xml->problem = "a lone &";
}

static void check_character(struct xml *xml)
{
	unsigned char byte = (unsigned char)*xml->at;
	size_t bytes;

	if (byte == '&') {
		check_entity(xml);
		return;
	}
	bytes = byte < 0x80 ? 1 : utf8_bytes((const unsigned char *)xml->at, strlen(xml->at));
	if (bytes == 0 || (byte < ' ' && byte != '\n'))
		xml->problem = "not a character";
	xml->at += bytes;
}

static void check_attributes(struct xml *xml)
{
	while (*xml->at == ' ' && xml->problem == NULL) {
		size_t length = name_length(++xml->at);

		if (length == 0 || xml->at[length] != '=' || xml->at[length + 1] != '"') {
			xml->problem = "invalid attribute";
			return;
		}
		xml->at += length + 2;
		while (*xml->at != '"' && *xml->at != '\0' && xml->problem == NULL) {
			if (*xml->at == '<')
				xml->problem = "a < in an attribute";
			else
				check_character(xml);
		}
		if (*xml->at == '\0')
			xml->problem = "unterminated attribute";
		else
			xml->at++;
	}
}

static void check_begin(struct xml *xml)
{
	size_t length = name_length(++xml->at);

	if (length == 0 || length >= sizeof(xml->open[0]) || xml->depth == DEPTH_MAX) {
		xml->problem = "an element without a name, or too deep";
		return;
	}
	memcpy(xml->open[xml->depth], xml->at, length);
	xml->open[xml->depth++][length] = '\0';
	xml->at += length;
	xml->elements++;
	check_attributes(xml);
	if (strncmp(xml->at, "/>", 2) == 0) {
		xml->depth--;
		xml->at += 2;
	} else if (*xml->at == '>') {
		xml->at++;
	} else if (xml->problem == NULL) {
		xml->problem = "unterminated element";
	}
}

static void check_end(struct xml *xml)
{
	size_t length = name_length(xml->at + 2);

	if (xml->depth == 0 || strlen(xml->open[xml->depth - 1]) != length ||
	    strncmp(xml->open[xml->depth - 1], xml->at + 2, length) != 0 ||
	    xml->at[2 + length] != '>') {
		xml->problem = "end tag of another element";
		return;
	}
	xml->depth--;
	xml->at += length + 3;
}

/* Number of elements; 0: not well-formed. */
static size_t elements_of(const char *text)
{
	struct xml xml = { .at = text };

	while (*xml.at != '\0' && xml.problem == NULL) {
		if (strncmp(xml.at, "</", 2) == 0)
			check_end(&xml);
		else if (*xml.at == '<')
			check_begin(&xml);
		else
			check_character(&xml);
	}
	if (xml.problem == NULL && xml.depth > 0)
		xml.problem = "an element is not closed";
	if (xml.problem != NULL)
		printf("#   %s at byte %td: %.60s\n", xml.problem, xml.at - text, xml.at);
	return xml.problem == NULL ? xml.elements : 0;
}

static size_t occurrences(const char *text, const char *what)
{
	size_t count = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		count++;
	return count;
}

static void test_parser(void)
{
	EXPECT_EQUAL(elements_of("<a b=\"1\"><c/>x &amp; y</a>"), 2);
	EXPECT_EQUAL(elements_of("<a><b></a></b>"), 0);
	EXPECT_EQUAL(elements_of("<a>x & y</a>"), 0);
	EXPECT_EQUAL(elements_of("<a b=\"<\"/>"), 0);
	EXPECT_EQUAL(elements_of("<a>\xff</a>"), 0);
	EXPECT_EQUAL(elements_of("<a>"), 0);
}

/* ---- charts ------------------------------------------------------------------------------------ */

/* Names that try to inject markup. */
static const char nasty[] = "</text><script>alert(\"1\")</script> & \xff\x01 \xef\xbf\xbf \xc3\xbc";

enum { POINTS = 9 };

static void test_lines(void)
{
	double xs[POINTS], ys[POINTS], holes[POINTS];
	struct svg_options options = {
		.id = "a\"b<c-1",
		.title = nasty,
		.description = nasty,
		.x = { nasty, PLOT_BYTES, PLOT_LOG },
		.y = { nasty, PLOT_NS, PLOT_LOG },
		.has_mark = true,
		.mark = 5000,
		.mark_label = nasty,
	};
	struct plot_series series[] = { { nasty, xs, ys, POINTS, false, 0 },
					{ "holes", xs, holes, POINTS, false, 0 },
					{ "model", xs, ys, POINTS, true, 1 } };
	struct sink sink;
	const char *text;

	for (size_t i = 0; i < POINTS; i++) {
		xs[i] = 1024 * pow(4, (double)i);
		ys[i] = 10000 + xs[i] / 10;
		holes[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? 0 : ys[i];
	}
	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_svg_lines(&sink, series, 3, &options), OK);
	text = sink_string(&sink);
	EXPECT_THAT("a line chart is well-formed", elements_of(text) > 40);
	EXPECT_THAT("no part of a name becomes an element", strstr(text, "<script") == NULL);
	EXPECT_THAT("nor of an id", strstr(text, "id=\"abc-1\"") != NULL);
	EXPECT_THAT("no number is missing",
		    strstr(text, "nan") == NULL && strstr(text, "inf") == NULL);
	EXPECT_EQUAL(occurrences(text, "<title>"), 1 + POINTS + POINTS / 3);
	EXPECT_THAT("missing points interrupt their line: three single points",
		    occurrences(strstr(text, "class=\"line s1\" d=\"M"), "h18") >= 1);
	EXPECT_THAT("a derived series has the colour of its original",
		    strstr(text, "class=\"line s0 computed\"") != NULL);
	EXPECT_THAT("nothing is fetched", strstr(text, "http://www.w3.org/2000/svg") != NULL &&
						  occurrences(text, "http") == 1);
	sink_release(&sink);
}

static void test_extremes(void)
{
	static const double xs[] = { 1e-320, 1e308, 3, 3, -5, INFINITY, 0 };
	static const double ys[] = { 1e308, 1e-320, -1e308, 7, 7, 1, -INFINITY };
	struct plot_series series = { "x", xs, ys, 7, false, 0 };

	for (unsigned int i = 0; i < 4; i++)
		for (size_t count = 0; count <= 7; count++) {
			struct svg_options options = { .x = { NULL, PLOT_PLAIN, i & 1 },
						       .y = { NULL, PLOT_PLAIN, i >> 1 },
						       .width = 1,
						       .height = 1 };
			struct sink sink;

			series.count = count;
			sink_init_memory(&sink);
			if (bench_svg_lines(&sink, &series, 1, &options) != OK ||
			    elements_of(sink_string(&sink)) == 0 ||
			    strstr(sink_string(&sink), "nan") != NULL)
				EXPECT_THAT("extreme values are drawn", 0);
			sink_release(&sink);
		}
	EXPECT_THAT("any number, on any axis", 1);
}

static const char *const groups[] = { "AllReduce 1 KiB", "a very long name of a group", nasty };
static const char *const plugins[] = { "none", nasty };

static void test_bars(void)
{
	static const double values[] = { 1, 1.02, NAN, 1.3, 0.99, 0 };
	struct svg_groups bars = { groups, 3, plugins, 2, .values = values };
	struct svg_options options = { .title = "overhead",
				       .y = { "with / without", PLOT_PLAIN, PLOT_LINEAR } };
	struct sink sink;

	for (int is_log = 0; is_log < 2; is_log++) {
		options.y.scale = is_log ? PLOT_LOG : PLOT_LINEAR;
		sink_init_memory(&sink);
		EXPECT_EQUAL(bench_svg_groups(&sink, &bars, &options), OK);
		EXPECT_THAT("a bar chart is well-formed", elements_of(sink_string(&sink)) > 20);
		EXPECT_EQUAL(occurrences(sink_string(&sink), "<g>"), is_log ? 4 : 5);
		sink_release(&sink);
	}
	sink_init_memory(&sink);
	bars.group_count = SVG_GROUPS_MAX + 1;
	EXPECT_EQUAL(bench_svg_groups(&sink, &bars, &options), ERR_RANGE);
	bars.group_count = 0;
	EXPECT_EQUAL(bench_svg_groups(&sink, &bars, &options), OK);
	EXPECT_THAT("a chart without data says so",
		    elements_of(sink_string(&sink)) > 0 &&
			    strstr(sink_string(&sink), "nothing was measured"));
	sink_release(&sink);
}

static struct svg_box box_of(const struct bench_figures *figures)
{
	return (struct svg_box){ .is_there = figures->count > 0,
				 .low = figures->p05,
				 .p25 = figures->p25,
				 .p50 = figures->p50,
				 .p75 = figures->p75,
				 .high = figures->p95,
				 .mean = figures->mean };
}

static void test_boxes(void)
{
	double values[40];
	struct bench_figures figures;
	struct svg_box boxes[6] = { { .is_there = false } };
	struct svg_groups chart = { groups, 3, plugins, 2, .boxes = boxes };
	struct svg_options options = { .title = "times", .y = { "time", PLOT_NS, PLOT_LOG } };
	struct sink sink;

	for (size_t i = 0; i < 40; i++)
		values[i] = 20000 + 500 * (double)i;
	figures = bench_figures_of(values, 40);
	boxes[0] = box_of(&figures);
	boxes[3] = boxes[0];
	boxes[3].mean = NAN;
	sink_init_memory(&sink);
	EXPECT_EQUAL(bench_svg_groups(&sink, &chart, &options), OK);
	EXPECT_THAT("a box plot is well-formed", elements_of(sink_string(&sink)) > 40);
	EXPECT_EQUAL(occurrences(sink_string(&sink), "<g>"), 2);
	EXPECT_EQUAL(occurrences(sink_string(&sink), "box\""), 2);
	EXPECT_EQUAL(occurrences(sink_string(&sink), "<circle"), 1);
	sink_release(&sink);
}

/* Unknown percentiles are omitted; the rest is drawn. */
static void test_few(void)
{
	static const size_t counts[] = { 40, 19, 3 }, lines[] = { 6, 0, 0 },
			    boxes_of[] = { 1, 1, 0 };
	struct svg_options options = { .title = "times", .y = { "time", PLOT_NS, PLOT_LOG } };
	size_t median_lines = 0;
	double values[40];

	for (size_t i = 0; i < 3; i++) {
		struct bench_figures figures;
		struct svg_box box;
		struct svg_groups chart = { groups, 1, plugins, 1, .boxes = &box };
		struct sink sink;

		for (size_t k = 0; k < 40; k++)
			values[k] = 20000 + 500 * (double)k;
		figures = bench_figures_of(values, counts[i]);
		box = box_of(&figures);
		sink_init_memory(&sink);
		EXPECT_EQUAL(bench_svg_groups(&sink, &chart, &options), OK);
		EXPECT_THAT("no invalid value", strstr(sink_string(&sink), "nan") == NULL);
		EXPECT_EQUAL(occurrences(sink_string(&sink), "class=\"line s0\""), lines[i]);
		EXPECT_EQUAL(occurrences(sink_string(&sink), "box\""), boxes_of[i]);
		median_lines += occurrences(sink_string(&sink), "<g>");
		sink_release(&sink);
	}
	EXPECT_THAT("a median is always drawn", median_lines == 3);
}

int main(void)
{
	test_parser();
	test_lines();
	test_extremes();
	test_bars();
	test_boxes();
	test_few();
	return tap_done();
}
