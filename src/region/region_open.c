/*
 * The header is read in two steps, magic first: R1 says that whoever sees the magic sees the rest.
 * From then on only the checked copy of the part table is used, whatever the file says later.
 */
#include "region/region_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/order.h"
#include "base/file_open.h"

#define REGION_BYTES_MAX (UINT64_C(1) << 36)
enum { HEADER_BYTES_MAX = 1 << 20, STRIDE_MAX = 1 << 16 };

/* The smallest stride this version understands (a newer minor version may have longer slots), and
 * the most slots it believes: a lying header must not make a reader ask for all memory there is. */
static const struct {
	uint32_t stride;
	uint32_t count_max;
} limits[REGION_PARTS] = {
	[REGION_INFO] = { 8, REGION_INFO_BYTES },
	[REGION_NAMES] = { sizeof(struct region_name), 1 << 12 },
	[REGION_COMMS] = { sizeof(struct region_comm), 1 << 14 },
	[REGION_LIVE] = { sizeof(struct region_live), 1 << 17 },
	[REGION_PROXIES] = { sizeof(struct region_proxy), 1 << 19 },
	[REGION_PEERS] = { sizeof(struct region_peer), 1 << 20 },
	[REGION_TOTALS] = { sizeof(struct region_total), 1 << 16 },
	[REGION_LINKS] = { sizeof(struct region_link), 1 << 20 },
	[REGION_RING] = { OP_RECORD_BYTES, 1 << 26 },
	[REGION_DETAILS] = { OP_DETAIL_BYTES, 1 << 27 },
};

static const char *check_part(const struct region_header *header, unsigned int index)
{
	const struct region_part *part = &header->parts[index];
	uint64_t bytes = (uint64_t)part->count * part->stride;

	if (part->count == 0)
		return NULL;
	/* A part of a newer minor version: not ours to judge, and not read. */
	if (limits[index].stride == 0)
		return NULL;
	if (part->stride < limits[index].stride || part->stride % 8 != 0 ||
	    part->stride > STRIDE_MAX)
		return "a part's slots have an impossible size";
	if (part->count > limits[index].count_max)
		return "a part has impossibly many slots";
	if (part->offset % 64 != 0 || part->offset < header->header_bytes)
		return "a part lies where none can be";
	if (part->offset > header->total_bytes || bytes > header->total_bytes - part->offset)
		return "a part reaches past the end";
	return NULL;
}

static const char *check_header(const struct region_header *header)
{
	const char *what = NULL;

	if (header->header_bytes < sizeof(*header) || header->header_bytes > HEADER_BYTES_MAX)
		return "its header has an impossible size";
	if (header->total_bytes < header->header_bytes || header->total_bytes > REGION_BYTES_MAX)
		return "it has an impossible size";
	for (unsigned int i = 0; i < REGION_PARTS && what == NULL; i++)
		what = check_part(header, i);
	if (what != NULL)
		return what;
	if (header->info_bytes > REGION_INFO_BYTES ||
	    header->info_bytes >
		    (uint64_t)header->parts[REGION_INFO].count * header->parts[REGION_INFO].stride)
		return "its info text has an impossible size";
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

static enum status refuse(struct region_problem *problem, enum status status, const char *what)
{
	problem->what = what;
	return status;
}

static enum status read_header(struct region *region, struct region_problem *problem)
{
	struct region_header *header = &region->header;
	const char *what;
	uint64_t magic;

	if (region->file_bytes < sizeof(magic))
		return refuse(problem, ERR_FORMAT, "it is too short for a region");
	if (region_pread(region, &magic, sizeof(magic), 0) != OK)
		return refuse(problem, ERR_SYSTEM, "it cannot be read");
	if (magic != REGION_MAGIC)
		return refuse(problem, ERR_FORMAT, "it is no region");
	/* R1: pairs with the release in region_publish(). */
	fence_acquire();
	if (region_pread(region, header, sizeof(*header), 0) != OK)
		return refuse(problem, ERR_TRUNCATED, "its header is cut");
	if (header->byte_order != REGION_BYTE_ORDER)
		return refuse(problem, ERR_FORMAT, "its byte order is another");
	if (header->major != REGION_MAJOR) {
		problem->found_major = header->major;
		problem->found_minor = header->minor;
		return refuse(problem, header->major > REGION_MAJOR ? ERR_VERSION : ERR_FORMAT,
			      "its major version is another");
	}
	what = check_header(header);
	if (what != NULL)
		return refuse(problem, ERR_FORMAT, what);
	if (header->total_bytes > region->file_bytes)
		return refuse(problem, ERR_TRUNCATED, "it is shorter than its header says");
	return OK;
}

static enum status open_contents(struct region *region, struct region_problem *problem)
{
	struct region_problem unwanted;
	enum status status;

	if (problem == NULL)
		problem = &unwanted;
	status = read_header(region, problem);
	if (status != OK)
		return status;
	region->info_bytes = (size_t)region->header.info_bytes;
	status = region_pread(region, region->info, region->info_bytes,
			      region->header.parts[REGION_INFO].offset);
	return status == OK ? OK : refuse(problem, status, "its info text is cut");
}

enum status region_open_memory(struct region *region, const void *bytes, size_t length,
			       struct region_problem *problem)
{
	struct region made = { .fd = -1, .memory = bytes, .file_bytes = length };
	enum status status = open_contents(&made, problem);

	if (status == OK)
		*region = made;
	return status;
}

enum status region_open_fd(struct region *region, int fd, struct region_problem *problem)
{
	struct region made = { .fd = -1 };
	enum status status;
	struct stat st;

	if (problem != NULL)
		problem->what = "it cannot be read";
	made.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (made.fd == -1)
		return ERR_SYSTEM;
	if (fstat(made.fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		close(made.fd);
		errno = EINVAL;
		return ERR_SYSTEM;
	}
	made.file_bytes = (uint64_t)st.st_size;
	status = open_contents(&made, problem);
	if (status == OK)
		*region = made;
	else
		close(made.fd);
	return status;
}

enum status region_open(struct region *region, const char *path, unsigned int flags,
			struct region_problem *problem)
{
	int fd = file_open(AT_FDCWD, path, !(flags & REGION_NO_LINKS));
	enum status status;

	if (fd == -1) {
		if (problem != NULL)
			problem->what = "it cannot be opened";
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
	/* A zeroed region has descriptor 0, and no region was ever opened on that. */
	if (region->fd > 0)
		close(region->fd);
	memset(region, 0, sizeof(*region));
	region->fd = -1;
}

bool region_is_let_go(const struct region *region)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat st;

	/* A copy has another inode, and nobody ever held its lock. */
	return region->fd != -1 && region->header.lock_inode != 0 && fstat(region->fd, &st) == 0 &&
	       st.st_ino == region->header.lock_inode &&
	       fcntl(region->fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_UNLCK;
}
