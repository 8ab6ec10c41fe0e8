/* Reads the PATHs of a command line, reports what is wrong with them, and chooses the run. */
#include "cli/cli_input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "analysis/tally.h"
#include "cli/cli.h"
#include "common/file.h"
#include "common/op.h"
#include "common/text.h"
#include "format/tar.h"
#include "output/recorded.h"
#include "recording/recording.h"

/* Archives are unpacked in memory: larger ones must be unpacked by hand. */
#define CLI_UNPACK_MOST (UINT64_C(1) << 30)

enum { PIECE = 256 * 1024 };

struct unpack {
	int fd;
	bool is_gzip;
	z_stream gzip;
	ZSTD_DStream *zstd;
	unsigned char *bytes;
	size_t used;
	size_t room;
	uint64_t most;
	bool is_over; /* end of a stream; another may follow */
};

static enum status make_room(struct unpack *unpack)
{
	uint64_t room = unpack->room ? (uint64_t)unpack->room * 2 : 4 * PIECE;
	unsigned char *more;

	if (unpack->room - unpack->used >= PIECE)
		return OK;
	if (room > unpack->most + PIECE)
		room = unpack->most + PIECE;
	more = realloc(unpack->bytes, room);
	if (more == NULL)
		return ERR_NO_SPACE;
	unpack->bytes = more;
	unpack->room = room;
	return OK;
}

/* Another gzip member may follow (bgzip, `cat a.gz b.gz`), or zeros as tape padding. */
static bool begins_member(struct unpack *unpack, const unsigned char **in, size_t *left)
{
	for (; *left > 0 && **in == 0; (*left)--)
		(*in)++;
	if (*left == 0)
		return false;
	unpack->is_over = false;
	inflateReset(&unpack->gzip);
	return true;
}

/* One step: decompresses as much input as fits the output buffer. */
static enum status step_gzip(struct unpack *unpack, const unsigned char *in, size_t *left)
{
	int code;

	if (unpack->is_over && !begins_member(unpack, &in, left))
		return OK;
	unpack->gzip.next_in = (unsigned char *)in;
	unpack->gzip.avail_in = (unsigned int)*left;
	unpack->gzip.next_out = unpack->bytes + unpack->used;
	unpack->gzip.avail_out = PIECE;
	code = inflate(&unpack->gzip, Z_NO_FLUSH);
	unpack->used += PIECE - unpack->gzip.avail_out;
	*left = unpack->gzip.avail_in;
	unpack->is_over = code == Z_STREAM_END;
	return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? OK : ERR_FORMAT;
}

/* zstd continues with the next frame and skips frames without data. */
static enum status step_zstd(struct unpack *unpack, const unsigned char *in, size_t *left)
{
	ZSTD_inBuffer from = { in, *left, 0 };
	ZSTD_outBuffer to = { unpack->bytes + unpack->used, PIECE, 0 };
	size_t code = ZSTD_decompressStream(unpack->zstd, &to, &from);

	unpack->used += to.pos;
	*left -= from.pos;
	unpack->is_over = code == 0;
	return ZSTD_isError(code) ? ERR_FORMAT : OK;
}

/* Stop unpacking if it is not an archive. */
static enum status unpack_piece(struct unpack *unpack, const unsigned char *in, size_t length)
{
	size_t left = length, before;
	enum status status;
	bool is_at_end;

	do {
		status = make_room(unpack);
		before = unpack->used + (length - left);
		if (status == OK)
			status = unpack->is_gzip ? step_gzip(unpack, in + length - left, &left)
						 : step_zstd(unpack, in + length - left, &left);
		if (status == OK && unpack->used > unpack->most)
			status = ERR_RANGE;
		if (status == OK && unpack->used >= TAR_BLOCK &&
		    !tar_is(unpack->bytes, unpack->used))
			status = ERR_UNKNOWN;
		is_at_end = unpack->is_over && left == 0;
	} while (status == OK && !is_at_end && unpack->used + (length - left) != before);
	return status;
}

static enum status unpack_all(struct unpack *unpack)
{
	unsigned char *in = malloc(PIECE);
	enum status status = in ? OK : ERR_NO_SPACE;
	uint64_t at = 0;
	size_t got = 1;

	while (status == OK && got > 0) {
		status = file_pread_some(unpack->fd, in, PIECE, at, &got);
		at += got;
		if (status == OK && got > 0)
			status = unpack_piece(unpack, in, got);
	}
	free(in);
	/* Other compressed files may be truncated, too: their own readers handle that. */
	if (status != ERR_NO_SPACE && !tar_is(unpack->bytes, unpack->used))
		return ERR_UNKNOWN;
	return status == OK && !unpack->is_over ? ERR_TRUNCATED : status;
}

static enum status unpack_begin(struct unpack *unpack)
{
	unsigned char magic[4] = { 0 };
	size_t got = 0;

	if (file_pread_some(unpack->fd, magic, sizeof(magic), 0, &got) != OK)
		return ERR_SYSTEM;
	if (got == 4 && magic[0] == 0x1f && magic[1] == 0x8b) {
		unpack->is_gzip = true;
		/* 16: gzip format. */
		return inflateInit2(&unpack->gzip, 15 + 16) == Z_OK ? OK : ERR_NO_SPACE;
	}
	/* The second is the start of pzstd output: a frame with the size of the next one. */
	if (got < 4 || (memcmp(magic, "\x28\xb5\x2f\xfd", 4) != 0 &&
			((magic[0] & 0xf0) != 0x50 || memcmp(magic + 1, "\x2a\x4d\x18", 3) != 0)))
		return ERR_UNKNOWN;
	unpack->zstd = ZSTD_createDStream();
	return unpack->zstd ? OK : ERR_NO_SPACE;
}

enum status cli_unpack(const char *path, uint64_t most, unsigned char **bytes, size_t *length)
{
	struct unpack unpack = { .fd = file_open(AT_FDCWD, path, true), .most = most };
	enum status status;

	/* The next reader reports what is wrong with it. */
	if (unpack.fd == -1)
		return ERR_UNKNOWN;
	status = unpack_begin(&unpack);
	if (status == OK)
		status = unpack_all(&unpack);
	if (unpack.is_gzip)
		inflateEnd(&unpack.gzip);
	ZSTD_freeDStream(unpack.zstd);
	close(unpack.fd);
	if (status != OK) {
		free(unpack.bytes);
		return status;
	}
	*bytes = unpack.bytes;
	*length = unpack.used;
	return OK;
}

/* --any-owner: for everything that this command reads. */
static bool is_any_owner;

/* A thousand killed ranks have the same problem: print only the first few. */
enum { TOLD_OF_A_KIND = 5 };

void cli_input_init(struct cli_input *input)
{
	input->paths = NULL;
	input->path_count = 0;
	input->hidden = 0;
	input->has_logs = false;
	recording_init(&input->recording);
}

void cli_input_release(struct cli_input *input)
{
	free(input->paths);
	input->paths = NULL;
	input->recording.count += input->hidden;
	input->hidden = 0;
	recording_release(&input->recording);
}

void cli_input_path(struct cli_input *input, const char *path)
{
	input->paths = cli_realloc(input->paths, (input->path_count + 1) * sizeof(*input->paths));
	input->paths[input->path_count++] = path;
}

int cli_input_take(const struct cli_said *said)
{
	cli_input_path(said->target, said->value);
	return 0;
}

static enum status add_path(struct cli_input *input, const char *path, unsigned int flags)
{
	unsigned char *bytes;
	size_t length;
	enum status status = cli_unpack(path, CLI_UNPACK_MOST, &bytes, &length);

	if (status == ERR_RANGE || status == ERR_FORMAT || status == ERR_TRUNCATED) {
		recording_load_trouble(&input->recording, RECORDING_DAMAGE, path, NULL, "%s",
				       status == ERR_RANGE
					       ? "too large to unpack in memory: unpack it by hand"
					       : "compressed data is damaged");
		return OK;
	}
	if (status == OK) {
		status = recording_add_memory(&input->recording, path, bytes, length, flags);
		free(bytes);
		return status;
	}
	if (status == ERR_NO_SPACE) {
		recording_load_trouble(&input->recording, RECORDING_UNREADABLE, path, NULL,
				       "not enough memory to unpack it");
		return OK;
	}
	return recording_add(&input->recording, path, flags);
}

int cli_input_read(struct cli_input *input, unsigned int flags)
{
	const char *directory = getenv("RINGSIDE_SHM");
	enum status status = OK;

	/* Also for @PID. */
	if (directory && directory[0])
		input->recording.directory = directory;
	for (size_t i = 0; i < input->path_count && status == OK; i++)
		status = add_path(input, input->paths[i], flags);
	if (input->path_count == 0)
		status = recording_add_machine(&input->recording, NULL, flags);
	input->recording.is_any_owner = is_any_owner;
	if (status == OK)
		status = recording_finish(&input->recording);
	if (status == OK && input->recording.owners_apart > 0)
		cli_note("different users have jobs of the same name: kept apart, see 'ringside "
			 "ls'; "
			 "--any-owner joins them");
	return status == OK ? 0 : cli_error("cannot read: %s", status_reason(status));
}

int cli_input_command(const struct cli_page *page, void *request, unsigned int flags,
		      int (*check)(void *request), int (*run)(void *request), int argc, char **argv)
{
	struct cli_input *input = (void *)((char *)request + page->operand_target);
	int code;

	cli_input_init(input);
	code = cli_parse(page, request, argc, argv);
	if (code == CLI_GO_ON && check != NULL)
		code = check(request);
	if (code == CLI_GO_ON) {
		code = cli_input_read(input, flags);
		if (code == 0)
			code = run(request);
	}
	cli_input_release(input);
	return code;
}

bool cli_input_is_trouble(const struct cli_input *input, const struct recording_trouble *trouble)
{
	if (trouble->kind != RECORDING_FOREIGN)
		return true;
	for (size_t i = 0; i < input->path_count; i++)
		if (strcmp(input->paths[i], trouble->path) == 0)
			return true;
	return false;
}

enum { LOG_BYTES = 64 * 1024, LOG_FILES = 64 };

/* Does it look like NCCL_DEBUG output? Users without our recordings often pass that. */
static bool is_nccl_log_file(const char *path)
{
	char *bytes = cli_realloc(NULL, LOG_BYTES);
	int fd = file_open(AT_FDCWD, path, true);
	bool is_log = false;
	size_t got = 0;

	if (fd != -1 && file_pread_some(fd, (unsigned char *)bytes, LOG_BYTES, 0, &got) == OK)
		is_log = memmem(bytes, got, " NCCL INFO ", 11) != NULL ||
			 memmem(bytes, got, " NCCL WARN ", 11) != NULL;
	if (fd != -1)
		close(fd);
	free(bytes);
	return is_log;
}

static bool is_nccl_log(const char *path)
{
	DIR *directory = file_list(path);
	struct dirent *entry;
	bool is_log = false;
	char below[4096];

	if (directory == NULL)
		return is_nccl_log_file(path);
	for (int i = 0; i < LOG_FILES && !is_log && (entry = readdir(directory)) != NULL; i++)
		is_log = entry->d_name[0] != '.' &&
			 text_format(below, sizeof(below), "%s/%s", path, entry->d_name) &&
			 is_nccl_log_file(below);
	closedir(directory);
	return is_log;
}

/* Reported for a path without recordings, instead of its other problems. */
static bool complain_log(const struct cli_input *input, const char *path)
{
	const bool is_doctor = input->has_logs;

	if (!is_nccl_log(path))
		return false;
	cli_error("%s: this is NCCL_DEBUG output: use %s", path,
		  is_doctor ? "--log" : "'ringside doctor --log'");
	return true;
}

int cli_input_complain(const struct cli_input *input, bool has_cuts)
{
	const struct recording *recording = &input->recording;
	size_t told[RECORDING_NOTHING + 1] = { 0 };
	size_t left_out = recording->troubles_left_out - (has_cuts ? 0 : recording->cuts_left_out);
	bool is_any = false;

	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		if (!cli_input_is_trouble(input, trouble) ||
		    (trouble->kind == RECORDING_CUT && !has_cuts))
			continue;
		is_any = true;
		if (told[trouble->kind]++ >= TOLD_OF_A_KIND)
			left_out++;
		else if (trouble->kind != RECORDING_FOREIGN || !complain_log(input, trouble->path))
			cli_error("%s: %s", trouble->path, trouble->what);
	}
	if (left_out > 0 && is_any)
		cli_error("%zu more such problems; 'ringside verify' lists all", left_out);
	if (recording->count > 0 || is_any)
		return is_any ? CLI_EXIT_UNKNOWN : CLI_EXIT_DONE;
	for (size_t i = 0; i < input->path_count; i++)
		if (!complain_log(input, input->paths[i]))
			cli_error("%s: no recordings found", input->paths[i]);
	if (input->path_count == 0)
		cli_error(CLI_INPUT_NOTHING);
	return CLI_EXIT_UNKNOWN;
}

uint64_t cli_input_operations(const struct recording *recording)
{
	uint64_t count = 0;

	for (size_t i = 0; i < recording->count; i++)
		count += recording->processes[i]->recorded + recording->processes[i]->flight_count;
	return count;
}

enum { NAMES_LISTED = 5 };

void report_filter_release(struct report_filter *chosen)
{
	for (size_t i = 0; i < FILTER_FUNCTIONS_MAX; i++)
		free(chosen->functions[i]);
	*chosen = (struct report_filter){ .by = 0 };
}

/* ---- options --------------------------------------------------------------------------------- */

int report_take_by(const struct cli_said *said)
{
	struct report_filter *chosen = said->target;
	const char *names[TALLY_BYS], *bad = said->value, *nearest;
	char word[32] = "", all[256] = "";
	size_t length;

	if (tally_by_parse(said->value, &chosen->by, &bad) == OK && chosen->by != 0)
		return 0;
	chosen->by = 0;
	length = strcspn(bad, ",");
	for (unsigned int i = 0; i < TALLY_BYS; i++)
		names[i] = tally_by_name(i);
	if (length < sizeof(word))
		memcpy(word, bad, length);
	nearest = cli_nearest(word, names, TALLY_BYS);
	if (nearest != NULL)
		return cli_usage(said->page, "--by: unknown word '%.*s', did you mean '%s'?",
				 (int)length, bad, nearest);
	for (unsigned int i = 0; i < TALLY_BYS; i++)
		text_format(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i > 0 ? ", " : "",
			    names[i]);
	return cli_usage(said->page, "--by: unknown word '%.*s'; allowed are %s", (int)length, bad,
			 all);
}

int report_take_comm(const struct cli_said *said)
{
	struct filter *filter = said->target;

	if (filter->comm_count == FILTER_COMMS_MAX)
		return cli_usage(said->page, "--comm: more than %d communicators",
				 FILTER_COMMS_MAX);
	filter->comms[filter->comm_count++] = said->value;
	return 0;
}

int report_take_functions(const struct cli_said *said)
{
	struct report_filter *chosen = said->target;
	struct filter *filter = &chosen->filter;
	const char *value = said->value;

	for (;;) {
		size_t length = strcspn(value, ",");
		char *copy;

		if (length == 0)
			return cli_usage(said->page, "--op: a name is missing");
		if (filter->function_count == FILTER_FUNCTIONS_MAX)
			return cli_usage(said->page, "--op: more than %d operations",
					 FILTER_FUNCTIONS_MAX);
		copy = cli_realloc(NULL, length + 1);
		memcpy(copy, value, length);
		copy[length] = '\0';
		chosen->functions[filter->function_count] = copy;
		filter->functions[filter->function_count++] = copy;
		if (value[length] == '\0')
			return 0;
		value += length + 1;
	}
}

int report_take_ranks(const struct cli_said *said)
{
	enum status status = filter_add_ranks(said->target, said->value);

	if (status == OK)
		return 0;
	if (status == ERR_NO_SPACE)
		return cli_usage(said->page, "--rank: more than %d ranges", FILTER_RANGES_MAX);
	return cli_usage(said->page, "--rank '%s' is not a list of ranks like 0-7,12", said->value);
}

int report_take_time(const struct cli_said *said)
{
	if (filter_parse_time(said->target, said->value) == OK)
		return 0;
	return cli_usage(said->page,
			 "--%s '%s' is not a time like 30s, -30s, 14:03:10 or 2026-01-31T14:03:10Z",
			 said->option->name, said->value);
}

int report_take_tag(const struct cli_said *said)
{
	struct filter *filter = said->target;
	char *end = NULL;

	errno = 0;
	filter->tag = strtoull(said->value, &end, 0);
	filter->has_tag = true;
	if (said->value[0] >= '0' && said->value[0] <= '9' && *end == '\0' && errno == 0)
		return 0;
	return cli_usage(said->page, "--tag '%s' is not a whole number", said->value);
}

int report_take_run(const struct cli_said *said)
{
	struct report_filter *chosen = said->target;
	int64_t run;

	if (strcmp(said->value, "all") == 0) {
		chosen->run = REPORT_RUN_ALL;
		return 0;
	}
	if (text_number(said->value, 1, REPORT_RUN_ALL - 1, &run) != OK)
		return cli_usage(said->page, "--run '%s' is neither a number from 1 nor all",
				 said->value);
	chosen->run = (uint32_t)run;
	return 0;
}

/* ---- checking that names exist ----------------------------------------------------------------- */

static int check_functions(const struct filter *filter, const struct cli_page *page,
			   const struct job *job)
{
	for (size_t i = 0; i < filter->function_count; i++) {
		const char *names[OP_FUNCTIONS], *nearest;

		if (filter_check_function(job, filter->functions[i]) == OK)
			continue;
		for (unsigned int n = 0; n < OP_FUNCTIONS; n++)
			names[n] = op_function_name((uint8_t)n);
		nearest = cli_nearest(filter->functions[i], names, OP_FUNCTIONS);
		if (nearest != NULL)
			return cli_usage(page, "--op: unknown operation '%s', did you mean '%s'?",
					 filter->functions[i], nearest);
		return cli_usage(page, "--op: unknown operation '%s'", filter->functions[i]);
	}
	return 0;
}

/* "--comm: no communicator 'nope' here; available: world, tp0, ..." */
static int no_such(const char *option, const char *what, const char *name, struct sink *names,
		   size_t count)
{
	int exit_code = cli_error("--%s: no %s '%s' here; available: %s%s", option, what, name,
				  count > 0 ? sink_string(names) : "none",
				  count > NAMES_LISTED ? ", ..." : "");

	sink_release(names);
	return exit_code;
}

static int no_such_comm(const struct job *job, const char *name)
{
	struct sink names;

	sink_init_memory(&names);
	for (size_t i = 0; i < job->comm_count && i < NAMES_LISTED; i++)
		sink_format(&names, "%s%s", i > 0 ? ", " : "", job->comms[i].label);
	return no_such("comm", "communicator", name, &names, job->comm_count);
}

static int check_comms(const struct filter *filter, const struct job *job)
{
	for (size_t i = 0; i < filter->comm_count; i++) {
		struct filter one = { .comms = { filter->comms[i] }, .comm_count = 1 };
		size_t c = 0;

		while (c < job->comm_count && !filter_has_comm(&one, &job->comms[c]))
			c++;
		if (c == job->comm_count)
			return no_such_comm(job, filter->comms[i]);
	}
	return 0;
}

/* "0-7,12", in ascending order: ranks are sorted within a job. */
static size_t list_ranks(struct sink *names, const struct job *job)
{
	size_t count = 0;

	for (size_t r = 0; r < job->rank_count; count++) {
		int64_t first = job->ranks[r].rank, last = first;

		for (r++; r < job->rank_count &&
			  (job->ranks[r].rank == last || job->ranks[r].rank == last + 1);
		     r++)
			last = job->ranks[r].rank;
		if (count >= NAMES_LISTED || first < 0)
			continue;
		sink_format(names, "%s%" PRId64, names->used > 0 ? "," : "", first);
		if (last > first)
			sink_format(names, "-%" PRId64, last);
	}
	return count;
}

/* Each range must contain at least one rank. */
static int check_ranks(const struct filter *filter, const struct job *job)
{
	for (size_t i = 0; i < filter->range_count; i++) {
		const struct filter one = { .ranks = { filter->ranks[i] }, .range_count = 1 };
		struct sink names;
		char text[48];
		size_t r = 0;

		while (r < job->rank_count && !filter_has_rank(&one, job->ranks[r].rank))
			r++;
		if (r < job->rank_count)
			continue;
		text_format(text, sizeof(text), "%" PRId64, one.ranks[0].first);
		if (one.ranks[0].last > one.ranks[0].first)
			text_format(text + strlen(text), sizeof(text) - strlen(text), "-%" PRId64,
				    one.ranks[0].last);
		sink_init_memory(&names);
		r = list_ranks(&names, job);
		return no_such("rank", "rank", text, &names, r);
	}
	return 0;
}

int cli_job_check(const struct recording *recording, const char *name)
{
	const char *last = NULL;
	struct sink names;
	size_t count = 0;

	for (size_t i = 0; i < recording->count; i++)
		if (recording_is_job(recording->processes[i], name))
			return 0;
	sink_init_memory(&names);
	/* Processes are sorted by job. */
	for (size_t i = 0; i < recording->count; i++) {
		const char *job = recording->processes[i]->job;

		if (last != NULL && strcmp(last, job) == 0)
			continue;
		last = job;
		if (count++ < NAMES_LISTED)
			sink_format(&names, "%s%s", count > 1 ? ", " : "",
				    job[0] ? job : "a job without a name");
	}
	return no_such("job", "job", name, &names, count);
}

/* Moves processes that do not match to the end, past recording.count. */
static void hide_processes(struct cli_input *input, const bool *is_kept)
{
	struct recording *recording = &input->recording;
	struct recording_process **sorted =
		cli_realloc(NULL, (recording->count + 1) * sizeof(struct recording_process *));
	size_t kept = 0, at;

	for (size_t i = 0; i < recording->count; i++)
		if (is_kept[i])
			sorted[kept++] = recording->processes[i];
	at = kept;
	for (size_t i = 0; i < recording->count; i++)
		if (!is_kept[i])
			sorted[at++] = recording->processes[i];
	memcpy(recording->processes, sorted, recording->count * sizeof(struct recording_process *));
	input->hidden += recording->count - kept;
	recording->count = kept;
	free(sorted);
}

static int choose_job(struct cli_input *input, const char *name)
{
	struct recording *recording = &input->recording;
	int exit_code = cli_job_check(recording, name);
	bool *is_kept;

	if (exit_code != 0)
		return exit_code;
	is_kept = cli_realloc(NULL, recording->count + 1);
	for (size_t i = 0; i < recording->count; i++)
		is_kept[i] = recording_is_job(recording->processes[i], name);
	hide_processes(input, is_kept);
	free(is_kept);
	return 0;
}

bool cli_run_has(uint32_t run, const struct recording_process *process)
{
	if (run == 0)
		return !process->is_earlier_run;
	return run == REPORT_RUN_ALL || process->run == run;
}

void cli_run_say_earlier(char *text, size_t size, const struct recording *recording)
{
	const struct recording_process *found = NULL;
	uint32_t earlier = 0, first = UINT32_MAX, last = 0;

	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		if (!process->is_earlier_run)
			continue;
		/* Sorted by job and run. */
		if (found == NULL || found->run != process->run ||
		    strcmp(found->job, process->job) != 0)
			earlier++;
		found = process;
		first = process->run < first ? process->run : first;
		last = process->run > last ? process->run : last;
	}
	if (earlier == 0)
		return;
	text_append(text, size, "without %u earlier %s of the same name (--run %u", earlier,
		    earlier == 1 ? "run" : "runs", first);
	if (last > first)
		text_append(text, size, "-%u", last);
	text_append(text, size, " or all)");
}

int report_take_any_owner(const struct cli_said *said)
{
	(void)said;
	is_any_owner = true;
	return 0;
}

static int choose_run(struct cli_input *input, uint32_t run)
{
	struct recording *recording = &input->recording;
	bool *is_kept = cli_realloc(NULL, recording->count + 1);
	char text[160] = "";
	size_t kept = 0;

	for (size_t i = 0; i < recording->count; i++)
		kept += is_kept[i] = cli_run_has(run, recording->processes[i]);
	if (run == 0 && kept < recording->count) {
		cli_run_say_earlier(text, sizeof(text), recording);
		cli_note("%s", text);
	}
	if (kept > 0)
		hide_processes(input, is_kept);
	free(is_kept);
	return kept > 0 ? 0 : cli_error("no run %u: 'ringside ls' lists the runs of each job", run);
}

static int choose(struct cli_input *input, const struct report_filter *chosen,
		  const struct cli_page *page, bool has_processes)
{
	const struct filter *filter = &chosen->filter;
	bool *is_kept = NULL;
	struct job job;
	int exit_code;

	if (input->recording.count == 0)
		return 0;
	if (chosen->job != NULL && (exit_code = choose_job(input, chosen->job)) != 0)
		return exit_code;
	if ((chosen->run != 0 || input->has_last_run) &&
	    (exit_code = choose_run(input, chosen->run)) != 0)
		return exit_code;
	if (filter_is_empty(filter))
		return 0;
	if (job_make(&job, &input->recording) != OK)
		cli_no_memory();
	exit_code = check_functions(filter, page, &job);
	if (exit_code == 0)
		exit_code = check_comms(filter, &job);
	if (exit_code == 0)
		exit_code = check_ranks(filter, &job);
	if (exit_code == 0 && has_processes) {
		is_kept = cli_realloc(NULL, input->recording.count + 1);
		for (uint32_t i = 0; i < input->recording.count; i++)
			is_kept[i] = filter_has_process(filter, &job, i);
	}
	job_release(&job);
	if (is_kept != NULL)
		hide_processes(input, is_kept);
	free(is_kept);
	if (exit_code == 0 && input->recording.count == 0)
		exit_code = cli_error("nothing recorded matches --since, --until, --rank and "
				      "--comm together");
	return exit_code;
}

int cli_input_choose(struct cli_input *input, const struct report_filter *chosen,
		     const struct cli_page *page)
{
	return choose(input, chosen, page, false);
}

int cli_input_choose_processes(struct cli_input *input, const struct report_filter *chosen,
			       const struct cli_page *page)
{
	return choose(input, chosen, page, true);
}

enum { TROUBLES_TOLD = 20 };

static int tell_all(const struct cli_input *input)
{
	const struct recording *recording = &input->recording;
	size_t told = 0;

	for (; told < recording->trouble_count && told < TROUBLES_TOLD; told++)
		cli_error("%s: %s", recording->troubles[told].path, recording->troubles[told].what);
	if (recording->trouble_count + recording->troubles_left_out > told)
		cli_error("%zu more such problems; 'ringside verify' lists all",
			  recording->trouble_count + recording->troubles_left_out - told);
	return told > 0 ? CLI_EXIT_UNKNOWN : CLI_EXIT_DONE;
}

int report_read_troubles(const struct cli_input *input, bool is_strict)
{
	int exit_code = is_strict ? tell_all(input) : CLI_EXIT_DONE;

	if (exit_code == CLI_EXIT_DONE)
		exit_code = cli_input_complain(input, false);
	return exit_code;
}

int report_read_strictly(const struct timeline_report *report)
{
	const struct timeline_completeness *found = &report->completeness;

	if (found->refused + found->damages == 0)
		return CLI_EXIT_DONE;
	return cli_error("%" PRIu64 " invalid records, %" PRIu64
			 " damaged blocks; 'ringside verify' lists them",
			 found->refused, found->damages);
}

int cli_walk_complain(const struct recording_process *process, enum status status,
		      const struct recording_walk *walk)
{
	char who[RECORDED_PROCESS_TEXT];

	recorded_process_text(process, who);
	if (status != OK)
		return cli_error("%s: %s", who, status_reason(status));
	if (walk->refused > 0)
		return cli_error("%s: %" PRIu64
				 " records are damaged (%s); 'ringside verify' has details",
				 who, walk->refused, walk->problem ? walk->problem : "?");
	return 0;
}

int cli_cannot_read(enum status status)
{
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return cli_error("cannot read: %s", status_reason(status));
}

int report_read(struct timeline_report *report, struct cli_input *input,
		const struct report_filter *chosen, const struct timeline_options *options,
		const struct cli_page *page)
{
	struct timeline_options watched = *options;
	struct cli_progress progress;
	enum status status;
	int exit_code;

	input->has_last_run = true;
	exit_code = cli_input_choose(input, chosen, page);
	if (exit_code != 0)
		return exit_code;
	cli_progress_start(&progress, page->name, "operations",
			   cli_input_operations(&input->recording));
	watched.progress = cli_progress_fraction;
	watched.progress_context = &progress;
	status = timeline_report_make(report, &input->recording, &chosen->filter, &watched);
	cli_progress_end(&progress);
	return status == OK ? 0 : cli_cannot_read(status);
}
