/*
 * Reading and writing tar archives. An archive is a series of blocks: a header, the file's bytes
 * padded to a block, the next header; and at the end one block of zeros, usually two. A letter in
 * the header says what follows:
 *
 *	0 or NUL  a regular file       x  pax: lines for the next header, "27 path=...\n"
 *	5         a directory          g  pax: lines for all following headers
 *	others    links, devices       L  GNU tar: the name of the next one; K: its link target
 */
#include "format/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/text.h"

struct header {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char modified[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6];
	char version[2];
	char user[32];
	char group[32];
	char device[16];
	char prefix[155];
	char spare[12];
};
_Static_assert(sizeof(struct header) == TAR_BLOCK, "a header is a block");

/* How much of the lines that pax puts before a header is read. */
enum { EXTRA_BYTES = 4096 };

/* What preceded a header and applies to it. */
struct extra {
	char name[TAR_NAME_MAX];
	bool has_name;
	bool is_name_lost; /* it had a name that is too long */
	bool has_size;
	uint64_t size;
};

/* ---- writing ---------------------------------------------------------------------------------- */

/* Relative, and no part of it is empty, "." or "..". */
static bool is_plain_name(const char *name)
{
	const char *part = name;

	for (const char *at = name;; at++) {
		if ((unsigned char)*at < ' ' && *at != '\0')
			return false;
		if (*at == 0x7f)
			return false;
		if (*at != '/' && *at != '\0')
			continue;
		if (at == part || (at - part == 1 && part[0] == '.') ||
		    (at - part == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part = at + 1;
		if (*at == '\0')
			return true;
	}
}

/* A long name is split at a '/': the part before it goes to the prefix. */
static bool put_name(struct header *header, const char *name)
{
	size_t length = strlen(name);
	const char *cut;

	if (length <= sizeof(header->name)) {
		memcpy(header->name, name, length);
		return true;
	}
	if (length >= TAR_NAME_MAX)
		return false;
	cut = strchr(name + length - sizeof(header->name) - 1, '/');
	if (cut == NULL || cut[1] == '\0' || (size_t)(cut - name) > sizeof(header->prefix))
		return false;
	memcpy(header->prefix, name, (size_t)(cut - name));
	memcpy(header->name, cut + 1, strlen(cut + 1));
	return true;
}

/* Octal digits, padded with zeros, and a NUL. */
static bool put_number(char *field, size_t size, uint64_t number)
{
	for (size_t i = size - 1; i-- > 0; number >>= 3)
		field[i] = (char)('0' + (number & 7));
	field[size - 1] = '\0';
	return number == 0;
}

/*
 * The sum of a header's bytes with its own field as blanks. Some old programs added signed bytes.
 */
static uint32_t sum_of(const unsigned char *block, bool is_signed)
{
	const size_t from = offsetof(struct header, checksum);
	uint32_t sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		unsigned char byte = i >= from && i < from + 8 ? ' ' : block[i];

		sum += is_signed ? (uint32_t)(int32_t)(signed char)byte : byte;
	}
	return sum;
}

enum status tar_header(unsigned char block[TAR_BLOCK], const char *name, uint64_t bytes,
		       uint64_t modified_s)
{
	struct header header;

	memset(&header, 0, sizeof(header));
	if (!is_plain_name(name) || !put_name(&header, name) ||
	    !put_number(header.size, sizeof(header.size), bytes) ||
	    !put_number(header.modified, sizeof(header.modified), modified_s))
		return ERR_RANGE;
	put_number(header.mode, sizeof(header.mode), 0644);
	put_number(header.uid, sizeof(header.uid), 0);
	put_number(header.gid, sizeof(header.gid), 0);
	header.type = '0';
	memcpy(header.magic, "ustar", sizeof(header.magic));
	memcpy(header.version, "00", sizeof(header.version));
	memcpy(block, &header, sizeof(header));
	put_number(header.checksum, 7, sum_of(block, false));
	header.checksum[7] = ' ';
	memcpy(block, &header, sizeof(header));
	return OK;
}

size_t tar_padding(uint64_t bytes)
{
	return (size_t)(-bytes % TAR_BLOCK);
}

/* ---- reading ---------------------------------------------------------------------------------- */

/* Octal with blanks around it, or, if the top bit of the first byte is set, binary. */
static bool get_number(const char *field, size_t size, uint64_t *number)
{
	size_t i = 0;

	*number = 0;
	if ((unsigned char)field[0] == 0x80) {
		for (i = 1; i < size; i++) {
			if (*number >> 55 != 0)
				return false;
			*number = *number << 8 | (unsigned char)field[i];
		}
		return true;
	}
	while (i < size && field[i] == ' ')
		i++;
	for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
		if (*number >> 60 != 0)
			return false;
		*number = *number << 3 | (uint64_t)(field[i] - '0');
	}
	return i == size || field[i] == ' ' || field[i] == '\0';
}

static bool is_header(const unsigned char *block)
{
	struct header header;
	uint64_t sum;

	memcpy(&header, block, sizeof(header));
	return get_number(header.checksum, sizeof(header.checksum), &sum) &&
	       (sum == sum_of(block, false) || sum == sum_of(block, true));
}

bool tar_is(const unsigned char *bytes, size_t length)
{
	return length >= TAR_BLOCK &&
	       memcmp(bytes + offsetof(struct header, magic), "ustar", 5) == 0 && is_header(bytes);
}

void tar_reader_init(struct tar_reader *reader, const void *bytes, size_t length)
{
	*reader = (struct tar_reader){ .bytes = bytes, .fd = -1, .length = length };
}

void tar_reader_init_fd(struct tar_reader *reader, int fd, size_t start, size_t length)
{
	*reader = (struct tar_reader){ .fd = fd, .start = start, .length = length };
}

/* Copy bytes that are inside the archive. */
static enum status copy(const struct tar_reader *reader, size_t at, void *to, size_t bytes)
{
	if (reader->fd != -1)
		return file_pread(reader->fd, to, bytes, reader->start + at);
	memcpy(to, reader->bytes + at, bytes);
	return OK;
}

static bool is_zero(const unsigned char block[TAR_BLOCK])
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i] != 0)
			return false;
	return true;
}

/* Skip a header and its bytes; the last file need not be padded to a block. */
static void pass(struct tar_reader *reader, uint64_t size)
{
	size_t left = reader->length - reader->at - TAR_BLOCK;
	uint64_t whole = size + tar_padding(size);

	reader->at += TAR_BLOCK + (whole < left ? (size_t)whole : left);
}

/* "./a/b" and "a//b" become "a/b". False: not a safe relative name. */
static bool clean_name(const char *from, char to[TAR_NAME_MAX])
{
	size_t length = 0;

	if (from[0] == '/')
		return false;
	while (*from != '\0') {
		size_t part = strcspn(from, "/");

		if (part > 0 && !(part == 1 && from[0] == '.')) {
			if (length + part + 2 > TAR_NAME_MAX)
				return false;
			if (length > 0)
				to[length++] = '/';
			memcpy(to + length, from, part);
			length += part;
		}
		from += part;
		from += *from == '/';
	}
	to[length] = '\0';
	return is_plain_name(to);
}

static bool get_name(const struct header *header, const struct extra *extra,
		     char name[TAR_NAME_MAX])
{
	char whole[sizeof(header->prefix) + sizeof(header->name) + 2];

	if (extra->is_name_lost)
		return false;
	if (extra->has_name)
		return clean_name(extra->name, name);
	/* GNU tar uses the bytes of ustar's prefix for other fields. */
	if (header->prefix[0] != '\0' && memcmp(header->magic, "ustar", 6) == 0)
		snprintf(whole, sizeof(whole), "%.*s/%.*s", (int)sizeof(header->prefix),
			 header->prefix, (int)sizeof(header->name), header->name);
	else
		snprintf(whole, sizeof(whole), "%.*s", (int)sizeof(header->name), header->name);
	return clean_name(whole, name);
}

static void set_name(struct extra *extra, const char *text, size_t length)
{
	extra->is_name_lost = length >= sizeof(extra->name) || memchr(text, '\0', length) != NULL;
	extra->has_name = !extra->is_name_lost;
	if (!extra->has_name)
		return;
	memcpy(extra->name, text, length);
	extra->name[length] = '\0';
}

static void set_size(struct extra *extra, const char *text, size_t length)
{
	char digits[24];
	int64_t size;

	if (length >= sizeof(digits))
		return;
	memcpy(digits, text, length);
	digits[length] = '\0';
	extra->has_size = text_number(digits, 0, INT64_MAX / 2, &size) == OK;
	extra->size = extra->has_size ? (uint64_t)size : 0;
}

/* "27 path=where/it/is\n", repeated. The number is the length of the whole line. */
static void read_lines(struct extra *extra, const char *text, size_t length)
{
	while (length > 0) {
		size_t digits = 0, line = 0;
		const char *value;

		for (; digits < length && digits < 8 && text[digits] >= '0' && text[digits] <= '9';
		     digits++)
			line = line * 10 + (size_t)(text[digits] - '0');
		if (digits == 0 || line <= digits + 1 || line > length || text[digits] != ' ' ||
		    text[line - 1] != '\n')
			return;
		value = memchr(text + digits + 1, '=', line - digits - 2);
		if (value != NULL) {
			size_t key = (size_t)(value - (text + digits + 1));
			size_t bytes = (size_t)(text + line - 1 - (value + 1));

			if (key == 4 && memcmp(text + digits + 1, "path", 4) == 0)
				set_name(extra, value + 1, bytes);
			if (key == 4 && memcmp(text + digits + 1, "size", 4) == 0)
				set_size(extra, value + 1, bytes);
		}
		text += line;
		length -= line;
	}
}

static enum status read_extra(const struct tar_reader *reader, char type, uint64_t size,
			      struct extra *extra)
{
	char text[EXTRA_BYTES];
	size_t bytes = size < sizeof(text) ? (size_t)size : sizeof(text);
	enum status status = copy(reader, reader->at + TAR_BLOCK, text, bytes);

	if (status != OK)
		return status;
	if (type == 'L')
		set_name(extra, text, strnlen(text, bytes));
	else
		read_lines(extra, text, bytes);
	return OK;
}

/* Read the current header: OK with *block filled, or why there is none. */
static enum status next_header(const struct tar_reader *reader, struct header *header)
{
	unsigned char block[TAR_BLOCK];
	enum status status;

	if (reader->length - reader->at < TAR_BLOCK)
		return ERR_TRUNCATED;
	status = copy(reader, reader->at, block, sizeof(block));
	if (status != OK)
		return status;
	if (is_zero(block))
		return ERR_GONE;
	memcpy(header, block, sizeof(*header));
	return is_header(block) ? OK : ERR_FORMAT;
}

/* The current entry is a regular file. ERR_UNKNOWN: it has no usable name. */
static enum status take_file(const struct tar_reader *reader, const struct header *header,
			     const struct extra *extra, uint64_t size, struct tar_entry *entry)
{
	struct tar_entry found = { .offset = reader->start + reader->at + TAR_BLOCK,
				   .length = (size_t)size };

	if (!get_name(header, extra, found.name))
		return ERR_UNKNOWN;
	if (!get_number(header->modified, sizeof(header->modified), &found.modified_s))
		found.modified_s = 0;
	if (reader->bytes != NULL)
		found.bytes = reader->bytes + reader->at + TAR_BLOCK;
	*entry = found;
	return OK;
}

enum status tar_next(struct tar_reader *reader, struct tar_entry *entry)
{
	struct extra extra = { .has_name = false };
	enum status status;

	for (;;) {
		struct header header;
		uint64_t size;

		status = next_header(reader, &header);
		if (status != OK)
			return status;
		if (!get_number(header.size, sizeof(header.size), &size))
			return ERR_FORMAT;
		if (extra.has_size && header.type != 'x' && header.type != 'L')
			size = extra.size;
		if (size > reader->length - reader->at - TAR_BLOCK)
			return ERR_TRUNCATED;
		if (header.type == 'x' || header.type == 'L') {
			status = read_extra(reader, header.type, size, &extra);
			if (status != OK)
				return status;
			pass(reader, size);
			continue;
		}
		status = ERR_UNKNOWN;
		if (header.type == '0' || header.type == '\0' || header.type == '7')
			status = take_file(reader, &header, &extra, size, entry);
		else if (header.type == '5' || header.type == 'g' || header.type == 'K')
			status = ERR_GONE;
		pass(reader, size);
		if (status == OK)
			return OK;
		reader->passed_over += status == ERR_UNKNOWN;
		if (header.type != 'K')
			extra = (struct extra){ .has_name = false };
	}
}
