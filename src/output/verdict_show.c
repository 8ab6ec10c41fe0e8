/* Verdicts as text and as JSON, and the runbooks. */
#include "output/verdict_show.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/attributes.h"
#include "common/text.h"
#include "output/table.h"

enum { VERDICT_TEXT_WIDTH = 80 };

/* The state of each communicator, as a table below the verdicts. */

enum { ROWS = 4 }; /* --all shows the rest */

static void put_comm(struct table *table, const struct job *job, const struct scene_comm *comm)
{
	const struct job_comm *of = &job->comms[comm->comm];
	char number[UNITS_TEXT];

	table_cell(table, of->label);
	if (of->nranks > 0)
		table_cellf(table, "%d", of->nranks);
	else
		table_cell(table, "?");
	table_cellf(table, "%u", comm->open);
	table_cellf(table, "%u", comm->inside);
	if (comm->function[0] == '\0')
		table_cell(table, "-");
	else if (comm->number > 0)
		table_cellf(table, "%s #%" PRIu64, comm->function, comm->number);
	else
		table_cell(table, comm->function);
	table_cell(table, comm->age_ns > 0 ? units_duration(number, comm->age_ns) : "-");
	if (comm->least_issued > comm->most_issued)
		table_cell(table, "?");
	else if (comm->least_issued == comm->most_issued)
		table_cellf(table, "%" PRIu64, comm->most_issued);
	else
		table_cellf(table, "%" PRIu64 "-%" PRIu64, comm->least_issued, comm->most_issued);
}

/* look->scene must be set. Returns ERR_NO_SPACE (out of memory) or the sink's status. */
static enum status verdict_comms_text(struct sink *sink, const struct verdict_look *look,
				      const struct verdict_text_options *options)
{
	static const struct table_column columns[] = {
		{ "COMMUNICATOR", TABLE_LEFT, 8 }, { "RANKS", TABLE_RIGHT, 0 },
		{ "SEEN", TABLE_RIGHT, 0 },	   { "INSIDE", TABLE_RIGHT, 0 },
		{ "OLDEST", TABLE_LEFT, 8 },	   { "FOR", TABLE_RIGHT, 0 },
		{ "ISSUED", TABLE_RIGHT, 0 },
	};
	const struct scene *scene = look->scene;
	size_t count = 0, shown;
	struct table *table = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	enum status status;

	if (table == NULL)
		return ERR_NO_SPACE;
	/* Communicators that no rank is in come last. */
	while (count < scene->comm_count && (options->has_all || scene->comms[count].inside > 0))
		count++;
	/* "... and 1 more" would take as much room as the row itself. */
	shown = options->has_all || count <= ROWS + 1 ? count : ROWS;
	for (size_t i = 0; i < shown; i++)
		put_comm(table, look->job, &scene->comms[i]);
	sink_text(sink, "\n");
	status = table_write(table, sink, options->width);
	table_free(table);
	if (shown < count)
		sink_format(sink, "... and %zu more: --all\n", count - shown);
	return status;
}

/*
 * Each line has a label:
 *
 *	error       rank 5 has not called AllReduce #812 of world; 7 ranks wait
 *	            since 2026-11-15 03:17:02 UTC, for 40 s
 *	evidence    - ...
 *	confidence  96%
 *	caveat      - ...
 *	next steps  - ...
 *	              $ ...
 *	runbook     ringside help nccl-hang-rank-missing
 */

/* What fits on a screen; --all shows the rest. */
enum { MARGIN = 12, WHOLE = 3, TITLES = 12, EVIDENCE = 4, CAVEATS = 3, STEPS = 8, LINE = 1100 };

/* Operations in flight for longer than this are mentioned. */
#define LONG_IN_FLIGHT_NS ((uint64_t)1000000000)

/* ---- building blocks ------------------------------------------------------------------------- */

static unsigned int sentence_width(const struct verdict_text_options *options)
{
	return options->width > 0 ? options->width : VERDICT_TEXT_WIDTH;
}

enum paint { PAINT_NONE, PAINT_ERROR, PAINT_WARNING, PAINT_NOTE, PAINT_GOOD, PAINT_TITLE };

static void put_paint(struct sink *sink, const struct verdict_text_options *options,
		      enum paint paint)
{
	static const char *const codes[] = {
		[PAINT_ERROR] = "\033[1;31m", [PAINT_WARNING] = "\033[1;33m",
		[PAINT_NOTE] = "\033[1;36m",  [PAINT_GOOD] = "\033[1;32m",
		[PAINT_TITLE] = "\033[1m",
	};

	if (options->has_colour && paint != PAINT_NONE)
		sink_text(sink, codes[paint]);
}

static void end_paint(struct sink *sink, const struct verdict_text_options *options,
		      enum paint paint)
{
	if (options->has_colour && paint != PAINT_NONE)
		sink_text(sink, "\033[0m");
}

/* A label and the text next to it. `before` precedes the first line only. */
static void put_line(struct sink *sink, const char *word, const char *before, const char *text,
		     const struct verdict_text_options *options)
{
	char clean[LINE], first[2 * MARGIN + 1];

	text_from_field(clean, sizeof(clean), text, strlen(text));
	text_format(first, sizeof(first), "%-*s%s", MARGIN, word, before);
	table_wrap(sink, clean, first, MARGIN + strlen(before), sentence_width(options));
}

/* Appends a part of a sentence, with "; " between parts. */
static PRINTF_LIKE(3, 4) void join_piece(char *text, size_t size, const char *format, ...)
{
	va_list values;
	size_t used;

	if (text[0] != '\0')
		text_append(text, size, "; ");
	used = strlen(text);
	va_start(values, format);
	vsnprintf(text + used, size - used, format, values);
	va_end(values);
}

/* ---- one verdict ----------------------------------------------------------------------------- */

static bool is_cost_in_title(const struct verdict *verdict)
{
	return strstr(verdict->title, " wait") != NULL ||
	       strstr(verdict->title, " blocked") != NULL;
}

static void join_cost(const struct verdict *verdict, char *text, size_t size)
{
	const char *so_far = verdict->dead_wall_ns > 0 ? "" : " so far";
	const char *bound = verdict_cost_word(verdict);

	/* Do not repeat what the title says. */
	if (verdict->victims > 0 && verdict->class != VERDICT_STUCK && !is_cost_in_title(verdict))
		join_piece(text, size, "%u %s for it", verdict->victims,
			   text_which(verdict->victims, "rank waits", "ranks wait"));
	if (verdict->percent > 0) {
		if (verdict->class == VERDICT_SLOW_RANK || verdict->class == VERDICT_SLOW_HOST)
			join_piece(text, size, "waiting for it takes %.3g%% of all ranks' time",
				   verdict->percent);
		else if (verdict->percent < 200)
			join_piece(text, size, "%.3g%% slower", verdict->percent);
		else
			join_piece(text, size, "%.*fx longer", verdict->percent < 900 ? 1 : 0,
				   1 + verdict->percent / 100);
	}
	if (verdict->gpu_hours > 0) {
		if (verdict->gpu_hours >= 0.1)
			join_piece(text, size, "%s%.1f GPU-hours lost%s", bound, verdict->gpu_hours,
				   so_far);
		else
			join_piece(text, size, "%s%.3g GPU-seconds lost%s", bound,
				   verdict->gpu_hours * 3600, so_far);
	}
	if (verdict->money > 0)
		join_piece(text, size, "%.2f at the price given", verdict->money);
}

static void put_circumstances(struct sink *sink, const struct verdict *verdict,
			      const struct verdict_text_options *options)
{
	char text[512] = "", time[UNITS_TEXT], until[UNITS_TEXT], duration[UNITS_TEXT];
	bool has_end = verdict->dead_wall_ns > 0 && verdict->for_ns > 0;

	if (options->has_jobs && verdict->job[0] != '\0')
		join_piece(text, sizeof(text), "job %s", verdict->job);
	if (verdict->since_wall_ns > 0)
		join_piece(text, sizeof(text), "%s %s%s%s UTC%s%s", has_end ? "from" : "since",
			   units_date(time, verdict->since_wall_ns), has_end ? " to " : "",
			   has_end ? units_date(until, verdict->since_wall_ns + verdict->for_ns)
				   : "",
			   verdict->for_ns > 0 ? ", for " : "",
			   verdict->for_ns > 0 ? units_duration(duration, verdict->for_ns) : "");
	else if (verdict->for_ns > 0)
		join_piece(text, sizeof(text), "for %s", units_duration(duration, verdict->for_ns));
	join_cost(verdict, text, sizeof(text));
	if (text[0] != '\0')
		put_line(sink, "", "", text, options);
}

static size_t most_lines(size_t count, size_t most, const struct verdict_text_options *options)
{
	/* "... and 1 more" would take as much room as the line itself. */
	return options->has_all || count <= most + 1 ? count : most;
}

static void put_list(struct sink *sink, const char *word, const struct verdict_lines *lines,
		     size_t most, const struct verdict_text_options *options)
{
	size_t shown = most_lines(lines->count, most, options);
	char rest[80];

	for (size_t i = 0; i < shown; i++) {
		bool is_command = strncmp(lines->list[i], "$ ", 2) == 0;

		put_line(sink, i == 0 ? word : "", is_command ? "  " : "- ", lines->list[i],
			 options);
	}
	if (shown == lines->count)
		return;
	text_format(rest, sizeof(rest), "... and %zu more: --all", lines->count - shown);
	put_line(sink, "", "", rest, options);
}

static void put_confidence(struct sink *sink, const struct verdict *verdict,
			   const struct verdict_text_options *options)
{
	put_line(sink, "confidence", "", verdict_confidence_percent(verdict->confidence).text,
		 options);
}

/* A label and its text. Wrapped before it is painted, because colour codes take no room on the screen. */
static void put_painted(struct sink *sink, const char *word, enum paint word_paint,
			const char *text, enum paint text_paint, unsigned int width,
			const struct verdict_text_options *options)
{
	char clean[LINE], margin[MARGIN + 16];
	struct sink wrapped;

	text_from_field(clean, sizeof(clean), text, strlen(text));
	text_format(margin, sizeof(margin), "%-*s", MARGIN, word);
	sink_init_memory(&wrapped);
	table_wrap(&wrapped, clean, margin, MARGIN, width);
	put_paint(sink, options, word_paint);
	sink_text(sink, margin);
	end_paint(sink, options, word_paint);
	put_paint(sink, options, text_paint);
	if (wrapped.status == OK && wrapped.used > MARGIN)
		sink_write(sink, wrapped.bytes + MARGIN, wrapped.used - MARGIN - 1);
	end_paint(sink, options, text_paint);
	sink_text(sink, "\n");
	sink_release(&wrapped);
}

static void put_title(struct sink *sink, const struct verdict *verdict, size_t number,
		      const struct verdict_text_options *options)
{
	static const enum paint paints[] = {
		[VERDICT_NOTE] = PAINT_NOTE,
		[VERDICT_WARNING] = PAINT_WARNING,
		[VERDICT_ERROR] = PAINT_ERROR,
	};
	char text[sizeof(verdict->title) + 32];

	if (number > 0)
		text_format(text, sizeof(text), "%zu. %s", number, verdict->title);
	else
		text_copy(text, sizeof(text), verdict->title);
	put_painted(sink, verdict_severity_name(verdict->severity), paints[verdict->severity], text,
		    PAINT_TITLE, options->width, options);
}

void verdict_text_one(struct sink *sink, const struct verdict *verdict, size_t number,
		      const struct verdict_text_options *options)
{
	char runbook[VERDICT_RUNBOOK];

	put_title(sink, verdict, number, options);
	put_circumstances(sink, verdict, options);
	put_list(sink, "evidence", &verdict->evidence, EVIDENCE, options);
	if (!verdict->is_unjudged)
		put_confidence(sink, verdict, options);
	put_list(sink, "caveat", &verdict->missing, CAVEATS, options);
	put_list(sink, "next steps", &verdict->advice, STEPS, options);
	if (verdict->page[0] == '\0')
		return;
	put_line(sink, "runbook", "", verdict_runbook(verdict, runbook), options);
}

/* ---- what was examined ----------------------------------------------------------------------- */

static void counted_text(char *text, size_t size, uint64_t count, const char *one, const char *many)
{
	char number[UNITS_TEXT];

	text_format(text, size, "%s %s", units_count(number, count), text_which(count, one, many));
}

/* "512 ranks on 64 hosts, 131 communicators", "24 of 64 ranks on 5 hosts, ...". */
static void who_text(char *text, size_t size, const struct scene *scene)
{
	char ranks[64], hosts[64], comms[64];

	if (scene->missing > 0)
		text_format(ranks, sizeof(ranks), "%zu of %zu ranks", scene->ranks,
			    scene->ranks + scene->missing);
	else
		counted_text(ranks, sizeof(ranks), scene->ranks, "rank", "ranks");
	counted_text(hosts, sizeof(hosts), scene->hosts, "host", "hosts");
	counted_text(comms, sizeof(comms), scene->communicators, "communicator", "communicators");
	text_format(text, size, "%s on %s, %s", ranks, hosts, comms);
}

static void put_head(struct sink *sink, const struct verdict_look *look,
		     const struct verdict_text_options *options)
{
	char text[LINE] = "", clean[LINE], who[256], lines[64], time[UNITS_TEXT];
	const struct scene *scene = look->scene;

	if (scene && scene->processes > 0) {
		who_text(who, sizeof(who), scene);
		if (scene->jobs > 1)
			join_piece(text, sizeof(text), "%zu jobs: %s", scene->jobs, who);
		else
			join_piece(text, sizeof(text), "job%s%s: %s", scene->job[0] ? " " : "",
				   scene->job, who);
	}
	if (look->log_files > 0) {
		counted_text(lines, sizeof(lines), look->log_lines, "line", "lines");
		join_piece(text, sizeof(text), "%s of NCCL logs in %zu %s", lines, look->log_files,
			   text_which(look->log_files, "file", "files"));
	}
	if (look->source)
		join_piece(text, sizeof(text), "from %s", look->source);
	if (look->wall_ns > 0)
		join_piece(text, sizeof(text), "at %s UTC", units_date(time, look->wall_ns));
	text_from_field(clean, sizeof(clean), text, strlen(text));
	table_wrap(sink, clean, "", 0, sentence_width(options));
}

static void life_text(char *text, size_t size, const struct scene *scene)
{
	if (scene_is_dead(scene))
		text_format(text, size, "%s; the cause was not recorded",
			    scene->ended > 0 ? "some processes have ended, the others were killed"
					     : "its processes were killed");
	else if (scene->ended == scene->processes)
		text_format(text, size, "%s",
			    text_which(scene->processes, "its process has ended",
				       "all its processes have ended"));
	else if (scene->ended > 0)
		text_format(text, size, "%zu of %zu processes have ended", scene->ended,
			    scene->processes);
	else
		text[0] = '\0';
}

/* What became slower before that time shows in nothing that is compared here. */
static void put_compared(struct sink *sink, const struct verdict_look *look,
			 const struct verdict_text_options *options)
{
	char text[500] = "compared between ranks", time[UNITS_TEXT];

	if (look->compared_ns > 0)
		text_append(text, sizeof(text), ", and over %s",
			    units_duration(time, look->compared_ns));
	if (look->examined_ns < look->compared_ns)
		text_append(text, sizeof(text), " by what agents kept of it, %s",
			    units_duration(time, look->examined_ns));
	if (!look->has_iterations)
		text_append(text, sizeof(text),
			    ". No iterations were found: what all ranks compute longer does not "
			    "show");
	text_append(text, sizeof(text),
		    ". What is slow everywhere and from their start shows only against a good run: "
		    "`ringside baseline save`, then --baseline.");
	put_line(sink, "speed", "", text, options);
}

/* No trouble was found. */
static void put_calm(struct sink *sink, const struct verdict_look *look,
		     const struct verdicts *verdicts, const struct verdict_text_options *options)
{
	bool is_unknown = scene_answer(look->scene, verdicts) == SCENE_UNKNOWN;
	bool is_partial = is_unknown || verdicts_has_unjudged(verdicts);
	char text[LINE] = "", piece[256], number[UNITS_TEXT], hang[UNITS_TEXT];
	const struct scene *scene = look->scene;

	if (scene && scene->processes > 0) {
		who_text(piece, sizeof(piece), scene);
		join_piece(text, sizeof(text), "%s", piece);
		life_text(piece, sizeof(piece), scene);
		if (piece[0] != '\0')
			join_piece(text, sizeof(text), "%s", piece);
		if (scene->comm_count > 0 && scene->standing == 0)
			join_piece(text, sizeof(text), "no communicator has been stuck for %s",
				   units_duration(hang, look->hang_ns));
		if (scene->comm_count > 0 && scene->last_ns != UINT64_MAX && look->wall_ns > 0)
			join_piece(text, sizeof(text), "the last operation was %s ago",
				   units_duration(number, scene->last_ns));
		if (scene->age_ns >= LONG_IN_FLIGHT_NS)
			join_piece(text, sizeof(text),
				   "the oldest operation has been in flight for %s",
				   units_duration(number, scene->age_ns));
		/* Prometheus is asked for this count only if something is stuck. */
		if (scene->operations > 0)
			join_piece(text, sizeof(text), "%s operations called",
				   units_count(number, scene->operations));
	}
	if (look->log_files > 0)
		join_piece(text, sizeof(text), "nothing to report in NCCL's logs");
	if (text[0] == '\0')
		join_piece(text, sizeof(text), "no processes are being recorded");
	if (scene && scene_is_dead(scene)) {
		put_painted(sink, "dead", PAINT_NOTE, text, PAINT_NONE, sentence_width(options),
			    options);
		return;
	}
	/* What was not judged is listed below. */
	if (is_partial)
		join_piece(text, sizeof(text), "not everything was judged");
	if (is_unknown)
		put_painted(sink, "not judged", PAINT_WARNING, text, PAINT_NONE,
			    sentence_width(options), options);
	else
		put_painted(sink, is_partial ? "no hang" : "healthy",
			    is_partial ? PAINT_NOTE : PAINT_GOOD, text, PAINT_NONE,
			    sentence_width(options), options);
	if (!is_partial && look->has_speed && !look->has_speed_reference)
		put_compared(sink, look, options);
}

/* ---- the whole text -------------------------------------------------------------------------- */

/* Full verdicts for the most important ones, titles for the rest. */
static bool is_whole(const struct verdict *verdict, size_t shown,
		     const struct verdict_text_options *options)
{
	return options->has_all || (verdict->severity > VERDICT_NOTE && shown < WHOLE);
}

static void put_verdicts(struct sink *sink, const struct verdicts *verdicts,
			 const struct verdict_text_options *options)
{
	size_t shown = 0, whole = 0;

	for (; shown < verdicts->count; shown++) {
		const struct verdict *verdict = &verdicts->list[shown];
		size_t number = verdicts->count > 1 ? shown + 1 : 0;

		if (!options->has_all && shown >= whole + TITLES)
			break;
		if (is_whole(verdict, whole, options)) {
			sink_text(sink, "\n");
			verdict_text_one(sink, verdict, number, options);
			whole++;
			continue;
		}
		if (shown == whole)
			sink_text(sink, "\n");
		put_title(sink, verdict, number, options);
	}
	if (shown < verdicts->count)
		sink_format(sink, "... and %zu more: --all\n", verdicts->count - shown);
	if (verdicts->left_out > 0)
		sink_format(sink, "%zu more verdicts were dropped (limit reached)\n",
			    verdicts->left_out);
}

static bool has_hang(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++)
		if (verdict_is_hang(verdicts->list[i].class))
			return true;
	return false;
}

enum status verdict_text(struct sink *sink, const struct verdicts *verdicts,
			 const struct verdict_look *look,
			 const struct verdict_text_options *options)
{
	struct verdict_text_options style = *options;
	enum status status = OK;
	enum scene_answer answer;

	style.has_jobs |= look->scene && look->scene->jobs > 1;
	put_head(sink, look, options);
	answer = scene_answer(look->scene, verdicts);
	if (answer == SCENE_UNKNOWN || !verdicts_has_trouble(verdicts)) {
		sink_text(sink, "\n");
		put_calm(sink, look, verdicts, options);
	}
	put_verdicts(sink, verdicts, &style);
	if (look->scene && look->scene->comm_count > 0 && (options->has_all || has_hang(verdicts)))
		status = verdict_comms_text(sink, look, options);
	return status == OK ? sink->status : status;
}

/* ---- one verdict ----------------------------------------------------------------------------- */

static void put_figure(struct json *json, const char *key, double figure)
{
	json_put_known_double(json, key, figure > 0, figure);
}

static void put_lines(struct json *json, const char *key, const struct verdict_lines *lines)
{
	json_put_array(json, key);
	for (size_t i = 0; i < lines->count; i++)
		json_string(json, lines->list[i]);
	json_end(json);
}

static void put_moment(struct json *json, const char *key, const char *key_ns, uint64_t wall_ns)
{
	char text[UNITS_TEXT];

	json_put_string(json, key, wall_ns > 0 ? units_wall_time(text, wall_ns) : NULL);
	json_put_time_or_null(json, key_ns, wall_ns);
}

static void put_who(struct json *json, const struct verdict *verdict)
{
	json_put_text_or_null(json, "job", verdict->job);
	json_put_natural_or_null(json, "rank", verdict->rank);
	json_put_text_or_null(json, "rank_label", verdict->rank_label);
	json_put_text_or_null(json, "host", verdict->host);
	json_put_natural_or_null(json, "pid", verdict->pid);
	json_put_natural_or_null(json, "gpu", verdict->gpu);
	json_put_natural_or_null(json, "peer", verdict->peer);
	json_put_text_or_null(json, "peer_label", verdict->peer_label);
	json_put_text_or_null(json, "peer_host", verdict->peer_host);
	json_put_natural_or_null(json, "channel", verdict->channel);
	json_put_text_or_null(json, "channels", verdict->channels);
	json_put_text_or_null(json, "communicator", verdict->comm);
	if (verdict->comm_hash != 0)
		json_put_hex(json, "communicator_hash", verdict->comm_hash);
	else
		json_put_null(json, "communicator_hash");
	json_put_natural_or_null(json, "communicator_rank", verdict->comm_rank);
	if (verdict->function[0] == '\0' && verdict->number == 0) {
		json_put_null(json, "operation");
		return;
	}
	json_put_object(json, "operation");
	json_put_text_or_null(json, "function", verdict->function);
	json_put_time_or_null(json, "number", verdict->number);
	json_end(json);
}

void verdict_json_one(struct json *json, const struct verdict *verdict)
{
	char runbook[VERDICT_RUNBOOK];

	json_object(json);
	json_put_string(json, "class", verdict_class_name(verdict->class));
	json_put_string(json, "severity", verdict_severity_name(verdict->severity));
	json_put_string(json, "title", verdict->title);
	json_put_double(json, "confidence", verdict->confidence);
	json_put_string(json, "confidence_word", verdict_confidence_word(verdict->confidence));
	json_put_hex(json, "key", verdict_key(verdict));
	put_who(json, verdict);
	put_moment(json, "since", "since_ns", verdict->since_wall_ns);
	put_moment(json, "dead", "dead_ns", verdict->dead_wall_ns);
	put_figure(json, "seconds", (double)verdict->for_ns / 1e9);
	json_put_unsigned(json, "victims", verdict->victims);
	put_figure(json, "gpu_hours", verdict->gpu_hours);
	put_figure(json, "money", verdict->money);
	put_figure(json, "percent", verdict->percent);
	put_figure(json, "cost_percent", verdict->cost_percent);
	json_put_text_or_null(json, "cost_bound",
			      !verdict->is_cost_bound  ? ""
			      : verdict->is_cost_least ? "least"
						       : "most");
	put_figure(json, "cost_least_percent", verdict->cost_least_percent);
	json_put_text_or_null(json, "rule", verdict->rule);
	json_put_text_or_null(json, "place", verdict->place);
	put_lines(json, "evidence", &verdict->evidence);
	put_lines(json, "missing", &verdict->missing);
	put_lines(json, "advice", &verdict->advice);
	json_put_text_or_null(json, "page", verdict->page);
	json_put_text_or_null(json, "runbook", verdict_runbook(verdict, runbook));
	json_end(json);
}

/* ---- the document ---------------------------------------------------------------------------- */

/* NULL if nothing is recorded. */
static void put_scene(struct json *json, const struct scene *scene)
{
	json_put_text_or_null(json, "job", scene ? scene->job : "");
	json_put_natural_or_null(json, "jobs", scene ? (int64_t)scene->jobs : -1);
	json_put_natural_or_null(json, "processes", scene ? (int64_t)scene->processes : -1);
	json_put_natural_or_null(json, "processes_alive", scene ? (int64_t)scene->alive : -1);
	json_put_natural_or_null(json, "processes_ended", scene ? (int64_t)scene->ended : -1);
	json_put_natural_or_null(json, "processes_killed", scene ? (int64_t)scene->killed : -1);
	json_put_natural_or_null(json, "ranks", scene ? (int64_t)scene->ranks : -1);
	json_put_natural_or_null(json, "ranks_missing", scene ? (int64_t)scene->missing : -1);
	json_put_natural_or_null(json, "hosts", scene ? (int64_t)scene->hosts : -1);
	json_put_natural_or_null(json, "communicators", scene ? (int64_t)scene->communicators : -1);
	json_put_natural_or_null(json, "communicators_standing",
				 scene ? (int64_t)scene->standing : -1);
	json_put_natural_or_null(json, "operations", scene ? (int64_t)scene->operations : -1);
	json_put_known_double(json, "last_operation_seconds",
			      scene != NULL && scene->last_ns != UINT64_MAX,
			      scene != NULL ? (double)scene->last_ns / 1e9 : 0);
}

static void put_look(struct json *json, const struct verdict_look *look)
{
	json_put_object(json, "looked_at");
	json_put_string(json, "source", look->source);
	json_put_unsigned(json, "sources", look->sources);
	json_put_unsigned(json, "sources_silent", look->silent);
	json_put_double(json, "hang_seconds", (double)look->hang_ns / 1e9);
	json_put_unsigned(json, "log_files", look->log_files);
	json_put_unsigned(json, "log_lines", look->log_lines);
	json_put_bool(json, "has_speed", look->has_speed);
	json_put_known_double(json, "speed_seconds", look->compared_ns > 0,
			      (double)look->compared_ns / 1e9);
	json_put_known_double(json, "speed_examined_seconds", look->compared_ns > 0,
			      (double)look->examined_ns / 1e9);
	json_put_bool(json, "has_iterations", look->has_iterations);
	json_put_bool(json, "has_speed_reference", look->has_speed_reference);
	put_scene(json, look->scene);
	json_end(json);
}

/* What was not judged, and why: a summary of the verdicts of class blind. */
static void put_unjudged(struct json *json, const struct verdicts *verdicts)
{
	json_put_array(json, "not_judged");
	for (size_t i = 0; i < verdicts->count; i++) {
		const struct verdict *verdict = &verdicts->list[i];

		if (!verdict->is_unjudged)
			continue;
		json_object(json);
		json_put_text_or_null(json, "aspect", verdict->rule);
		json_put_text_or_null(json, "job", verdict->job);
		json_put_text_or_null(json, "communicator", verdict->comm);
		json_put_string(json, "reason", verdict->title);
		put_lines(json, "advice", &verdict->advice);
		json_end(json);
	}
	json_end(json);
}

void verdict_json_open(struct json *json, const struct verdicts *verdicts,
		       const struct verdict_look *look)
{
	json_object(json);
	json_put_string(json, "format", "ringside-doctor");
	json_put_unsigned(json, "version", 1);
	put_moment(json, "time", "time_ns", look->wall_ns);
	json_put_string(json, "answer", scene_answer_name(scene_answer(look->scene, verdicts)));
	json_put_bool(json, "is_healthy", scene_is_healthy(look->scene, verdicts));
	put_look(json, look);
	json_put_array(json, "verdicts");
	for (size_t i = 0; i < verdicts->count; i++)
		verdict_json_one(json, &verdicts->list[i]);
	json_end(json);
	json_put_unsigned(json, "verdicts_left_out", verdicts->left_out);
	put_unjudged(json, verdicts);
}

void verdict_json(struct json *json, const struct verdicts *verdicts,
		  const struct verdict_look *look)
{
	verdict_json_open(json, verdicts, look);
	json_end(json);
}

/* ---- runbooks -------------------------------------------------------------------------------- */

/* hang-network, HangNetwork and HangNetwork.md are the same. */
static bool is_page_name(const char *file, const char *name)
{
	while (*file != '\0' && strcasecmp(file, ".md") != 0) {
		while (*file == '-')
			file++;
		while (*name == '-')
			name++;
		if (strncasecmp(file, name, 1) != 0)
			return false;
		file++;
		name++;
	}
	return *name == '\0' || strcasecmp(name, ".md") == 0;
}

/* All pages, each after a byte 1 and a line with its name: inside the program, so that they are wherever it is. .incbin
 * paths are relative to the root of the tree, where make runs. */
__asm__(".pushsection .rodata\n"
	".globl runbook_pages\n"
	".hidden runbook_pages\n"
	"runbook_pages:\n"
	".incbin \"" RUNBOOK_PAGES "\"\n"
	".byte 0\n"
	".popsection\n");
extern const char runbook_pages[] HIDDEN;

enum { RUNBOOK_START = 1, RUNBOOK_NAME = 64 };

const char *runbook_find(const char *name, size_t *length)
{
	static const char start[] = { RUNBOOK_START, '\0' };

	name += strncmp(name, "runbooks/", 9) == 0 ? 9 : 0;
	name += strncmp(name, "setup/", 6) == 0 ? 6 : 0;
	for (const char *at = runbook_pages; *at == RUNBOOK_START;) {
		size_t name_length = strcspn(at + 1, "\n");
		const char *text = at + 1 + name_length + 1;
		char file[RUNBOOK_NAME];

		*length = strcspn(text, start);
		text_format(file, sizeof(file), "%.*s", (int)name_length, at + 1);
		if (is_page_name(file, name))
			return text;
		at = text + *length;
	}
	return NULL;
}
