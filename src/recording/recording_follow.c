/*
 * Reading a live process repeatedly: its totals, and everything else in its region.
 *
 * The recorder holds the last operations of a communicator back in their live slots, in case more
 * events come, and adds them to its totals when they leave, which can be minutes later. So those
 * that are done are added here, to a copy. Totals are copied before live slots: an operation that
 * leaves its slot in between is in neither, and is there at the next scan.
 */
#include "recording/recording.h"
#include "recording/recording_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/nccl_interface.h"
#include "common/op.h"
#include "common/search.h"
#include "common/status.h"
#include "common/text.h"
#include "format/region_read.h"

enum { TOTAL_WORDS = sizeof(struct region_total) / sizeof(uint64_t) };

struct place {
	uint64_t key;
	uint32_t slot;
};

/* What an operation adds to its total. */
struct held {
	uint64_t word; /* of its live slot */
	uint32_t slot;
	bool is_timed;
	bool is_shared;
	bool has_proxies;
	uint64_t key;
	uint64_t bytes;
	uint64_t ns;
	uint64_t send_bytes;
	uint64_t recv_bytes;
	uint64_t wait_ns[OP_WAITS];
};

/*
 * Totals in use, as found when all slots were scanned. While the recorder's counter shows no new
 * ones, only these are read.
 */
struct recording_follow {
	uint64_t totals_used; /* header: counts every one that is taken */
	struct place *places; /* by key */
	size_t count;
	uint32_t links_age; /* scans since links were read */
	uint32_t *hasty;    /* region->hasty of the next scan */
	bool was_hasty;	    /* some were skipped at the last scan */
	/*
	 * Operations that are done and held back, by slot: as of the last scan, and as of this one.
	 */
	struct held *held;
	struct region_known *known;
	size_t held_count;
	struct held *next;
	size_t next_count;
	uint32_t new_keys; /* those among them, at this scan, that are in no total */
};

enum { NEW_KEYS_MAX = 256 };

static int by_key(const void *one, const void *other)
{
	const struct place *a = one, *b = other;

	return ORDER(a->key, b->key) ?: ORDER(a->slot, b->slot);
}

static void total_merge(struct region_total *to, const struct region_total *from)
{
	uint64_t *mine = (uint64_t *)to, most_ns = to->max_ns;
	const uint64_t *theirs = (const uint64_t *)from;

	for (unsigned int i = 1; i < TOTAL_WORDS; i++)
		mine[i] += theirs[i];
	to->max_ns = most_ns > from->max_ns ? most_ns : from->max_ns;
}

static bool is_with_spans(const struct recording_process *process)
{
	return process->region->header.minor < REGION_MINOR_DURATIONS;
}

/*
 * Recorders before 1.5 added network spans to durations. Of operations that went over the network nobody can tell the two
 * apart, so none of their times is used.
 */
static void total_strip(struct recording_process *process, struct region_total *total)
{
	uint64_t network = total->send_bytes | total->recv_bytes;

	for (int i = 0; i < OP_WAITS; i++)
		network |= total->wait_ns[i];
	if (!is_with_spans(process) || network == 0 || total->timed == 0)
		return;
	process->has_spans_in_totals = true;
	total->timed = total->sum_ns = total->max_ns = total->timed_bytes = 0;
	memset(total->buckets, 0, sizeof(total->buckets));
}

static enum status totals_alloc(struct recording_process *process, size_t count)
{
	process->totals = calloc(count + 1, sizeof(*process->totals));
	process->total_count = 1;
	return process->totals != NULL ? OK : ERR_NO_SPACE;
}

/* Two threads may have created the same total. */
static void totals_add(struct recording_process *process, struct region_total *total)
{
	struct region_total *last = &process->totals[process->total_count - 1];

	total_strip(process, total);
	if (total->key == last->key)
		total_merge(last, total);
	else
		process->totals[process->total_count++] = *total;
}

/* All slots, from a copy. Index 0, "other", comes first even if it is empty. */
static enum status load_all(struct recording_process *process, struct recording_follow *follow)
{
	enum status status = totals_alloc(process, follow->count);
	struct region_total total;

	if (status != OK)
		return status;
	region_total_at(process->region, 0, &process->totals[0]);
	total_strip(process, &process->totals[0]);
	process->totals[0].key = 0;
	for (size_t i = 0; i < follow->count; i++)
		if (region_total_at(process->region, follow->places[i].slot, &total))
			totals_add(process, &total);
	return OK;
}

static enum status find_all(struct recording_process *process, struct recording_follow *follow)
{
	uint32_t slots = region_slots(process->region, REGION_TOTALS);
	struct place *places = calloc((size_t)slots + 1, sizeof(*places));
	size_t count = 0;

	if (places == NULL)
		return ERR_NO_SPACE;
	for (uint32_t i = 1; i < slots; i++) {
		const unsigned char *slot =
			region_copy_slot(&process->region->copies[REGION_TOTALS], i);
		uint64_t key = 0;

		/* Including those that count nothing yet: they are taken. */
		if (slot != NULL)
			memcpy(&key, slot, sizeof(key));
		if (key > SLOT_FORGOTTEN)
			places[count++] = (struct place){ .key = key, .slot = i };
	}
	if (count > 1)
		qsort(places, count, sizeof(*places), by_key);
	free(follow->places);
	follow->places = places;
	follow->count = count;
	return OK;
}

/*
 * A slot's key changes only after its communicator has lost its own slot, and does not come back,
 * because communicator numbers are not reused. So if the communicator still exists when
 * communicators are read, after this, the slot was its own: see recording_totals_end().
 */
static enum status load_known(struct recording_process *process,
			      const struct recording_follow *follow)
{
	const struct region_part *part = &process->region->header.parts[REGION_TOTALS];
	enum status status = totals_alloc(process, follow->count);
	struct region_total total = { .key = 0 };
	/* Slots of older recorders are shorter: what they lack stays 0. */
	size_t bytes = part->stride < sizeof(total) ? part->stride : sizeof(total);

	if (status == OK)
		status = region_pread(process->region, &process->totals[0], bytes, part->offset);
	for (size_t i = 0; i < follow->count && status == OK; i++) {
		status = region_pread(process->region, &total, bytes,
				      part->offset +
					      (uint64_t)follow->places[i].slot * part->stride);
		if (status == OK && total.key == follow->places[i].key && total.count != 0)
			totals_add(process, &total);
	}
	if (status == OK) {
		total_strip(process, &process->totals[0]);
		process->totals[0].key = 0;
	}
	return status;
}

static enum status load_totals(struct recording_process *process, bool is_full)
{
	struct recording_follow *follow = process->follow;
	struct region *region = process->region;
	enum status status;
	uint64_t used;

	if (region->header.parts[REGION_TOTALS].count == 0)
		return totals_alloc(process, 0);
	status = region_pread(region, &used, sizeof(used),
			      offsetof(struct region_header, totals_used));
	if (status != OK)
		return status;
	if (!is_full && follow->places != NULL && used == follow->totals_used)
		return load_known(process, follow);
	status = region_copy(region, REGION_COPY_BRIEF | REGION_COPY_TOTALS);
	if (status == OK)
		status = find_all(process, follow);
	if (status == OK)
		status = load_all(process, follow);
	follow->totals_used = used;
	region_copy_drop(region, REGION_COPY_TOTALS);
	return status;
}

/* Links are not needed every second, so they may be a few scans old. */
static enum status copy_links(struct recording_process *process, bool is_full)
{
	enum { LINKS_LOOKS = 5 };

	if (!is_full && ++process->follow->links_age < LINKS_LOOKS)
		return OK;
	process->follow->links_age = 0;
	return recording_links_load(process);
}

/* Were links read at the last scan? They are not read at every one. */
static bool recording_totals_has_links(const struct recording_follow *follow)
{
	return follow != NULL && follow->links_age == 0;
}

/* Was something skipped at the last scan for that reason? */
static bool recording_totals_is_behind(const struct recording_follow *follow)
{
	return follow != NULL && follow->was_hasty;
}

/*
 * Totals, by key, and links; is_full: not only where totals were before. ERR_NO_SPACE,
 * ERR_TRUNCATED, ERR_SYSTEM.
 */
static enum status recording_totals_load(struct recording_process *process, bool is_full)
{
	enum status status;

	if (is_full)
		process->region->hasty_count = process->region->known_count = 0;
	if (process->follow == NULL)
		process->follow = calloc(1, sizeof(*process->follow));
	status = process->follow != NULL ? load_totals(process, is_full) : ERR_NO_SPACE;
	/* Left over from a failed scan. */
	if (process->follow != NULL)
		process->follow->next_count = process->follow->new_keys = 0;
	for (uint32_t i = 0; i < process->region->known_count; i++)
		process->region->known[i].is_there = 0;
	return status == OK ? copy_links(process, is_full) : status;
}

uint64_t recording_process_bytes(const struct recording_process *process)
{
	const struct recording_follow *follow = process->follow;
	uint64_t bytes = sizeof(*process) + sizeof(struct region) + process->info_bytes;

	bytes += process->comm_count * sizeof(*process->comms);
	bytes += process->flight_count * sizeof(*process->flights);
	for (size_t i = 0; i < process->flight_count; i++)
		bytes += process->flights[i].proxy_count * sizeof(*process->proxies);
	bytes += process->proxy_count * sizeof(*process->proxies);
	bytes += process->total_count * sizeof(*process->totals);
	bytes += process->link_count * sizeof(*process->links);
	if (follow != NULL)
		bytes += follow->count * sizeof(*follow->places) +
			 follow->held_count * (sizeof(*follow->held) + sizeof(*follow->known));
	return bytes;
}

void recording_totals_free(struct recording_follow *follow)
{
	if (follow == NULL)
		return;
	free(follow->places);
	free(follow->hasty);
	free(follow->held);
	free(follow->known);
	free(follow->next);
	free(follow);
}

/* ---- operations held back -------------------------------------------------------------------- */

/* Where this key is, or belongs. */
static size_t find_total(const struct recording_process *process, uint64_t key)
{
	return SEARCH_FIRST(i, process->total_count, process->totals[i].key >= key);
}

static struct region_total *total_of(struct recording_process *process, uint64_t key)
{
	size_t at = find_total(process, key);
	struct region_total *more;

	if (at < process->total_count && process->totals[at].key == key)
		return &process->totals[at];
	/*
	 * A recorder holds back few operations whose key it has not counted before; a hostile file
	 * may claim any number of them.
	 */
	if (process->follow->new_keys++ >= NEW_KEYS_MAX)
		return &process->totals[0];
	more = reallocarray(process->totals, process->total_count + 1, sizeof(*more));
	if (more == NULL)
		return NULL;
	process->totals = more;
	memmove(&more[at + 1], &more[at], (process->total_count - at) * sizeof(*more));
	more[at] = (struct region_total){ .key = key };
	process->total_count++;
	return &more[at];
}

static struct held held_of(const struct recording_process *process, const struct region_live *live,
			   uint32_t slot)
{
	const struct op_record *op = &live->op;
	struct held held = { .word = live->word,
			     .slot = slot,
			     .is_timed = op_has_duration(op) &&
					 !(is_with_spans(process) && op->proxies_stopped > 0),
			     .is_shared = op->flags & OP_FLAG_SHARED_TIME,
			     .has_proxies = op->proxies_stopped > 0,
			     .key = TOTALS_KEY(op->comm, op->function, op->datatype, op->algorithm,
					       op->protocol, op_size_class(op->bytes)),
			     .bytes = op->bytes,
			     .ns = op_duration_ns(op),
			     .send_bytes = op->send_bytes,
			     .recv_bytes = op->recv_bytes };

	memcpy(held.wait_ns, op->wait_ns, sizeof(held.wait_ns));
	return held;
}

/* As the recorder does when the operation leaves its slot. */
static void total_add(struct region_total *total, const struct held *held)
{
	total->count++;
	if (held->bytes != OP_BYTES_UNKNOWN)
		total->bytes += held->bytes;
	if (held->has_proxies) {
		total->send_bytes += held->send_bytes;
		total->recv_bytes += held->recv_bytes;
		for (int i = 0; i < OP_WAITS; i++)
			total->wait_ns[i] += held->wait_ns[i];
	}
	if (!held->is_timed)
		return;
	if (held->is_shared) {
		total->shared++;
		total->shared_ns += held->ns;
		return;
	}
	total->timed++;
	total->sum_ns += held->ns;
	if (held->bytes != OP_BYTES_UNKNOWN)
		total->timed_bytes += held->bytes;
	total->buckets[histogram_bucket(held->ns)]++;
	if (held->ns > total->max_ns)
		total->max_ns = held->ns;
}

/* Without memory it counts when the recorder has counted it. */
static void hold_op(struct recording_process *process, const struct held *held, bool is_settled)
{
	struct recording_follow *follow = process->follow;
	struct region_total *total = total_of(process, held->key);

	if (total != NULL)
		total_add(total, held);
	if (is_settled && list_grow(&follow->next, follow->next_count, sizeof(*held)))
		follow->next[follow->next_count++] = *held;
}

bool recording_totals_take(struct recording_process *process, const struct region_live *live,
			   uint32_t slot)
{
	/* Mismatched calls are recognized from the last calls of the ranks. */
	enum { LAST_CALLS = 4 };
	const struct op_record *op = &live->op;
	const struct recording_comm *comm;
	struct held held;
	bool is_settled;

	/* One that is retiring may have been counted already. */
	if (op->state != OP_DONE || live->word & LIVE_RETIRING)
		return false;
	comm = recording_comm(process, op->comm);
	if (comm == NULL)
		return false;
	is_settled = LIVE_OPEN(live->word) == 0 &&
		     op->number + LAST_CALLS < comm->counts.last_done_number;
	held = held_of(process, live, slot);
	hold_op(process, &held, is_settled);
	return is_settled;
}

/* Held at the last scan and unchanged: the copy skipped them, so add them again. */
static void hold_again(struct recording_process *process)
{
	struct recording_follow *follow = process->follow;

	for (uint32_t i = 0; i < process->region->known_count; i++)
		if (follow->known[i].is_there)
			hold_op(process, &follow->held[i], true);
}

static int by_slot(const void *one, const void *other)
{
	const struct held *a = one, *b = other;

	return ORDER(a->slot, b->slot);
}

static void next_becomes_held(struct recording_process *process)
{
	struct recording_follow *follow = process->follow;
	struct region *region = process->region;

	free(follow->held);
	free(follow->known);
	follow->held = follow->next;
	follow->held_count = follow->next_count;
	follow->next = NULL;
	follow->next_count = 0;
	if (follow->held_count > 1)
		qsort(follow->held, follow->held_count, sizeof(*follow->held), by_slot);
	follow->known = calloc(follow->held_count + 1, sizeof(*follow->known));
	region->known = follow->known;
	region->known_count = follow->known != NULL ? (uint32_t)follow->held_count : 0;
	for (uint32_t i = 0; i < region->known_count; i++)
		follow->known[i] = (struct region_known){ .word = follow->held[i].word,
							  .slot = follow->held[i].slot };
}

/* ---------------------------------------------------------------------------------------------- */

static void drop_strangers(struct recording_process *process)
{
	size_t kept = 1;
	uint32_t last = 0;
	bool is_there = true;

	for (size_t i = 1; i < process->total_count; i++) {
		uint32_t comm = (uint32_t)(process->totals[i].key >> 40);

		if (comm != last)
			is_there = recording_comm(process, comm) != NULL;
		last = comm;
		/* 0: of forgotten communicators. */
		if (!is_there && comm != 0)
			continue;
		if (kept != i)
			process->totals[kept] = process->totals[i];
		kept++;
	}
	process->total_count = kept;
}

/*
 * At the end: add what was known before, drop the totals of communicators that are gone, and let no
 * value decrease.
 */
static void recording_totals_end(struct recording_process *now,
				 const struct recording_process *before)
{
	size_t at = 0;

	hold_again(now);
	next_becomes_held(now);
	drop_strangers(now);
	for (size_t i = 0; i < before->total_count; i++) {
		const uint64_t *old = (const uint64_t *)&before->totals[i];
		uint64_t *new;

		while (at < now->total_count && now->totals[at].key < before->totals[i].key)
			at++;
		if (at == now->total_count || now->totals[at].key != before->totals[i].key)
			continue;
		new = (uint64_t *)&now->totals[at];
		for (unsigned int word = 1; word < TOTAL_WORDS; word++)
			new[word] = new[word] < old[word] ? old[word] : new[word];
	}
}

/*
 * For the next scan: communicators that finished many times more than are held back, which do not
 * matter.
 */
static void recording_totals_hasty(struct recording_process *now,
				   const struct recording_process *before)
{
	enum { HASTY = 128 };
	struct recording_follow *follow = now->follow;
	struct region *region = now->region;

	follow->was_hasty = region->hasty_count > 0;
	region->hasty = NULL;
	region->hasty_count = 0;
	free(follow->hasty);
	follow->hasty = calloc(now->comm_count + 1, sizeof(*follow->hasty));
	for (size_t i = 0; i < now->comm_count && follow->hasty != NULL; i++) {
		const struct recording_comm *comm = &now->comms[i];
		const struct recording_comm *old = recording_comm(before, comm->info.id);

		if (old != NULL && comm->counts.recorded > old->counts.recorded + HASTY)
			follow->hasty[region->hasty_count++] = comm->info.id;
	}
	region->hasty = follow->hasty;
}

/*
 * Reads a region again. The result goes into a temporary process and replaces what was known only
 * after all of it could be read, so a follower never sees half a scan.
 */

#define SWAP(field)                                        \
	do {                                               \
		__typeof__(now->field) field = now->field; \
		now->field = before->field;                \
		before->field = field;                     \
	} while (0)

/* What is permanent (identity, files, region) stays. */
static void change_places(struct recording_process *now, struct recording_process *before,
			  bool has_totals)
{
	SWAP(comms);
	SWAP(comm_count);
	SWAP(flights);
	SWAP(flight_count);
	SWAP(proxies);
	SWAP(proxy_count);
	SWAP(filling);
	SWAP(refused);
	SWAP(refused_why);
	/* Anchors of trace files reach further back. */
	if (now->file_count == 0) {
		SWAP(anchors);
		SWAP(anchor_count);
	}
	now->fresh_anchor = before->fresh_anchor;
	if (has_totals) {
		SWAP(totals);
		SWAP(total_count);
	}
	if (has_totals && recording_totals_has_links(now->follow)) {
		SWAP(links);
		SWAP(link_count);
	}
	memcpy(now->lost, before->lost, sizeof(now->lost));
	memcpy(now->odd, before->odd, sizeof(now->odd));
	memcpy(now->names, before->names, sizeof(now->names));
	now->has_counts = before->has_counts;
	now->is_final = before->is_final;
	now->is_moving = before->is_moving;
	now->has_spans_in_totals = before->has_spans_in_totals;
	now->recorded = before->recorded;
	now->drained = before->drained;
	now->ended_ns = before->ended_ns;
	now->alive_ns = before->alive_ns;
	now->counts_ns = before->counts_ns;
	now->times_read_ns = before->times_read_ns;
}

/* Operations that are over linger in their slots; they change nothing. */
static bool has_open_flights(const struct recording_process *process)
{
	for (size_t i = 0; i < process->flight_count; i++)
		if (process->flights[i].op.state != OP_DONE || process->flights[i].open_children)
			return true;
	return process->proxy_count > 0 || process->filling > 0;
}

/* The counters of the header, except for the anchor, which a thread of the recorder updates. */
static bool is_header_same(const struct region *region)
{
	size_t from = offsetof(struct region_header, ended_ns);
	struct region_header now;

	return region_pread(region, (char *)&now + from, sizeof(now) - from, from) == OK &&
	       memcmp((const char *)&now + from, (const char *)&region->header + from,
		      sizeof(now) - from) == 0;
}

static bool is_comm_same(const struct recording_process *process, const struct region_comm *found)
{
	const struct recording_comm *known = recording_comm(process, found->info.id);

	return known != NULL && known->info.finalize_ns == found->info.finalize_ns &&
	       memcmp(&known->counts, &found->counts, sizeof(found->counts)) == 0;
}

/*
 * R5: everything issued is first counted at its communicator. Slots are handed out in order, so
 * beyond the number of communicators that ever existed none is used.
 */
static bool are_comms_same(const struct recording_process *process)
{
	const struct region *region = process->region;
	const struct region_part *part = &region->header.parts[REGION_COMMS];
	uint64_t made = region->header.comms_made;
	uint32_t count = made < part->count ? (uint32_t)made : part->count;
	struct region_copy copy;
	bool is_same = true;

	if (region_copy_slots(region, REGION_COMMS, 0, count, &copy) != OK)
		return false;
	for (uint32_t i = 0; i < count && is_same; i++) {
		const unsigned char *slot = region_copy_slot(&copy, i);
		struct region_comm found;

		is_same = slot != NULL;
		if (!is_same)
			break;
		memcpy(&found, slot, sizeof(found));
		if (found.word != 0 && found.info.id != 0)
			is_same = is_comm_same(process, &found);
	}
	region_copy_release(&copy);
	return is_same;
}

bool recording_stands_still(const struct recording_process *process)
{
	if (process->region == NULL || process->is_moving || has_open_flights(process) ||
	    recording_totals_is_behind(process->follow))
		return false;
	return is_header_same(process->region) && are_comms_same(process);
}

/* Totals before flights: see the top of the file. */
static enum status read_parts(struct recording_process *found, bool has_totals, bool is_full)
{
	enum status status = OK;

	if (has_totals)
		status = recording_totals_load(found, is_full);
	else
		found->region->hasty_count = found->region->known_count = 0;
	if (status == OK)
		status = region_copy(found->region, REGION_COPY_BRIEF | RECORDING_REGION_PARTS);
	if (status == OK)
		status = recording_region_state(found);
	region_copy_drop(found->region, RECORDING_REGION_PARTS);
	return status;
}

static enum status read_again(struct recording_process *process, bool has_totals, bool is_full)
{
	struct recording_process *found = recording_process_new();
	enum status status;

	if (found == NULL)
		return ERR_NO_SPACE;
	/* Borrowed. */
	found->region = process->region;
	found->follow = process->follow;
	status = read_parts(found, has_totals, is_full);
	process->follow = found->follow;
	if (status == OK && has_totals) {
		recording_totals_end(found, process);
		recording_totals_hasty(found, process);
	}
	found->region = NULL;
	found->follow = NULL;
	if (status == OK)
		change_places(process, found, has_totals);
	recording_process_free(found);
	return status;
}

enum status recording_refresh(struct recording_process *process, unsigned int flags)
{
	enum status status = OK;

	if (process->region == NULL)
		return ERR_GONE;
	if (!(flags & RECORDING_REFRESH_MOVED) || !recording_stands_still(process))
		status = read_again(process, flags & RECORDING_REFRESH_TOTALS,
				    !(flags & RECORDING_REFRESH_MOVED));
	else
		status =
			region_pread(process->region, &process->alive_ns, sizeof(process->alive_ns),
				     offsetof(struct region_header, alive_ns));
	if (!(flags & RECORDING_REFRESH_SAME_LIFE))
		recording_load_life(process);
	else if (process->ended_ns != 0)
		process->life = RECORDING_ENDED;
	return status;
}

enum status recording_add_again(struct recording *recording,
				const struct recording_process *process)
{
	struct recording_process *found = NULL;
	enum status status;

	if (process->region == NULL || process->region->fd <= 0)
		return ERR_GONE;
	status =
		recording_region_load(recording, process->region->fd, process->region_path, &found);
	if (status != OK)
		return status;
	/*
	 * Checked under the pid where it was found before. One that was not found is not searched
	 * for again, because that takes a search through all processes of the host.
	 */
	found->life = found->ended_ns != 0 ? RECORDING_ENDED : process->life;
	found->pid_here = process->pid_here;
	found->owner = process->owner;
	text_copy(found->job, sizeof(found->job), process->job);
	text_copy(found->container_id, sizeof(found->container_id), process->container_id);
	text_copy(found->pod_uid, sizeof(found->pod_uid), process->pod_uid);
	if (found->pid_here > 0)
		recording_load_life_once(found);
	return recording_load_keep(recording, found);
}

void recording_rest(struct recording_process *process)
{
	struct region *region = process->region;

	if (region == NULL)
		return;
	if (region->fd > 0)
		close(region->fd);
	/* There is nothing to read any more; the header still has the clock. */
	region->fd = -1;
	region->memory = NULL;
	region->file_bytes = 0;
}

const char *recording_answer_name(enum recording_answer answer)
{
	static const char *const names[RECORDING_ANSWERS] = { "granted", "pending", "already_on",
							      "refused", "failed" };

	return (unsigned int)answer < RECORDING_ANSWERS ? names[answer] : "?";
}

/* Recorders before 0.3 say only how they request kernel events. */
static void times_of_kernel_events(const struct recording_process *process,
				   struct recording_times *times)
{
	recording_info(process, "kernel_events", times->in_effect, sizeof(times->in_effect));
	recording_info(process, "kernel_events_reason", times->reason, sizeof(times->reason));
	if (strcmp(times->in_effect, "on") == 0)
		text_copy(times->in_effect, sizeof(times->in_effect), "kernel");
}

/* Whoever prints it says what it is the reason for. */
static const char *state_reason(uint64_t state)
{
	static const char not_timed[] = "not timed: ";
	const char *text = sampling_state_text(state);

	return strncmp(text, not_timed, strlen(not_timed)) == 0 ? text + strlen(not_timed) : text;
}

/* The state says more than what was decided at the start. */
static void times_of_state(const struct region_header *header, struct recording_times *times)
{
	uint64_t state = header->sampling;

	if (state == SAMPLING_ACTIVE || state_reason(state)[0] == '\0')
		return;
	text_copy(times->reason, sizeof(times->reason), state_reason(state));
	if (state >= SAMPLING_BY_CUDA)
		text_copy(times->in_effect, sizeof(times->in_effect), "off");
	if (state == SAMPLING_BY_CUDA && header->timing_error != 0)
		text_append(times->reason, sizeof(times->reason), " %" PRIu64,
			    header->timing_error);
}

/* In what was imported from other tools the key says where their times come from. */
static bool is_choice(const char *word)
{
	static const char *const choices[] = { "auto", "all", "off", "kernel" };

	for (size_t i = 0; i < ARRAY_LENGTH(choices); i++)
		if (strcmp(word, choices[i]) == 0)
			return true;
	return false;
}

void recording_times(const struct recording_process *process, struct recording_times *times)
{
	const struct region_header *header =
		process->region != NULL ? &process->region->header : NULL;

	*times = (struct recording_times){ .has_counts = false };
	recording_info(process, "times", times->in_effect, sizeof(times->in_effect));
	recording_info(process, "times_reason", times->reason, sizeof(times->reason));
	if (!is_choice(times->in_effect))
		times->in_effect[0] = '\0';
	times->has_counts = header != NULL && (strcmp(times->in_effect, "auto") == 0 ||
					       strcmp(times->in_effect, "all") == 0);
	if (times->in_effect[0] == '\0')
		times_of_kernel_events(process, times);
	if (header != NULL)
		times_of_state(header, times);
	if (!times->has_counts)
		return;
	times->timed_launches = header->timed_launches;
	times->untimed_launches = header->untimed_launches;
	times->timed_captures = header->timed_captures;
	times->untimed_captures = header->untimed_captures;
	times->closed_captures = header->closed_captures;
	times->replays_read = header->replays_read;
	times->replays_dropped = header->replays_dropped;
	times->recording_ns = header->recording_ns;
	times->taken = header->times_taken;
	times->dropped = header->times_dropped;
}

static void settle(struct recording_ask *ask, enum recording_answer answer, const char *why)
{
	ask->answer = answer;
	text_copy(ask->reason, sizeof(ask->reason), why);
}

/*
 * Open the region's file for writing: the file that is being read, whatever its path leads to by
 * now. -1 with errno.
 */
static int open_to_write(const struct recording_process *process)
{
	char path[64];
	struct stat st;
	int fd;

	text_format(path, sizeof(path), "/proc/self/fd/%d", process->region->fd);
	fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1 || (fstat(fd, &st) == 0 && st.st_size >= REGION_HEADER_BYTES))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

/*
 * Written, not mapped: a file that is truncated at this moment gives an error instead of a signal.
 * If the recorder sees half of the word, it takes that for a request, which is bounded, and the
 * whole for another one at its next poll.
 */
static bool write_request(int fd, uint64_t request)
{
	return pwrite(fd, &request, sizeof(request),
		      offsetof(struct region_header, kernel_request)) == (ssize_t)sizeof(request);
}

void recording_ask_times(struct recording_ask *ask, const struct recording_process *process,
			 uint32_t seconds)
{
	struct recording_times times;
	uint64_t before;
	int fd;

	*ask = (struct recording_ask){ .request = 0 };
	recording_times(process, &times);
	if (strcmp(times.in_effect, "kernel") == 0 || strcmp(times.in_effect, "all") == 0 ||
	    process->region->header.sampling == SAMPLING_STUCK) {
		settle(ask, RECORDING_ALREADY, "every operation is timed already");
		return;
	}
	if (process->region->header.sampling != SAMPLING_ACTIVE) {
		settle(ask, RECORDING_REFUSED,
		       times.reason[0] != '\0' ? times.reason : "the recorder is too old");
		return;
	}
	fd = open_to_write(process);
	if (fd == -1) {
		settle(ask, RECORDING_FAILED, strerror(errno));
		return;
	}
	if (file_pread(fd, &before, sizeof(before),
		       offsetof(struct region_header, kernel_request)) == OK &&
	    write_request(fd, ask->request = ((before >> 32) + 1) << 32 | seconds))
		settle(ask, RECORDING_PENDING,
		       "nothing called since; takes effect at the next operations");
	else
		settle(ask, RECORDING_FAILED, strerror(errno));
	close(fd);
}

bool recording_ask_answered(struct recording_ask *ask, const struct recording_process *process)
{
	uint64_t answer, sampling;

	if (ask->answer != RECORDING_PENDING)
		return true;
	if (process->region == NULL ||
	    region_pread(process->region, &answer, sizeof(answer),
			 offsetof(struct region_header, kernel_answer)) != OK ||
	    region_pread(process->region, &sampling, sizeof(sampling),
			 offsetof(struct region_header, sampling)) != OK)
		settle(ask, RECORDING_FAILED, "the region is gone");
	else if (answer == ask->request)
		settle(ask, RECORDING_GRANTED, "");
	else if (sampling != SAMPLING_ACTIVE)
		settle(ask, RECORDING_REFUSED, state_reason(sampling));
	return ask->answer != RECORDING_PENDING;
}
