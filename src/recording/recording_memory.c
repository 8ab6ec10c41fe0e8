/*
 * What does not stand in a file of its own: bytes in memory, and the trace files in an archive. An archive in
 * a file stays there; what it holds is read from it, part by part.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/tar.h"
#include "base/file_open.h"
#include "base/hash.h"
#include "base/list_grow.h"
#include "base/text.h"
#include "recording/recording_load.h"
#include "trace/trace_read.h"

/* An archive in an archive is read, and one in that. */
enum { DEPTH_MAX = 3, PATH_BYTES = 1024 };

/* A hash of its bytes tells the same one twice. */
static void name_memory(struct recording_source *source)
{
	source->device = 0;
	source->inode = hash_bytes(source->memory, source->length);
	source->start = 0;
}

static enum status add_trace(struct recording *recording, const struct recording_source *source)
{
	struct recording_source named = *source;
	struct recording_process *process = NULL;
	enum status status;

	if (named.memory != NULL)
		name_memory(&named);
	status = recording_trace_load(recording, &named, &process);
	if (status != OK)
		return status == ERR_NO_SPACE ? status : OK;
	recording->files_read++;
	return recording_load_keep(recording, process);
}

static size_t start_of(const struct recording_source *source, unsigned char *start, size_t size)
{
	size_t got = 0;

	if (source->memory != NULL) {
		got = source->length < size ? source->length : size;
		memcpy(start, source->memory, got);
		return got;
	}
	if (file_pread_some(source->fd, start, source->length < size ? source->length : size,
			    source->start, &got) != OK)
		return 0;
	return got;
}

/* ---- notes ------------------------------------------------------------------------------------- */

static bool is_note(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strcmp(name, "agent.json") == 0 || strcmp(name, "agents.json") == 0;
}

/* NULL: no memory. */
static struct recording_note *new_note(struct recording *recording, const char *path, size_t length)
{
	struct recording_note *note;

	if (!list_grow(&recording->notes, recording->note_count, sizeof(*recording->notes)))
		return NULL;
	note = &recording->notes[recording->note_count];
	*note = (struct recording_note){ strdup(path), calloc(1, length + 1), length };
	if (note->path == NULL || note->text == NULL) {
		free(note->path);
		free(note->text);
		return NULL;
	}
	recording->note_count++;
	recording->note_bytes += length;
	return note;
}

static enum status add_note(struct recording *recording, const struct recording_source *source)
{
	struct recording_note *note;

	if (recording->note_count >= RECORDING_NOTES_MAX ||
	    source->length > RECORDING_NOTES_BYTES - recording->note_bytes) {
		recording_load_trouble(recording, RECORDING_DAMAGE, source->path, NULL,
				       "it is not read: notes of so many agents, or so long");
		return OK;
	}
	note = new_note(recording, source->path, source->length);
	if (note == NULL)
		return ERR_NO_SPACE;
	note->length = start_of(source, (unsigned char *)note->text, source->length);
	return OK;
}

enum status recording_add_note(struct recording *recording, const char *path, const void *text,
			       size_t length)
{
	const struct recording_source source = {
		.path = path, .fd = -1, .memory = text, .length = length
	};

	return add_note(recording, &source);
}

/* ---- archives ---------------------------------------------------------------------------------- */

static enum status add_archive(struct recording *recording, const struct recording_source *source,
			       int depth);

/* One of the files in an archive; *is_known: we read such. */
static enum status add_part(struct recording *recording, const struct recording_source *source,
			    int depth, bool *is_known)
{
	unsigned char start[TAR_BLOCK];
	size_t bytes = start_of(source, start, sizeof(start));

	*is_known = true;
	if (trace_probe(start, bytes))
		return add_trace(recording, source);
	if (tar_is(start, bytes) && depth < DEPTH_MAX)
		return add_archive(recording, source, depth + 1);
	if (source->length > 0 && is_note(source->path))
		return add_note(recording, source);
	*is_known = false;
	return OK;
}

/* A cut archive is no cut trace: nobody's process is written into it, so nobody has the rest. */
static void note_end(struct recording *recording, const struct recording_source *source,
		     const struct tar_reader *reader, enum status status)
{
	if (status == ERR_TRUNCATED)
		recording_load_trouble(
			recording, RECORDING_DAMAGE, source->path, NULL,
			"the archive ends at byte %zu inside a file: what came behind "
			"is lost",
			reader->at);
	else if (status != ERR_GONE)
		recording_load_trouble(
			recording, RECORDING_DAMAGE, source->path, NULL,
			"the archive is damaged at byte %zu: what comes behind cannot "
			"be read",
			reader->at);
	if (status != ERR_GONE)
		recording_load_at(recording, reader->at, reader->length - reader->at);
}

static enum status add_archive(struct recording *recording, const struct recording_source *source,
			       int depth)
{
	enum status status = OK, found;
	struct tar_reader reader;
	struct tar_entry entry;
	char path[PATH_BYTES];

	if (source->memory != NULL)
		tar_reader_init(&reader, source->memory, source->length);
	else
		tar_reader_init_fd(&reader, source->fd, source->start, source->length);
	while ((found = tar_next(&reader, &entry)) == OK && status == OK) {
		struct recording_source part = *source;
		bool is_known;

		text_format(path, sizeof(path), "%s/%s", source->path, entry.name);
		part.path = path;
		part.archive = source->memory == NULL && source->archive == NULL ? source->path
										 : source->archive;
		part.memory = entry.bytes;
		part.start = entry.offset;
		part.length = entry.length;
		status = add_part(recording, &part, depth, &is_known);
		recording->files_foreign += !is_known;
	}
	if (status == OK)
		note_end(recording, source, &reader, found);
	return status;
}

enum status recording_archive_load(struct recording *recording,
				   const struct recording_source *source)
{
	return add_archive(recording, source, 0);
}

enum status recording_add_memory(struct recording *recording, const char *name, const void *bytes,
				 size_t length, unsigned int flags)
{
	struct recording_source source = {
		.path = name, .fd = -1, .memory = bytes, .length = length
	};
	enum status status = OK;
	bool is_known = length > 0;

	/* Neither looks for companions, nor is anything else to be found in memory. */
	(void)flags;
	if (length > 0)
		status = add_part(recording, &source, 0, &is_known);
	if (is_known || status != OK)
		return status;
	recording->files_foreign++;
	recording_load_trouble(recording, RECORDING_FOREIGN, name, NULL, "%s",
			       length == 0 ? "it is empty"
					   : "it is neither trace file nor archive of such");
	return OK;
}
