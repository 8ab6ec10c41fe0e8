#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/secret.h"
#include "common/text.h"
#include "format/region_read.h"
#include "format/tar.h"
#include "programs/cli/bundle_parts.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_process.h"

enum { NAME = 160 };

/* Names hold nothing that a shell or another system would read as more than a name. */
static void plain(char *text)
{
	for (char *at = text; *at != '\0'; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		      (*at >= '0' && *at <= '9') || strchr("._-", *at)))
			*at = '_';
}

/* The same process has the same name whenever it is asked; the number tells equal ones apart. */
static void name_of(char name[static NAME], const char *folder, const char *ending, size_t index,
		    const struct recording_process *process)
{
	char host[48], rank[32] = "process";

	text_copy(host, sizeof(host), process->host[0] ? process->host : "unknown");
	plain(host);
	if (process->rank >= 0)
		text_format(rank, sizeof(rank), "rank%" PRId64, process->rank);
	text_format(name, NAME, "%s/%04zu-%s-%s-%" PRId64 "%s", folder, index, rank, host,
		    process->pid, ending);
}

/* ---- snapshots -------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length > 0) {
		ssize_t wrote = write(fd, at, length);

		if (wrote == -1 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return false;
		at += wrote;
		length -= (size_t)wrote;
	}
	return true;
}

static bool add_to_memory(int fd, const char *name, const void *bytes, size_t length)
{
	static const char zeros[2 * TAR_BLOCK];
	unsigned char block[TAR_BLOCK];

	return tar_header(block, name, length, 0) == OK && write_all(fd, block, sizeof(block)) &&
	       write_all(fd, bytes, length) && write_all(fd, zeros, tar_padding(length));
}

static void snapshot_one(struct bundle_archive *archive, const struct recording_process *process,
			 size_t index, size_t operations, int fd)
{
	char name[NAME], text[CLI_PROCESS_TEXT];
	unsigned char *bytes = NULL;
	size_t length = 0;
	enum status status;

	name_of(name, "snapshots", ".trace", index, process);
	status = recording_snapshot(process, operations, &bytes, &length);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status != OK) {
		bundle_gap(archive, name, "%s",
			   status == ERR_SYSTEM ? strerror(errno) : status_text(status));
		return;
	}
	bundle_add(archive, name, cli_process_text(process, text), bytes, length);
	if (fd != -1 && !add_to_memory(fd, name, bytes, length))
		bundle_gap(archive, name, "not shown to the doctor: %s", strerror(errno));
	free(bytes);
}

/* What agents said about theirs, as it is: the doctor reads it again. */
static void add_note(struct bundle_archive *archive, const struct recording_note *note,
		     size_t index, int fd)
{
	const char *slash = strrchr(note->path, '/');
	const char *file = slash ? slash + 1 : note->path;
	char name[NAME], from[80];

	text_format(from, sizeof(from), "%.*s", (int)(file - note->path), note->path);
	plain(from);
	text_format(name, sizeof(name), "agents/%04zu-%s/%s", index, from, file);
	bundle_add(archive, name,
		   strcmp(file, "agent.json") == 0
			   ? "what an agent says about its snapshots"
			   : "agents that were asked, and who did not answer",
		   note->text, note->length);
	if (fd != -1 && !add_to_memory(fd, name, note->text, note->length))
		bundle_gap(archive, name, "not shown to the doctor: %s", strerror(errno));
}

void bundle_snapshots(struct bundle_archive *archive, struct recording *recording,
		      const struct bundle_request *request, bool *clean, int *snapshots)
{
	static const char zeros[2 * TAR_BLOCK];
	char text[CLI_PROCESS_TEXT];

	*snapshots = memfd_create("ringside-snapshots.tar", MFD_CLOEXEC);
	if (*snapshots == -1)
		bundle_gap(archive, "doctor", "no memory for what it reads: %s", strerror(errno));
	for (size_t i = 0; i < recording->count; i++) {
		size_t secrets = bundle_clean_info(recording->processes[i]);

		clean[i] = secrets == 0;
		if (secrets > 0)
			bundle_gap(archive, cli_process_text(recording->processes[i], text),
				   "%zu recorded variables look like secrets and were taken out",
				   secrets);
		snapshot_one(archive, recording->processes[i], i, request->operations, *snapshots);
	}
	for (size_t i = 0; i < recording->note_count; i++)
		add_note(archive, &recording->notes[i], i, *snapshots);
	if (*snapshots != -1 && !write_all(*snapshots, zeros, sizeof(zeros)))
		bundle_gap(archive, "doctor", "no memory for what it reads: %s", strerror(errno));
}

/* ---- the environment -------------------------------------------------------------------------- */

static size_t write_environment(struct sink *sink, const struct recording_process *process)
{
	char text[CLI_PROCESS_TEXT], key[128], value[1024];
	size_t at = 0, count = 0;

	sink_format(sink, "# %s\n", cli_process_text(process, text));
	while (info_next(process->info, process->info_bytes, &at, key, sizeof(key), value,
			 sizeof(value))) {
		if (strncmp(key, "env.", 4) != 0 || secret_is_name(key + 4) ||
		    secret_is_value(value))
			continue;
		sink_format(sink, "%s=%s\n", key + 4, value);
		count++;
	}
	sink_text(sink, "\n");
	return count;
}

void bundle_environment(struct bundle_archive *archive, const struct recording *recording)
{
	struct sink sink;
	size_t count = 0;

	sink_init_memory(&sink);
	for (size_t i = 0; i < recording->count; i++)
		count += write_environment(&sink, recording->processes[i]);
	if (count > 0) {
		bundle_add_sink(archive, "environment.txt",
				"variables of each process that decide how NCCL communicates, as "
				"recorded when it started",
				&sink);
		return;
	}
	sink_release(&sink);
	bundle_gap(archive, "environment.txt",
		   "no process recorded its environment: the recorder is older");
}

/* ---- files as they are ------------------------------------------------------------------------ */

struct raw {
	const char *path;
	size_t process;
	size_t number; /* of its files, from 0 */
	bool is_region;
	uint64_t bytes;
	uint64_t device, inode;
	uint64_t when; /* the newest are taken first */
};

static int newest_first(const void *one, const void *other)
{
	const struct raw *a = one, *b = other;

	if (a->is_region != b->is_region)
		return a->is_region ? -1 : 1;
	if (a->when != b->when)
		return a->when > b->when ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

static void add_raw(struct bundle_archive *archive, const struct raw *raw,
		    const struct recording_process *process, uint64_t *left)
{
	char name[NAME], about[600], bytes[UNITS_TEXT], room[UNITS_TEXT], ending[32] = ".trace";
	int fd = file_open(AT_FDCWD, raw->path, true);
	uint64_t length;
	struct stat st;

	if (raw->number > 0)
		text_format(ending, sizeof(ending), "-%zu.trace", raw->number + 1);
	name_of(name, raw->is_region ? "regions" : "traces", raw->is_region ? ".region" : ending,
		raw->process, process);
	if (fd == -1 || fstat(fd, &st) == -1) {
		bundle_gap(archive, name, "%s: %s", raw->path, strerror(errno));
	} else if (raw->inode != 0 && (raw->device != st.st_dev || raw->inode != st.st_ino)) {
		bundle_gap(archive, name, "%s is another file now", raw->path);
	} else if ((uint64_t)st.st_size > *left) {
		bundle_gap(archive, name, "%s (%s) does not fit into what --most leaves (%s)",
			   raw->path, units_bytes(bytes, (uint64_t)st.st_size),
			   units_bytes(room, *left));
	} else {
		length = (uint64_t)st.st_size;
		text_format(about, sizeof(about), "%s, as it was", raw->path);
		bundle_add_open(archive, name, about, fd, length);
		*left -= length;
	}
	if (fd != -1)
		close(fd);
}

static size_t list_raw(struct raw **list, const struct recording *recording,
		       const struct bundle_request *request)
{
	size_t count = 0;

	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		*list = cli_realloc(*list, (count + process->file_count + 1) * sizeof(**list));
		for (size_t f = 0; request->has_traces && f < process->file_count; f++)
			(*list)[count++] =
				(struct raw){ .path = process->files[f].path,
					      .process = i,
					      .bytes = process->files[f].bytes,
					      .device = process->files[f].device,
					      .inode = process->files[f].inode,
					      .when = process->files[f].created_wall_ns };
		if (request->has_regions && process->region_path)
			(*list)[count++] = (struct raw){ .path = process->region_path,
							 .process = i,
							 .is_region = true };
	}
	return count;
}

void bundle_raw(struct bundle_archive *archive, const struct recording *recording,
		const struct bundle_request *request, const bool *clean)
{
	struct raw *list = NULL;
	uint64_t left = request->most;
	size_t count = list_raw(&list, recording, request);

	if (count > 1)
		qsort(list, count, sizeof(*list), newest_first);
	for (size_t i = 0; i < count; i++) {
		if (!clean[list[i].process])
			bundle_gap(archive, list[i].path,
				   "it holds recorded variables that look like secrets");
		else
			add_raw(archive, &list[i], recording->processes[list[i].process], &left);
	}
	if (request->is_remote)
		bundle_gap(archive, "traces", "agents hand out snapshots, no files");
	else if (!request->has_regions)
		bundle_gap(archive, "regions",
			   "snapshots hold what they say; --regions adds them as they are");
	if (!request->has_traces && !request->is_remote)
		bundle_gap(archive, "traces", "--no-traces was said");
	else if (count == 0 && !request->is_remote)
		bundle_gap(archive, "traces",
			   "no process wrote trace files (RINGSIDE_MODE=trace does)");
	free(list);
}
