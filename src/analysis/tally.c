/* Rows by key in a hash table, what is computed from a row, and their order. */
#include "analysis/tally.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/attributes.h"
#include "common/hash.h"

static const char *const by_names[TALLY_BYS] = { "comm", "name",     "kind",	  "function",
						 "size", "datatype", "algorithm", "protocol",
						 "rank", "host",     "tag",	  "source",
						 "job" };

const char *tally_by_name(unsigned int bit)
{
	return bit < TALLY_BYS ? by_names[bit] : NULL;
}

enum status tally_by_parse(const char *text, uint32_t *by, const char **bad)
{
	uint32_t found = 0;

	for (const char *word = text;;) {
		size_t length = strcspn(word, ",");
		unsigned int bit = 0;

		while (bit < TALLY_BYS && (strlen(by_names[bit]) != length ||
					   strncmp(by_names[bit], word, length) != 0))
			bit++;
		/* PyTorch's word for communicators of one name. */
		if (length == strlen("group") && strncmp(word, "group", length) == 0)
			bit = (unsigned int)__builtin_ctz(TALLY_BY_COMM_NAME);
		if (bit == TALLY_BYS) {
			*bad = word;
			return ERR_UNKNOWN;
		}
		found |= 1u << bit;
		if (word[length] == '\0')
			break;
		word += length + 1;
	}
	*by = found;
	return OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

double tally_total_ns(const struct tally_row *row)
{
	return (double)row->sum_ns + row->covered_ns;
}

double tally_total_joined_ns(const struct tally_row *row)
{
	return (double)row->joined_ns + row->covered_joined_ns;
}

double tally_total_wait_ns(const struct tally_row *row)
{
	return (double)row->wait_ns + row->covered_wait_ns;
}

double tally_wait_share(const struct tally_row *row)
{
	double joined_ns = tally_total_joined_ns(row);

	return joined_ns > 0 ? tally_total_wait_ns(row) / joined_ns : 0;
}

double tally_mean_ns(const struct tally_row *row)
{
	return row->timed ? (double)row->sum_ns / (double)row->timed : 0;
}

double tally_deviation_ns(const struct tally_row *row)
{
	double mean = tally_mean_ns(row), count = (double)row->timed, square;

	if (row->timed < 2)
		return 0;
	square = (row->square_sum - count * mean * mean) / (count - 1);
	return square > 0 ? sqrt(square) : 0;
}

double tally_algbw(const struct tally_row *row)
{
	return row->sized_ns ? (double)row->sized_bytes * 1e9 / (double)row->sized_ns : 0;
}

double tally_busbw(const struct tally_row *row)
{
	return row->bus_ns ? row->bus_bytes * 1e9 / (double)row->bus_ns : 0;
}

/* A duration is anywhere within its bucket: interpolated geometrically by its rank there. */
static double within_bucket(unsigned int bucket, double share)
{
	double upper = (double)histogram_upper_ns(bucket);
	double lower = bucket > 0 ? (double)histogram_upper_ns(bucket - 1) + 1 : 1;

	return lower * pow(upper / lower, share);
}

uint64_t tally_quantile_ns(const struct tally_row *row, double q)
{
	uint64_t wanted = (uint64_t)ceil(q * (double)row->timed), passed = 0;
	double value = (double)row->max_ns;

	if (row->timed == 0)
		return 0;
	/* The minimum and maximum are known exactly. */
	if (wanted <= 1)
		return row->min_ns;
	if (wanted >= row->timed)
		return row->max_ns;
	for (unsigned int i = 0; i < row->histogram.used; i++) {
		uint64_t here = row->histogram.counts[i];

		if (passed + here >= wanted) {
			value = within_bucket(row->histogram.first + i,
					      ((double)(wanted - passed) - 0.5) / (double)here);
			break;
		}
		passed += here;
	}
	if (value < (double)row->min_ns)
		return row->min_ns;
	return value > (double)row->max_ns ? row->max_ns : (uint64_t)(value + 0.5);
}

/* ---- histogram ------------------------------------------------------------------------------- */

void tally_scale_init(struct tally_scale *scale)
{
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		scale->upper_ns[i] = histogram_upper_ns(i);
	scale->upper_ns[HISTOGRAM_BUCKETS - 1] = UINT64_MAX;
	for (unsigned int i = 0; i < 64 * 16; i++) {
		unsigned int log2 = i >> 4;
		/* Below 16 ns not all of these bits exist: all in bucket 0. */
		uint64_t least = log2 < 4 ? 0 : (UINT64_C(16) | (i & 15)) << (log2 - 4);

		scale->start[i] = (uint8_t)histogram_bucket(least);
	}
	scale->start[64 * 16] = HISTOGRAM_BUCKETS - 1;
}

static enum status histogram_cover(struct tally_histogram *histogram, unsigned int from,
				   unsigned int to)
{
	unsigned int old_to = histogram->first + histogram->used;
	uint64_t *counts;

	if (histogram->counts != NULL && from >= histogram->first && to <= old_to)
		return OK;
	if (histogram->counts != NULL) {
		from = from < histogram->first ? from : histogram->first;
		to = to > old_to ? to : old_to;
	}
	counts = calloc(to - from, sizeof(*counts));
	if (counts == NULL)
		return ERR_NO_SPACE;
	if (histogram->counts != NULL)
		memcpy(counts + (histogram->first - from), histogram->counts,
		       histogram->used * sizeof(*counts));
	free(histogram->counts);
	histogram->counts = counts;
	histogram->first = (uint16_t)from;
	histogram->used = (uint16_t)(to - from);
	return OK;
}

enum status tally_histogram_add(struct tally_histogram *histogram, unsigned int bucket,
				uint64_t count)
{
	enum status status = histogram_cover(histogram, bucket, bucket + 1);

	if (status == OK)
		histogram->counts[bucket - histogram->first] += count;
	return status;
}

static enum status histogram_merge(struct tally_histogram *to, const struct tally_histogram *from)
{
	enum status status;

	if (from->used == 0)
		return OK;
	status = histogram_cover(to, from->first, from->first + from->used);
	for (unsigned int i = 0; status == OK && i < from->used; i++)
		to->counts[from->first - to->first + i] += from->counts[i];
	return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum status tally_merge(struct tally_row *to, const struct tally_row *from)
{
	if (from->timed > 0 && (to->timed == 0 || from->min_ns < to->min_ns))
		to->min_ns = from->min_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	/* Ranks come one after the other. */
	if (to->ranks == 0 || to->last_rank != from->last_rank || from->ranks > 1)
		to->ranks += from->ranks;
	to->last_rank = from->last_rank;
	to->calls += from->calls;
	to->open += from->open;
	to->captured += from->captured;
	to->unknown_size += from->unknown_size;
	to->untrusted += from->untrusted;
	to->bytes += from->bytes;
	to->timed += from->timed;
	for (unsigned int i = 0; i < OP_TIME_SHOWN_SOURCES; i++)
		to->by_source[i] += from->by_source[i];
	to->shared += from->shared;
	to->sum_ns += from->sum_ns;
	to->square_sum += from->square_sum;
	to->sized_bytes += from->sized_bytes;
	to->sized_ns += from->sized_ns;
	to->bus_bytes += from->bus_bytes;
	to->bus_ns += from->bus_ns;
	to->joined += from->joined;
	to->joined_ns += from->joined_ns;
	to->joined_least_ns += from->joined_least_ns;
	to->wait_ns += from->wait_ns;
	to->moves += from->moves;
	to->move_log_sum += from->move_log_sum;
	to->move_log_squares += from->move_log_squares;
	to->covered += from->covered;
	to->covered_ns += from->covered_ns;
	to->covered_joined_ns += from->covered_joined_ns;
	to->covered_wait_ns += from->covered_wait_ns;
	return histogram_merge(&to->histogram, &from->histogram);
}

void tally_row_release(struct tally_row *row)
{
	free(row->histogram.counts);
	row->histogram = (struct tally_histogram){ NULL, 0, 0 };
}

void tally_init(struct tally *tally, uint32_t by, size_t limit)
{
	*tally = (struct tally){ .by = by, .limit = limit ? limit : TALLY_ROWS_MAX };
}

void tally_release(struct tally *tally)
{
	for (size_t i = 0; i < tally->count; i++)
		tally_row_release(&tally->rows[i]);
	tally_row_release(&tally->other);
	free(tally->rows);
	free(tally->slots);
	*tally = (struct tally){ .by = 0 };
}

static struct tally_key key_only(uint32_t by, const struct tally_key *key)
{
	struct tally_key only = { 0 };

	if (by & (TALLY_BY_COMM | TALLY_BY_COMM_NAME))
		only.comm = key->comm;
	only.rank = by & TALLY_BY_RANK ? key->rank : 0;
	only.host = by & TALLY_BY_HOST ? key->host : 0;
	only.group = by & TALLY_BY_GROUP ? key->group : 0;
	only.tag = by & TALLY_BY_TAG ? key->tag : 0;
	only.kind = by & TALLY_BY_KIND ? key->kind : 0;
	only.function = by & TALLY_BY_FUNCTION ? key->function : 0;
	only.datatype = by & TALLY_BY_DATATYPE ? key->datatype : 0;
	only.algorithm = by & TALLY_BY_ALGORITHM ? key->algorithm : 0;
	only.protocol = by & TALLY_BY_PROTOCOL ? key->protocol : 0;
	only.size_class = by & TALLY_BY_SIZE ? key->size_class : 0;
	only.source = by & TALLY_BY_SOURCE ? key->source : 0;
	return only;
}

/* All bytes of a key are set; there is no padding. */
_Static_assert(sizeof(struct tally_key) == 32, "tally_key has padding");

static size_t key_slot(const struct tally *tally, const struct tally_key *key)
{
	uint64_t words[4], hash = 1;

	memcpy(words, key, sizeof(words));
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		hash = hash_word(hash, words[i]);
	return (size_t)(hash & (tally->slot_count - 1));
}

static void put_slot(struct tally *tally, uint32_t index)
{
	size_t slot = key_slot(tally, &tally->rows[index].key);

	while (tally->slots[slot] != 0)
		slot = (slot + 1) & (tally->slot_count - 1);
	tally->slots[slot] = index + 1;
}

/* Half of the slots stay free. */
static enum status tally_grow(struct tally *tally)
{
	size_t wanted = tally->slot_count ? tally->slot_count * 2 : 32;
	uint32_t *slots = calloc(wanted, sizeof(*slots));
	struct tally_row *rows = realloc(tally->rows, wanted / 2 * sizeof(*rows));

	if (rows != NULL)
		tally->rows = rows;
	if (rows == NULL || slots == NULL) {
		free(slots);
		return ERR_NO_SPACE;
	}
	free(tally->slots);
	tally->slots = slots;
	tally->slot_count = wanted;
	for (size_t i = 0; i < tally->count; i++)
		put_slot(tally, (uint32_t)i);
	return OK;
}

struct tally_row *tally_row(struct tally *tally, const struct tally_key *key)
{
	struct tally_key only = key_only(tally->by, key);

	if (tally->slot_count > 0)
		for (size_t slot = key_slot(tally, &only); tally->slots[slot] != 0;
		     slot = (slot + 1) & (tally->slot_count - 1)) {
			struct tally_row *row = &tally->rows[tally->slots[slot] - 1];

			if (memcmp(&row->key, &only, sizeof(only)) == 0)
				return row;
		}
	if (tally->count >= tally->limit) {
		tally->has_other = true;
		tally->other_keys++;
		return &tally->other;
	}
	if (tally->count >= tally->slot_count / 2 && tally_grow(tally) != OK)
		return NULL;
	tally->rows[tally->count] = (struct tally_row){ .key = only };
	put_slot(tally, (uint32_t)tally->count);
	return &tally->rows[tally->count++];
}

/* ---- order ----------------------------------------------------------------------------------- */

static int by_key(const void *left, const void *right)
{
	const struct tally_key *a = &((const struct tally_row *)left)->key;
	const struct tally_key *b = &((const struct tally_row *)right)->key;
	return ORDER(a->group, b->group) ?:
	       ORDER(a->comm, b->comm) ?:
	       ORDER(a->kind, b->kind) ?:
	       ORDER(a->function, b->function) ?:
	       ORDER(a->size_class, b->size_class) ?:
	       ORDER(a->datatype, b->datatype) ?:
	       ORDER(a->algorithm, b->algorithm) ?:
	       ORDER(a->protocol, b->protocol) ?:
	       ORDER(a->rank, b->rank) ?:
	       ORDER(a->host, b->host) ?:
	       ORDER(a->tag, b->tag) ?:
	       ORDER(a->source, b->source);
}

static int by_time_spent(const void *left, const void *right)
{
	const struct tally_row *a = left, *b = right;

	return ORDER(tally_total_ns(b), tally_total_ns(a)) ?:
	       ORDER(b->calls, a->calls) ?:
	       by_key(left, right);
}

void tally_sort(struct tally *tally, enum tally_order order)
{
	free(tally->slots);
	tally->slots = NULL;
	tally->slot_count = 0;
	if (tally->count == 0)
		return;
	qsort(tally->rows, tally->count, sizeof(*tally->rows),
	      order == TALLY_BY_KEY ? by_key : by_time_spent);
}
