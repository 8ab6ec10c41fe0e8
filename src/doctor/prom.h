/*
 * A job through Prometheus: a fixed list of instant queries, and their answers as a recording (for job.h,
 * hang.h, coverage.h) and as sums (for slow_sums.h). Nothing here talks to anybody: who calls sends the
 * queries and hands over what came back.
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
 * Queries may be sent in any order and several at once. One that fails leaves its part of the picture
 * unknown: the first three (PROM_NEEDED) are needed, without the others verdicts are weaker. Answers of
 * error pages, other programs and damaged ones are refused with a line; nothing of them is believed.
 *
 * What is different from recordings of agents (docs/DOCTOR.md, "Through Prometheus"): each member has one
 * operation in flight, its oldest, and the collective before it; signatures have 52 bits; the recorder's clock
 * is Prometheus' own, in nanoseconds since 1970, and a process's "now" is its last scrape (counts_ns, so that
 * hang_options.now_ns can be NULL); counts are known only of communicators in which somebody stands.
 */
#ifndef PROM_H
#define PROM_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "doctor/hang.h"
#include "doctor/slow_sums.h"
#include "doctor/verdict.h"
#include "recording/recording.h"

struct prom;

/* An answer may have so many bytes: 16,384 ranks in four communicators take a tenth of it. */
#define PROM_ANSWER_MAX ((size_t)512 << 20)

enum {
	PROM_NEEDED = 3,     /* without one of the first three there is nothing to say */
	PROM_WHY_SIZE = 400, /* enough for every line */
};

struct prom_options {
	const char *job;  /* only jobs of this name (label nccl_job); NULL or "": all */
	uint64_t hang_ns; /* as hang_options.hang_ns; 0: 20 s */
	unsigned int
		window_s; /* "now" for slowness: the last so many seconds; 0: 300. At least four scrapes */
	unsigned int
		past_s; /* "before": the same stretch so long ago; 0: 3600, else 900 where the job is younger */
};

/* NULL: no memory. Texts of the options are copied. */
struct prom *prom_new(const struct prom_options *options);
void prom_free(struct prom *prom); /* NULL is fine */

/* The i-th query: as PromQL for people, and as what comes behind the server's address, encoded:
 * "/api/v1/query?query=...". GET; under 8 KiB. NULL past the last. Valid until prom_free(). */
const char *prom_query(const struct prom *prom, size_t i);
const char *prom_path(const struct prom *prom, size_t i);
/* What it is for, for an error line: "processes", "communicators" ... */
const char *prom_name(const struct prom *prom, size_t i);

/*
 * The answer to the i-th query, as it came; the HTTP status does not matter. bytes are not kept. Each query
 * once. ERR_FORMAT: `why` says what, and nothing of it is taken. ERR_NO_SPACE: memory, or above
 * PROM_ANSWER_MAX; `why` says which.
 */
enum status prom_take(struct prom *prom, size_t i, const void *bytes, size_t length, char *why,
		      size_t why_size);

/* After the last answer: adds a process for each one that agents tell of, in the order recording_finish()
 * leaves behind; do not call that one. `recording` is as recording_init() left it and becomes the caller's to
 * release. ERR_NO_SPACE (memory). */
enum status prom_finish(struct prom *prom, struct recording *recording);

/* After prom_finish(): agents that Prometheus could not scrape, silent, their problem telling which ranks they
 * had. Valid until prom_free(). */
const struct hang_source *prom_sources(const struct prom *prom, size_t *count);

/* After prom_finish(): slow_find_sums() for each job, over as much of the stretch as the job runs. `before` and
 * `now_wall_ns` of the options are filled in here. ERR_NO_SPACE (memory). */
enum status prom_slow(const struct prom *prom, struct verdicts *verdicts,
		      const struct slow_sums_options *options);

/* The figures behind it, of all jobs, by job; texts valid until prom_free(). prom_before() is NULL when nothing is
 * known of before. */
const struct slow_sums *prom_now(const struct prom *prom);
const struct slow_sums *prom_before(const struct prom *prom);

/* After prom_finish(). When Prometheus answered, ns since 1970, 0 unknown; and the age of the oldest scrape that
 * was used. */
uint64_t prom_wall_ns(const struct prom *prom);
uint64_t prom_scrape_age_ns(const struct prom *prom);

/* Series that were of no use (labels missing or not to be read), and what Prometheus itself warned of (a store
 * that did not answer, a result that was cut); "" nothing. */
size_t prom_odd_series(const struct prom *prom);
const char *prom_warning(const struct prom *prom);

#endif
