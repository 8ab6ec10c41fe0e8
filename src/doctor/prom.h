/*
 * A job through Prometheus: a fixed list of instant queries, and their answers as a recording (for job_make(),
 * hang_find(), scene_make()) and as totals (for slow_find_sums()). Nothing here does network access: the caller sends
 * the queries and passes on the answers.
 *
 *	prom = prom_new(&options);
 *	for (i = 0; prom_path(prom, i) != NULL; i++)
 *		GET URL + prom_path(prom, i), at most PROM_ANSWER_MAX bytes
 *		if (prom_take(prom, i, bytes, length, why, sizeof(why)) != OK)
 *			`why` is one line: what, and what to do. The others can still be taken.
 *	recording_init(&recording);
 *	prom_finish(prom, &recording);      then job_make(), hang_find() with prom_sources()
 *	prom_slow(prom, &verdicts, &slow_options);
 *	recording_release(&recording);
 *	prom_free(prom);
 *
 * Queries may be sent in any order and several at once. If one fails, its part is unknown: the first three
 * (PROM_NEEDED) are required, without the others verdicts are weaker. Error pages, answers of other
 * programs and damaged ones are rejected with a line; nothing of them is used.
 *
 * Differences to recordings from agents (docs/DOCTOR.md, "Through Prometheus"): each rank has one operation
 * in flight, its oldest, and the collective before it; signatures have 52 bits; the recorder's clock is
 * Prometheus' own, in nanoseconds since 1970, and a process's "now" is its last scrape (counts_ns, so that
 * hang_options.now_ns can be NULL); counts are known only of communicators with a stuck rank.
 */
#ifndef PROM_H
#define PROM_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "doctor/doctor.h"
#include "doctor/verdict.h"
#include "recording/recording.h"

struct prom;

/* Maximum size of an answer: 16,384 ranks in four communicators take a tenth of it. */
#define PROM_ANSWER_MAX ((size_t)512 << 20)

enum {
	PROM_NEEDED = 3,     /* without the first three there is nothing to report */
	PROM_WHY_SIZE = 400, /* enough for every line */
};

struct prom_options {
	const char *job;       /* only jobs of this name (label nccl_job); NULL or "": all */
	uint64_t hang_ns;      /* as hang_options.hang_ns; 0: 20 s */
	unsigned int window_s; /* "now" for slowness: the last this many seconds; 0: 300. At
				  least four scrapes */
	unsigned int past_s;   /* "before": the same span this long ago; 0: 3600, or 900 if the
				  job is younger */
};

/* NULL: out of memory. Strings of the options are copied. */
struct prom *prom_new(const struct prom_options *options);
void prom_free(struct prom *prom); /* NULL is allowed */

/* The i-th query: as PromQL for display, and as an encoded path for the server's address:
 * "/api/v1/query?query=...". GET; under 8 KiB. NULL after the last. Valid until prom_free(). */
const char *prom_query(const struct prom *prom, size_t i);
const char *prom_path(const struct prom *prom, size_t i);
/* Its subject, for an error line: "processes", "communicators" ... */
const char *prom_name(const struct prom *prom, size_t i);

/*
 * The answer to the i-th query, as received; the HTTP status does not matter. bytes are not kept. Each
 * query once. ERR_FORMAT: `why` says what, and nothing of it is used. ERR_NO_SPACE: out of memory, or above
 * PROM_ANSWER_MAX; `why` says which.
 */
enum status prom_take(struct prom *prom, size_t i, const void *bytes, size_t length, char *why,
		      size_t why_size);

/*
 * After the last answer: adds a process for each one that agents report, in the order of
 * recording_finish(); do not call that one. `recording` is as recording_init() left it, and the caller
 * releases it. ERR_NO_SPACE (out of memory).
 */
enum status prom_finish(struct prom *prom, struct recording *recording);

/* After prom_finish(): agents that Prometheus could not scrape, as silent sources whose problem lists the
 * ranks they had. Valid until prom_free(). */
const struct hang_source *prom_sources(const struct prom *prom, size_t *count);

/* After prom_finish(): slow_find_sums() for each job, over the part of the span that the job has run.
 * `before` and `now_wall_ns` of the options are filled in here. ERR_NO_SPACE (out of memory). */
enum status prom_slow(const struct prom *prom, struct verdicts *verdicts,
		      const struct slow_sums_options *options);

/* The values behind it, of all jobs, by job; strings are valid until prom_free(). prom_before() is NULL if
 * nothing earlier is known. */
const struct slow_sums *prom_now(const struct prom *prom);
const struct slow_sums *prom_before(const struct prom *prom);

/* After prom_finish(). When Prometheus answered, ns since 1970, 0 unknown. */
uint64_t prom_wall_ns(const struct prom *prom);

/* Unusable series (labels missing or unreadable), and Prometheus' own warnings (a store that did not
 * answer, a truncated result); "" none. */
size_t prom_odd_series(const struct prom *prom);
const char *prom_warning(const struct prom *prom);

#endif
