/* The HTML report: a template, filled with styles, scripts, the chart library and the report's JSON. */
#include "output/report.h"

#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "output/html_escape.h"
#include "output/json.h"

enum { HTML_DATA_VERSION = 3, HTML_ITERATIONS_MAX = 2000 };

/* Several neighbors as one: mean time, bytes and communication; odd if one of them is. */
static void write_some_iterations(struct json *json, const struct iteration *list, size_t count)
{
	uint64_t time_ns = 0, busy_ns = 0, bytes = 0, longest_ns = 0;
	bool is_odd = false;
	size_t timed = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t duration_ns = list[i].end_ns - list[i].start_ns;

		time_ns += duration_ns;
		/* Its communication is known only if all its operations were timed. */
		if (list[i].timed == list[i].ops) {
			busy_ns += list[i].busy_ns;
			timed++;
		}
		bytes += list[i].bytes;
		longest_ns = duration_ns > longest_ns ? duration_ns : longest_ns;
		is_odd |= list[i].is_odd;
	}
	json_array(json);
	json_unsigned(json, list[0].start_ns);
	json_unsigned(json, time_ns / count);
	json_unsigned(json, longest_ns);
	if (timed > 0)
		json_unsigned(json, busy_ns / timed);
	else
		json_null(json);
	json_unsigned(json, bytes / count);
	json_unsigned(json, is_odd);
	json_end(json);
}

/* A long job has more iterations than a chart has pixels. */
static void write_iterations(struct json *json, const struct timeline_report *report)
{
	const struct iterations *from = &report->iterations;
	size_t together = (from->count + HTML_ITERATIONS_MAX - 1) / HTML_ITERATIONS_MAX;

	json_put_object(json, "iterations");
	json_put_string(json, "rank", from->is_found ? report->job.ranks[from->rank].label : NULL);
	json_put_unsigned(json, "together", together);
	json_put_array(json, "list");
	for (size_t i = 0; from->is_found && i < from->count; i += together)
		write_some_iterations(json, &from->list[i],
				      from->count - i < together ? from->count - i : together);
	json_end(json);
	json_end(json);
}

/* Sentences of the text report. */
static void write_words(struct json *json, const struct timeline_report *report)
{
	char words[REPORT_WORDS];
	struct sink text;

	json_put_object(json, "words");
	report_words_nccl(report->recording, words);
	json_put_string(json, "nccl", words);
	report_words_sources(&report->total, words);
	json_put_string(json, "sources", words);
	report_words_timed(&report->total, words);
	json_put_string(json, "timed", words);
	report_words_rates(report, words);
	json_put_string(json, "rates", words);
	report_words_spans(&report->total, words);
	json_put_string(json, "spans", words);
	report_words_not_timed(report, words);
	json_put_string(json, "not_timed", words);
	report_words_lost(report->gpu_hours_waited, report->gpu_hours, words);
	json_put_string(json, "lost", words);
	report_words_lost(report->gpu_hours_hung, report->gpu_hours + report->gpu_hours_hung,
			  words);
	json_put_string(json, "hung", words);
	sink_init_memory(&text);
	report_words_completeness(report, &text);
	json_put_string(json, "completeness", sink_string(&text));
	if (text.status != OK)
		json->sink->status = text.status;
	sink_release(&text);
	json_end(json);
}

static void write_counts(struct json *json, const struct job *job)
{
	json_put_object(json, "counts");
	json_put_unsigned(json, "hosts", job->host_count);
	json_put_unsigned(json, "ranks", job->known_ranks);
	json_put_unsigned(json, "communicators", job->comm_count);
	json_end(json);
}

static void write_page_data(struct json *json, const struct timeline_report *report)
{
	json_object(json);
	json_put_unsigned(json, "version", HTML_DATA_VERSION);
	json_key(json, "report");
	report_json(json, report, REPORT_JSON_PAGE);
	write_words(json, report);
	write_counts(json, &report->job);
	write_iterations(json, report);
	json_end(json);
}

/*
 * The template (src/output/html/report.html) has marks like @STYLE@, which are replaced in one pass, so inserted text is
 * never searched for marks. The data is JSON in a script element of a type that browsers do not run; '<' is escaped, so
 * nothing in it can end that element.
 */

const char *html_report_missing(void)
{
	if (html_report_has_charts())
		return NULL;
	return "this program was built without charts: run scripts/install-npm build, then make";
}

void html_report_options(struct timeline_options *options)
{
	if (options->custom_count < TIMELINE_CUSTOM_MAX)
		options->custom_by[options->custom_count++] = HTML_POINTS_BY;
}

static void write_asset(struct sink *sink, enum html_asset_name name)
{
	struct html_asset asset = html_asset(name);

	sink_write(sink, asset.text, asset.length);
}

/* `text` has a terminating zero after `length` bytes. Bytes that are not UTF-8 become U+FFFD. */
static void write_escaped(struct sink *sink, const char *text, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t sequence = json_utf8_length((const unsigned char *)text + i);

		if (sequence > 0)
			sink_write(sink, text + i, sequence);
		else if ((unsigned char)text[i] >= 0x80)
			sink_text(sink, "&#xfffd;");
		else if (html_escape(text[i]))
			sink_text(sink, html_escape(text[i]));
		else
			sink_byte(sink, text[i]);
		i += sequence ? sequence : 1;
	}
}

void html_write_text(struct sink *sink, const char *text)
{
	write_escaped(sink, text, strlen(text));
}

static void write_title(struct sink *sink, const struct job *job)
{
	const char *name = job->group_count > 0 ? job->groups[0].name : "";

	if (name[0] != '\0')
		write_escaped(sink, name, strlen(name));
	else
		sink_text(sink, "NCCL job");
	if (job->group_count > 1)
		sink_format(sink, " and %zu more", job->group_count - 1);
	sink_text(sink, " - Ringside report");
}

/* Allows only the page's own styles and scripts, by their hashes. */
static void write_policy(struct sink *sink)
{
	static const struct {
		const char *before;
		enum html_asset_name name;
	} parts[] = {
		{ "default-src 'none'; img-src data:; style-src 'sha256-",
		  HTML_ASSET_CHARTS_STYLE },
		{ "' 'sha256-", HTML_ASSET_STYLE },
		{ "'; script-src 'sha256-", HTML_ASSET_CHARTS },
		{ "' 'sha256-", HTML_ASSET_SCRIPT },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
		struct html_asset asset = html_asset(parts[i].name);
		char digest[SHA256_TEXT];

		sink_text(sink, parts[i].before);
		sink_text(sink, sha256_base64(asset.text, asset.length, digest));
	}
	sink_text(sink, "'; base-uri 'none'; form-action 'none'; "
			"require-trusted-types-for 'script'; trusted-types 'none'");
}

/* U+2028 and U+2029 end a line in older JavaScript. Returns the last digit, or 0 for other characters. */
static char line_separator(const char *at)
{
	if (at[0] != '\xe2' || at[1] != '\x80')
		return 0;
	return at[2] == '\xa8' ? '8' : at[2] == '\xa9' ? '9' : 0;
}

/* In JSON these characters occur only inside strings, where they can be escaped. */
static void write_data(struct sink *sink, const char *json)
{
	for (const char *at = json; *at != '\0';) {
		size_t plain = strcspn(at, "<>&\xe2");

		sink_write(sink, at, plain);
		at += plain;
		if (*at == '\0')
			break;
		if (line_separator(at)) {
			sink_format(sink, "\\u202%c", line_separator(at));
			at += 3;
		} else if (*at == '\xe2') {
			sink_byte(sink, *at++);
		} else {
			sink_format(sink, "\\u%04x", (unsigned int)*at++);
		}
	}
}

enum mark { TITLE, POLICY, CHARTS_STYLE, STYLE, CHARTS, SCRIPT, LICENCE, DATA, MARKS };

static const char *const marks[MARKS] = {
	[TITLE] = "@TITLE@",
	[POLICY] = "@POLICY@",
	[CHARTS_STYLE] = "@CHARTS_STYLE@",
	[STYLE] = "@STYLE@",
	[CHARTS] = "@CHARTS@",
	[SCRIPT] = "@SCRIPT@",
	[LICENCE] = "@CHARTS_LICENCE@",
	[DATA] = "@DATA@",
};

static void write_licence(struct sink *sink)
{
	struct html_asset licence = html_asset(HTML_ASSET_CHARTS_LICENCE);

	write_escaped(sink, licence.text, licence.length);
}

static void write_mark(struct sink *sink, enum mark mark, const struct timeline_report *report,
		       const char *data)
{
	switch (mark) {
	case TITLE:
		write_title(sink, &report->job);
		break;
	case POLICY:
		write_policy(sink);
		break;
	case CHARTS_STYLE:
		write_asset(sink, HTML_ASSET_CHARTS_STYLE);
		break;
	case STYLE:
		write_asset(sink, HTML_ASSET_STYLE);
		break;
	case CHARTS:
		write_asset(sink, HTML_ASSET_CHARTS);
		break;
	case SCRIPT:
		write_asset(sink, HTML_ASSET_SCRIPT);
		break;
	case LICENCE:
		write_licence(sink);
		break;
	case DATA:
		write_data(sink, data);
		break;
	case MARKS:
		break;
	}
}

/* The mark at `at`, or MARKS. */
static enum mark find_mark(const char *at, size_t left)
{
	enum mark mark = TITLE;

	while (mark < MARKS &&
	       (strlen(marks[mark]) > left || memcmp(at, marks[mark], strlen(marks[mark])) != 0))
		mark++;
	return mark;
}

static void write_page(struct sink *sink, const struct timeline_report *report, const char *data)
{
	struct html_asset page = html_asset(HTML_ASSET_PAGE);
	const char *end = page.text + page.length;

	for (const char *at = page.text; at < end;) {
		const char *next = memchr(at, '@', (size_t)(end - at));
		enum mark mark;

		next = next ? next : end;
		sink_write(sink, at, (size_t)(next - at));
		mark = find_mark(next, (size_t)(end - next));
		if (mark < MARKS) {
			write_mark(sink, mark, report, data);
			next += strlen(marks[mark]);
		} else if (next < end) {
			sink_byte(sink, *next++);
		}
		at = next;
	}
}

enum status html_report_write(struct sink *sink, const struct timeline_report *report)
{
	struct sink data;
	struct json json;
	enum status status;

	if (!html_report_has_charts())
		return ERR_GONE;
	sink_init_memory(&data);
	json_init(&json, &data);
	write_page_data(&json, report);
	status = json_status(&json);
	if (status == OK) {
		write_page(sink, report, sink_string(&data));
		status = sink->status;
	}
	sink_release(&data);
	return status;
}

/* ---- pages without scripts ------------------------------------------------------------------- */

void html_write_start(struct sink *sink, const char *title)
{
	struct html_asset style = html_asset(HTML_ASSET_STYLE);
	char digest[SHA256_TEXT];

	sink_text(sink,
		  "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		  "img-src data:; style-src 'sha256-");
	sink_text(sink, sha256_base64(style.text, style.length, digest));
	sink_text(sink, "'; base-uri 'none'; form-action 'none'\">\n"
			"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
			"<meta name=\"color-scheme\" content=\"light dark\">\n"
			"<meta name=\"referrer\" content=\"no-referrer\">\n"
			"<meta name=\"generator\" content=\"Ringside\">\n<title>");
	html_write_text(sink, title);
	sink_text(sink, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>");
	write_asset(sink, HTML_ASSET_STYLE);
	sink_text(sink,
		  "</style>\n</head>\n<body>\n<header class=\"bar\"><div class=\"bar-inside\">"
		  "<span class=\"brand\"><svg width=\"18\" height=\"18\" viewBox=\"0 0 16 16\" "
		  "aria-hidden=\"true\"><circle class=\"brand-ring\" cx=\"8\" cy=\"8\" "
		  "r=\"5.5\"></circle><circle class=\"brand-late\" cx=\"12.5\" cy=\"4.5\" "
		  "r=\"3\"></circle></svg>Ringside</span></div></header>\n<main>\n");
}

void html_write_end(struct sink *sink)
{
	sink_text(sink, "</main>\n<footer>\n<p class=\"dim\">Ringside " RINGSIDE_VERSION
			"</p>\n</footer>\n</body>\n</html>\n");
}

/*
 * .incbin paths are relative to the root of the tree, where make runs. The compiler does not see these files, so
 * scripts/build.mk declares the dependencies of this object, including whether the chart library exists.
 */

#define UPLOT "npm/node_modules/uplot/"

#if __has_include("npm/node_modules/uplot/dist/uPlot.iife.min.js") &&           \
		  __has_include("npm/node_modules/uplot/dist/uPlot.min.css") && \
				__has_include("npm/node_modules/uplot/LICENSE")
#define HAS_CHARTS 1
#else
#define HAS_CHARTS 0
#endif

/* Read-only data: a label, the bytes of the file, a label at their end. */
#define ASSET(label, content)                                                           \
	__asm__(".pushsection .rodata\n"                                                \
		".balign 16\n"                                                          \
		".globl html_asset_" #label "\n"                                        \
		".hidden html_asset_" #label "\n"                                       \
		"html_asset_" #label ":\n" content ".globl html_asset_" #label "_end\n" \
		".hidden html_asset_" #label "_end\n"                                   \
		"html_asset_" #label "_end:\n"                                          \
		".byte 0\n"                                                             \
		".popsection\n");                                                       \
	extern const char html_asset_##label[] HIDDEN;                                  \
	extern const char html_asset_##label##_end[] HIDDEN

#define OWN(path) ".incbin \"src/output/html/" path "\"\n"
#if HAS_CHARTS
#define FROM_UPLOT(path) ".incbin \"" UPLOT path "\"\n"
#else
#define FROM_UPLOT(path) ""
#endif

ASSET(page, OWN("report.html"));
ASSET(style, ".incbin \"src/output/palette.css\"\n"
	     ".incbin \"src/output/base.css\"\n" OWN("report.css"));
/* One script: each file uses what those before it define. */
ASSET(script, OWN("base.js") OWN("answer.js") OWN("plot.js") OWN("time.js") OWN("heat.js")
		      OWN("frame.js") OWN("sizes.js") OWN("durations.js") OWN("iterations.js")
			      OWN("tables.js") OWN("report.js"));
ASSET(charts_style, FROM_UPLOT("dist/uPlot.min.css"));
ASSET(charts_licence, FROM_UPLOT("LICENSE"));
ASSET(charts, FROM_UPLOT("dist/uPlot.iife.min.js"));

struct html_asset html_asset(enum html_asset_name name)
{
	static const struct {
		const char *from;
		const char *to;
	} assets[HTML_ASSETS] = {
		[HTML_ASSET_PAGE] = { html_asset_page, html_asset_page_end },
		[HTML_ASSET_STYLE] = { html_asset_style, html_asset_style_end },
		[HTML_ASSET_SCRIPT] = { html_asset_script, html_asset_script_end },
		[HTML_ASSET_CHARTS_STYLE] = { html_asset_charts_style,
					      html_asset_charts_style_end },
		[HTML_ASSET_CHARTS_LICENCE] = { html_asset_charts_licence,
						html_asset_charts_licence_end },
		[HTML_ASSET_CHARTS] = { html_asset_charts, html_asset_charts_end },
	};

	return (struct html_asset){ assets[name].from,
				    (size_t)(assets[name].to - assets[name].from) };
}

bool html_report_has_charts(void)
{
	return HAS_CHARTS;
}
