#include "doctor/prom.h"

#include <stdlib.h>

#include "common/text.h"
#include "doctor/prom_parts.h"

enum { HANG_S = 20, WINDOW_S = 300, PAST_S = 3600, WINDOW_LEAST_S = 4 };

struct prom *prom_new(const struct prom_options *options)
{
	struct prom *prom = calloc(1, sizeof(*prom));

	if (prom == NULL)
		return NULL;
	text_copy(prom->job, sizeof(prom->job), options->job);
	prom->hang_ns = options->hang_ns ? options->hang_ns : HANG_S * UINT64_C(1000000000);
	prom->window_s = options->window_s ? options->window_s : WINDOW_S;
	if (prom->window_s < WINDOW_LEAST_S)
		prom->window_s = WINDOW_LEAST_S;
	prom->has_past = options->past_s != 0;
	prom->past_s = prom->has_past ? options->past_s : PAST_S;
	prom_text(prom, (struct prom_slice){ NULL, 0 });
	if (prom->status != OK || !prom_make_queries(prom)) {
		prom_free(prom);
		return NULL;
	}
	return prom;
}

static void free_rows(struct prom_rows *rows)
{
	free(rows->list);
	free(rows->index.slots);
}

static void free_texts(struct prom_texts *texts)
{
	for (size_t i = 0; i < texts->block_count; i++)
		free(texts->blocks[i]);
	free(texts->blocks);
	free(texts->list);
	free(texts->index.slots);
}

void prom_free(struct prom *prom)
{
	if (prom == NULL)
		return;
	for (unsigned int i = 0; i < PROM_ASKS; i++) {
		free(prom->queries[i]);
		free(prom->paths[i]);
	}
	free_texts(&prom->texts);
	free(prom->comms);
	free(prom->comm_index.slots);
	free(prom->members);
	free(prom->member_index.slots);
	free(prom->processes);
	free(prom->process_index.slots);
	free(prom->calls);
	free(prom->waits);
	free(prom->downs);
	free(prom->unseen);
	free(prom->since);
	for (unsigned int i = 0; i < PROM_ROWS_STRETCHES; i++) {
		free_rows(&prom->sums[i]);
		free_rows(&prom->edges[i]);
		free(prom->slow_members[i]);
		free(prom->slow_edges[i]);
	}
	free(prom->sources);
	free(prom);
}

const char *prom_query(const struct prom *prom, size_t i)
{
	return i < PROM_ASKS ? prom->queries[i] : NULL;
}

const char *prom_path(const struct prom *prom, size_t i)
{
	return i < PROM_ASKS ? prom->paths[i] : NULL;
}

const char *prom_name(const struct prom *prom, size_t i)
{
	static const char *const names[PROM_ASKS] = {
		[PROM_PROCESSES] = "processes",
		[PROM_MEMBERS] = "communicators",
		[PROM_NUMBERS] = "how far members are",
		[PROM_OLDEST] = "operations in flight",
		[PROM_WAITS] = "what they wait for",
		[PROM_LAST] = "what was called last",
		[PROM_DOWN] = "agents that are down",
		[PROM_UNSEEN] = "ranks of agents that are down",
		[PROM_SINCE] = "since when jobs run",
		[PROM_SUMS_NOW] = "operations now",
		[PROM_SUMS_NOW + 1] = "time in operations now",
		[PROM_SUMS_NOW + 2] = "bytes now",
		[PROM_SUMS_BEFORE] = "operations before",
		[PROM_SUMS_BEFORE + 1] = "time in operations before",
		[PROM_SUMS_BEFORE + 2] = "bytes before",
		[PROM_EDGES_NOW] = "transfers now",
		[PROM_EDGES_NOW + 1] = "time on the wire now",
		[PROM_EDGES_NOW + 2] = "bytes on the wire now",
		[PROM_EDGES_BEFORE] = "transfers before",
		[PROM_EDGES_BEFORE + 1] = "time on the wire before",
		[PROM_EDGES_BEFORE + 2] = "bytes on the wire before",
	};

	(void)prom;
	return i < PROM_ASKS ? names[i] : "?";
}

enum status prom_take(struct prom *prom, size_t i, const void *bytes, size_t length, char *why,
		      size_t why_size)
{
	struct prom_answer answer;
	enum status status;

	text_copy(why, why_size, "");
	if (i >= PROM_ASKS || prom->is_taken[i]) {
		text_copy(why, why_size, "there is no such query, or it was answered before");
		return ERR_FORMAT;
	}
	if (length > PROM_ANSWER_MAX) {
		text_format(
			why, why_size,
			"the answer has %zu MiB, more than the %zu that are read: ask for one job "
			"(--job NAME)",
			length >> 20, PROM_ANSWER_MAX >> 20);
		return ERR_NO_SPACE;
	}
	status = prom->status;
	if (status == OK)
		status = prom_scan(prom, (enum prom_ask)i, bytes, length, prom_take_sample, &answer,
				   why, why_size);
	if (status == OK)
		status = prom->status;
	if (status == ERR_NO_SPACE)
		text_copy(why, why_size,
			  "not enough memory for the answer: ask for one job (--job NAME)");
	if (status != OK)
		return status;
	prom->is_taken[i] = true;
	prom->odd += answer.odd;
	if (prom->warning[0] == '\0')
		text_copy(prom->warning, sizeof(prom->warning), answer.warning);
	return OK;
}

const struct hang_source *prom_sources(const struct prom *prom, size_t *count)
{
	*count = prom->source_count;
	return prom->sources;
}

const struct slow_sums *prom_now(const struct prom *prom)
{
	return &prom->slow[PROM_ROWS_NOW];
}

const struct slow_sums *prom_before(const struct prom *prom)
{
	const struct slow_sums *before = &prom->slow[PROM_ROWS_BEFORE];

	return before->member_count > 0 || before->edge_count > 0 ? before : NULL;
}

uint64_t prom_wall_ns(const struct prom *prom)
{
	return prom->wall_ns;
}

uint64_t prom_scrape_age_ns(const struct prom *prom)
{
	return prom->scrape_age_ns;
}

size_t prom_odd_series(const struct prom *prom)
{
	return prom->odd;
}

const char *prom_warning(const struct prom *prom)
{
	return prom->warning;
}
