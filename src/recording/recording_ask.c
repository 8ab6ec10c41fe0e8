#include "recording/recording_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_open.h"
#include "base/text.h"
#include "op/kernel_policy.h"

const char *recording_answer_name(enum recording_answer answer)
{
	static const char *const names[RECORDING_ANSWERS] = { "granted", "pending", "already_on",
							      "refused", "failed" };

	return (unsigned int)answer < RECORDING_ANSWERS ? names[answer] : "?";
}

void recording_kernel_events(const struct recording_process *process, char is_on[static 8],
			     char reason[static RECORDING_REASON])
{
	const struct region *region = process->region;

	recording_info(process, "kernel_events", is_on, 8);
	recording_info(process, "kernel_events_reason", reason, RECORDING_REASON);
	/* What became of sampling says more than why it was chosen. */
	if (region != NULL && region->header.sampling != SAMPLING_ACTIVE &&
	    sampling_state_text(region->header.sampling)[0] != '\0')
		text_copy(reason, RECORDING_REASON, sampling_state_text(region->header.sampling));
}

static void settle(struct recording_ask *ask, enum recording_answer answer, const char *why)
{
	ask->answer = answer;
	text_copy(ask->reason, sizeof(ask->reason), why);
}

/*
 * The file that is read as this region, to write to. A path may lead elsewhere by now, so neither the file nor its
 * directory, which is the user's own, may be a link, and it must be the same file. -1 with errno.
 */
static int open_to_write(const struct recording_process *process)
{
	const char *slash = strrchr(process->region_path, '/');
	char directory[4096] = ".";
	struct stat here, read_before;
	int dir, fd;

	if (slash != NULL && ((size_t)(slash - process->region_path) >= sizeof(directory) ||
			      slash == process->region_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (slash != NULL)
		text_format(directory, sizeof(directory), "%.*s",
			    (int)(slash - process->region_path), process->region_path);
	dir = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir == -1)
		return -1;
	fd = openat(dir, slash != NULL ? slash + 1 : process->region_path,
		    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	close(dir);
	if (fd == -1)
		return -1;
	if (fstat(fd, &here) == 0 && fstat(process->region->fd, &read_before) == 0 &&
	    S_ISREG(here.st_mode) && here.st_dev == read_before.st_dev &&
	    here.st_ino == read_before.st_ino && here.st_size >= REGION_HEADER_BYTES)
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

/*
 * Written, not mapped: a file that is cut at this moment gives an error and no signal. Should the recorder see half
 * of the word it takes that for a request, which is bounded, and the whole for another one at its next look.
 */
static bool write_request(int fd, uint64_t request)
{
	return pwrite(fd, &request, sizeof(request),
		      offsetof(struct region_header, kernel_request)) == (ssize_t)sizeof(request);
}

void recording_ask_kernel(struct recording_ask *ask, const struct recording_process *process,
			  uint32_t seconds)
{
	char is_on[8], reason[RECORDING_REASON];
	uint64_t before;
	int fd;

	*ask = (struct recording_ask){ .request = 0 };
	recording_kernel_events(process, is_on, reason);
	if (strcmp(is_on, "on") == 0 || process->region->header.sampling == SAMPLING_STUCK) {
		settle(ask, RECORDING_ALREADY, "every operation is timed already");
		return;
	}
	if (process->region->header.sampling != SAMPLING_ACTIVE) {
		settle(ask, RECORDING_REFUSED,
		       reason[0] != '\0' ? reason : "its recorder is too old");
		return;
	}
	fd = open_to_write(process);
	if (fd == -1) {
		settle(ask, RECORDING_FAILED, strerror(errno));
		return;
	}
	if (file_pread(fd, &before, sizeof(before),
		       offsetof(struct region_header, kernel_request)) == OK &&
	    write_request(fd, ask->request = ((before >> 32) + 1) << 32 | seconds))
		settle(ask, RECORDING_PENDING,
		       "it has called no collective since; it complies at its next ones");
	else
		settle(ask, RECORDING_FAILED, strerror(errno));
	close(fd);
}

bool recording_ask_answered(struct recording_ask *ask, const struct recording_process *process)
{
	uint64_t answer, sampling;

	if (ask->answer != RECORDING_PENDING)
		return true;
	if (process->region == NULL ||
	    region_pread(process->region, &answer, sizeof(answer),
			 offsetof(struct region_header, kernel_answer)) != OK ||
	    region_pread(process->region, &sampling, sizeof(sampling),
			 offsetof(struct region_header, sampling)) != OK)
		settle(ask, RECORDING_FAILED, "its region is gone");
	else if (answer == ask->request)
		settle(ask, RECORDING_GRANTED, "");
	else if (sampling != SAMPLING_ACTIVE)
		settle(ask, RECORDING_REFUSED, sampling_state_text(sampling));
	return ask->answer != RECORDING_PENDING;
}
