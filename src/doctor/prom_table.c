/* The tables behind prom.h: texts once each, and members, processes and rows by what names them. */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "doctor/prom_parts.h"

enum { TEXT_MAX = 255, BLOCK_BYTES = 1 << 16 };

bool prom_grow(void *list, size_t count, size_t element_bytes)
{
	unsigned char **at = list;
	unsigned char *more;

	if (count == 0 || (count & (count - 1)) == 0) {
		more = reallocarray(*at, count == 0 ? 1 : count * 2, element_bytes);
		if (more == NULL)
			return false;
		*at = more;
	}
	memset(*at + count * element_bytes, 0, element_bytes);
	return true;
}

struct prom_slot *prom_index_next(const struct prom_index *index, uint64_t hash, uint64_t *at)
{
	for (;; ++*at) {
		struct prom_slot *slot = &index->slots[*at & (index->room - 1)];

		if (slot->item == 0 || slot->hash == hash) {
			++*at;
			return slot;
		}
	}
}

bool prom_index_grow(struct prom_index *index)
{
	struct prom_index larger = { .room = index->room == 0 ? 64 : index->room * 2,
				     .count = index->count };

	if (index->count < UINT32_MAX - 1 && index->count * 2 < index->room)
		return true;
	if (index->count >= UINT32_MAX - 1)
		return false;
	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (larger.slots == NULL)
		return false;
	for (size_t i = 0; i < index->room; i++) {
		size_t at = (size_t)index->slots[i].hash & (larger.room - 1);

		if (index->slots[i].item == 0)
			continue;
		while (larger.slots[at].item != 0)
			at = (at + 1) & (larger.room - 1);
		larger.slots[at] = index->slots[i];
	}
	free(index->slots);
	*index = larger;
	return true;
}

static void index_put(struct prom_index *index, struct prom_slot *slot, uint64_t hash, size_t item)
{
	*slot = (struct prom_slot){ .hash = hash, .item = (uint32_t)item + 1 };
	index->count++;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static char *text_room(struct prom_texts *texts, size_t bytes)
{
	char *room;

	if (texts->block == NULL || texts->block_used + bytes > BLOCK_BYTES) {
		char *block = malloc(BLOCK_BYTES);

		if (block == NULL ||
		    !prom_grow(&texts->blocks, texts->block_count, sizeof(*texts->blocks))) {
			free(block);
			return NULL;
		}
		texts->blocks[texts->block_count++] = block;
		texts->block = block;
		texts->block_used = 0;
	}
	room = texts->block + texts->block_used;
	texts->block_used += bytes;
	return room;
}

/* A text that is not there yet. */
static bool text_add(struct prom_texts *texts, const char *text, size_t length)
{
	char *copy = text_room(texts, length + 1);

	if (copy == NULL || !prom_grow(&texts->list, texts->count, sizeof(*texts->list)))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	texts->list[texts->count++] = copy;
	return true;
}

static bool has_control_bytes(struct prom_slice slice)
{
	for (size_t i = 0; i < slice.length; i++)
		if ((unsigned char)slice.text[i] < 0x20 || slice.text[i] == 0x7f)
			return true;
	return false;
}

static uint32_t text_number_of(struct prom *prom, struct prom_slice slice)
{
	struct prom_texts *texts = &prom->texts;
	uint64_t hash = hash_bytes(slice.text, slice.length), at = hash;
	struct prom_slot *slot;

	if (!prom_index_grow(&texts->index)) {
		prom->status = ERR_NO_SPACE;
		return 0;
	}
	while ((slot = prom_index_next(&texts->index, hash, &at))->item != 0) {
		const char *found = texts->list[slot->item - 1];

		if (strncmp(found, slice.text, slice.length) == 0 && found[slice.length] == '\0')
			return slot->item - 1;
	}
	if (!text_add(texts, slice.text, slice.length)) {
		prom->status = ERR_NO_SPACE;
		return 0;
	}
	index_put(&texts->index, slot, hash, texts->count - 1);
	return (uint32_t)texts->count - 1;
}

uint32_t prom_text(struct prom *prom, struct prom_slice slice)
{
	char clean[TEXT_MAX];

	if (prom->texts.count == 0 && !text_add(&prom->texts, "", 0)) {
		prom->status = ERR_NO_SPACE;
		return 0;
	}
	if (slice.text == NULL || slice.length == 0)
		return 0;
	if (slice.length > TEXT_MAX) {
		slice.length = TEXT_MAX;
		/* Between characters. */
		while (slice.length > 0 && (slice.text[slice.length] & 0xc0) == 0x80)
			slice.length--;
	}
	if (has_control_bytes(slice)) {
		for (size_t i = 0; i < slice.length; i++) {
			unsigned char byte = (unsigned char)slice.text[i];

			clean[i] = byte < 0x20 || byte == 0x7f ? '?' : slice.text[i];
		}
		slice.text = clean;
	}
	return text_number_of(prom, slice);
}

/* ---- labels ---------------------------------------------------------------------------------- */

static bool to_unsigned(struct prom_slice slice, uint64_t *number)
{
	uint64_t sum = 0;

	if (slice.text == NULL || slice.length == 0 || slice.length > 20)
		return false;
	for (size_t i = 0; i < slice.length; i++) {
		unsigned int digit = (unsigned int)(unsigned char)slice.text[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	*number = sum;
	return true;
}

int64_t prom_label_number(const struct prom_sample *sample, enum prom_label label, int64_t least,
			  int64_t most, int64_t otherwise)
{
	uint64_t number;

	if (!to_unsigned(sample->labels[label], &number) || number > INT64_MAX ||
	    (int64_t)number < least || (int64_t)number > most)
		return otherwise;
	return (int64_t)number;
}

uint64_t prom_label_unsigned(const struct prom_sample *sample, enum prom_label label)
{
	uint64_t number;

	return to_unsigned(sample->labels[label], &number) ? number : 0;
}

bool prom_label_is(const struct prom_sample *sample, enum prom_label label, const char *text)
{
	struct prom_slice slice = sample->labels[label];

	return slice.text != NULL && slice.length == strlen(text) &&
	       memcmp(slice.text, text, slice.length) == 0;
}

/* ---- who ------------------------------------------------------------------------------------- */

/* NCCL's hash as agents write it: 16 hexadecimal digits; 0 for anything else. */
static uint64_t comm_hash(const char *text)
{
	uint64_t hash = 0;

	if (strlen(text) != 16)
		return 0;
	for (const char *at = text; *at != '\0'; at++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = strchr(digits, *at);

		if (digit == NULL)
			return 0;
		hash = hash << 4 | (uint64_t)(digit - digits);
	}
	return hash;
}

static uint32_t comm_of(struct prom *prom, uint32_t job, uint32_t comm)
{
	uint64_t hash = hash_word(job, comm), at = hash;
	struct prom_slot *slot;

	if (!prom_index_grow(&prom->comm_index))
		return UINT32_MAX;
	while ((slot = prom_index_next(&prom->comm_index, hash, &at))->item != 0) {
		const struct prom_comm *found = &prom->comms[slot->item - 1];

		if (found->job == job && found->comm == comm)
			return slot->item - 1;
	}
	if (!prom_grow(&prom->comms, prom->comm_count, sizeof(*prom->comms)))
		return UINT32_MAX;
	prom->comms[prom->comm_count] = (struct prom_comm){
		.job = job, .comm = comm, .hash = comm_hash(prom_text_of(prom, comm))
	};
	index_put(&prom->comm_index, slot, hash, prom->comm_count);
	return (uint32_t)prom->comm_count++;
}

static uint32_t member_of(struct prom *prom, uint32_t comm, int32_t rank)
{
	uint64_t hash = hash_word(comm, (uint32_t)rank), at = hash;
	struct prom_slot *slot;

	if (comm == UINT32_MAX || !prom_index_grow(&prom->member_index))
		return UINT32_MAX;
	while ((slot = prom_index_next(&prom->member_index, hash, &at))->item != 0) {
		const struct prom_member *found = &prom->members[slot->item - 1];

		if (found->comm == comm && found->rank == rank)
			return slot->item - 1;
	}
	if (!prom_grow(&prom->members, prom->member_count, sizeof(*prom->members)))
		return UINT32_MAX;
	prom->members[prom->member_count] = (struct prom_member){
		.comm = comm, .rank = rank, .pid = -1, .global_rank = -1, .gpu = -1
	};
	index_put(&prom->member_index, slot, hash, prom->member_count);
	return (uint32_t)prom->member_count++;
}

uint32_t prom_member_of(struct prom *prom, const struct prom_sample *sample)
{
	uint32_t job = prom_text(prom, sample->labels[PROM_LABEL_NCCL_JOB]);
	uint32_t comm = prom_text(prom, sample->labels[PROM_LABEL_COMM]);
	int32_t rank = (int32_t)prom_label_number(sample, PROM_LABEL_RANK, 0, INT32_MAX - 1, -1);
	uint32_t member;

	if (comm == 0)
		return UINT32_MAX;
	member = member_of(prom, comm_of(prom, job, comm), rank);
	if (member == UINT32_MAX)
		prom->status = ERR_NO_SPACE;
	return member;
}

uint32_t prom_process_of(struct prom *prom, uint32_t job, uint32_t host, int64_t pid)
{
	uint64_t hash = hash_word(hash_word(job, host), (uint64_t)pid), at = hash;
	struct prom_slot *slot = NULL;

	if (!prom_index_grow(&prom->process_index)) {
		prom->status = ERR_NO_SPACE;
		return UINT32_MAX;
	}
	while ((slot = prom_index_next(&prom->process_index, hash, &at))->item != 0) {
		const struct prom_process *found = &prom->processes[slot->item - 1];

		if (found->job == job && found->host == host && found->pid == pid)
			return slot->item - 1;
	}
	if (!prom_grow(&prom->processes, prom->process_count, sizeof(*prom->processes))) {
		prom->status = ERR_NO_SPACE;
		return UINT32_MAX;
	}
	prom->processes[prom->process_count] = (struct prom_process){ .job = job,
								      .host = host,
								      .pid = pid,
								      .rank = -1,
								      .local_rank = -1,
								      .world_size = -1,
								      .gpu = -1 };
	index_put(&prom->process_index, slot, hash, prom->process_count);
	return (uint32_t)prom->process_count++;
}

struct prom_row *prom_row_of(struct prom *prom, struct prom_rows *rows, struct prom_row key)
{
	uint64_t what = (uint64_t)key.function << 32 | key.size;
	uint64_t hash = hash_word(hash_word(key.member, what), (uint32_t)key.peer), at = hash;
	struct prom_slot *slot;

	if (prom_index_grow(&rows->index)) {
		while ((slot = prom_index_next(&rows->index, hash, &at))->item != 0) {
			struct prom_row *found = &rows->list[slot->item - 1];

			if (found->member == key.member && found->function == key.function &&
			    found->size == key.size && found->peer == key.peer)
				return found;
		}
		if (prom_grow(&rows->list, rows->count, sizeof(*rows->list))) {
			rows->list[rows->count] = key;
			index_put(&rows->index, slot, hash, rows->count);
			return &rows->list[rows->count++];
		}
	}
	prom->status = ERR_NO_SPACE;
	return NULL;
}
