/*
 * Facts and texts are kept once. One index for all lists leads from a hash of what makes a fact the same to
 * its place; texts are interned. So a gigabyte of repeated lines takes no more memory than its first.
 */
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "nccllog/nccl_log_parts.h"

enum { TEXT_MOST = 4096 };

#define LIST(member, most)                                                                       \
	{                                                                                        \
		offsetof(struct nccl_log, member##s), offsetof(struct nccl_log, member##_count), \
			sizeof(*((struct nccl_log *)0)->member##s), most                         \
	}

/* Where each list lies, and how long it may become. */
static const struct {
	size_t list;
	size_t count;
	size_t size;
	size_t most;
} lists[LOG_LISTS] = {
	[LOG_FILES] = LIST(file, 1 << 20),
	[LOG_PROCESSES] = { offsetof(struct nccl_log, processes),
			    offsetof(struct nccl_log, process_count),
			    sizeof(struct nccl_log_process), 1 << 18 },
	[LOG_COMMS] = LIST(comm, 1 << 20),
	[LOG_LINKS] = LIST(link, 1 << 20),
	[LOG_CHANNELS] = LIST(channel, 1 << 20),
	[LOG_NETS] = LIST(net, 1 << 18),
	[LOG_GDRS] = LIST(gdr, 1 << 18),
	[LOG_VARIABLES] = LIST(variable, 1 << 20),
	[LOG_PLUGINS] = LIST(plugin, 1 << 18),
	[LOG_CHOICES] = LIST(choice, 1 << 16),
	[LOG_COSTS] = LIST(cost, 1 << 12),
	[LOG_OPERATIONS] = LIST(operation, 1 << 20),
	[LOG_WARNINGS] = LIST(warning, 1 << 16),
	[LOG_REPORTS] = LIST(report, 1 << 16),
	[LOG_NOTES] = LIST(note, 1 << 18),
	[LOG_OTHERS] = LIST(other, 1024),
};

static void fail(struct nccl_log *log)
{
	if (log->work->status == OK)
		log->work->status = ERR_NO_SPACE;
}

void *log_add(struct nccl_log *log, enum log_list list)
{
	char **start = (void *)((char *)log + lists[list].list);
	size_t *count = (void *)((char *)log + lists[list].count);
	size_t *room = &log->work->room[list];
	char *entry;

	if (*count == lists[list].most) {
		log->left_out += list != LOG_OTHERS;
		return NULL;
	}
	if (*count == *room) {
		size_t more = *room == 0 ? 16 : *room * 2;
		char *grown = realloc(*start, more * lists[list].size);

		if (grown == NULL) {
			fail(log);
			return NULL;
		}
		*start = grown;
		*room = more;
	}
	entry = *start + *count * lists[list].size;
	memset(entry, 0, lists[list].size);
	++*count;
	return entry;
}

/* ---- the index ------------------------------------------------------------------------------- */

static struct log_slot *find_slot(struct log_slot *slots, size_t count, uint32_t list, uint64_t key)
{
	size_t at = (size_t)hash_word(key, list) & (count - 1);

	while (slots[at].list != 0 && !(slots[at].key == key && slots[at].list == list + 1))
		at = (at + 1) & (count - 1);
	return &slots[at];
}

static bool grow_index(struct nccl_log_work *work)
{
	size_t count = work->slot_count == 0 ? 1024 : work->slot_count * 2;
	struct log_slot *slots = calloc(count, sizeof(*slots));

	if (slots == NULL)
		return false;
	for (size_t i = 0; i < work->slot_count; i++)
		if (work->slots[i].list != 0)
			*find_slot(slots, count, work->slots[i].list - 1, work->slots[i].key) =
				work->slots[i];
	free(work->slots);
	work->slots = slots;
	work->slot_count = count;
	return true;
}

int64_t log_find_key(const struct nccl_log *log, uint32_t list, uint64_t key)
{
	const struct nccl_log_work *work = log->work;
	const struct log_slot *slot;

	if (work->slot_count == 0)
		return LOG_NONE;
	slot = find_slot(work->slots, work->slot_count, list, key);
	return slot->list != 0 ? (int64_t)slot->index : LOG_NONE;
}

void log_set_key(struct nccl_log *log, uint32_t list, uint64_t key, uint32_t index)
{
	struct nccl_log_work *work = log->work;
	struct log_slot *slot;

	/* Threads come and go without a bound of their own. */
	if (work->slots_used >= (size_t)1 << 23) {
		log->left_out++;
		return;
	}
	if ((work->slots_used + 1) * 4 > work->slot_count * 3 && !grow_index(work)) {
		fail(log);
		return;
	}
	slot = find_slot(work->slots, work->slot_count, list, key);
	work->slots_used += slot->list == 0;
	*slot = (struct log_slot){ .key = key, .list = list + 1, .index = index };
}

void *log_entry(struct nccl_log *log, enum log_list list, uint64_t key, bool *is_new)
{
	int64_t index = log_find_key(log, list, key);
	char *start;
	void *entry;

	*is_new = index == LOG_NONE;
	if (index != LOG_NONE) {
		memcpy(&start, (char *)log + lists[list].list, sizeof(start));
		return start + (size_t)index * lists[list].size;
	}
	entry = log_add(log, list);
	if (entry != NULL) {
		size_t count;

		memcpy(&count, (char *)log + lists[list].count, sizeof(count));
		log_set_key(log, list, key, (uint32_t)(count - 1));
	}
	return entry;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static char *take_bytes(struct nccl_log *log, size_t length)
{
	struct log_block *block = log->work->blocks;

	if (block == NULL || sizeof(block->bytes) - block->used < length) {
		block = malloc(sizeof(*block));
		if (block == NULL) {
			fail(log);
			return NULL;
		}
		block->next = log->work->blocks;
		block->used = 0;
		log->work->blocks = block;
	}
	block->used += length;
	return block->bytes + block->used - length;
}

static size_t find_text(const struct nccl_log_work *work, const char *text, size_t length)
{
	size_t at = (size_t)hash_bytes(text, length) & (work->text_room - 1);

	while (work->texts[at] != NULL &&
	       !(work->lengths[at] == length && memcmp(work->texts[at], text, length) == 0))
		at = (at + 1) & (work->text_room - 1);
	return at;
}

static bool grow_texts(struct nccl_log_work *work)
{
	struct nccl_log_work grown = { .text_room =
					       work->text_room == 0 ? 256 : work->text_room * 2 };

	grown.texts = calloc(grown.text_room, sizeof(*grown.texts));
	grown.lengths = calloc(grown.text_room, sizeof(*grown.lengths));
	if (grown.texts == NULL || grown.lengths == NULL) {
		free(grown.texts);
		free(grown.lengths);
		return false;
	}
	for (size_t i = 0; i < work->text_room; i++) {
		size_t at;

		if (work->texts[i] == NULL)
			continue;
		at = find_text(&grown, work->texts[i], work->lengths[i]);
		grown.texts[at] = work->texts[i];
		grown.lengths[at] = work->lengths[i];
	}
	free(work->texts);
	free(work->lengths);
	work->texts = grown.texts;
	work->lengths = grown.lengths;
	work->text_room = grown.text_room;
	return true;
}

const char *log_keep(struct nccl_log *log, struct log_text text)
{
	struct nccl_log_work *work = log->work;
	char clean[TEXT_MOST];
	size_t length = log_left(&text), at;
	char *copy;

	if (length == 0)
		return "";
	length = length < sizeof(clean) ? length : sizeof(clean) - 1;
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text.at[i];

		clean[i] = byte < 0x20 || byte == 0x7f ? '?' : (char)byte;
	}
	if ((work->text_count + 1) * 4 > work->text_room * 3 && !grow_texts(work)) {
		fail(log);
		return "";
	}
	at = find_text(work, clean, length);
	if (work->texts[at] != NULL)
		return work->texts[at];
	copy = take_bytes(log, length + 1);
	if (copy == NULL)
		return "";
	memcpy(copy, clean, length);
	copy[length] = '\0';
	work->texts[at] = copy;
	work->lengths[at] = (uint32_t)length;
	work->text_count++;
	return copy;
}

static bool is_digit(unsigned char byte, bool is_in_number)
{
	return (byte >= '0' && byte <= '9') ||
	       (is_in_number && ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f'));
}

/* 0x7f00 and 1234 are the same; letters count as digits only within a number. */
uint64_t log_shape(struct log_text text)
{
	uint64_t hash = 1;
	bool is_number = false;

	for (; text.at < text.end; text.at++) {
		unsigned char byte = (unsigned char)*text.at;
		bool was_number = is_number;

		is_number = is_digit(byte, is_number) || (is_number && byte == 'x');
		if (!is_number)
			hash = (hash ^ byte) * UINT64_C(0x100000001b3);
		else if (!was_number)
			hash = (hash ^ '#') * UINT64_C(0x100000001b3);
	}
	return hash;
}

void nccl_log_release(struct nccl_log *log)
{
	struct nccl_log_work *work = log->work;

	for (size_t i = 0; i < LOG_LISTS; i++) {
		char *start;

		memcpy(&start, (char *)log + lists[i].list, sizeof(start));
		free(start);
	}
	while (work != NULL && work->blocks != NULL) {
		struct log_block *next = work->blocks->next;

		free(work->blocks);
		work->blocks = next;
	}
	if (work != NULL) {
		free(work->slots);
		free(work->texts);
		free(work->lengths);
	}
	free(work);
	*log = (struct nccl_log){ .files = NULL };
}
