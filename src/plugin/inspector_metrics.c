/*
 * NCCL Inspector's metrics: which process owns which file, totals per series, and writing the
 * files.
 */
#include "plugin/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/text.h"
#include "format/inspector_write.h"
#include "plugin/recorder.h"

enum { PROCESSES_MOST = 64, CLEAN_MOST = 4096 };
#define NAME_START ".nccl_inspector_metrics_"

/* ---- locks ----------------------------------------------------------------------------------- */

/*
 * The lock belongs to the process: children do not inherit it, and it disappears with the process,
 * however that ends. -1: another process has it (errno 0), or locking failed (errno).
 */
static int take_lock(const char *path, int flags)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat ours, there;
	int fd = fd_open_high(AT_FDCWD, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags,
			      0600);
	int error = errno;

	if (fd == -1) {
		/* Owned by another user, so it is taken. */
		errno = error == EACCES || error == ELOOP ? 0 : error;
		return -1;
	}
	if (fstat(fd, &ours) == -1 || !S_ISREG(ours.st_mode) || ours.st_uid != geteuid())
		error = 0;
	else if (fcntl(fd, F_SETLK, &whole) == -1)
		error = errno == EAGAIN || errno == EACCES ? 0 : errno;
	else if (lstat(path, &there) == 0 && there.st_ino == ours.st_ino &&
		 there.st_dev == ours.st_dev)
		return fd;
	else
		error = 0; /* its last owner left and removed the file */
	close(fd);
	errno = error;
	return -1;
}

/* On some network file systems locks work on one host only, so a lock file names its host. */
static void sign_lock(int lock)
{
	char host[256] = "";

	if (gethostname(host, sizeof(host) - 1) == -1 || pwrite(lock, host, strlen(host), 0) == -1)
		errno = 0;
}

/* A lock that is not signed counts as ours. */
static bool is_of_this_host(int lock)
{
	char host[256] = "", signature[256] = "";

	if (gethostname(host, sizeof(host) - 1) == -1 ||
	    pread(lock, signature, sizeof(signature) - 1, 0) == -1)
		return false;
	return signature[0] == '\0' || strcmp(signature, host) == 0;
}

/* ---- files of killed processes --------------------------------------------------------------- */

static void remove_file(const char *dir, const char *prefix, const char *name, const char *suffix)
{
	char path[INSPECTOR_GPU_PATH_BYTES];

	if (text_format(path, sizeof(path), "%s/%s%s%s", dir, prefix, name, suffix) &&
	    unlink(path) == -1)
		errno = 0;
}

/* ".nccl_inspector_metrics_X.lock" without an owner: remove all three files. The caller has compared the beginning. */
static void clean_one(const char *dir, const char *lock_name)
{
	char path[INSPECTOR_GPU_PATH_BYTES], name[INSPECTOR_PROM_NAME_BYTES];
	size_t length = strlen(lock_name);
	int lock;

	if (length > sizeof(name) || strcmp(lock_name + length - 5, ".lock") != 0 ||
	    !text_format(path, sizeof(path), "%s/%s", dir, lock_name))
		return;
	text_copy(name, sizeof(name), lock_name + 1);
	name[length - 6] = '\0';
	lock = take_lock(path, 0);
	if (lock == -1)
		return;
	if (is_of_this_host(lock)) {
		remove_file(dir, "", name, ".prom");
		remove_file(dir, ".", name, ".prom.draft");
		remove_file(dir, ".", name, ".lock");
	}
	close(lock);
}

/*
 * Remove the files of killed processes if they belong to this user. Only before the first claim:
 * opening and closing our own lock file would release the lock.
 */
static void inspector_gpu_clean(const char *dir)
{
	DIR *list = opendir(dir);
	struct dirent *entry;

	for (int i = 0; list != NULL && i < CLEAN_MOST && (entry = readdir(list)) != NULL; i++)
		if (strncmp(entry->d_name, NAME_START, sizeof(NAME_START) - 1) == 0)
			clean_one(dir, entry->d_name);
	if (list != NULL)
		closedir(list);
}

/* ---- claiming a name ------------------------------------------------------------------------- */

static bool name_files(struct inspector_gpu *gpu, const char *dir, uint32_t process)
{
	char name[INSPECTOR_PROM_NAME_BYTES];

	inspector_prom_name(name, gpu->uuid, process);
	return text_format(gpu->path, sizeof(gpu->path), "%s/%s", dir, name) &&
	       text_format(gpu->draft, sizeof(gpu->draft), "%s/.%s.draft", dir, name) &&
	       text_format(gpu->lock_path, sizeof(gpu->lock_path), "%s/.%.*s.lock", dir,
			   (int)(strlen(name) - strlen(".prom")), name);
}

/* A file system without locks: the pid is unique, at least on this host. */
static enum status claim_by_pid(struct inspector_gpu *gpu, const char *dir)
{
	gpu->process = (uint32_t)getpid();
	return name_files(gpu, dir, gpu->process) ? OK : ERR_SYSTEM;
}

/* Claim a name for this process in `dir`. ERR_SYSTEM: errno says why not; retry later. */
static enum status inspector_gpu_claim(struct inspector_gpu *gpu, const char *dir)
{
	errno = ENAMETOOLONG;
	for (uint32_t i = 1; i <= PROCESSES_MOST && name_files(gpu, dir, i); i++) {
		gpu->lock = take_lock(gpu->lock_path, O_CREAT);
		if (gpu->lock != -1) {
			sign_lock(gpu->lock);
			gpu->process = i;
			return OK;
		}
		if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL)
			return claim_by_pid(gpu, dir);
		if (errno != 0)
			return ERR_SYSTEM;
		errno = EBUSY;
	}
	return ERR_SYSTEM;
}

/* ---- the draft ------------------------------------------------------------------------------- */

/*
 * Write a draft and rename it into place. The first error sticks and leaves the old file as it was.
 */
static void inspector_gpu_begin(struct inspector_gpu *gpu, char *chunk)
{
	gpu->chunk = chunk;
	gpu->used = 0;
	gpu->offset = 0;
	gpu->status = OK;
	/* Never write to a file that we did not create. */
	if (unlink(gpu->draft) == -1)
		errno = 0;
	gpu->fd = fd_open_high(AT_FDCWD, gpu->draft,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (gpu->fd == -1 || fchmod(gpu->fd, 0644) == -1)
		gpu->status = ERR_SYSTEM;
}

static void write_chunk(struct inspector_gpu *gpu)
{
	size_t written = 0;

	while (written < gpu->used && gpu->status == OK) {
		ssize_t got = pwrite(gpu->fd, gpu->chunk + written, gpu->used - written,
				     (off_t)gpu->offset);

		if (got > 0) {
			written += (size_t)got;
			gpu->offset += (uint64_t)got;
		} else if (got == 0 || errno != EINTR) {
			gpu->status = ERR_SYSTEM;
		}
	}
	gpu->used = 0;
}

static void inspector_gpu_add(struct inspector_gpu *gpu, const char *text, size_t length)
{
	if (gpu->used + length > INSPECTOR_CHUNK_BYTES)
		write_chunk(gpu);
	memcpy(gpu->chunk + gpu->used, text, length);
	gpu->used += length;
}

static enum status inspector_gpu_publish(struct inspector_gpu *gpu)
{
	int error;

	write_chunk(gpu);
	error = errno;
	if (gpu->fd != -1 && close(gpu->fd) == -1 && gpu->status == OK) {
		gpu->status = ERR_SYSTEM;
		error = errno;
	}
	gpu->fd = -1;
	if (gpu->status == OK && rename(gpu->draft, gpu->path) == -1) {
		gpu->status = ERR_SYSTEM;
		error = errno;
	}
	if (gpu->status != OK)
		unlink(gpu->draft);
	errno = error;
	return gpu->status;
}

/* Remove files and lock. */
static void inspector_gpu_leave(struct inspector_gpu *gpu)
{
	if (gpu->process == 0)
		return;
	unlink(gpu->path);
	unlink(gpu->draft);
	if (gpu->lock == -1)
		return;
	unlink(gpu->lock_path);
	close(gpu->lock);
	gpu->lock = -1;
}

/* Compared and hashed as bytes, so it has no padding. */
struct series_key {
	char comm_name[sizeof(((struct comm_info *)0)->name)];
	int32_t nnodes, nranks;
	uint8_t gpu, function, size, algorithm, protocol;
	uint8_t zero[3];
};

struct inspector_series_entry {
	struct series_key key;
	uint64_t count;	  /* 0: free */
	double bus_bytes; /* of those with a time of their own */
	uint64_t bus_ns;
	uint64_t ns;
};

enum { SERIES_EASY = INSPECTOR_SERIES / 4 * 3 }; /* from here on new series become "other" */

bool inspector_series_init(struct inspector_series *series, const char *dir, const char *job,
			   const char *node)
{
	*series = (struct inspector_series){ .job = job, .node = node };
	series->entries = calloc(INSPECTOR_SERIES, sizeof(*series->entries));
	series->gpus = calloc(INSPECTOR_GPUS, sizeof(*series->gpus));
	series->chunk = malloc(INSPECTOR_CHUNK_BYTES);
	return series->entries != NULL && series->gpus != NULL && series->chunk != NULL &&
	       text_copy(series->dir, sizeof(series->dir), dir);
}

/* INSPECTOR_GPUS if there is no room for it. */
static uint32_t gpu_of(struct inspector_series *series, const struct comm_info *comm)
{
	struct inspector_gpu *gpu;
	uint32_t i;

	for (i = 0; i < series->gpu_count; i++)
		if (strcmp(series->gpus[i].uuid, comm->gpu_uuid) == 0)
			return i;
	if (i == INSPECTOR_GPUS)
		return i;
	gpu = &series->gpus[series->gpu_count++];
	*gpu = (struct inspector_gpu){ .gpu = comm->gpu, .lock = -1, .fd = -1 };
	text_copy(gpu->uuid, sizeof(gpu->uuid), comm->gpu_uuid);
	return i;
}

void inspector_series_see_gpu(struct inspector_series *series, const struct comm_info *comm)
{
	gpu_of(series, comm);
}

static struct inspector_series_entry *find_entry(struct inspector_series *series,
						 const struct series_key *key)
{
	uint32_t at = (uint32_t)hash_bytes(key, sizeof(*key)) & (INSPECTOR_SERIES - 1);

	while (series->entries[at].count > 0 &&
	       memcmp(&series->entries[at].key, key, sizeof(*key)) != 0)
		at = (at + 1) & (INSPECTOR_SERIES - 1);
	return &series->entries[at];
}

static struct series_key make_key(uint32_t gpu, const struct comm_info *comm,
				  const struct op_record *op)
{
	struct series_key key;

	memset(&key, 0, sizeof(key));
	text_copy(key.comm_name, sizeof(key.comm_name), comm->name);
	key.nnodes = comm->nnodes;
	key.nranks = comm->nranks;
	key.gpu = (uint8_t)gpu;
	key.function = op->function;
	key.size = (uint8_t)inspector_size_class(inspector_rank_bytes(op, comm));
	if (!inspector_is_p2p(op->function)) {
		key.algorithm = op->algorithm;
		key.protocol = op->protocol;
	}
	return key;
}

/* What remains of a key when room is short; only a few such keys exist. */
static void fold_key(struct series_key *key)
{
	memset(key->comm_name, 0, sizeof(key->comm_name));
	text_copy(key->comm_name, sizeof(key->comm_name), "other");
	key->nranks = 0;
	key->nnodes = key->nnodes == 1 ? 1 : 0;
	key->algorithm = key->protocol = 0;
}

bool inspector_series_add(struct inspector_series *series, const struct comm_info *comm,
			  const struct op_record *op)
{
	uint32_t gpu = gpu_of(series, comm);
	struct series_key key = make_key(gpu, comm, op);
	struct inspector_series_entry *entry;

	if (gpu == INSPECTOR_GPUS)
		return false;
	entry = find_entry(series, &key);
	if (entry->count == 0 && series->used >= SERIES_EASY) {
		fold_key(&key);
		entry = find_entry(series, &key);
		/* One entry stays free, otherwise a search would not end. */
		if (entry->count == 0 && series->used >= INSPECTOR_SERIES - 1)
			return false;
	}
	if (entry->count == 0) {
		entry->key = key;
		series->used++;
	}
	entry->count++;
	entry->ns += op_duration_ns(op);
	/* Bytes of one operation by the time of several are no bandwidth. */
	if (!(op->flags & OP_FLAG_SHARED_TIME)) {
		entry->bus_bytes += (double)op->bytes * op_bus_factor(op->function, comm->nranks);
		entry->bus_ns += op_duration_ns(op);
	}
	series->count++;
	return true;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* NCCL's own spelling, also for names that only NCCL knows. */
static const char *name_of(enum op_name_table table, uint8_t number)
{
	unsigned int place = (unsigned int)number - OP_NAME_INTERNED;

	if (number < OP_NAME_INTERNED)
		return op_name_of_nccl(table, number);
	return place < OP_NAMES_INTERNED_MAX ? recorder.region.names[place].text : NULL;
}

static struct inspector_labels labels_of(const struct inspector_series *series,
					 const struct series_key *key)
{
	const struct inspector_gpu *gpu = &series->gpus[key->gpu];

	return (struct inspector_labels){
		.job = series->job,
		.node = series->node,
		.gpu_uuid = gpu->uuid,
		.gpu = gpu->gpu,
		.process = gpu->process,
		.comm_name = key->comm_name,
		.nnodes = key->nnodes,
		.nranks = key->nranks,
		.function = op_function_name(key->function),
		.size = key->size,
		.algorithm = name_of(OP_NAMES_ALGORITHM, key->algorithm),
		.protocol = name_of(OP_NAMES_PROTOCOL, key->protocol),
	};
}

static bool is_time(enum inspector_metric metric)
{
	return metric == INSPECTOR_EXEC_TIME || metric == INSPECTOR_P2P_EXEC_TIME;
}

static double value_of(const struct inspector_series_entry *entry, enum inspector_metric metric)
{
	if (is_time(metric))
		return (double)entry->ns / (double)entry->count / 1e3;
	return entry->bus_bytes / (double)entry->bus_ns;
}

static void add_metric(struct inspector_series *series, uint32_t gpu, enum inspector_metric metric)
{
	bool is_p2p = metric == INSPECTOR_P2P_BUS_BANDWIDTH || metric == INSPECTOR_P2P_EXEC_TIME;
	char text[INSPECTOR_SAMPLE_BYTES];

	inspector_gpu_add(&series->gpus[gpu], text, inspector_metric_head(text, metric));
	for (uint32_t i = 0; i < INSPECTOR_SERIES; i++) {
		const struct inspector_series_entry *entry = &series->entries[i];
		struct inspector_labels labels;

		if (entry->count == 0 || entry->key.gpu != gpu ||
		    inspector_is_p2p(entry->key.function) != is_p2p ||
		    (!is_time(metric) && entry->bus_ns == 0))
			continue;
		labels = labels_of(series, &entry->key);
		inspector_gpu_add(
			&series->gpus[gpu], text,
			inspector_metric_sample(text, metric, &labels, value_of(entry, metric)));
	}
}

static enum status publish_gpu(struct inspector_series *series, uint32_t which)
{
	struct inspector_gpu *gpu = &series->gpus[which];

	if (gpu->process == 0 && inspector_gpu_claim(gpu, series->dir) != OK)
		return ERR_SYSTEM;
	inspector_gpu_begin(gpu, series->chunk);
	for (int metric = 0; metric < INSPECTOR_METRICS; metric++)
		add_metric(series, which, (enum inspector_metric)metric);
	return inspector_gpu_publish(gpu);
}

static uint64_t operations_of(const struct inspector_series *series, uint32_t gpu)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < INSPECTOR_SERIES; i++)
		if (series->entries[i].key.gpu == gpu)
			count += series->entries[i].count;
	return count;
}

uint64_t inspector_series_publish(struct inspector_series *series, enum status *status)
{
	uint64_t published = 0;
	int error = 0;

	*status = OK;
	file_make_directories(series->dir, 0777, (gid_t)-1);
	if (!series->is_clean)
		inspector_gpu_clean(series->dir);
	series->is_clean = true;
	for (uint32_t i = 0; i < series->gpu_count; i++) {
		if (publish_gpu(series, i) == OK) {
			published += operations_of(series, i);
		} else {
			*status = ERR_SYSTEM;
			error = errno;
		}
	}
	memset(series->entries, 0, INSPECTOR_SERIES * sizeof(*series->entries));
	series->used = 0;
	series->count = 0;
	errno = error;
	return published;
}

void inspector_series_leave(struct inspector_series *series)
{
	for (uint32_t i = 0; i < series->gpu_count; i++)
		inspector_gpu_leave(&series->gpus[i]);
	free(series->entries);
	free(series->gpus);
	free(series->chunk);
	*series = (struct inspector_series){ .used = 0 };
}
