#include "capture/identity.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/fd_high.h"
#include "base/text.h"

enum { PAGE_LEAST = 4096 }; /* no machine has smaller ones */

/* The start of a small file, without its newline; "" when it cannot be read. */
static void read_line(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd == -1 ? -1 : read(fd, to, size - 1);

	to[got > 0 ? got : 0] = '\0';
	to[strcspn(to, "\n")] = '\0';
	if (fd != -1)
		close(fd);
}

static uint64_t read_pid_namespace(void)
{
	char link[64];
	ssize_t got = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);
	unsigned long long inode = 0;

	link[got > 0 ? got : 0] = '\0';
	return sscanf(link, "pid:[%llu]", &inode) == 1 ? inode : 0;
}

/* Field 22; the name in field 2 may hold blanks and parentheses, so count from its last ')'. */
static uint64_t read_start_ticks(void)
{
	char text[1024];
	char *at;

	read_line("/proc/self/stat", text, sizeof(text));
	at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

/* The first of these variables that is set; torchrun says "none" when it was given no id. */
static void read_first(const char *const *names, const char *standard, char *to, size_t size)
{
	for (; *names != NULL; names++) {
		const char *value = getenv(*names);

		if (value != NULL && value[0] != '\0' && strcmp(value, "none") != 0) {
			text_from_field(to, size, value, strlen(value));
			return;
		}
	}
	text_copy(to, size, standard);
}

void identity_read(struct identity *identity, const char *job)
{
	static const char *const jobs[] = {
		"SLURM_JOB_ID", "SLURM_JOBID", "TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID",
		"JOB_ID",	NULL
	};
	static const char *const ranks[] = { "RANK",	 "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					     "PMI_RANK", "PMIX_RANK",	 NULL };
	static const char *const locals[] = { "LOCAL_RANK", "SLURM_LOCALID",
					      "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
					      NULL };
	static const char *const sizes[] = { "WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE",
					     "PMI_SIZE", NULL };
	ssize_t got;

	*identity = (struct identity){ .pid = (uint64_t)getpid() };
	if (gethostname(identity->host, sizeof(identity->host) - 1) == -1)
		text_copy(identity->host, sizeof(identity->host), "unknown");
	read_line("/proc/sys/kernel/random/boot_id", identity->boot_id, sizeof(identity->boot_id));
	got = readlink("/proc/self/exe", identity->exe, sizeof(identity->exe) - 1);
	identity->exe[got > 0 ? got : 0] = '\0';
	identity->pid_namespace = read_pid_namespace();
	identity->start_ticks = read_start_ticks();
	read_first(jobs, "local", identity->job, sizeof(identity->job));
	if (job[0] != '\0')
		text_from_field(identity->job, sizeof(identity->job), job, strlen(job));
	read_first(ranks, "x", identity->rank, sizeof(identity->rank));
	read_first(locals, "", identity->local_rank, sizeof(identity->local_rank));
	read_first(sizes, "", identity->world_size, sizeof(identity->world_size));
}

/*
 * A name in our own memory that may not be there: the kernel says EFAULT where we would crash. It may end right before
 * memory that is not ours, so never across the end of a page at once. Gives back how many bytes were readable, the
 * terminator among them; -1: a sandbox forbids it.
 */
static ssize_t read_by_vm(char *to, size_t size, const char *from)
{
	size_t done = 0;

	while (done < size) {
		size_t piece = PAGE_LEAST - (uintptr_t)(from + done) % PAGE_LEAST;
		struct iovec ours, theirs;
		const char *end;

		piece = piece < size - done ? piece : size - done;
		ours = (struct iovec){ to + done, piece };
		theirs = (struct iovec){ (void *)(uintptr_t)(from + done), piece };
		if (process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) != (ssize_t)piece)
			return done > 0 || errno == EFAULT ? (ssize_t)done : -1;
		end = memchr(to + done, '\0', piece);
		if (end != NULL)
			return end - to + 1;
		done += piece;
	}
	return (ssize_t)done;
}

/* The same through a pipe that does not wait, byte by byte. Its ends are not even for a moment standard streams: who prints
 * meanwhile would wait for room in it, or die of SIGPIPE. */
static size_t read_by_pipe(char *to, size_t size, const char *from)
{
	struct fd_guard guard = fd_guard_begin();
	size_t done = 0;
	int ends[2];
	bool is_open = pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0;

	fd_guard_end(&guard);
	if (!is_open)
		return 0;
	while (ends[0] > STDERR_FILENO && ends[1] > STDERR_FILENO && done < size &&
	       write(ends[1], from + done, 1) == 1 && read(ends[0], to + done, 1) == 1)
		if (to[done++] == '\0')
			break;
	close(ends[0]);
	close(ends[1]);
	return done;
}

static size_t read_own_memory(char *to, size_t size, const char *from)
{
	ssize_t got = read_by_vm(to, size, from);

	return got >= 0 ? (size_t)got : read_by_pipe(to, size, from);
}

void identity_comm_name(struct comm_info *info, const char *name)
{
	char copy[sizeof(info->name)];
	size_t got;

	if (name == NULL)
		return;
	got = read_own_memory(copy, sizeof(copy), name);
	if (got == sizeof(copy) && copy[got - 1] != '\0')
		info->flags |= COMM_FLAG_NAME_CUT;
	else if (got == 0 || copy[got - 1] != '\0')
		info->flags |= COMM_FLAG_NAME_LOST;
	if (!(info->flags & COMM_FLAG_NAME_LOST))
		text_from_field(info->name, sizeof(info->name), copy, got);
}

struct cuda_uuid {
	unsigned char bytes[16];
};

struct cuda {
	int (*ctx_get_device)(int *device);
	int (*device_get_uuid)(struct cuda_uuid *uuid, int device);
	int (*device_get_bus)(char *text, int size, int device);
};

static bool load_cuda(struct cuda *cuda)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		return false;
	/* dlsym gives an object pointer; POSIX wants the detour. The handle stays open: the job uses
	 * the library anyway. */
	*(void **)&cuda->ctx_get_device = dlsym(library, "cuCtxGetDevice");
	*(void **)&cuda->device_get_uuid = dlsym(library, "cuDeviceGetUuid");
	*(void **)&cuda->device_get_bus = dlsym(library, "cuDeviceGetPCIBusId");
	return cuda->ctx_get_device && cuda->device_get_uuid && cuda->device_get_bus;
}

void identity_gpu(struct comm_info *info)
{
	struct cuda_uuid uuid;
	struct cuda cuda;
	int device;
	size_t at;

	info->gpu = -1;
	if (!load_cuda(&cuda) || cuda.ctx_get_device(&device) != 0)
		return;
	info->gpu = device;
	if (cuda.device_get_bus(info->gpu_bus, (int)sizeof(info->gpu_bus), device) != 0)
		info->gpu_bus[0] = '\0';
	info->gpu_bus[sizeof(info->gpu_bus) - 1] = '\0';
	if (cuda.device_get_uuid(&uuid, device) != 0)
		return;
	text_copy(info->gpu_uuid, sizeof(info->gpu_uuid), "GPU-");
	at = 4;
	for (int i = 0; i < 16; i++) {
		const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

		text_format(info->gpu_uuid + at, sizeof(info->gpu_uuid) - at, "%s%02x", dash,
			    uuid.bytes[i]);
		at += 2 + strlen(dash);
	}
}
