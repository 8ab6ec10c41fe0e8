/* Making regions. Small, full and read-only file systems are in tests/process/places.t. */
#include "region/region_create.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/text.h"
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
					.pid_namespace = 7,
					.ring_bytes = 8 << 20,
					.group = (gid_t)-1 };
}

static void drop(struct region_writer *writer)
{
	munmap(writer->header, writer->bytes);
	if (writer->fd != -1)
		close(writer->fd);
}

/* As the four modes ask for it, with the default buffer. */
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
	EXPECT_EQUAL(header->total_bytes, writer.bytes);
	EXPECT_EQUAL(header->pid, getpid());
	EXPECT_EQUAL(header->start_ticks, 12345);
	EXPECT_THAT("nobody takes it for complete yet", header->magic == 0);
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
	EXPECT_THAT("another one of the same name takes another name",
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
	expect_memory("a file", below("file"), "link or no directory");
	EXPECT(stat(below("file"), &st) == 0 && (st.st_mode & 07777) == 0644);
	EXPECT(symlink(scratch, below("link")) == 0);
	expect_memory("a link", below("link"), "link or no directory");
	EXPECT(symlink("nowhere", below("broken")) == 0);
	expect_memory("a link to nowhere", below("broken"), "link or no directory");
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
	       strstr(writer.reason, "no file can be made in it"));
	drop(&writer);
}

static void make_dead(const char *dir, unsigned int number, uint64_t pid_namespace)
{
	struct region_header header = { .header_bytes = REGION_HEADER_BYTES,
					.pid_namespace = pid_namespace };
	char path[400];
	int fd;

	/* No process has such a pid. */
	text_format(path, sizeof(path), "%s/%u-%u.region", dir, 2000000000u + number, 100 + number);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (write(fd, &header, sizeof(header)) != sizeof(header))
		exit(3);
	close(fd);
}

static bool is_there(const char *dir, unsigned int number)
{
	char path[400];

	text_format(path, sizeof(path), "%s/%u-%u.region", dir, 2000000000u + number, 100 + number);
	return access(path, F_OK) == 0;
}

static void the_oldest_dead_make_room(void)
{
	const char *dir = below("dead");
	struct region_request request = request_in(dir);
	struct region_writer writer;
	unsigned int left = 0;

	mkdir(dir, 0700);
	for (unsigned int i = 0; i < 20; i++)
		make_dead(dir, i, 7);
	make_dead(dir, 50, 8); /* of another pid namespace: who knows */
	EXPECT_EQUAL(region_create(&writer, &request), OK);
	for (unsigned int i = 0; i < 20; i++)
		left += is_there(dir, i);
	EXPECT_EQUAL(left, REGION_DEAD_KEPT - 1);
	EXPECT(!is_there(dir, 0) && !is_there(dir, 4) && is_there(dir, 5) && is_there(dir, 19));
	EXPECT(is_there(dir, 50));
	drop(&writer);
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
	the_oldest_dead_make_room();
	text_format(command, sizeof(command), "rm -rf %s", scratch);
	if (system(command) != 0)
		return 1;
	return tap_done();
}
