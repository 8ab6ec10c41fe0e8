#include "view/profilers_short.h"

#include <string.h>

#include "common/text.h"
#include "view/profilers_tables.h"

enum { INTERVAL_TEXT = 96 };

/* Behind what is there, after `glue` where there is something. */
static void add(char to[static PROFILERS_SHORT_SENTENCE], const char *glue, const char *text)
{
	size_t used = strlen(to);

	text_format(to + used, PROFILERS_SHORT_SENTENCE - used, "%s%s", glue, text);
}

static void add_complete(char to[static PROFILERS_SHORT_SENTENCE],
			 const struct profilers_comparison *comparison, size_t plugin)
{
	const char *glue = "calls recorded: ";
	char share[PROFILERS_SHORT_TEXT];

	for (unsigned int mode = 1; mode < BENCH_MODES; mode++) {
		struct profilers_which which = PROFILERS_WHICH_ALL;

		if (profilers_jobs_of(comparison, (unsigned int)plugin, mode) == NULL)
			continue;
		which.plugin = (int)plugin;
		which.mode = (int)mode;
		add(to, glue, profilers_share_text(share, comparison, &which));
		add(to, " (", bench_mode_name(mode));
		add(to, ")", "");
		glue = ", ";
	}
}

/* Over all functions and sizes; mode 0: over all modes, too. */
static const struct profilers_overhead *whole(const struct profilers_comparison *comparison,
					      size_t plugin, unsigned int mode, uint8_t clock)
{
	for (size_t i = 0; i < comparison->overhead_count; i++) {
		const struct profilers_overhead *row = &comparison->overhead[i];

		if (row->plugin == plugin && row->clock == clock && row->mode == mode &&
		    row->function == 0 && row->bytes == 0)
			return row;
	}
	return NULL;
}

static void add_ratio(char to[static PROFILERS_SHORT_SENTENCE], const char *what, double ratio,
		      const char *interval)
{
	char text[160];

	text_format(text, sizeof(text), "%s %.3f times that without (%s)", what, ratio, interval);
	add(to, to[0] == '\0' ? "" : "; ", text);
}

static const char *interval_text(char to[static INTERVAL_TEXT],
				 const struct profilers_overhead *row)
{
	if (row->has_interval)
		text_format(to, INTERVAL_TEXT, "%.3f to %.3f: %s", row->ratio.low, row->ratio.high,
			    profilers_verdict_text(row));
	else
		text_copy(to, INTERVAL_TEXT, profilers_verdict_text(row));
	return to;
}

/* All modes together may hide what one of them shows. */
static void add_overhead(char to[static PROFILERS_SHORT_SENTENCE],
			 const struct profilers_comparison *comparison, size_t plugin,
			 uint8_t clock)
{
	const struct profilers_overhead *row = whole(comparison, plugin, 0, clock);
	char interval[INTERVAL_TEXT], text[INTERVAL_TEXT + 64];

	if (row == NULL)
		return;
	add_ratio(to, clock == BENCH_GPU ? "GPU time of a call" : "host time in the call",
		  row->ratio.ratio, interval_text(interval, row));
	for (unsigned int mode = 1; mode < BENCH_MODES; mode++) {
		const struct profilers_overhead *one = whole(comparison, plugin, mode, clock);
		enum profilers_verdict verdict = one ? profilers_verdict(one) : PROFILERS_NOT_KNOWN;

		if ((verdict != PROFILERS_SLOWER && verdict != PROFILERS_FASTER) ||
		    verdict == profilers_verdict(row))
			continue;
		text_format(text, sizeof(text), "%s alone %.3f (%s)", bench_mode_name(mode),
			    one->ratio.ratio, interval_text(interval, one));
		add(to, ", ", text);
	}
}

static void add_training_calls(char to[static PROFILERS_SHORT_SENTENCE],
			       const struct profilers_train *row)
{
	char text[2 * UNITS_TEXT + 64], a[UNITS_TEXT], b[UNITS_TEXT];
	uint64_t issued = 0, recorded = 0;

	for (size_t i = 0; i < OP_FUNCTIONS; i++) {
		issued += row->issued[i];
		recorded += row->recorded[i];
	}
	if (!row->is_read || !row->is_counted)
		return;
	text_format(text, sizeof(text), "calls of the training recorded: %s of %s",
		    units_count(a, recorded), units_count(b, issued));
	add(to, to[0] == '\0' ? "" : "; ", text);
}

static void add_training(char to[static PROFILERS_SHORT_SENTENCE],
			 const struct profilers_comparison *comparison, size_t plugin)
{
	for (size_t i = 0; i < comparison->training_count; i++) {
		const struct profilers_train *row = &comparison->training[i];
		char interval[INTERVAL_TEXT] = "too few runs to say";

		if (row->plugin != plugin)
			continue;
		add_training_calls(to, row);
		if (row->has_interval)
			text_format(interval, sizeof(interval), "%.3f to %.3f: %s",
				    row->slowdown.low, row->slowdown.high,
				    row->slowdown.low > 1    ? "slower"
				    : row->slowdown.high < 1 ? "faster"
							     : "no difference shown");
		if (row->slowdown.ratio > 0)
			add_ratio(to, "time of an epoch", row->slowdown.ratio, interval);
	}
}

const char *profilers_short(char to[static PROFILERS_SHORT_SENTENCE],
			    const struct profilers_comparison *comparison, size_t plugin)
{
	to[0] = '\0';
	add_complete(to, comparison, plugin);
	add_overhead(to, comparison, plugin, BENCH_GPU);
	add_overhead(to, comparison, plugin, BENCH_ISSUE);
	add_training(to, comparison, plugin);
	return to;
}
