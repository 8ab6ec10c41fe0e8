/*
 * Links from sums: an edge whose transfers are on the wire much longer than those of the other edges of its
 * communicator that carry as much. When many stand out it is the structure of the collective, and none is
 * named.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/slow_sums_find.h"

enum { TRANSFERS_LEAST = 32, EDGES_LEAST = 3, MIDDLES_KEPT = 16 };
static const double ratio_that_matters = 2, excess_s = 5e-6;
static const double traffic_that_matters = 0.25, size_alike = 2, size_same = 0.01;

static int by_comm(const struct slow_edge *a, const struct slow_edge *b)
{
	int order = strcmp(a->job, b->job);

	if (order != 0 || a->comm_hash == b->comm_hash)
		return order;
	return a->comm_hash < b->comm_hash ? -1 : 1;
}

static int by_edge(const void *left, const void *right)
{
	const struct slow_edge *a = left, *b = right;
	int order = by_comm(a, b);

	if (order == 0 && a->from != b->from)
		order = a->from < b->from ? -1 : 1;
	if (order == 0 && a->to != b->to)
		order = a->to < b->to ? -1 : 1;
	return order;
}

static int rising(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static double wire(const struct slow_edge *edge)
{
	return edge->wire_seconds / edge->transfers;
}

static bool is_usable(const struct slow_edge *edge)
{
	return edge->comm_hash != 0 && edge->transfers >= TRANSFERS_LEAST &&
	       edge->wire_seconds > 0 && isfinite(edge->transfers) &&
	       isfinite(edge->wire_seconds) && edge->bytes > 0 && isfinite(edge->bytes);
}

/* The middle of those that carry messages of about its size; 0: too few. */
static double middle_of(const struct slow_edge *list, size_t count, const struct slow_edge *edge,
			double *scratch, size_t *alike)
{
	double size = edge->bytes / edge->transfers;

	*alike = 0;
	for (size_t i = 0; i < count; i++) {
		double other = list[i].bytes / list[i].transfers;

		if (other <= size * size_alike && size <= other * size_alike)
			scratch[(*alike)++] = wire(&list[i]);
	}
	if (*alike < EDGES_LEAST)
		return 0;
	qsort(scratch, *alike, sizeof(*scratch), rising);
	return scratch[(*alike - 1) / 2];
}

static void tell(struct sums_search *search, const struct slow_edge *edge, double ratio,
		 double lost_s, size_t alike)
{
	struct verdict *verdict = sums_verdict(search, VERDICT_SLOW_LINK, edge->job, "others");
	const struct sums_seat *from =
		sums_table_seat(&search->table, edge->job, edge->comm_hash, edge->from);
	const struct sums_seat *to =
		sums_table_seat(&search->table, edge->job, edge->comm_hash, edge->to);

	verdict->comm_hash = edge->comm_hash;
	verdict->comm_rank = edge->from;
	text_copy(verdict->comm, sizeof(verdict->comm), edge->comm);
	if (from != NULL)
		sums_fill_member(verdict, from->of);
	else
		text_format(verdict->rank_label, sizeof(verdict->rank_label), "%d of %.40s",
			    edge->from, edge->comm);
	if (to != NULL) {
		verdict->peer = to->of->rank;
		text_format(verdict->peer_label, sizeof(verdict->peer_label), "%lld",
			    (long long)to->of->rank);
		text_copy(verdict->peer_host, sizeof(verdict->peer_host), to->of->host);
	}
	verdict->victims =
		from != NULL && from->of->nranks > 0 ? (uint32_t)from->of->nranks - 1 : 0;
	verdict->percent = 100 * (ratio - 1);
	verdict->confidence = 0.85;
	sums_fill_cost(search, verdict, lost_s * (verdict->victims + 1));
	if (to != NULL)
		verdict_title(verdict,
			      "the link from rank %.24s on %.60s to rank %.24s on %.60s is slow",
			      verdict->rank_label, verdict->host, verdict->peer_label,
			      verdict->peer_host);
	else
		verdict_title(verdict, "a link from rank %.24s on %.100s is slow",
			      verdict->rank_label, verdict->host);
	verdict_evidence(verdict,
			 "Its %.0f transfers were on the wire for %s each, %.1f times as long as "
			 "those of the middle of %zu alike edges of %.100s.",
			 edge->transfers, units_of_ns(1e9 * wire(edge)).text, ratio, alike,
			 edge->comm);
	if (to == NULL)
		verdict_missing(verdict, "To whom it sends is not among the metrics.");
	verdict_missing(verdict, "On which channel is not among the metrics.");
	verdict_advice(verdict, "Look at its network port: errors, speed, cable, and the switch "
				"behind it.");
	verdict_advice(verdict, "$ ssh %.200s ibstatus", verdict->host[0] ? verdict->host : "NODE");
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#slowness");
}

static double usual_traffic(const struct slow_edge *list, size_t count, double *scratch)
{
	for (size_t i = 0; i < count; i++)
		scratch[i] = list[i].transfers;
	qsort(scratch, count, sizeof(*scratch), rising);
	return scratch[(count - 1) / 2];
}

/* Middles that were worked out, by size: most edges of a communicator carry the same, and there may be
 * thousands. */
struct middles {
	struct {
		double size, wire;
		size_t alike;
	} known[MIDDLES_KEPT];
	size_t count;
};

static double known_middle(struct middles *middles, const struct slow_edge *list, size_t count,
			   const struct slow_edge *edge, double *scratch, size_t *alike)
{
	double size = edge->bytes / edge->transfers;
	size_t at;

	for (size_t i = 0; i < MIDDLES_KEPT && i < middles->count; i++) {
		if (fabs(middles->known[i].size - size) > size_same * size)
			continue;
		*alike = middles->known[i].alike;
		return middles->known[i].wire;
	}
	at = middles->count++ % MIDDLES_KEPT;
	middles->known[at].size = size;
	middles->known[at].wire = middle_of(list, count, edge, scratch, alike);
	middles->known[at].alike = *alike;
	return middles->known[at].wire;
}

static double stands_out(struct middles *middles, const struct slow_edge *list, size_t count,
			 size_t i, double traffic, double *scratch, size_t *alike)
{
	double middle = known_middle(middles, list, count, &list[i], scratch, alike);

	if (middle <= 0 || list[i].transfers < traffic_that_matters * traffic ||
	    wire(&list[i]) < ratio_that_matters * middle || wire(&list[i]) < middle + excess_s)
		return 0;
	return middle;
}

static void look_at_comm(struct sums_search *search, const struct slow_edge *list, size_t count,
			 double *scratch)
{
	struct middles middles = { .count = 0 };
	double traffic;
	size_t standing_out = 0, alike;

	if (count < EDGES_LEAST)
		return;
	traffic = usual_traffic(list, count, scratch);
	for (size_t i = 0; i < count; i++)
		standing_out += stands_out(&middles, list, count, i, traffic, scratch, &alike) > 0;
	if (standing_out == 0 || standing_out > 1 + count / 16)
		return;
	for (size_t i = 0; i < count; i++) {
		double middle = stands_out(&middles, list, count, i, traffic, scratch, &alike);

		if (middle > 0)
			tell(search, &list[i], wire(&list[i]) / middle,
			     (wire(&list[i]) - middle) * list[i].transfers, alike);
	}
}

static size_t fill(struct slow_edge *list, const struct slow_sums *sums)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < sums->edge_count; i++)
		if (is_usable(&sums->edges[i]))
			list[count++] = sums->edges[i];
	qsort(list, count, sizeof(*list), by_edge);
	for (size_t i = 0; i < count; i++) {
		if (kept == 0 || by_edge(&list[kept - 1], &list[i]) != 0) {
			list[kept++] = list[i];
			continue;
		}
		list[kept - 1].transfers += list[i].transfers;
		list[kept - 1].wire_seconds += list[i].wire_seconds;
		list[kept - 1].bytes += list[i].bytes;
	}
	return kept;
}

void sums_find_links(struct sums_search *search)
{
	struct slow_edge *list = calloc(search->now->edge_count + 1, sizeof(*list));
	double *scratch = calloc(search->now->edge_count + 1, sizeof(*scratch));
	size_t count, next;

	if (list == NULL || scratch == NULL) {
		search->status = ERR_NO_SPACE;
	} else {
		count = fill(list, search->now);
		for (size_t i = 0; i < count; i = next) {
			for (next = i; next < count && by_comm(&list[i], &list[next]) == 0;)
				next++;
			look_at_comm(search, &list[i], next - i, scratch);
		}
	}
	free(list);
	free(scratch);
}
