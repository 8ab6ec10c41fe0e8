/* Creating regions. Small, full and read-only file systems are tested in tests/process/places.t. */
#include "format/region_create.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/order.h"
#include "common/text.h"
#include "format/region_read.h"
#include "tests/tap.h"

static char scratch[] = "/tmp/ringside-test-XXXXXX";

static const char *below(const char *name)
{
	static char paths[4][300];
	static unsigned int next;
	char *path = paths[next++ % ARRAY_LENGTH(paths)];

	text_format(path, sizeof(paths[0]), "%s/%s", scratch, name);
	return path;
}

static struct region_request request_in(const char *dir)
{
	return (struct region_request){ .dir = dir,
					.pid = (uint64_t)getpid(),
					.start_ticks = 12345,
					.pid_namespace = 7, /* HERE */
					.ring_bytes = 8 << 20,
					.group = (gid_t)-1 };
}

static void drop(struct region_writer *writer)
{
	munmap(writer->header, writer->bytes);
	if (writer->fd != -1)
		close(writer->fd);
}

/* As requested by the four modes, with the default buffer. */
static void no_mode_takes_more_than_16_mib(void)
{
	static const struct {
		const char *mode;
		uint64_t ring, detail;
	} modes[] = { { "flight", 8 << 20, 0 },
		      { "profile", 0, 0 },
		      { "trace", 8 << 20, 0 },
		      { "full", 4 << 20, 4 << 20 } };

	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
		struct region_request request = request_in(below("modes"));
		struct region_writer writer;
		struct stat st;

		request.ring_bytes = modes[i].ring;
		request.detail_bytes = modes[i].detail;
		EXPECT_EQUAL(region_create(&writer, &request), OK);
		EXPECT_THAT(modes[i].mode, writer.bytes <= 16 << 20);
		EXPECT_THAT("the file is as large as the region, and all of it is reserved",
			    stat(writer.path, &st) == 0 && (uint64_t)st.st_size == writer.bytes &&
				    (uint64_t)st.st_blocks * 512 >= writer.bytes);
		EXPECT_EQUAL(writer.ring_count, modes[i].ring / OP_RECORD_BYTES);
		EXPECT((writer.detail_count & (writer.detail_count - 1)) == 0 &&
		       writer.detail_count <= modes[i].detail / OP_DETAIL_BYTES);
		unlink(writer.path);
		drop(&writer);
	}
}

static bool is_at(const void *part, const struct region_header *header, int index)
{
	return (const char *)part == (const char *)header + header->parts[index].offset;
}

static void parts_lie_behind_each_other(void)
{
	struct region_request request = request_in(below("parts"));
	struct region_writer writer;
	const struct region_header *header;
	uint64_t end = REGION_HEADER_BYTES;
	unsigned int wrong = 0, not_zero = 0;

	request.detail_bytes = 1 << 20;
	EXPECT_EQUAL(region_create(&writer, &request), OK);
	header = writer.header;
	for (int i = REGION_INFO; i <= REGION_LINKS; i++) {
		const struct region_part *part = &header->parts[i];

		wrong += part->offset % 64 != 0 || part->stride % 8 != 0 || part->count == 0;
		wrong += part->offset < end;
		end = part->offset + (uint64_t)part->count * part->stride;
		for (uint64_t at = part->offset; at < end; at++)
			not_zero += ((const char *)header)[at] != 0;
	}
	wrong += end > writer.bytes;
	EXPECT_EQUAL(wrong, 0);
	EXPECT_EQUAL(not_zero, 0);
	EXPECT_THAT("and the writer finds each",
		    writer.info == (char *)header + header->parts[REGION_INFO].offset &&
			    is_at(writer.names, header, REGION_NAMES) &&
			    is_at(writer.comms, header, REGION_COMMS) &&
			    is_at(writer.live, header, REGION_LIVE) &&
			    is_at(writer.proxies, header, REGION_PROXIES) &&
			    is_at(writer.peers, header, REGION_PEERS) &&
			    is_at(writer.totals, header, REGION_TOTALS) &&
			    is_at(writer.ring, header, REGION_RING) &&
			    is_at(writer.details, header, REGION_DETAILS) &&
			    is_at(writer.links, header, REGION_LINKS));
	EXPECT_EQUAL(header->total_bytes, writer.bytes);
	EXPECT_EQUAL(header->pid, getpid());
	EXPECT_EQUAL(header->start_ticks, 12345);
	EXPECT_THAT("it does not count as complete yet", header->magic == 0);
	region_publish(&writer);
	EXPECT(memcmp(writer.header, "RREGION1", 8) == 0);
	unlink(writer.path);
	drop(&writer);
}

static void buffers_round_down_to_a_power_of_two(void)
{
	struct region_request request = request_in(below("rounding"));
	struct region_writer writer;

	request.ring_bytes = 100000;
	EXPECT_EQUAL(region_create(&writer, &request), OK);
	EXPECT_EQUAL(writer.ring_count, 256);
	unlink(writer.path);
	drop(&writer);
}

static void a_region_is_its_users_alone(void)
{
	struct region_request request = request_in(below("private"));
	struct region_writer writer, second;
	struct stat st;
	mode_t mask = umask(0);

	EXPECT_EQUAL(region_create(&writer, &request), OK);
	EXPECT(stat(request.dir, &st) == 0 && (st.st_mode & 07777) == 0700);
	EXPECT(stat(writer.path, &st) == 0 && (st.st_mode & 07777) == 0600);
	EXPECT(writer.kind == REGION_KIND_SHM && writer.reason[0] == '\0');
	EXPECT_THAT("a second one with the same name gets another name",
		    region_create(&second, &request) == OK &&
			    strcmp(writer.path, second.path) != 0 &&
			    second.kind == REGION_KIND_SHM);
	umask(mask);
	unlink(writer.path);
	unlink(second.path);
	drop(&writer);
	drop(&second);
}

static void expect_memory(const char *what, const char *dir, const char *reason)
{
	struct region_request request = request_in(dir);
	struct region_writer writer;
	struct region_header header;
	int fd;

	EXPECT_EQUAL(region_create(&writer, &request), OK);
	EXPECT_THAT(what, writer.kind == REGION_KIND_MEMFD && strstr(writer.reason, reason));
	region_publish(&writer);
	fd = open(writer.path, O_RDONLY | O_CLOEXEC);
	EXPECT_THAT("it is readable through /proc",
		    pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
			    header.magic == REGION_MAGIC && header.kind == REGION_KIND_MEMFD);
	EXPECT(writer.bytes <= 5 << 20);
	close(fd);
	drop(&writer);
}

static void what_is_in_the_way_is_not_touched(void)
{
	struct stat st;

	expect_memory("no parent", below("no/such"), "parent directory does not exist");
	close(open(below("file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	expect_memory("a file", below("file"), "link or not a directory");
	EXPECT(stat(below("file"), &st) == 0 && (st.st_mode & 07777) == 0644);
	EXPECT(symlink(scratch, below("link")) == 0);
	expect_memory("a link", below("link"), "link or not a directory");
	EXPECT(symlink("nowhere", below("broken")) == 0);
	expect_memory("a link to nowhere", below("broken"), "link or not a directory");
}

static void a_process_without_descriptors_says_so(void)
{
	struct region_request request = request_in(below("few"));
	struct rlimit before, limit;
	struct region_writer writer;
	int next = dup(STDIN_FILENO);

	close(next);
	getrlimit(RLIMIT_NOFILE, &before);
	/* One more for the directory, none for a file in it. */
	limit = (struct rlimit){ (rlim_t)next + 1, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &limit);
	EXPECT_EQUAL(region_create(&writer, &request), OK);
	setrlimit(RLIMIT_NOFILE, &before);
	EXPECT(writer.kind == REGION_KIND_MEMFD &&
	       strstr(writer.reason, "cannot create a file in it"));
	drop(&writer);
}

static uint32_t is_noisy;

static void *make_noise(void *unused)
{
	char noise[4096];

	(void)unused;
	memset(noise, 'n', sizeof(noise));
	while (load_relaxed(&is_noisy))
		for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
			if (write(fd, noise, sizeof(noise)) == -1)
				errno = 0;
	return NULL;
}

static int make_regions_amid_noise(const char *dir)
{
	struct region_request request = request_in(dir);
	struct region_writer writer;
	pthread_t thread;
	int spoiled = 0;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		close(fd);
	is_noisy = 1;
	if (pthread_create(&thread, NULL, make_noise, NULL) != 0)
		return 3;
	for (int i = 0; i < 50; i++) {
		if (region_create(&writer, &request) != OK)
			return 3;
		for (int j = 0; j < LOST_REASONS; j++)
			spoiled |= writer.header->lost[j] != 0;
		spoiled |= writer.header->magic != 0 || writer.kind != REGION_KIND_SHM;
		unlink(writer.path);
		drop(&writer);
	}
	store_relaxed(&is_noisy, 0);
	pthread_join(thread, NULL);
	return spoiled;
}

static void a_region_is_never_a_standard_stream(void)
{
	const char *dir = below("noise");
	int status = 0;
	pid_t child;

#ifdef __SANITIZE_THREAD__
	/*
	 * The thread sanitizer reports writing to a descriptor that another thread opens, which is
	 * the point here.
	 */
	EXPECT_THAT("amid noise # SKIP under the thread sanitizer", true);
	return;
#endif
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(make_regions_amid_noise(dir));
	waitpid(child, &status, 0);
	EXPECT_THAT("closed streams, and another thread prints: nothing gets into a region",
		    status == 0);
}

/* Which of the first three descriptors are open: 0 closed, 1 open. Closes each. */
static int open_streams(void)
{
	int open = 0;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		open += close(fd) == 0;
	return open;
}

/* Each kind of region in turn: a file, a memfd, private memory. */
static int make_without_streams(const char *dir)
{
	struct region_request request = request_in(dir);
	struct region_writer writer;
	char link[32], path[300];
	ssize_t length;

	open_streams();
	if (region_create(&writer, &request) != OK || writer.kind != REGION_KIND_SHM)
		return 2;
	if (open_streams() != 0 || access(writer.path, F_OK) != 0)
		return 3;
	unlink(writer.path);
	drop(&writer);
	request.why_not = "played";
	if (region_create(&writer, &request) != OK || writer.kind != REGION_KIND_MEMFD)
		return 4;
	if (writer.fd <= STDERR_FILENO || open_streams() != 0)
		return 5;
	text_format(link, sizeof(link), "/proc/self/fd/%d", writer.fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0 || strncmp(path, "/memfd:", 7) != 0)
		return 6;
	drop(&writer);
	return 0;
}

static void no_standard_stream_is_left_open(void)
{
	const char *dir = below("streams");
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(make_without_streams(dir));
	waitpid(child, &status, 0);
	EXPECT_THAT("closed streams: the region is created, and they stay closed", status == 0);
}

/* A file opened under a guard never gets one of the three numbers, and printing fails as before. */
static int open_under_guard(void)
{
	struct fd_guard guard;
	int null;

	open_streams();
	guard = fd_guard_begin();
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null <= STDERR_FILENO)
		return 2;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (write(fd, "n", 1) != -1 || errno != EBADF)
			return 3;
	/* Another thread opens a log as its stdout in the meantime. */
	if (dup2(null, STDOUT_FILENO) != STDOUT_FILENO)
		return 4;
	fd_guard_end(&guard);
	return fcntl(STDIN_FILENO, F_GETFD) != -1 || fcntl(STDERR_FILENO, F_GETFD) != -1 ||
	       write(STDOUT_FILENO, "n", 1) != 1;
}

static void a_guard_holds_free_numbers(void)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(open_under_guard());
	waitpid(child, &status, 0);
	EXPECT_THAT("under a guard no file becomes a standard stream, and existing ones stay",
		    status == 0);
}

/* If only the three numbers are left, nothing is opened, not even the directory on the way. */
static int make_with_streams_alone(const char *dir)
{
	struct rlimit three = { STDERR_FILENO + 1, STDERR_FILENO + 1 };
	struct region_request request = request_in(dir);
	struct region_writer writer;

	open_streams();
	if (setrlimit(RLIMIT_NOFILE, &three) != 0 || region_create(&writer, &request) != OK)
		return 2;
	return writer.kind != REGION_KIND_PRIVATE ||
	       strstr(writer.reason, "cannot be opened") == NULL || open_streams() != 0;
}

static void streams_are_not_used_on_the_way(void)
{
	const char *dir = below("streams");
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(make_with_streams_alone(dir));
	waitpid(child, &status, 0);
	EXPECT_THAT("closed streams are not even used for the directory", status == 0);
}

/* One of the three is free while the others are not. */
static void streams_that_are_open_stay(void)
{
	const char *dir = below("streams");
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		struct region_request request = request_in(dir);
		struct region_writer writer;
		struct stat before, after;

		close(STDIN_FILENO);
		if (fstat(STDOUT_FILENO, &before) != 0 || region_create(&writer, &request) != OK ||
		    fstat(STDOUT_FILENO, &after) != 0)
			_exit(2);
		_exit(before.st_ino != after.st_ino || before.st_dev != after.st_dev ||
		      fcntl(STDIN_FILENO, F_GETFD) != -1 || unlink(writer.path) != 0);
	}
	waitpid(child, &status, 0);
	EXPECT_THAT("a closed stream stays closed, an open one is unchanged", status == 0);
}

/* ---- what others left ------------------------------------------------------------------------ */

enum { HERE = 7, ELSEWHERE = 8 }; /* pid namespaces */
enum { DAY = 24 * 60 * 60 };

/* A region as left by a recorder without a lock. No process has such a pid. */
static void make_old(const char *dir, unsigned int number, uint64_t pid_namespace, time_t age)
{
	struct region_header header = { .header_bytes = REGION_HEADER_BYTES,
					.pid_namespace = pid_namespace };
	struct timespec times[2] = { { .tv_sec = time(NULL) - age + number },
				     { .tv_sec = time(NULL) - age + number } };
	char path[400];
	int fd;

	mkdir(dir, 0700);
	text_format(path, sizeof(path), "%s/%u-%u.region", dir, 2000000000u + number, 100 + number);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (write(fd, &header, sizeof(header)) != sizeof(header) || futimens(fd, times) != 0)
		exit(3);
	close(fd);
}

static bool is_there(const char *dir, unsigned int number)
{
	char path[400];

	text_format(path, sizeof(path), "%s/%u-%u.region", dir, 2000000000u + number, 100 + number);
	return access(path, F_OK) == 0;
}

static unsigned int count_there(const char *dir, unsigned int from, unsigned int to)
{
	unsigned int count = 0;

	for (unsigned int i = from; i < to; i++)
		count += is_there(dir, i);
	return count;
}

/*
 * A process in another container: it creates its region, reports that, and lives until it is ended.
 */
struct other {
	pid_t pid;
	int go; /* closed: it ends */
	char path[512];
};

static void live_elsewhere(const char *dir, unsigned int number, int ready, int go, bool forks)
{
	struct region_request request = request_in(dir);
	struct region_writer writer;
	char byte;

	request.pid = 2000000000u + number;
	request.start_ticks = 100 + number;
	request.pid_namespace = ELSEWHERE;
	request.ring_bytes = 64 << 10;
	if (region_create(&writer, &request) != OK || writer.kind != REGION_KIND_SHM)
		_exit(3);
	region_publish(&writer);
	/* Whatever the job closes: the lock needs no descriptor. */
	for (int fd = 3; fd < 64; fd++)
		if (fd != ready && fd != go)
			close(fd);
	if (forks && fork() == 0) {
		region_leave_to_parent(&writer);
		writer.header->magic = 0; /* memory is still mapped, and it is the child's own */
		forks = false;
	}
	if (write(ready, "", 1) != 1)
		_exit(3);
	/* The child stays, to show that it makes no difference. */
	_exit(read(go, &byte, 1) == 0 ? 0 : 3);
}

static struct other begin_other(const char *dir, unsigned int number, bool forks)
{
	struct other other = { .pid = 0 };
	int ready[2], go[2];
	char byte;

	if (pipe(ready) != 0 || pipe(go) != 0)
		exit(3);
	text_format(other.path, sizeof(other.path), "%s/%u-%u.region", dir, 2000000000u + number,
		    100 + number);
	other.pid = fork();
	if (other.pid == 0) {
		close(go[1]);
		close(ready[0]);
		live_elsewhere(dir, number, ready[1], go[0], forks);
	}
	close(go[0]);
	close(ready[1]);
	for (int i = 0; i < 1 + forks; i++)
		if (read(ready[0], &byte, 1) != 1)
			exit(3);
	close(ready[0]);
	other.go = go[1];
	return other;
}

/* Killed; a child that it forked lives on until end_other(). */
static void kill_other(struct other *other)
{
	kill(other->pid, SIGKILL);
	waitpid(other->pid, NULL, 0);
}

static void end_other(struct other *other)
{
	close(other->go);
}

static bool is_let_go(const char *path)
{
	struct region region;
	bool is_true;

	if (region_open(&region, path, 0, NULL) != OK)
		exit(3);
	is_true = region_is_let_go(&region);
	region_close(&region);
	return is_true;
}

static void sweep(const char *dir, struct region_limits limits)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	region_sweep(fd, HERE, &limits);
	close(fd);
}

static struct region_limits limits_of(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct region_limits limits = region_limits_of(fd);

	close(fd);
	/* However slow this machine is. */
	limits.time_ns = UINT64_MAX / 2;
	return limits;
}

static void the_oldest_dead_make_room(void)
{
	const char *dir = below("dead");
	struct region_request request = request_in(dir);
	struct region_writer writer;
	enum status status;

	for (unsigned int i = 0; i < 20; i++)
		make_old(dir, i, HERE, DAY);
	make_old(dir, 50, ELSEWHERE, DAY); /* owner unknown */
	status = region_create(&writer, &request);
	/* A sweep ends after some milliseconds: on a busy machine it takes several. */
	for (int i = 0; i < 1000 && status == OK && count_there(dir, 0, 20) > 15; i++) {
		unlink(writer.path);
		drop(&writer);
		status = region_create(&writer, &request);
	}
	EXPECT_EQUAL(status, OK);
	EXPECT_EQUAL(count_there(dir, 0, 20), 15);
	EXPECT(!is_there(dir, 0) && !is_there(dir, 4) && is_there(dir, 5) && is_there(dir, 19));
	EXPECT(is_there(dir, 50));
	drop(&writer);
}

static void a_lock_tells_who_lives_in_another_container(void)
{
	const char *dir = below("containers");
	struct region_limits limits;
	struct other alive, killed;

	alive = begin_other(dir, 0, false);
	killed = begin_other(dir, 1, true);
	limits = limits_of(dir);
	limits.count = 0;
	EXPECT(!is_let_go(alive.path) && !is_let_go(killed.path));
	sweep(dir, limits);
	EXPECT_THAT("regions of living processes of another pid namespace stay",
		    is_there(dir, 0) && is_there(dir, 1));
	kill_other(&killed);
	EXPECT_THAT("a killed process releases its lock although its forked child lives on",
		    is_let_go(killed.path) && !is_let_go(alive.path));
	sweep(dir, limits);
	EXPECT_THAT("that of a killed one is removed, by the same caps as any other",
		    is_there(dir, 0) && !is_there(dir, 1));
	end_other(&killed);
	end_other(&alive);
	waitpid(alive.pid, NULL, 0);
	sweep(dir, limits);
	EXPECT_THAT("and that of one that ended", !is_there(dir, 0));
}

static void a_copy_says_nothing_about_its_process(void)
{
	const char *dir = below("copy");
	struct other alive = begin_other(dir, 0, false);
	char command[1200];

	text_format(command, sizeof(command), "cp %s %s.copy", alive.path, alive.path);
	EXPECT(system(command) == 0);
	text_format(command, sizeof(command), "%s.copy", alive.path);
	EXPECT(!is_let_go(command));
	end_other(&alive);
	waitpid(alive.pid, NULL, 0);
	EXPECT(is_let_go(alive.path) && !is_let_go(command));
}

static void many_containers_share_one_cap(void)
{
	const char *dir = below("many");

	for (unsigned int i = 0; i < 40; i++) {
		struct other other = begin_other(dir, i, false);

		end_other(&other);
		waitpid(other.pid, NULL, 0);
	}
	EXPECT_THAT("40 processes of other pid namespaces, one after the other: 15 and the last",
		    count_there(dir, 0, 40) == 16 && is_there(dir, 39));
}

static void memory_and_age_are_capped(void)
{
	const char *dir = below("caps");
	struct region_limits limits;
	struct stat st;

	for (unsigned int i = 0; i < 10; i++)
		make_old(dir, i, HERE, DAY);
	limits = limits_of(dir);
	EXPECT(stat(below("caps/2000000000-100.region"), &st) == 0 && st.st_blocks > 0);
	limits.bytes = 3 * (uint64_t)st.st_blocks * 512;
	sweep(dir, limits);
	EXPECT_THAT("the newest, up to the memory cap",
		    count_there(dir, 0, 10) == 3 && is_there(dir, 9));
	make_old(dir, 20, HERE, 8 * DAY);
	sweep(dir, limits_of(dir));
	EXPECT_THAT("what was found dead more than a week ago is removed",
		    !is_there(dir, 20) && count_there(dir, 0, 10) == 3);
}

/* By the clock, two files were created an hour ago; only one process is still there to finish its own. */
static void an_unfinished_one_stays_with_its_process(void)
{
	const char *dir = below("unfinished");
	struct timespec times[2] = { { .tv_sec = time(NULL) - 3600 },
				     { .tv_sec = time(NULL) - 3600 } };
	struct region_limits limits;
	char ours[400], state;
	uint64_t ticks;

	mkdir(dir, 0700);
	EXPECT(file_proc_stat("self", &state, &ticks));
	text_format(ours, sizeof(ours), "%s/%d-%llu.region", dir, (int)getpid(),
		    (unsigned long long)ticks);
	make_old(dir, 3, HERE, 0);
	for (int i = 0; i < 2; i++) {
		int fd = open(i == 0 ? ours : below("unfinished/2000000003-103.region"),
			      O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

		EXPECT(fd != -1 && futimens(fd, times) == 0);
		close(fd);
	}
	limits = limits_of(dir);
	limits.count = 0;
	sweep(dir, limits);
	EXPECT(access(ours, F_OK) == 0 && !is_there(dir, 3));
}

/* Whatever the numbers in their names, which start again after a boot. */
static void who_died_last_is_newest(void)
{
	const char *dir = below("order");
	struct region_limits limits;

	make_old(dir, 9, HERE, 3 * DAY);
	make_old(dir, 1, HERE, 2 * DAY);
	make_old(dir, 5, HERE, 4 * DAY);
	limits = limits_of(dir);
	limits.count = 2;
	sweep(dir, limits);
	EXPECT(is_there(dir, 1) && is_there(dir, 9) && !is_there(dir, 5));
	limits.count = 1;
	sweep(dir, limits);
	EXPECT(is_there(dir, 1) && !is_there(dir, 9));
	limits.count = 0;
	sweep(dir, limits);
	EXPECT(!is_there(dir, 1));
}

/* It started nine days ago and was killed just now: a user will want to look at it. */
static void age_counts_from_death(void)
{
	const char *dir = below("death");
	struct other other = begin_other(dir, 0, false);
	struct timespec times[2] = { { .tv_sec = time(NULL) - 9 * DAY },
				     { .tv_sec = time(NULL) - 9 * DAY } };
	uint64_t began_ns = (uint64_t)times[0].tv_sec * 1000000000;
	int fd;

	kill_other(&other);
	end_other(&other);
	fd = open(other.path, O_WRONLY | O_CLOEXEC);
	EXPECT(pwrite(fd, &began_ns, sizeof(began_ns),
		      offsetof(struct region_header, first_anchor.wall_ns)) == sizeof(began_ns) &&
	       futimens(fd, times) == 0);
	sweep(dir, limits_of(dir));
	EXPECT(is_there(dir, 0));
	sweep(dir, limits_of(dir));
	EXPECT_THAT("its age does not restart at every sweep", is_there(dir, 0));
	times[0].tv_sec = times[1].tv_sec += DAY;
	EXPECT(futimens(fd, times) == 0);
	sweep(dir, limits_of(dir));
	EXPECT_THAT("found dead eight days ago: removed", !is_there(dir, 0));
	close(fd);
}

static void whose_owner_is_unknown_stays_for_days(void)
{
	const char *dir = below("unknown");

	for (unsigned int i = 0; i < 30; i++)
		make_old(dir, i, ELSEWHERE, 6 * DAY);
	sweep(dir, limits_of(dir));
	EXPECT_THAT("without a lock, in another pid namespace: younger than a week stays",
		    count_there(dir, 0, 30) == 30);
	for (unsigned int i = 0; i < 30; i++)
		make_old(dir, i, ELSEWHERE, 8 * DAY);
	sweep(dir, limits_of(dir));
	EXPECT_THAT("older ones are capped",
		    count_there(dir, 0, 30) == 15 && is_there(dir, 29) && !is_there(dir, 0));
}

static void a_sweep_is_bounded(void)
{
	const char *dir = below("bounded");
	struct region_limits limits;

	for (unsigned int i = 0; i < 200; i++)
		make_old(dir, i, HERE, DAY);
	limits = limits_of(dir);
	limits.count = 0;
	limits.names = 50;
	sweep(dir, limits);
	EXPECT_THAT("one sweep examines a limited number of names",
		    count_there(dir, 0, 200) >= 150 && count_there(dir, 0, 200) < 200);
	for (unsigned int i = 0; i < 200; i++)
		make_old(dir, i, HERE, DAY);
	limits.names = 1000;
	limits.time_ns = 0;
	sweep(dir, limits);
	EXPECT_THAT("it stops when its time is up, with some progress",
		    count_there(dir, 0, 200) == 199);
}

int main(void)
{
	char command[64];

	if (mkdtemp(scratch) == NULL)
		return 1;
	no_mode_takes_more_than_16_mib();
	parts_lie_behind_each_other();
	buffers_round_down_to_a_power_of_two();
	a_region_is_its_users_alone();
	what_is_in_the_way_is_not_touched();
	a_process_without_descriptors_says_so();
	a_region_is_never_a_standard_stream();
	a_guard_holds_free_numbers();
	no_standard_stream_is_left_open();
	streams_are_not_used_on_the_way();
	streams_that_are_open_stay();
	the_oldest_dead_make_room();
	a_lock_tells_who_lives_in_another_container();
	a_copy_says_nothing_about_its_process();
	many_containers_share_one_cap();
	memory_and_age_are_capped();
	an_unfinished_one_stays_with_its_process();
	who_died_last_is_newest();
	age_counts_from_death();
	whose_owner_is_unknown_stays_for_days();
	a_sweep_is_bounded();
	text_format(command, sizeof(command), "rm -rf %s", scratch);
	if (system(command) != 0)
		return 1;
	return tap_done();
}
