#include "programs/cli/bundle_archive.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "common/clock.h"
#include "common/text.h"
#include "format/tar.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"

enum { PIECE = 256 * 1024, ZSTD_LEVEL = 3 };

bool bundle_packing_of(const char *path, enum bundle_packing *packing)
{
	if (strcmp(path, "-") == 0 || text_ends_with(path, ".tar"))
		*packing = BUNDLE_PLAIN;
	else if (text_ends_with(path, ".tar.gz") || text_ends_with(path, ".tgz"))
		*packing = BUNDLE_GZIP;
	else if (text_ends_with(path, ".tar.zst"))
		*packing = BUNDLE_ZSTD;
	else
		return false;
	return true;
}

int bundle_open(struct bundle_archive *archive, const char *path, enum bundle_packing packing)
{
	mode_t before;
	int code;

	*archive = (struct bundle_archive){ .packing = packing };
	archive->modified_s = clock_system_ns(CLOCK_REALTIME) / 1000000000;
	/* It tells of environments and hosts: who else may read it is its owner's to say. One that is there
	 * already keeps its rights. */
	before = umask(077);
	code = cli_output_open(&archive->output, path);
	umask(before);
	if (code != 0)
		return CLI_EXIT_TROUBLE;
	if (packing == BUNDLE_ZSTD) {
		archive->zstd = ZSTD_createCCtx();
		sink_init_memory(&archive->plain);
		if (archive->zstd)
			ZSTD_CCtx_setParameter(archive->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	}
	if ((packing == BUNDLE_GZIP &&
	     gzip_sink_open(&archive->gzip, &archive->output.sink) != OK) ||
	    (packing == BUNDLE_ZSTD && archive->zstd == NULL)) {
		archive->packing = BUNDLE_PLAIN;
		bundle_release(archive);
		return cli_error("not enough memory");
	}
	return 0;
}

/* ---- bytes ------------------------------------------------------------------------------------ */

static void fail(struct bundle_archive *archive, enum status status)
{
	if (archive->output.sink.status == OK)
		archive->output.sink.status = status;
}

static void pass_zstd(struct bundle_archive *archive, bool is_last)
{
	ZSTD_inBuffer in = { archive->plain.bytes, archive->plain.used, 0 };
	char bytes[16384];
	size_t left;

	if (archive->plain.status != OK) {
		fail(archive, archive->plain.status);
		return;
	}
	if (archive->plain.used < PIECE && !is_last)
		return;
	do {
		ZSTD_outBuffer out = { bytes, sizeof(bytes), 0 };

		left = ZSTD_compressStream2(archive->zstd, &out, &in,
					    is_last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left)) {
			fail(archive, ERR_NO_SPACE);
			return;
		}
		sink_write(&archive->output.sink, bytes, out.pos);
	} while (is_last ? left > 0 : in.pos < in.size);
	archive->plain.used = 0;
}

static void put(struct bundle_archive *archive, const void *bytes, size_t length)
{
	switch (archive->packing) {
	case BUNDLE_GZIP:
		sink_write(&archive->gzip.plain, bytes, length);
		gzip_sink_pass(&archive->gzip, false);
		break;
	case BUNDLE_ZSTD:
		sink_write(&archive->plain, bytes, length);
		pass_zstd(archive, false);
		break;
	case BUNDLE_PLAIN:
		sink_write(&archive->output.sink, bytes, length);
		break;
	}
}

static void put_zeros(struct bundle_archive *archive, uint64_t length)
{
	static const char zeros[4096];

	while (length > 0) {
		size_t piece = length < sizeof(zeros) ? (size_t)length : sizeof(zeros);

		put(archive, zeros, piece);
		length -= piece;
	}
}

/* ---- files and gaps --------------------------------------------------------------------------- */

static char *copy_of(const char *text)
{
	size_t size = strlen(text) + 1;

	return memcpy(cli_realloc(NULL, size), text, size);
}

static void note(struct bundle_lines *lines, const char *name, const char *text, uint64_t bytes)
{
	lines->list = cli_realloc(lines->list, (lines->count + 1) * sizeof(*lines->list));
	lines->list[lines->count++] = (struct bundle_line){ copy_of(name), copy_of(text), bytes };
}

void bundle_gap(struct bundle_archive *archive, const char *what, const char *format, ...)
{
	char why[600];
	va_list values;

	va_start(values, format);
	vsnprintf(why, sizeof(why), format, values);
	va_end(values);
	note(&archive->gaps, what, why, 0);
}

static bool begin(struct bundle_archive *archive, const char *name, const char *about,
		  uint64_t length)
{
	unsigned char block[TAR_BLOCK];
	char whole[TAR_NAME_MAX];

	if (!text_format(whole, sizeof(whole), BUNDLE_PREFIX "%s", name) ||
	    tar_header(block, whole, length, archive->modified_s) != OK) {
		bundle_gap(archive, name, "an archive cannot have a file of this name");
		return false;
	}
	put(archive, block, sizeof(block));
	note(&archive->files, name, about, length);
	archive->bytes += length;
	return true;
}

void bundle_add(struct bundle_archive *archive, const char *name, const char *about,
		const void *bytes, size_t length)
{
	if (!begin(archive, name, about, length))
		return;
	put(archive, bytes, length);
	put_zeros(archive, tar_padding(length));
}

void bundle_add_sink(struct bundle_archive *archive, const char *name, const char *about,
		     struct sink *sink)
{
	if (sink->status == OK)
		bundle_add(archive, name, about, sink_string(sink), sink->used);
	else
		bundle_gap(archive, name, "%s", status_text(sink->status));
	sink_release(sink);
}

void bundle_add_open(struct bundle_archive *archive, const char *name, const char *about, int fd,
		     uint64_t length)
{
	char *bytes = cli_realloc(NULL, PIECE);
	uint64_t done = 0;

	if (!begin(archive, name, about, length)) {
		free(bytes);
		return;
	}
	while (done < length && archive->output.sink.status == OK) {
		size_t piece = length - done < PIECE ? (size_t)(length - done) : PIECE;
		ssize_t got = pread(fd, bytes, piece, (off_t)done);

		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0) {
			bundle_gap(archive, name, "the end of it: %s",
				   got == 0 ? "it became shorter meanwhile" : strerror(errno));
			break;
		}
		put(archive, bytes, (size_t)got);
		done += (uint64_t)got;
	}
	put_zeros(archive, length - done + tar_padding(length));
	free(bytes);
}

/* ---- the end ---------------------------------------------------------------------------------- */

int bundle_commit(struct bundle_archive *archive, int exit_code)
{
	put_zeros(archive, 2 * (uint64_t)TAR_BLOCK);
	if (archive->packing == BUNDLE_GZIP) {
		gzip_sink_pass(&archive->gzip, true);
		if (archive->gzip.plain.status != OK)
			fail(archive, archive->gzip.plain.status);
	} else if (archive->packing == BUNDLE_ZSTD) {
		pass_zstd(archive, true);
	}
	return cli_output_commit(&archive->output, exit_code);
}

static void release_lines(struct bundle_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++) {
		free(lines->list[i].name);
		free(lines->list[i].text);
	}
	free(lines->list);
	*lines = (struct bundle_lines){ .list = NULL };
}

void bundle_release(struct bundle_archive *archive)
{
	cli_output_discard(&archive->output);
	if (archive->packing == BUNDLE_GZIP)
		gzip_sink_close(&archive->gzip);
	if (archive->packing == BUNDLE_ZSTD)
		sink_release(&archive->plain);
	ZSTD_freeCCtx(archive->zstd);
	archive->zstd = NULL;
	archive->packing = BUNDLE_PLAIN;
	release_lines(&archive->files);
	release_lines(&archive->gaps);
}
