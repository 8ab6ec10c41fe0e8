/*
 * Whole bundles, file by file. The machine, the doctor, agents and time are played; the files are included for that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define bundle_packing_of parts_included_packing_of
#define bundle_open parts_included_open
#define bundle_add parts_included_add
#define bundle_add_sink parts_included_add_sink
#define bundle_gap parts_included_gap
#define bundle_commit parts_included_commit
#define bundle_release parts_included_release
#define bundle_agents_say parts_included_agents_say
#define bundle_read_agents parts_included_read_agents
#define bundle_snapshots parts_included_snapshots
#define bundle_environment parts_included_environment
#define bundle_raw parts_included_raw
#define bundle_facts parts_played_facts
#define bundle_node parts_played_node
#define bundle_ras parts_played_ras
#include "cmds/bundle_internal.h"
#include "cli/cli_ask.h"
#include "cmds/commands.h"
#include "common/clock.h"
#include "doctor/doctor.h"

static uint64_t play_clock(clockid_t clock);
static ssize_t play_pread(int fd, void *bytes, size_t size, off_t offset);
static ssize_t play_write(int fd, const void *bytes, size_t length);
static int play_memfd(const char *name, unsigned int flags);
static int play_hostname(char *name, size_t size);
static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes);
static int play_fetch(const struct cli_fetch *how, const struct cli_fetch_request *requests,
		      size_t count, cli_fetch_answer *take, void *context);
static size_t play_stacks(struct recording *recording, const void *wanted, const void *context,
			  const struct stacks_options *options);

#define cmd_bundle parts_included_bundle
#define clock_system_ns play_clock
#define pread play_pread
#define write play_write
#define memfd_create play_memfd
#define gethostname play_hostname
#define cli_capture(capture, words, fd, timeout_s, most) \
	play_capture(capture, words, fd, timeout_s, most)
#define cli_fetch(how, requests, count, take, context) \
	play_fetch(how, requests, count, take, context)
#define stacks_of_recording play_stacks
#include "cmds/bundle_archive.c"
#include "cmds/cmd_bundle.c"
#undef cmd_bundle
#undef clock_system_ns
#undef pread
#undef write
#undef memfd_create
#undef gethostname
#undef cli_capture
#undef cli_fetch
#undef stacks_of_recording

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

static struct {
	int read_error; /* of the next read of a raw file */
	bool is_short;	/* raw files shrink by half while they are read */
	int write_error;
	size_t write_most;
	bool has_no_memfd;
	enum status doctor;
	int doctor_code;
	bool is_cut, is_silent;
	const char *why;
	const int *answers; /* HTTP status of each agent */
	int fetch_code;
} play;

static uint64_t play_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME ? COMMAND_WALL : 0;
}

static ssize_t play_pread(int fd, void *bytes, size_t size, off_t offset)
{
	if (play.read_error != 0) {
		errno = play.read_error;
		play.read_error = play.read_error == EINTR ? 0 : play.read_error;
		return -1;
	}
	if (play.is_short)
		return offset > 0 ? 0 : pread(fd, bytes, size / 2, offset);
	return pread(fd, bytes, size, offset);
}

static ssize_t play_write(int fd, const void *bytes, size_t length)
{
	if (play.write_error != 0) {
		errno = play.write_error;
		play.write_error = play.write_error == EINTR ? 0 : play.write_error;
		return -1;
	}
	return write(fd, bytes,
		     play.write_most && length > play.write_most ? play.write_most : length);
}

static int play_memfd(const char *name, unsigned int flags)
{
	errno = ENOSYS;
	return play.has_no_memfd || flags != MFD_CLOEXEC ? -1 : memfd_create(name, flags);
}

static int play_hostname(char *name, size_t size)
{
	snprintf(name, size, "gpu-node-07 (%zu)", size);
	return 0;
}

/* The doctor says how it was asked, and what it could read. */
static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes)
{
	struct tar_reader reader;
	struct tar_entry entry;
	struct sink text;

	*capture = (struct cli_capture){ .exit_code = play.doctor_code, .is_cut = play.is_cut };
	if (play.why)
		text_copy(capture->why, sizeof(capture->why), play.why);
	if (timeout_s != 300 || most_bytes != 16 << 20 || fcntl(fd, F_GETFD) != FD_CLOEXEC)
		abort();
	sink_init_memory(&text);
	for (; *words != NULL; words++)
		sink_format(&text, "%s ", *words);
	sink_text(&text, "\n/proc/self/fd/3/x /proc/self/fd/4 /proc/self/fd/3\n");
	tar_reader_init_fd(&reader, fd, 0, (size_t)lseek(fd, 0, SEEK_END));
	while (tar_next(&reader, &entry) == OK)
		sink_format(&text, "it reads %s, %s\n", entry.name,
			    entry.length > 0 ? "some bytes" : "nothing");
	capture->bytes = strdup(play.is_silent ? "" : sink_string(&text));
	capture->length = strlen(capture->bytes);
	sink_release(&text);
	return play.doctor;
}

/* Agents whose answer is a bundle, or an error. */
static int play_fetch(const struct cli_fetch *how, const struct cli_fetch_request *requests,
		      size_t count, cli_fetch_answer *take, void *context)
{
	static const char problem[] = "connection\nrefused and more";
	size_t length;
	char *bytes = command_read(command_path("of-agents.tar"), &length);

	fprintf(stderr, "parallel %u, timeout %llu, limit %llu, auth %s, insecure %d, stop %d\n",
		how->parallel, (unsigned long long)how->timeout_ns,
		(unsigned long long)how->limit_bytes, how->auth ? how->auth : "none",
		how->is_insecure, how->stop_fd);
	for (size_t i = 0; i < count; i++) {
		int status = play.answers[i];

		fprintf(stderr, "GET %s\n", requests[i].url);
		if (status == 200)
			take(context, i, status, bytes, length);
		else if (status == 1)
			take(context, i, 200, "garbage", 7);
		else
			take(context, i, status, problem, 18);
	}
	free(bytes);
	return play.fetch_code;
}

static size_t play_stacks(struct recording *recording, const void *wanted, const void *context,
			  const struct stacks_options *how)
{
	size_t found = 0;

	if (wanted != NULL || context != NULL)
		abort();
	for (size_t i = 0; i < recording->count && getenv("PLAY_STACKS"); i++) {
		struct recording_process *process = recording->processes[i];

		if (process->rank == 1)
			continue;
		found++;
		if (asprintf(&process->stack, "in train.py:88%s%s", how->may_stop ? " stop" : "",
			     how->any_user ? " any" : "") == -1)
			abort();
	}
	return found;
}

void parts_played_facts(struct bundle_archive *archive, struct recording *recording)
{
	(void)archive;
	if (recording_add_note(recording, BUNDLE_FACTS, "{}\n", 3) != OK)
		abort();
}

void parts_played_node(struct bundle_archive *archive, const struct recording *recording)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu\n", recording->count);
	bundle_add(archive, "node/count.txt", "how many", text, strlen(text));
}

void parts_played_ras(struct bundle_archive *archive, const char *address, bool has_diagnostics)
{
	bundle_gap(archive, "ras", "%s%s", address ? address : "default",
		   has_diagnostics ? ", diagnostics" : "");
}

/* ---- bundles ---------------------------------------------------------------------------------- */

static int program(int argc, char **argv)
{
	return parts_included_bundle(argc - 1, argv + 1);
}

static bool is_text(const char *name)
{
	return strstr(name, ".trace") == NULL && strstr(name, ".region") == NULL;
}

/* How well a snapshot is packed depends on the boot id, and the README on the version: their sizes are left out. */
static void note_masked(const char *text)
{
	while (*text != '\0') {
		size_t digits = strspn(text, "0123456789.");

		if (digits > 0 && (strncmp(text + digits, " KiB", 4) == 0 ||
				   strncmp(text + digits, " MiB", 4) == 0)) {
			sink_text(&command_play.text, "SIZE");
			text += digits + 4;
		} else if (strncmp(text, "\"bytes\":", 8) == 0 &&
			   strspn(text + 8, "0123456789") > 3) {
			sink_text(&command_play.text, "\"bytes\":SIZE");
			text += 8 + strspn(text + 8, "0123456789");
		} else {
			sink_write(&command_play.text, text, digits ? digits : 1);
			text += digits ? digits : 1;
		}
	}
}

static void note_tidy(const char *text)
{
	struct sink tidy;

	sink_init_memory(&tidy);
	command_tidy(&tidy, text);
	note_masked(sink_string(&tidy));
	sink_release(&tidy);
}

/* Every file: its time, and its content if that is text. Of a README only what differs, unless it is_whole. */
static void show_bundle(const char *name, bool is_whole)
{
	struct tar_reader reader;
	struct tar_entry entry;
	enum status status;
	size_t length;
	char *bytes = command_read(command_path(name), &length), *text;

	sink_format(&command_play.text, "--- %s%s\n", name, bytes ? "" : ": there is none");
	if (bytes == NULL)
		return;
	tar_reader_init(&reader, bytes, length);
	while ((status = tar_next(&reader, &entry)) == OK) {
		sink_format(&command_play.text, "-- %s%s\n", entry.name,
			    entry.modified_s == COMMAND_WALL / COMMAND_SECOND ? "" : " (when?)");
		if (!is_text(entry.name))
			continue;
		text = strndup((const char *)entry.bytes, entry.length);
		if (strstr(entry.name, "README") == NULL || is_whole) {
			note_tidy(text);
		} else {
			*strstr(text, "\nThis bundle contains") = '\0';
			note_tidy(strstr(text, "Files\n"));
		}
		free(text);
	}
	sink_format(&command_play.text, "-- %s%s\n", status == ERR_GONE ? "complete" : "broken",
		    length % 512 == 0 && reader.at + 1024 <= length + 512 ? "" : ", uneven");
	free(bytes);
}

/* What is printed and what is in it. */
static void bundle(const char *heading, const char *line)
{
	static bool has_shown_one;
	char whole[512];

	snprintf(whole, sizeof(whole), "bundle -o x.tar %s", line);
	unlink(command_path("x.tar"));
	command_run(program, "ringside", whole);
	sink_format(&command_play.text, "##### %s: %s\n", heading, whole);
	note_tidy(command_play.out);
	note_tidy(command_play.err);
	sink_format(&command_play.text, "exit %d\n", command_play.code);
	show_bundle("x.tar", !has_shown_one);
	has_shown_one = true;
}

/* Two ranks with variables, one with secrets and a second file; a region; and a file that is cut. */
static void make_recordings(void)
{
	struct command_sample sample = { 0, "trace", "", "on",
					 "env.NCCL_DEBUG=INFO\nenv.NCCL_ALGO=Ring\n" };

	command_directory("two");
	command_write_trace(command_path("two"), &sample, 0, true);
	sample.rank = 1;
	sample.extra = "env.NCCL_DEBUG=WARN\nenv.API_TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ0123\n"
		       "env.NCCL_PASSWORD=x\n";
	command_write_trace(command_path("two"), &sample, 0, true);
	command_directory("twice");
	command_directory("twice/a");
	command_directory("twice/b");
	sample.rank = 0;
	sample.extra = "";
	command_write_trace(command_path("twice/a"), &sample, 0, true);
	command_write_trace(command_path("twice/b"), &sample, 0, true);
	command_directory("shm");
}

static void local_bundles(void)
{
	bundle("two ranks", "two");
	bundle("as JSON", "two --json --no-traces --rank 0");
	bundle("a process with two files", "twice --no-ras");
	bundle("a region", "stuck --regions --ras node1:1 --ras-diagnostics --hang 90s");
	setenv("PLAY_STACKS", "1", 1);
	bundle("stacks", "two --no-traces --native --any-user");
	bundle("no stacks", "stuck --no-stacks");
	setenv("RINGSIDE_STACKS", "0", 1);
	bundle("stacks are off", "stuck");
	unsetenv("RINGSIDE_STACKS");
	unsetenv("PLAY_STACKS");
	bundle("only the machine", "");
	bundle("a trace that is cut", "open");
	bundle("the room is for one", "twice --most 2KiB");
	sink_text(&command_play.text, "##### to standard output\n");
	command_run(program, "ringside", "bundle -o - --no-traces two");
	sink_format(&command_play.text, "exit %d, begins with %.40s\n%s", command_play.code,
		    command_play.out, command_play.err);
}

static void troubles(void)
{
	play.read_error = EINTR;
	bundle("a read is interrupted", "open");
	play.read_error = EIO;
	bundle("reads fail", "open");
	play.read_error = 0;
	play.is_short = true;
	bundle("a file shrinks", "open");
	play.is_short = false;
	play.write_error = EINTR;
	play.write_most = 100;
	bundle("writes to memory are interrupted and short", "open --no-traces");
	play.write_most = 0;
	play.write_error = ENOSPC;
	bundle("there is no memory for the doctor", "open --no-traces");
	play.write_error = 0;
	play.has_no_memfd = true;
	bundle("there is no such memory", "open --no-traces");
	play.has_no_memfd = false;
	play.doctor_code = 1;
	play.is_cut = true;
	bundle("a doctor who found much", "open --no-traces");
	play.is_cut = false;
	play.doctor_code = 3;
	play.why = "nothing recorded";
	bundle("one who could not tell", "open --no-traces");
	play.doctor_code = 0;
	play.why = NULL;
	play.is_silent = true;
	bundle("one who is silent", "open --no-traces");
	play.is_silent = false;
	play.doctor = ERR_SYSTEM;
	play.why = "timed out";
	bundle("one who takes too long", "open --no-traces");
	play.doctor = OK;
	play.why = NULL;
}

static void agents(void)
{
	static const int all[] = { 200, 200, 200 }, some[] = { 0, 401, 200 },
			 odd[] = { 1, 403, 500 }, none[] = { 0, 404, 0 };

	command_run(program, "ringside", "bundle -o of-agents.tar two");
	play.answers = all;
	bundle("agents", "--agents node[1-3] --timeout 7s --operations 20001 --insecure");
	play.answers = some;
	bundle("an agent of three", "--agents node[1-3] --regions --operations 20000 --json");
	play.answers = odd;
	bundle("no good answer", "--agents node[1-3] --auth file");
	play.answers = none;
	bundle("no answer", "--agents node[1-3]");
	play.answers = all;
	play.fetch_code = 3;
	bundle("no program to ask", "--agents node1");
	play.fetch_code = 0;
	bundle("a rank that no agent has", "--agents node1 --rank 7");
	bundle("a wrong option", "--agents node1 --timeout never");
}

/* ---- parts ------------------------------------------------------------------------------------ */

static void parts(void)
{
	static const char *const names[] = { "/x", "../x", "x//y", "ok.txt" };
	char text[64] = "azAZ09._-/ {}@[`:~", name[300];
	struct bundle_archive archive;
	struct bundle_agents said = { .count = 0 };
	enum bundle_packing packing;
	struct sink sink;

	make_plain(text);
	EXPECT_THAT("names have letters, digits and three more characters",
		    strcmp(text, "azAZ09._-_________") == 0);
	EXPECT(bundle_packing_of("a.tgz", &packing) && packing == BUNDLE_GZIP);
	EXPECT(bundle_packing_of("-", &packing) && packing == BUNDLE_PLAIN);
	EXPECT(!bundle_packing_of("a.tar.xz", &packing));
	for (int i = 0; i < 40; i++)
		bundle_agents_say(&said, "--agents", i % 3 ? "x" : NULL);
	EXPECT_THAT("options that do not fit are left out",
		    said.count <= BUNDLE_AGENT_WORDS && said.count >= BUNDLE_AGENT_WORDS - 1);
	EXPECT(bundle_open(&archive, command_path("parts.tar"), BUNDLE_PLAIN) == 0);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		bundle_add(&archive, names[i], "about", "text\n", 5);
	memset(name, 'n', 299);
	name[299] = '\0';
	bundle_add(&archive, name, "about", "", 0);
	sink_init_memory(&sink);
	sink.status = ERR_NO_SPACE;
	bundle_add_sink(&archive, "failed", "about", &sink);
	bundle_gap(&archive, "password=hunter2", "token=ghp_0123456789abcdefghijABCDEFGHIJ0123");
	bundle_gap(&archive, "a\nb", "c\033d");
	for (size_t i = 0; i < archive.files.count; i++)
		sink_format(&command_play.text, "+ %s: %s, %llu\n", archive.files.list[i].name,
			    archive.files.list[i].text,
			    (unsigned long long)archive.files.list[i].bytes);
	for (size_t i = 0; i < archive.gaps.count; i++)
		sink_format(&command_play.text, "- %.30s: %s\n", archive.gaps.list[i].name,
			    archive.gaps.list[i].text);
	sink_format(&command_play.text, "%llu bytes\n", (unsigned long long)archive.bytes);
	EXPECT(bundle_commit(&archive, 1) == 1);
	bundle_release(&archive);
	show_bundle("parts.tar", true);
}

/* More than a piece of each packing, and what is packed is as before. */
static void packings(void)
{
	static const char *const names[] = { "p.tar", "p.tar.gz", "p.tar.zst" };
	static char bytes[600 * 1024];
	struct bundle_archive archive;
	enum bundle_packing packing;
	struct stat st[3];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * i >> 7 ^ i);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char line[64];

		EXPECT(bundle_packing_of(names[i], &packing) &&
		       bundle_open(&archive, command_path(names[i]), packing) == 0);
		for (int j = 0; j < 3; j++)
			bundle_add(&archive, "bytes", "about", bytes, sizeof(bytes) - (size_t)j);
		EXPECT(bundle_commit(&archive, 0) == 0);
		bundle_release(&archive);
		EXPECT_THAT("only its owner may read a bundle",
			    stat(command_path(names[i]), &st[i]) == 0 &&
				    (st[i].st_mode & 0777) == 0600);
		snprintf(line, sizeof(line), "ls %s", names[i]);
		command_run(cmds_main, "ringside", line);
		EXPECT_THAT("it is an archive, of nothing that was recorded",
			    command_play.code == 3 &&
				    strstr(command_play.err, "truncated") == NULL &&
				    strstr(command_play.err, "damaged") == NULL);
	}
	EXPECT(st[0].st_size == 3 * (512 + (off_t)sizeof(bytes)) + 1024);
	EXPECT_THAT("packed ones are smaller", st[1].st_size < st[0].st_size &&
						       st[2].st_size < st[0].st_size &&
						       st[2].st_size > 1000);
}

int main(void)
{
	command_begin();
	command_play.program = program;
	make_recordings();
	command_make("stuck");
	command_make("open");
	command_write_text("file", "basic a:b\n");
	local_bundles();
	troubles();
	agents();
	parts();
	packings();
	EXPECT_THAT("bundles", command_expected("tests/unit/cmds/expected/bundle-parts"));
	return tap_done();
}
