/* The archive of `ringside bundle`: files, gaps, answers of agents, regions, the environment. */
#include "cmds/bundle_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cmds/doctor_case.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/secret.h"
#include "common/text.h"
#include "doctor/doctor.h"
#include "format/region_read.h"
#include "format/tar.h"
#include "output/json.h"
#include "output/recorded.h"

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
	/*
	 * It describes environments and hosts, so only the owner may read it. An existing file keeps its permissions.
	 */
	before = umask(077);
	code = cli_output_open(&archive->output, path);
	umask(before);
	if (code != 0)
		return code;
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
		return cli_error("out of memory");
	}
	return 0;
}

/* ---- bytes ------------------------------------------------------------------------------------ */

static void archive_fail(struct bundle_archive *archive, enum status status)
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
		archive_fail(archive, archive->plain.status);
		return;
	}
	if (archive->plain.used < PIECE && !is_last)
		return;
	do {
		ZSTD_outBuffer out = { bytes, sizeof(bytes), 0 };

		left = ZSTD_compressStream2(archive->zstd, &out, &in,
					    is_last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left)) {
			archive_fail(archive, ERR_NO_SPACE);
			return;
		}
		sink_write(&archive->output.sink, bytes, out.pos);
	} while (is_last ? left > 0 : in.pos < in.size);
	archive->plain.used = 0;
}

static void archive_put(struct bundle_archive *archive, const void *bytes, size_t length)
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

		archive_put(archive, zeros, piece);
		length -= piece;
	}
}

/* ---- files and gaps --------------------------------------------------------------------------- */

static char *copy_of(const char *text)
{
	size_t size = strlen(text) + 1;

	return memcpy(cli_realloc(NULL, size), text, size);
}

/* It may contain names of files that users chose. */
static char *harmless_copy(const char *text)
{
	char *copy = copy_of(secret_is_value(text) ? "(hidden: it may contain a secret)" : text);

	text_clean(copy);
	return copy;
}

static void archive_note(struct bundle_lines *lines, const char *name, const char *text,
			 uint64_t bytes)
{
	lines->list = cli_realloc(lines->list, (lines->count + 1) * sizeof(*lines->list));
	lines->list[lines->count++] =
		(struct bundle_line){ harmless_copy(name), harmless_copy(text), bytes };
}

void bundle_gap(struct bundle_archive *archive, const char *what, const char *format, ...)
{
	char why[600];
	va_list values;

	va_start(values, format);
	vsnprintf(why, sizeof(why), format, values);
	va_end(values);
	archive_note(&archive->gaps, what, why, 0);
}

static bool archive_begin(struct bundle_archive *archive, const char *name, const char *about,
			  uint64_t length)
{
	unsigned char block[TAR_BLOCK];
	char whole[TAR_NAME_MAX];

	if (!text_format(whole, sizeof(whole), BUNDLE_PREFIX "%s", name) ||
	    tar_header(block, whole, length, archive->modified_s) != OK) {
		bundle_gap(archive, name, "an archive cannot have a file of this name");
		return false;
	}
	archive_put(archive, block, sizeof(block));
	archive_note(&archive->files, name, about, length);
	archive->bytes += length;
	return true;
}

void bundle_add(struct bundle_archive *archive, const char *name, const char *about,
		const void *bytes, size_t length)
{
	if (!archive_begin(archive, name, about, length))
		return;
	archive_put(archive, bytes, length);
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

/* The first `length` bytes of an open file. If the file shrank, the rest is zeros and a gap is added. */
static void bundle_add_open(struct bundle_archive *archive, const char *name, const char *about,
			    int fd, uint64_t length)
{
	char *bytes = cli_realloc(NULL, PIECE);
	uint64_t done = 0;

	if (!archive_begin(archive, name, about, length)) {
		free(bytes);
		return;
	}
	while (done < length && archive->output.sink.status == OK) {
		size_t piece = length - done < PIECE ? (size_t)(length - done) : PIECE;
		ssize_t got = pread(fd, bytes, piece, (off_t)done);

		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0) {
			bundle_gap(archive, name, "truncated: %s",
				   got == 0 ? "the file shrank while it was read"
					    : strerror(errno));
			break;
		}
		archive_put(archive, bytes, (size_t)got);
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
			archive_fail(archive, archive->gzip.plain.status);
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

/*
 * Recorders store only listed variables, none of them secret (docs/SETTINGS.md). This covers older or other
 * recorders, and secrets in unexpected variables: many people read a ticket.
 */

/* Removes variables, labels, paths and messages with secrets from the description of a process. Returns how many. */
static size_t bundle_clean_info(struct recording_process *process)
{
	size_t kept = 0, found = 0, at = 0;
	char *info = process->info;

	while (at < process->info_bytes) {
		const char *end = memchr(info + at, '\n', process->info_bytes - at);
		size_t length = end ? (size_t)(end - (info + at)) : process->info_bytes - at;
		size_t whole = length + (end != NULL);

		if (secret_is_line(info + at, length)) {
			found++;
		} else {
			memmove(info + kept, info + at, whole);
			kept += whole;
		}
		at += whole;
	}
	process->info_bytes = kept;
	return found;
}

/*
 * Processes of other nodes, through their agents: each provides snapshots of its processes (/api/v1/snapshot). An
 * agent that does not answer is a gap in the archive, not a failure.
 */

enum { ANSWER_MOST = 256 << 20, OPERATIONS_MOST = 20000 };

/* ---- options: those of the doctor, parsed by it ---------------------------------------------- */

void bundle_agents_say(struct bundle_agents *agents, const char *option, const char *value)
{
	if (agents->count + 2 > BUNDLE_AGENT_WORDS)
		return;
	agents->words[agents->count++] = option;
	if (value)
		agents->words[agents->count++] = value;
}

/* ---- answers ---------------------------------------------------------------------------------- */

struct answers {
	struct json *asked; /* agents.json: agents queried, and which did not answer */
	struct bundle_archive *archive;
	struct recording *recording;
	const struct fetch_targets *targets;
	size_t good;
};

static void take_answer(void *context, size_t index, int status, const char *bytes, size_t length)
{
	struct answers *answers = context;
	struct recording *recording = answers->recording;
	const char *name = answers->targets->list[index].name;
	size_t before = recording->trouble_count, files = recording->files_read;
	char problem[300] = "";

	if (status == 0) {
		text_from_field(problem, sizeof(problem), bytes, length);
		bundle_gap(answers->archive, name, "no answer from this agent: %s", problem);
	} else if (status != 200) {
		text_format(problem, sizeof(problem), "HTTP %d%s", status,
			    status == 401 || status == 403 ? ": credentials required, see --auth"
							   : "");
		bundle_gap(answers->archive, name, "request to this agent failed: %s", problem);
	} else {
		if (recording_add_memory(recording, name, bytes, length, 0) != OK)
			cli_no_memory();
		/* As in the doctor: an answer that cannot be read counts as no answer. */
		if (recording->trouble_count > before && recording->files_read == files)
			text_copy(problem, sizeof(problem), recording->troubles[before].what);
		else
			answers->good++;
	}
	json_object(answers->asked);
	json_put_string(answers->asked, "name", name);
	json_put_string(answers->asked, "problem", problem[0] ? problem : NULL);
	json_end(answers->asked);
}

/* What agents left out is a gap, too. */
static void tell_left_out(struct bundle_archive *archive, const struct recording *recording)
{
	struct agent_notes notes;

	if (agent_notes_read(&notes, recording) != OK)
		cli_no_memory();
	for (size_t i = 0; i < notes.gap_count; i++)
		bundle_gap(archive, notes.gaps[i].host, "%s", notes.gaps[i].text);
	if (notes.gaps_left_out > 0)
		bundle_gap(archive, "agents", "%zu more things that agents left out",
			   notes.gaps_left_out);
	agent_notes_release(&notes);
}

static struct cli_fetch_request *requests_of(const struct fetch_targets *targets, size_t operations)
{
	struct cli_fetch_request *list = cli_realloc(NULL, (targets->count + 1) * sizeof(*list));

	for (size_t i = 0; i < targets->count; i++) {
		size_t size = strlen(targets->list[i].url) + 80;
		char *url = cli_realloc(NULL, size);

		text_format(url, size, "%s/api/v1/snapshot?operations=%zu", targets->list[i].url,
			    operations);
		list[i] = (struct cli_fetch_request){ url, targets->list[i].socket };
	}
	return list;
}

/* Adds the queried agents as a note to the recording, as if read from an archive. */
static void keep_asked(struct recording *recording, struct sink *note)
{
	if (note->status != OK ||
	    recording_add_note(recording, "agents.json", sink_string(note), note->used) != OK)
		cli_no_memory();
}

static int fetch_all(struct answers *answers, const struct doctor_options *options,
		     size_t operations)
{
	struct cli_fetch_request *requests = requests_of(answers->targets, operations);
	struct cli_fetch how = { .parallel = options->parallel,
				 .timeout_ns = options->timeout_ns,
				 .limit_bytes = ANSWER_MOST,
				 .auth = options->auth,
				 .ca_file = options->ca_file,
				 .is_insecure = options->is_insecure,
				 .stop_fd = -1 };
	struct json asked;
	struct sink note;
	int code;

	sink_init_memory(&note);
	json_begin(&asked, &note);
	json_put_array(&asked, "agents");
	answers->asked = &asked;
	code = cli_fetch(&how, requests, answers->targets->count, take_answer, answers);
	json_end(&asked);
	json_finish(&asked);
	keep_asked(answers->recording, &note);
	sink_release(&note);
	for (size_t i = 0; i < answers->targets->count; i++)
		free((char *)requests[i].url);
	free(requests);
	return code;
}

int bundle_read_agents(struct bundle_archive *archive, const struct bundle_agents *agents,
		       size_t operations, struct recording *recording)
{
	char *words[BUNDLE_AGENT_WORDS + 2] = { (char *)"bundle" };
	struct doctor_options options;
	struct answers answers = { .archive = archive,
				   .recording = recording,
				   .targets = &options.targets };
	int code;

	for (size_t i = 0; i < agents->count; i++)
		words[i + 1] = (char *)agents->words[i];
	if (operations > OPERATIONS_MOST) {
		bundle_gap(
			archive, "snapshots",
			"agents provide at most %d operations per process, fewer than --operations",
			OPERATIONS_MOST);
		operations = OPERATIONS_MOST;
	}
	code = doctor_options_parse(&options, (int)agents->count + 1, words);
	if (code == -1)
		code = fetch_all(&answers, &options, operations);
	if (code == 0 && answers.good == 0)
		code = cli_error("none of %zu agents answered: %s", options.targets.count,
				 archive->gaps.count > 0
					 ? archive->gaps.list[archive->gaps.count - 1].text
					 : "?");
	if (code == 0)
		tell_left_out(archive, recording);
	if (code == 0 && recording_finish(recording) != OK)
		cli_no_memory();
	doctor_options_release(&options);
	return code;
}

enum { NAME = 160 };

/* Names contain only characters that are safe in a shell and on other systems. */
static void make_plain(char *text)
{
	for (char *at = text; *at != '\0'; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		      (*at >= '0' && *at <= '9') || strchr("._-", *at)))
			*at = '_';
}

/* A process always gets the same name; the number distinguishes equal ones. */
static void name_of(char name[static NAME], const char *folder, const char *ending, size_t index,
		    const struct recording_process *process)
{
	char host[48], rank[32] = "process";

	text_copy(host, sizeof(host), process->host[0] ? process->host : "unknown");
	make_plain(host);
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
	char name[NAME], text[RECORDED_PROCESS_TEXT];
	unsigned char *bytes = NULL;
	size_t length = 0;
	enum status status;

	name_of(name, "snapshots", ".trace", index, process);
	status = recording_snapshot(process, operations, 0, &bytes, &length);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status != OK) {
		bundle_gap(archive, name, "%s", status_reason(status));
		return;
	}
	bundle_add(archive, name, recorded_process_text(process, text), bytes, length);
	if (fd != -1 && !add_to_memory(fd, name, bytes, length))
		bundle_gap(archive, name, "not passed to the doctor: %s", strerror(errno));
	free(bytes);
}

/* The agents' notes, unchanged, because the doctor reads them again. */
static void add_note(struct bundle_archive *archive, const struct recording_note *note,
		     size_t index, int fd)
{
	const char *slash = strrchr(note->path, '/');
	const char *file = slash ? slash + 1 : note->path;
	char name[NAME], from[80];

	text_format(from, sizeof(from), "%.*s", (int)(file - note->path), note->path);
	make_plain(from);
	if (strcmp(note->path, BUNDLE_FACTS) == 0)
		text_copy(name, sizeof(name), BUNDLE_FACTS);
	else
		text_format(name, sizeof(name), "agents/%04zu-%s/%s", index, from, file);
	bundle_add(archive, name,
		   strcmp(file, "agent.json") == 0 ? "notes of an agent on its snapshots"
		   : strcmp(file, "host.json") == 0
			   ? "facts of this host: GPUs, ports, memory, errors"
			   : "agents queried, and which did not answer",
		   note->text, note->length);
	if (fd != -1 && !add_to_memory(fd, name, note->text, note->length))
		bundle_gap(archive, name, "not passed to the doctor: %s", strerror(errno));
}

void bundle_snapshots(struct bundle_archive *archive, struct recording *recording,
		      const struct bundle_request *request, bool *clean, int *snapshots)
{
	static const char zeros[2 * TAR_BLOCK];
	char text[RECORDED_PROCESS_TEXT];

	*snapshots = memfd_create("ringside-snapshots.tar", MFD_CLOEXEC);
	if (*snapshots == -1)
		bundle_gap(archive, "doctor", "cannot create its input in memory: %s",
			   strerror(errno));
	for (size_t i = 0; i < recording->count; i++) {
		size_t secrets = bundle_clean_info(recording->processes[i]);

		clean[i] = secrets == 0;
		if (secrets > 0)
			bundle_gap(archive, recorded_process_text(recording->processes[i], text),
				   "%zu recorded values look like secrets and were removed",
				   secrets);
		snapshot_one(archive, recording->processes[i], i, request->operations, *snapshots);
	}
	for (size_t i = 0; i < recording->note_count; i++)
		add_note(archive, &recording->notes[i], i, *snapshots);
	if (*snapshots != -1 && !write_all(*snapshots, zeros, sizeof(zeros)))
		bundle_gap(archive, "doctor", "cannot create its input in memory: %s",
			   strerror(errno));
}

/* ---- the environment -------------------------------------------------------------------------- */

static size_t write_environment(struct sink *sink, const struct recording_process *process)
{
	char text[RECORDED_PROCESS_TEXT], key[128], value[1024];
	size_t at = 0, count = 0;

	sink_format(sink, "# %s\n", recorded_process_text(process, text));
	while (info_next(process->info, process->info_bytes, &at, key, sizeof(key), value,
			 sizeof(value))) {
		if (strncmp(key, "env.", 4) != 0 || secret_is_pair(key + 4, value))
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
		   "no process recorded its environment (older recorder)");
}

/* ---- raw files -------------------------------------------------------------------------------- */

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
	return ORDER(b->when, a->when) ?: ORDER(a->process, b->process);
}

static void add_raw(struct bundle_archive *archive, const struct raw *raw,
		    const struct recording_process *process, uint64_t *left)
{
	char name[NAME], about[600], bytes[UNITS_TEXT], room[UNITS_TEXT], ending[32] = ".trace";
	/* What has been read, whatever its path leads to by now. */
	int fd = file_open_same(raw->path, raw->device, raw->inode);
	uint64_t length;
	struct stat st;

	if (raw->number > 0)
		text_format(ending, sizeof(ending), "-%zu.trace", raw->number + 1);
	name_of(name, raw->is_region ? "regions" : "traces", raw->is_region ? ".region" : ending,
		raw->process, process);
	if (fd == -1 && errno == ESTALE) {
		bundle_gap(archive, name, "%s was replaced by another file", raw->path);
	} else if (fd == -1 || fstat(fd, &st) == -1) {
		bundle_gap(archive, name, "%s: %s", raw->path, strerror(errno));
	} else if ((uint64_t)st.st_size > *left) {
		bundle_gap(archive, name, "%s (%s) exceeds the rest of the --most limit (%s)",
			   raw->path, units_bytes(bytes, (uint64_t)st.st_size),
			   units_bytes(room, *left));
	} else {
		length = (uint64_t)st.st_size;
		text_format(about, sizeof(about), "copy of %s", raw->path);
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
		struct stat st;

		*list = cli_realloc(*list, (count + process->file_count + 1) * sizeof(**list));
		for (size_t f = 0; request->has_traces && f < process->file_count; f++)
			(*list)[count++] =
				(struct raw){ .path = process->files[f].path,
					      .number = f,
					      .process = i,
					      .bytes = process->files[f].bytes,
					      .device = process->files[f].device,
					      .inode = process->files[f].inode,
					      .when = process->files[f].created_wall_ns };
		if (request->has_regions && process->region != NULL &&
		    fstat(process->region->fd, &st) == 0)
			(*list)[count++] = (struct raw){ .path = process->region_path,
							 .process = i,
							 .is_region = true,
							 .device = st.st_dev,
							 .inode = st.st_ino };
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
				   "contains recorded variables that look like secrets");
		else
			add_raw(archive, &list[i], recording->processes[list[i].process], &left);
	}
	if (request->is_remote)
		bundle_gap(archive, "traces", "agents provide snapshots, not files");
	else if (!request->has_regions)
		bundle_gap(archive, "regions",
			   "snapshots contain their data; --regions adds the raw regions");
	if (!request->has_traces && !request->is_remote)
		bundle_gap(archive, "traces", "--no-traces was given");
	else if (count == 0 && !request->is_remote)
		bundle_gap(archive, "traces",
			   "no process wrote trace files (RINGSIDE_MODE=trace does)");
	free(list);
}
