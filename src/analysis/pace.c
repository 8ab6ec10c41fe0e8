/* Times of transfers in equal parts of a recording: of collectives, and of senders on the wire. */
#include "analysis/timeline_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/search.h"

void paces_release(struct paces *paces)
{
	free(paces->cells);
	free(paces->senders);
	*paces = (struct paces){ .cells = NULL };
}

void pace_add(struct pace_series *to, const struct pace_series *from)
{
	for (unsigned int i = 0; i < PACE_BLOCKS; i++) {
		to->count[i] += from->count[i];
		to->log_sum[i] += from->log_sum[i];
	}
}

static size_t values_of(const struct pace_series *series, double values[static PACE_BLOCKS])
{
	size_t count = 0;

	for (unsigned int i = 0; i < PACE_BLOCKS; i++)
		if (series->count[i] > 0)
			values[count++] = series->log_sum[i] / series->count[i];
	return count;
}

struct stats_sample pace_mean(const struct pace_series *series)
{
	double values[PACE_BLOCKS];

	return stats_batches(values, values_of(series, values));
}

struct stats_sample pace_typical(const struct pace_series *series)
{
	double values[PACE_BLOCKS];

	return stats_typical(values, values_of(series, values));
}

/* ---- parts of a recording -------------------------------------------------------------------- */

/* Collectives of a lane are numbered in the order of time. Ranks may have recorded them with gaps, so their
 * numbers divide the recording, not their count. */
struct division {
	uint64_t first; /* number of a chunk, see match.h */
	uint64_t chunks;
};

static struct division divide(const struct match_lane *lane)
{
	struct division division = { .first = UINT64_MAX };
	uint64_t last = 0;

	for (uint32_t i = 0; i < lane->chunk_count; i++) {
		uint64_t number = lane->briefs[i].number;

		if (lane->briefs[i].occupied == 0)
			continue;
		division.first = number < division.first ? number : division.first;
		last = number > last ? number : last;
	}
	division.chunks = division.first <= last ? last - division.first + 1 : 1;
	return division;
}

static unsigned int block_of(const struct division *division, uint64_t chunk, unsigned int slot)
{
	double place = (double)(chunk - division->first) + (double)slot / MATCH_CHUNK;

	return (unsigned int)(place * PACE_BLOCKS / (double)division->chunks);
}

/* ---- collectives ----------------------------------------------------------------------------- */

static struct tally_key key_of(const struct matches *matches, const struct match_lane *lane,
			       const struct match_kind *kind)
{
	return (struct tally_key){ .tag = kind->tag,
				   .comm = lane->comm,
				   .kind = (uint8_t)matches->job->comms[lane->comm].kind,
				   .function = (uint8_t)kind->names,
				   .datatype = (uint8_t)(kind->names >> 8),
				   .algorithm = (uint8_t)(kind->names >> 16),
				   .protocol = (uint8_t)(kind->names >> 24),
				   .size_class = kind->size_class,
				   .source = lane->source };
}

static void take_slot(struct paces *paces, struct pace_cell *cell, const struct match_slot *slot,
		      unsigned int block, bool has_spans)
{
	if (slot->count < 2 || slot->least_ns == 0)
		return;
	cell->moves++;
	cell->least_ns += (double)slot->least_ns;
	cell->bytes += slot->bytes;
	cell->sized += slot->bytes > 0;
	cell->series.count[block]++;
	cell->series.log_sum[block] += log((double)slot->least_ns);
	if (has_spans)
		return;
	paces->wait_ns[block] += (double)(slot->sum_ns - slot->least_ns * slot->count);
	paces->wait_calls[block] += slot->count;
}

/* cells: one for each kind of the lane's communicator. */
static void take_lane(struct paces *paces, struct pace_cell *cells, const struct match_lane *lane,
		      const struct division *division)
{
	for (uint32_t i = 0; i < lane->chunk_count; i++)
		for (uint32_t bits = lane->briefs[i].occupied; bits != 0; bits &= bits - 1) {
			unsigned int place = (unsigned int)__builtin_ctz(bits);
			const struct match_slot *slot = &lane->chunks[i]->slots[place];

			take_slot(paces, &cells[slot->kind], slot,
				  block_of(division, lane->briefs[i].number, place),
				  match_has_spans(lane));
		}
}

static enum status add_lane(struct paces *paces, const struct matches *matches,
			    const struct match_lane *lane, const struct division *division)
{
	const struct match_comm *comm = &matches->comms[lane->comm];
	struct pace_cell *cells = calloc(comm->kind_count + 1, sizeof(*cells));
	enum status status = cells ? OK : ERR_NO_SPACE;

	if (status == OK)
		take_lane(paces, cells, lane, division);
	for (uint32_t kind = 1; kind < comm->kind_count && status == OK; kind++) {
		if (cells[kind].moves == 0)
			continue;
		if (!list_grow(&paces->cells, paces->cell_count, sizeof(*paces->cells))) {
			status = ERR_NO_SPACE;
			break;
		}
		cells[kind].key = key_of(matches, lane, &comm->kinds[kind]);
		paces->cells[paces->cell_count++] = cells[kind];
	}
	free(cells);
	return status;
}

static int by_kind(const struct tally_key *a, const struct tally_key *b)
{
	return ORDER(a->comm, b->comm) ?:
	       ORDER(a->function, b->function) ?:
	       ORDER(a->size_class, b->size_class) ?:
	       ORDER(a->algorithm, b->algorithm) ?:
	       ORDER(a->protocol, b->protocol);
}

static int by_key(const void *left, const void *right)
{
	const struct tally_key *a = &((const struct pace_cell *)left)->key;
	const struct tally_key *b = &((const struct pace_cell *)right)->key;

	return by_kind(a, b) ?: ORDER(a->datatype, b->datatype) ?: ORDER(a->tag, b->tag) ?:
	       ORDER(a->source, b->source);
}

bool pace_find(const struct paces *paces, const struct tally_key *key, struct pace_series *series)
{
	size_t first = SEARCH_FIRST(i, paces->cell_count, by_kind(&paces->cells[i].key, key) >= 0);
	size_t end = first;

	*series = (struct pace_series){ .count = { 0 } };
	for (; end < paces->cell_count && by_kind(&paces->cells[end].key, key) == 0; end++)
		pace_add(series, &paces->cells[end].series);
	return end > first;
}

/* ---- senders --------------------------------------------------------------------------------- */

static struct pace_sender *new_sender(struct paces *paces, uint32_t comm, uint32_t seat, int32_t to)
{
	struct pace_sender *sender;

	if (!list_grow(&paces->senders, paces->sender_count, sizeof(*paces->senders)))
		return NULL;
	sender = &paces->senders[paces->sender_count++];
	*sender = (struct pace_sender){ .comm = comm, .seat = seat, .to = to };
	return sender;
}

static void put_wire(struct pace_sender *sender, unsigned int block, double transfers,
		     double wire_ns)
{
	if (transfers <= 0 || wire_ns <= 0)
		return;
	sender->transfers += transfers;
	sender->wire_ns += wire_ns;
	sender->series.count[block] += transfers;
	sender->series.log_sum[block] += transfers * log(wire_ns / transfers);
}

static enum status add_ring_sender(struct paces *paces, const struct matches *matches,
				   const struct match_lane *lane, const struct division *division,
				   uint32_t place, uint32_t size_class)
{
	const struct match_seat *seat = &lane->seats[place];
	struct pace_sender *sender = NULL;
	double transfers[PACE_BLOCKS] = { 0 }, wire_ns[PACE_BLOCKS] = { 0 };

	for (uint32_t i = 0; i < seat->count; i++) {
		const struct match_part *part = &seat->parts[i];
		unsigned int block =
			block_of(division, lane->briefs[part->chunk].number, MATCH_CHUNK / 2);

		if (part->wire_class != size_class || part->send_steps == 0)
			continue;
		transfers[block] += part->send_steps;
		wire_ns[block] += (double)part->send_net_ns;
	}
	for (unsigned int block = 0; block < PACE_BLOCKS; block++) {
		if (transfers[block] <= 0)
			continue;
		if (sender == NULL)
			sender = new_sender(paces, lane->comm,
					    matches->job->comms[lane->comm].seats[place], -1);
		if (sender == NULL)
			return ERR_NO_SPACE;
		sender->size_class = (uint8_t)size_class;
		put_wire(sender, block, transfers[block], wire_ns[block]);
	}
	return OK;
}

static enum status add_ring_senders(struct paces *paces, const struct matches *matches,
				    const struct match_lane *lane, const struct division *division)
{
	uint32_t seats = matches->job->comms[lane->comm].seat_count;
	uint32_t size_class = match_largest_class(lane, seats);
	enum status status = OK;

	for (uint32_t place = 0; size_class > 0 && place < seats && status == OK; place++)
		status = add_ring_sender(paces, matches, lane, division, place, size_class);
	return status;
}

static enum status add_link(struct paces *paces, const struct link *link)
{
	struct pace_sender *sender;

	if (link->send_steps == 0 || link->send_net_ns == 0)
		return OK;
	sender = new_sender(paces, link->comm, link->from, link->to);
	if (sender == NULL)
		return ERR_NO_SPACE;
	for (unsigned int i = 0; i < LINK_PARTS && i < PACE_BLOCKS; i++)
		put_wire(sender, i, (double)link->part_steps[i], (double)link->part_net_ns[i]);
	return OK;
}

static int by_sender(const void *left, const void *right)
{
	const struct pace_sender *a = left, *b = right;

	return ORDER(a->comm, b->comm) ?: ORDER(a->seat, b->seat) ?: ORDER(a->to, b->to);
}

/* ---------------------------------------------------------------------------------------------- */

/* Collectives whose ranks disagree are in other variants: left out. */
static enum status add_comm(struct paces *paces, const struct matches *matches, uint32_t c)
{
	enum status status = OK;

	for (unsigned int i = 0; i < MATCH_LANES && status == OK; i++) {
		const struct match_lane *lane = matches->comms[c].lanes[i];
		struct division division;

		if (lane == NULL || lane->variant > 0)
			continue;
		division = divide(lane);
		status = add_lane(paces, matches, lane, &division);
		if (status == OK)
			status = add_ring_senders(paces, matches, lane, &division);
	}
	return status;
}

enum status paces_make(struct paces *paces, const struct matches *matches,
		       const struct links *links)
{
	enum status status = OK;

	*paces = (struct paces){ .cells = NULL };
	for (uint32_t c = 0; c < matches->job->comm_count && status == OK; c++)
		status = add_comm(paces, matches, c);
	for (size_t i = 0; i < links->count && status == OK; i++)
		status = add_link(paces, &links->list[i]);
	if (status != OK) {
		paces_release(paces);
		return status;
	}
	if (paces->cell_count > 1)
		qsort(paces->cells, paces->cell_count, sizeof(*paces->cells), by_key);
	if (paces->sender_count > 1)
		qsort(paces->senders, paces->sender_count, sizeof(*paces->senders), by_sender);
	return OK;
}
