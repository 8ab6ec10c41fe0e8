/*
 * Opening a region, and private copies of its parts.
 *
 * The header is read in two steps, magic first: by R1 a reader that sees the magic sees the rest.
 * After that only the checked copy of the part table is used, whatever the file says later.
 */
#include "format/region_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/order.h"
#include "common/search.h"

enum { REGION_COPY_TRIES = 8 };

enum { REGION_CHUNK_BYTES = 1 << 16 };

/* Working memory for one chunk. */
struct region_scratch {
	uint64_t keys[REGION_CHUNK_BYTES / sizeof(uint64_t)]; /* A */
	unsigned char bytes[REGION_CHUNK_BYTES];	      /* C */
};

/* Slots [first, first + count) of a copy. */
struct region_piece {
	uint32_t first, count;
	uint64_t passing; /* bits of a transient state that is worth a retry */
	bool is_brief;
	const uint64_t *before;
	const unsigned char *after;
};

static inline uint64_t region_slot_word(const unsigned char *slot)
{
	uint64_t word;

	memcpy(&word, slot, sizeof(word));
	return word;
}

#define REGION_BYTES_MAX (UINT64_C(1) << 36)
enum { HEADER_BYTES_MAX = 1 << 20, STRIDE_MAX = 1 << 16 };

/*
 * The smallest stride that this version understands (a newer minor version may have longer slots),
 * and the largest slot count it accepts. What is copied as a whole may be twice as large as any
 * recorder creates it: a false header must not make a reader allocate all memory.
 */
static const struct {
	uint32_t stride;
	uint32_t count_max;
	bool is_copied;
} limits[REGION_PARTS] = {
	[REGION_INFO] = { 8, REGION_INFO_BYTES, false },
	[REGION_NAMES] = { sizeof(struct region_name), 2 * OP_NAMES_INTERNED_MAX, true },
	[REGION_COMMS] = { sizeof(struct region_comm), 1024, true },
	[REGION_LIVE] = { sizeof(struct region_live), 8192, true },
	[REGION_PROXIES] = { sizeof(struct region_proxy), 16384, true },
	[REGION_PEERS] = { sizeof(struct region_peer), 1 << 20, false },
	[REGION_TOTALS] = { REGION_TOTAL_BYTES_LEAST, 2048, true },
	[REGION_LINKS] = { sizeof(struct region_link), 8192, true },
	[REGION_RING] = { OP_RECORD_BYTES, 1 << 26, false },
	[REGION_DETAILS] = { OP_DETAIL_BYTES, 1 << 27, false },
};

static const char *check_part(const struct region_header *header, unsigned int index)
{
	const struct region_part *part = &header->parts[index];
	uint64_t bytes = (uint64_t)part->count * part->stride;

	if (part->count == 0)
		return NULL;
	/* A part of a newer minor version is neither checked nor read. */
	if (limits[index].stride == 0)
		return NULL;
	if (part->stride < limits[index].stride || part->stride % 8 != 0 ||
	    part->stride > STRIDE_MAX)
		return "invalid slot size in a part";
	if (part->count > limits[index].count_max ||
	    (limits[index].is_copied && part->stride > 2 * limits[index].stride))
		return "tables larger than any recorder creates";
	if (part->offset % 64 != 0 || part->offset < header->header_bytes)
		return "invalid offset of a part";
	if (part->offset > header->total_bytes || bytes > header->total_bytes - part->offset)
		return "a part extends past the end";
	return NULL;
}

static const char *check_header(const struct region_header *header)
{
	const char *what = NULL;

	if (header->header_bytes < sizeof(*header) || header->header_bytes > HEADER_BYTES_MAX)
		return "invalid header size";
	if (header->total_bytes < header->header_bytes || header->total_bytes > REGION_BYTES_MAX)
		return "invalid total size";
	for (unsigned int i = 0; i < REGION_PARTS && what == NULL; i++)
		what = check_part(header, i);
	if (what != NULL)
		return what;
	if (header->info_bytes > REGION_INFO_BYTES ||
	    header->info_bytes >
		    (uint64_t)header->parts[REGION_INFO].count * header->parts[REGION_INFO].stride)
		return "invalid size of the info text";
	return NULL;
}

enum status region_pread(const struct region *region, void *to, size_t length, uint64_t offset)
{
	if (region->fd != -1)
		return file_pread(region->fd, to, length, offset);
	if (offset > region->file_bytes || length > region->file_bytes - offset)
		return ERR_TRUNCATED;
	memcpy(to, region->memory + offset, length);
	return OK;
}

static enum status read_header(struct region *region, struct status_problem *problem)
{
	struct region_header *header = &region->header;
	const char *what;
	uint64_t magic;

	if (region->file_bytes < sizeof(magic))
		return status_refuse(problem, ERR_FORMAT, "too short for a region");
	if (region_pread(region, &magic, sizeof(magic), 0) != OK)
		return status_refuse(problem, ERR_SYSTEM, "cannot be read");
	if (magic != REGION_MAGIC)
		return status_refuse(problem, ERR_FORMAT, "not a region");
	/* R1: pairs with the release in region_publish(). */
	fence_acquire();
	if (region_pread(region, header, sizeof(*header), 0) != OK)
		return status_refuse(problem, ERR_TRUNCATED, "truncated header");
	if (header->byte_order != REGION_BYTE_ORDER)
		return status_refuse(problem, ERR_FORMAT, "written with a different byte order");
	if (header->major != REGION_MAJOR) {
		problem->found_major = header->major;
		problem->found_minor = header->minor;
		return status_refuse(problem,
				     header->major > REGION_MAJOR ? ERR_VERSION : ERR_FORMAT,
				     "unsupported major version");
	}
	what = check_header(header);
	if (what != NULL)
		return status_refuse(problem, ERR_FORMAT, what);
	if (header->total_bytes > region->file_bytes)
		return status_refuse(problem, ERR_TRUNCATED, "shorter than its header says");
	return OK;
}

static enum status open_contents(struct region *region, struct status_problem *problem)
{
	struct status_problem unwanted;
	enum status status;

	if (problem == NULL)
		problem = &unwanted;
	status = read_header(region, problem);
	if (status != OK)
		return status;
	region->info_bytes = (size_t)region->header.info_bytes;
	status = region_pread(region, region->info, region->info_bytes,
			      region->header.parts[REGION_INFO].offset);
	return status == OK ? OK : status_refuse(problem, status, "truncated info text");
}

enum status region_open_memory(struct region *region, const void *bytes, size_t length,
			       struct status_problem *problem)
{
	struct region made = { .fd = -1, .memory = bytes, .file_bytes = length };
	enum status status = open_contents(&made, problem);

	if (status == OK)
		*region = made;
	return status;
}

enum status region_open_fd(struct region *region, int fd, struct status_problem *problem)
{
	struct region made = { .fd = -1 };
	enum status status;
	struct stat st;

	if (problem != NULL)
		problem->what = "cannot be read";
	made.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (made.fd == -1)
		return ERR_SYSTEM;
	if (fstat(made.fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		close(made.fd);
		errno = EINVAL;
		return ERR_SYSTEM;
	}
	made.file_bytes = (uint64_t)st.st_size;
	if (file_is_hollow(made.fd)) {
		close(made.fd);
		return problem != NULL ? status_refuse(problem, ERR_FORMAT, FILE_HOLLOW_WORDS)
				       : ERR_FORMAT;
	}
	status = open_contents(&made, problem);
	if (status == OK)
		*region = made;
	else
		close(made.fd);
	return status;
}

enum status region_open(struct region *region, const char *path, unsigned int flags,
			struct status_problem *problem)
{
	int fd = file_open(AT_FDCWD, path, !(flags & REGION_NO_LINKS));
	enum status status;

	if (fd == -1) {
		if (problem != NULL)
			problem->what = "cannot be opened";
		return ERR_SYSTEM;
	}
	status = region_open_fd(region, fd, problem);
	close(fd);
	return status;
}

void region_close(struct region *region)
{
	for (unsigned int i = 0; i < REGION_PARTS; i++) {
		free(region->copies[i].bytes);
		free(region->copies[i].is_stable);
		free(region->copies[i].slots);
	}
	/* A zeroed region has descriptor 0, which is never used for a region. */
	if (region->fd > 0)
		close(region->fd);
	memset(region, 0, sizeof(*region));
	region->fd = -1;
}

bool region_is_copy(const struct region *region)
{
	struct stat st;

	return region->fd != -1 && region->header.lock_inode != 0 && fstat(region->fd, &st) == 0 &&
	       st.st_ino != region->header.lock_inode;
}

bool region_is_let_go(const struct region *region)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat st;

	/* A copy of the file has a different inode, and its lock was never held. */
	return region->fd != -1 && region->header.lock_inode != 0 && fstat(region->fd, &st) == 0 &&
	       st.st_ino == region->header.lock_inode &&
	       fcntl(region->fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_UNLCK;
}

/*
 * A slot is consistent if its key (its first word) was the same before and after its content was
 * copied. So each part is read in chunks that stay in the cache, each of them up to three times:
 *
 *	keys A     read all, keep the first words
 *	content B  read the slots in use, keep everything; adjacent slots in one read
 *	keys C     read the same, compare the first words
 *
 * A == B == C: the content belongs to the owner with that key (R2, R3). Two passes are not enough:
 * a word that was 3 before, 5 in between and 3 after looks equal in two copies. Slots that fail are
 * read again one by one, a few times; those that still fail are marked unstable. A slot that is
 * free in A was free then, and its content is not used: most slots are free.
 */

enum { SLOT_TRIES = 8, APART_BYTES = 2048 };

/* Which bits of a slot's first word identify its owner, and which are transient, worth a retry. */
static const struct {
	uint64_t key;
	uint64_t passing;
} rules[REGION_PARTS] = {
	[REGION_COMMS] = { UINT64_C(0xffffffff) << 32, 0 },
	[REGION_LIVE] = { UINT64_C(0xffffffff) << 32 | LIVE_RETIRING, LIVE_RETIRING },
	[REGION_PROXIES] = { UINT64_C(0xffffffff) << 32, 0 },
	[REGION_TOTALS] = { ~UINT64_C(0), 0 },
	[REGION_LINKS] = { ~UINT64_C(0), 0 },
	[REGION_RING] = { ~UINT64_C(0), RING_BUSY },
	[REGION_DETAILS] = { ~UINT64_C(0), RING_BUSY },
};

static void bit_set(uint64_t *bits, uint32_t index, bool is_set)
{
	uint64_t bit = UINT64_C(1) << (index % 64);

	bits[index / 64] = is_set ? bits[index / 64] | bit : bits[index / 64] & ~bit;
}

static bool bit_get(const uint64_t *bits, uint32_t index)
{
	return bits[index / 64] >> (index % 64) & 1;
}

/* Where slot `index` of a copy that begins at slot copy->first is in the region. */
static uint64_t slot_offset(const struct region *region, unsigned int part,
			    const struct region_copy *copy, uint32_t index)
{
	return region->header.parts[part].offset + (uint64_t)(copy->first + index) * copy->stride;
}

/* Read one slot again: key, content, key; repeat while its state is transient. */
static enum status retry_slot(const struct region *region, unsigned int part,
			      struct region_copy *copy, uint32_t index, uint64_t passing)
{
	uint64_t offset = slot_offset(region, part, copy, index);
	unsigned char *slot = copy->bytes + (size_t)index * copy->stride;
	enum status status = OK;
	uint64_t before, after, differ = 0;

	for (int i = 0; i < SLOT_TRIES; i++) {
		status = region_pread(region, &before, sizeof(before), offset);
		fence_acquire();
		if (status == OK)
			status = region_pread(region, slot, copy->stride, offset);
		fence_acquire();
		if (status == OK)
			status = region_pread(region, &after, sizeof(after), offset);
		if (status != OK)
			return status;
		differ = ((before ^ region_slot_word(slot)) | (before ^ after)) & rules[part].key;
		if (differ == 0 && !(before & passing))
			break;
	}
	bit_set(copy->is_stable, index, differ == 0);
	return OK;
}

/* Is anything after this slot's first word used? */
static bool region_slot_has_owner(unsigned int part, uint32_t index, uint64_t word)
{
	switch (part) {
	case REGION_COMMS:
		return word != 0;
	case REGION_LIVE:
		return region_slot_is_used(word) || word & LIVE_RETIRING;
	case REGION_PROXIES:
		return region_slot_is_used(word);
	case REGION_TOTALS:
	case REGION_LINKS:
		return index == 0 || word > SLOT_FORGOTTEN;
	default:
		return rules[part].key != 0;
	}
}

/* The key of a slot that is skipped. As a generation it means free. */
#define PASSED_OVER UINT64_C(2)

/* Compare the three keys of every slot; retry those that changed. */
static enum status settle_slots(const struct region *region, unsigned int part,
				struct region_copy *copy, const struct region_piece *piece)
{
	enum status status = OK;

	for (uint32_t i = 0; i < piece->count && status == OK; i++) {
		size_t at = (size_t)i * copy->stride;
		uint32_t index = piece->first + i;
		uint64_t word = region_slot_word(copy->bytes + (size_t)index * copy->stride);
		uint64_t after = region_slot_word(piece->after + at);
		uint64_t differ = ((piece->before[i] ^ word) | (word ^ after)) & rules[part].key;

		if (piece->is_brief && piece->before[i] == PASSED_OVER)
			continue;
		bit_set(copy->is_stable, index, differ == 0);
		if (differ != 0 || word & piece->passing)
			status = retry_slot(region, part, copy, index, piece->passing);
	}
	return status;
}

/*
 * Does it belong to a communicator that finishes operations so fast that this one can be skipped?
 * Judged by a first, unverified read of the slot; if that is wrong, the slot is just changing
 * owners.
 */
static bool is_hasty(const struct region *region, const unsigned char *slot)
{
	uint32_t comm;
	size_t at;

	if (slot[offsetof(struct region_live, op.state)] != OP_DONE)
		return false;
	memcpy(&comm, slot + offsetof(struct region_live, op.comm), sizeof(comm));
	at = SEARCH_FIRST(i, region->hasty_count, region->hasty[i] >= comm);
	return at < region->hasty_count && region->hasty[at] == comm;
}

static bool is_known(const struct region *region, uint32_t slot, uint64_t word)
{
	size_t at = SEARCH_FIRST(i, region->known_count, region->known[i].slot >= slot);

	if (at == region->known_count || region->known[at].slot != slot ||
	    region->known[at].word != word)
		return false;
	region->known[at].is_there = 1;
	return true;
}

/*
 * The next run of used slots in a piece, from slot *at on. Short gaps of free slots are read along,
 * which is cheaper than a separate read. False: no more.
 */
static bool next_run(const struct region_copy *copy, unsigned int part,
		     const struct region_piece *piece, uint32_t *at, struct region_piece *run)
{
	uint32_t from = piece->count, to = 0, apart = APART_BYTES / copy->stride;

	for (uint32_t i = *at; i < piece->count && (to == 0 || i <= to + apart); i++) {
		if (!region_slot_has_owner(part, copy->first + piece->first + i, piece->before[i]))
			continue;
		if (from > i)
			from = i;
		to = i + 1;
	}
	*at = to;
	*run = *piece;
	run->first += from;
	run->count = to - from;
	run->before += from;
	return to != 0;
}

/* Steps B and C. */
static enum status copy_run(const struct region *region, unsigned int part,
			    struct region_copy *copy, const struct region_piece *run,
			    struct region_scratch *scratch)
{
	uint64_t offset = slot_offset(region, part, copy, run->first);
	size_t bytes = (size_t)run->count * copy->stride;
	enum status status;

	/* R2, R3: pairs with the releases of the threads that fill slots. */
	fence_acquire();
	status = region_pread(region, copy->bytes + (size_t)run->first * copy->stride, bytes,
			      offset);
	fence_acquire();
	if (status == OK)
		status = region_pread(region, scratch->bytes, bytes, offset);
	return status == OK ? settle_slots(region, part, copy, run) : status;
}

/* Copy a piece of at most REGION_CHUNK_BYTES to its place in `copy`. */
static enum status region_slots_copy(const struct region *region, unsigned int part,
				     struct region_copy *copy, struct region_piece piece,
				     struct region_scratch *scratch)
{
	unsigned char *to = copy->bytes + (size_t)piece.first * copy->stride;
	enum status status = region_pread(region, to, (size_t)piece.count * copy->stride,
					  slot_offset(region, part, copy, piece.first));
	struct region_piece run;
	uint32_t at = 0;

	if (status != OK)
		return status;
	piece.before = scratch->keys;
	piece.after = scratch->bytes;
	for (uint32_t i = 0; i < piece.count; i++) {
		const unsigned char *slot = to + (size_t)i * copy->stride;

		scratch->keys[i] = region_slot_word(slot);
		bit_set(copy->is_stable, piece.first + i, true);
		if (piece.is_brief && part == REGION_LIVE &&
		    region_slot_is_used(scratch->keys[i]) &&
		    (is_hasty(region, slot) ||
		     is_known(region, copy->first + piece.first + i, scratch->keys[i]))) {
			scratch->keys[i] = PASSED_OVER;
			bit_set(copy->is_stable, piece.first + i, false);
		}
	}
	while (status == OK && next_run(copy, part, &piece, &at, &run))
		status = copy_run(region, part, copy, &run, scratch);
	return status;
}

static enum status copy_content(const struct region *region, unsigned int part,
				struct region_copy *copy)
{
	uint32_t per_chunk = REGION_CHUNK_BYTES / copy->stride;
	struct region_scratch *scratch = malloc(sizeof(*scratch));
	enum status status = scratch != NULL ? OK : ERR_NO_SPACE;

	for (uint32_t at = 0; at < copy->count && status == OK; at += per_chunk) {
		struct region_piece piece = { .first = at,
					      .count = copy->count - at < per_chunk
							       ? copy->count - at
							       : per_chunk,
					      .passing = rules[part].passing };

		status = region_slots_copy(region, part, copy, piece, scratch);
	}
	free(scratch);
	return status;
}

void region_copy_release(struct region_copy *copy)
{
	free(copy->bytes);
	free(copy->is_stable);
	free(copy->slots);
	*copy = (struct region_copy){ 0 };
}

enum status region_copy_slots(const struct region *region, enum region_part_index part,
			      uint32_t first, uint32_t count, struct region_copy *to)
{
	struct region_copy copy = { .first = first, .count = count };
	enum status status;

	if (first > region->header.parts[part].count ||
	    count > region->header.parts[part].count - first)
		return ERR_RANGE;
	copy.stride = region->header.parts[part].stride;
	if (count > 0) {
		copy.bytes = malloc((size_t)count * copy.stride);
		copy.is_stable = calloc(count / 64 + 1, sizeof(uint64_t));
		status = copy.bytes != NULL && copy.is_stable != NULL
				 ? copy_content(region, part, &copy)
				 : ERR_NO_SPACE;
		if (status != OK) {
			region_copy_release(&copy);
			return status;
		}
	}
	*to = copy;
	return OK;
}

const unsigned char *region_copy_slot(const struct region_copy *copy, uint32_t index)
{
	if (index >= copy->count || !bit_get(copy->is_stable, index))
		return NULL;
	return copy->bytes + (size_t)index * copy->stride;
}

uint32_t region_copy_index(const struct region_copy *copy, uint32_t index)
{
	return copy->slots != NULL ? copy->slots[index] : copy->first + index;
}

/* Most slots are free, so a copy without gaps is made of those in use, with their indexes. */

struct gather {
	struct region_copy all; /* what was in use so far */
	uint32_t room;
	struct region_copy chunk;
	struct region_scratch scratch;
};

static bool gather_grow(struct gather *gather)
{
	uint32_t room = gather->room == 0 ? 64 : gather->room * 2;
	unsigned char *bytes;
	uint32_t *slots;

	if (gather->all.count < gather->room)
		return true;
	bytes = reallocarray(gather->all.bytes, room, gather->all.stride);
	if (bytes != NULL)
		gather->all.bytes = bytes;
	slots = reallocarray(gather->all.slots, room, sizeof(*slots));
	if (slots != NULL)
		gather->all.slots = slots;
	if (bytes == NULL || slots == NULL)
		return false;
	gather->room = room;
	return true;
}

/* Add the slots of a chunk that are in use and stable. */
static enum status gather_chunk(struct gather *gather, unsigned int part)
{
	const struct region_copy *chunk = &gather->chunk;
	struct region_copy *all = &gather->all;

	for (uint32_t i = 0; i < chunk->count; i++) {
		const unsigned char *slot = region_copy_slot(chunk, i);

		if (slot == NULL ||
		    !region_slot_has_owner(part, chunk->first + i, region_slot_word(slot)))
			continue;
		if (!gather_grow(gather))
			return ERR_NO_SPACE;
		memcpy(all->bytes + (size_t)all->count * all->stride, slot, all->stride);
		all->slots[all->count++] = chunk->first + i;
	}
	return OK;
}

static enum status gather_all(const struct region *region, unsigned int part, uint32_t count,
			      struct gather *gather)
{
	uint32_t per_chunk = REGION_CHUNK_BYTES / gather->all.stride;
	struct region_copy *chunk = &gather->chunk;
	enum status status = OK;

	for (uint32_t at = 0; at < count && status == OK; at += per_chunk) {
		chunk->first = at;
		chunk->count = count - at < per_chunk ? count - at : per_chunk;
		/* A slot in a transient state is read at the next scan. */
		status = region_slots_copy(
			region, part, chunk,
			(struct region_piece){ .count = chunk->count, .is_brief = true },
			&gather->scratch);
		if (status == OK)
			status = gather_chunk(gather, part);
	}
	/* Everything that was kept is stable. */
	gather->all.is_stable = malloc((gather->all.count / 64 + 1) * sizeof(uint64_t));
	if (gather->all.is_stable == NULL)
		return ERR_NO_SPACE;
	memset(gather->all.is_stable, 0xff, (gather->all.count / 64 + 1) * sizeof(uint64_t));
	return status;
}

/* Slots [0, count) of a part, but only those in use and stable. */
static enum status region_gather(const struct region *region, unsigned int part, uint32_t count,
				 struct region_copy *to)
{
	struct gather *gather = malloc(sizeof(*gather));
	enum status status = ERR_NO_SPACE;

	if (gather == NULL)
		return status;
	/* The scratch memory is large and needs no initialization. */
	gather->room = 0;
	gather->all = gather->chunk = (struct region_copy){ 0 };
	gather->all.stride = gather->chunk.stride = region->header.parts[part].stride;
	gather->chunk.bytes = malloc(REGION_CHUNK_BYTES);
	gather->chunk.is_stable =
		calloc(REGION_CHUNK_BYTES / sizeof(uint64_t) / 64 + 1, sizeof(uint64_t));
	if (gather->chunk.bytes != NULL && gather->chunk.is_stable != NULL && count > 0)
		status = gather_all(region, part, count, gather);
	else if (count == 0)
		status = OK;
	region_copy_release(&gather->chunk);
	if (status == OK)
		*to = gather->all;
	else
		region_copy_release(&gather->all);
	free(gather);
	return status;
}

/* The current value of a header counter. */
static enum status read_counter(const struct region *region, size_t offset, uint64_t *value)
{
	return region_pread(region, value, sizeof(*value), offset);
}

/*
 * How many slots from the first on can be in use. Slots are handed out in order until all have been
 * used once, and then from the first again.
 */
static enum status slots_used(const struct region *region, unsigned int part, uint32_t *count)
{
	uint64_t made = UINT64_MAX;
	enum status status = OK;

	if (part == REGION_COMMS)
		status = read_counter(region, offsetof(struct region_header, comms_made), &made);
	else if (part == REGION_PROXIES)
		status = read_counter(region, offsetof(struct region_header, proxy_cursor), &made);
	*count = region->header.parts[part].count;
	if (made < *count)
		*count = (uint32_t)made;
	return status;
}

static enum status copy_brief(const struct region *region, unsigned int part,
			      struct region_copy *copy)
{
	uint32_t count;
	enum status status = slots_used(region, part, &count);

	if (status != OK)
		return status;
	if (part == REGION_LIVE || part == REGION_PROXIES || part == REGION_LINKS)
		return region_gather(region, part, count, copy);
	return region_copy_slots(region, part, 0, count, copy);
}

static enum status copy_part(struct region *region, unsigned int part, bool is_brief)
{
	struct region_copy copy = { .bytes = NULL };
	enum status status = is_brief ? copy_brief(region, part, &copy)
				      : region_copy_slots(region, part, 0,
							  region->header.parts[part].count, &copy);

	if (status != OK)
		return status;
	region_copy_release(&region->copies[part]);
	region->copies[part] = copy;
	return OK;
}

/* Were operations issued or finished between two copies of the communicators? */
static bool has_moved(const struct region_copy *one, const struct region_copy *other)
{
	size_t issued = offsetof(struct region_comm, counts.issued);
	size_t recorded = offsetof(struct region_comm, counts.recorded);

	if (one->count != other->count)
		return true;
	for (uint32_t i = 0; i < one->count; i++) {
		const unsigned char *a = one->bytes + (size_t)i * one->stride;
		const unsigned char *b = other->bytes + (size_t)i * other->stride;

		if (region_slot_word(a) != region_slot_word(b) ||
		    region_slot_word(a + issued) != region_slot_word(b + issued) ||
		    region_slot_word(a + recorded) != region_slot_word(b + recorded))
			return true;
	}
	return false;
}

/*
 * Communicators, operations in flight, communicators again, until both copies agree. The first copy
 * is kept: what it counts as issued is in the live table copied after it, or in the ring.
 */
static enum status copy_flights(struct region *region, unsigned int parts)
{
	bool is_brief = parts & REGION_COPY_BRIEF;
	int tries = is_brief ? 1 : REGION_COPY_TRIES;
	enum status status = OK;

	region->is_moving = true;
	for (int i = 0; i < tries && status == OK && region->is_moving; i++) {
		struct region_copy first;

		status = region_pread(region, &region->times_read_ns, sizeof(region->times_read_ns),
				      offsetof(struct region_header, times_read_ns));
		if (status == OK)
			status = copy_part(region, REGION_COMMS, is_brief);
		for (unsigned int part = REGION_LIVE; part <= REGION_PROXIES; part++)
			if (status == OK && parts & 1u << part)
				status = copy_part(region, part, is_brief);
		if (status != OK)
			break;
		first = region->copies[REGION_COMMS];
		region->copies[REGION_COMMS] = (struct region_copy){ 0 };
		status = copy_part(region, REGION_COMMS, is_brief);
		if (status == OK)
			region->is_moving = has_moved(&first, &region->copies[REGION_COMMS]);
		region_copy_release(&region->copies[REGION_COMMS]);
		region->copies[REGION_COMMS] = first;
	}
	return status;
}

/* The header from its first word that changes on; what was checked at opening stays. */
static enum status refresh_counters(struct region *region)
{
	size_t from = offsetof(struct region_header, alive_ns);

	return region_pread(region, (char *)&region->header + from, sizeof(region->header) - from,
			    from);
}

enum status region_copy(struct region *region, unsigned int parts)
{
	const unsigned int flights = REGION_COPY_COMMS | REGION_COPY_LIVE | REGION_COPY_PROXIES;
	enum status status = OK;

	if (parts & flights)
		status = copy_flights(region, parts);
	for (unsigned int part = 0; part < REGION_PARTS && status == OK; part++)
		if (parts & ~flights & 1u << part)
			status = copy_part(region, part, parts & REGION_COPY_BRIEF);
	return status == OK ? refresh_counters(region) : status;
}

void region_copy_drop(struct region *region, unsigned int parts)
{
	for (unsigned int part = 0; part < REGION_PARTS; part++)
		if (parts & 1u << part)
			region_copy_release(&region->copies[part]);
}
