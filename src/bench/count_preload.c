/*
 * The first NCCL call creates the file, so processes without any (shells, launchers, helpers of a framework) leave
 * none. A forked child starts its own file. At process exit the counts are also written as JSON beside it; a killed
 * process only leaves the mapped file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/count_layout.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/order.h"
#include "common/text.h"

/*
 * Counts the NCCL calls of one process by function, in a mapped file. Runs inside the user's program: allocates
 * nothing, keeps errno, prints one line if the file cannot be created, and always passes calls on.
 */

/* One call in progress. */
struct count_call {
	struct count_entry
		*entry; /* NULL: not counted, because NCCL itself calls or counting is off */
	uint64_t began_ns;
};

enum { COUNT_PATH_BYTES = 4096, COUNT_JSON_BYTES = 8192 };

static struct {
	pthread_mutex_t lock;
	struct count_file *file; /* NULL: not created yet, or it failed */
	bool is_tried;
	char path[COUNT_PATH_BYTES]; /* without ".count" and ".json" */
} book = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Nested calls: ncclBcast calls ncclBroadcast. */
static __thread unsigned int depth __attribute__((tls_model("initial-exec")));

static void after_fork_in_child(void)
{
	/* Another thread may have held it. */
	pthread_mutex_init(&book.lock, NULL);
	store_relaxed(&book.file, NULL);
	store_relaxed(&book.is_tried, false);
	depth = 0;
}

__attribute__((constructor)) static void begin_process(void)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

static int32_t own_rank(void)
{
	static const char *const names[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
					     "SLURM_PROCID" };
	int64_t rank;

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *value = getenv(names[i]);

		if (value && text_number(value, 0, INT32_MAX, &rank) == OK)
			return (int32_t)rank;
	}
	return -1;
}

static void count_say(const char *what)
{
	char line[COUNT_PATH_BYTES + 200];

	text_format(line, sizeof(line), "ringside count: %s.count: %s; calls are not counted\n",
		    book.path, what);
	if (write(STDERR_FILENO, line, strlen(line)) == -1)
		errno = 0;
}

static struct count_file *map_file(int fd)
{
	struct rlimit most;
	void *base;

	/* Writing past the limit of `ulimit -f` would kill the program with a signal. */
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < COUNT_JSON_BYTES) {
		errno = EFBIG;
		return NULL;
	}
	if (ftruncate(fd, sizeof(struct count_file)) == -1)
		return NULL;
	/* Allocate now: a full disk must not kill the program later. */
	errno = posix_fallocate(fd, 0, sizeof(struct count_file));
	if (errno != 0)
		return NULL;
	base = mmap(NULL, sizeof(struct count_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return base == MAP_FAILED ? NULL : base;
}

static struct count_file *file_make(const char *directory)
{
	char path[COUNT_PATH_BYTES + 8], host[64] = "localhost";
	struct count_file *file;
	int fd;

	(void)gethostname(host, sizeof(host) - 1);
	for (char *at = host; *at != '\0'; at++)
		if ((unsigned char)*at <= ' ' || *at == '"' || *at == '\\' || *at == '/')
			*at = '?';
	if (!text_format(book.path, sizeof(book.path), "%s/%s-pid%d", directory, host,
			 (int)getpid())) {
		count_say("the path is too long");
		return NULL;
	}
	text_format(path, sizeof(path), "%s.count", book.path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	file = fd == -1 ? NULL : map_file(fd);
	if (file == NULL)
		count_say(strerror(errno));
	if (file == NULL && fd != -1)
		(void)unlink(path);
	if (fd != -1)
		close(fd);
	if (file == NULL)
		return NULL;
	file->size = sizeof(*file);
	file->functions = COUNT_FUNCTIONS;
	file->pid = (int32_t)getpid();
	file->rank = own_rank();
	file->started_ns = clock_system_ns(CLOCK_REALTIME);
	memcpy(file->host, host, sizeof(host));
	store_relaxed(&file->magic, COUNT_MAGIC);
	return file;
}

static struct count_file *file_get(void)
{
	const char *directory;

	/* Pairs with the release below: either the file exists with its header, or there is none. */
	if (LIKELY(load_acquire(&book.is_tried)))
		return load_relaxed(&book.file);
	pthread_mutex_lock(&book.lock);
	if (!load_relaxed(&book.is_tried)) {
		directory = getenv("RINGSIDE_COUNT_DIR");
		if (directory && directory[0])
			store_relaxed(&book.file, file_make(directory));
		/* Pairs with the acquire above. */
		store_release(&book.is_tried, true);
	}
	pthread_mutex_unlock(&book.lock);
	return load_relaxed(&book.file);
}

/* ---- the real functions ---------------------------------------------------------------------- */

static void *find_in(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	/* The handle stays open, because the function is used. */
	return handle ? dlsym(handle, name) : NULL;
}

/* In a separately opened library (a Python module), NCCL is not next in the search order. */
static void *find_from(const void *caller, const char *name)
{
	Dl_info info;
	void *found = find_in("libnccl.so.2", name);

	if (found == NULL && dladdr(caller, &info) != 0 && info.dli_fname)
		found = find_in(info.dli_fname, name);
	return found;
}

/*
 * The real function: of the next library, of the loaded NCCL, or of the caller's own libraries. NULL: not found.
 * Cached in *kept.
 */
static void *count_next(void **kept, const char *name, const void *caller)
{
	void *next = load_relaxed(kept);
	int before = errno;

	if (LIKELY(next))
		return next;
	next = dlsym(RTLD_NEXT, name);
	if (next == NULL)
		next = find_from(caller, name);
	store_relaxed(kept, next);
	errno = before;
	return next;
}

/* ---- counting -------------------------------------------------------------------------------- */

static void count_begin(struct count_call *call, enum count_function function, bool is_known)
{
	int before = errno;
	struct count_file *file = depth++ == 0 ? file_get() : NULL;

	call->entry = file && is_known ? &file->entries[function] : NULL;
	if (file && !is_known)
		add_relaxed(&file->unknown, 1);
	/* Counted at the start: a call that hangs was made. */
	if (call->entry)
		add_relaxed(&call->entry->calls, 1);
	errno = before;
	call->began_ns = call->entry ? clock_system_ns(CLOCK_MONOTONIC) : 0;
}

/* NCCL's type numbers, which never change. */
static size_t type_bytes(int type)
{
	static const unsigned char sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return type >= 0 && (size_t)type < sizeof(sizes) ? sizes[type] : 0;
}

static void count_end(struct count_call *call, size_t elements, int type, int result)
{
	/* ncclInProgress: from a nonblocking communicator. */
	enum { IN_PROGRESS = 7 };

	depth--;
	if (call->entry == NULL)
		return;
	add_relaxed(&call->entry->ns, clock_system_ns(CLOCK_MONOTONIC) - call->began_ns);
	add_relaxed(&call->entry->bytes, elements * type_bytes(type));
	if (result != 0 && result != IN_PROGRESS)
		add_relaxed(&call->entry->failed, 1);
}

/* ---- the end --------------------------------------------------------------------------------- */

static size_t json_text(const struct count_file *file, char *text, size_t size)
{
	static const char *const names[COUNT_FUNCTIONS] = COUNT_NAMES;

	text_format(text, size,
		    "{\"format\":\"ringside-count\",\"version\":1,\"host\":\"%s\",\"pid\":%d,"
		    "\"rank\":%d,\"started_ns\":%llu,\"unknown\":%llu,\"calls\":[\n",
		    file->host, file->pid, file->rank, (unsigned long long)file->started_ns,
		    (unsigned long long)load_relaxed(&file->unknown));
	for (size_t i = 0; i < COUNT_FUNCTIONS; i++) {
		const struct count_entry *entry = &file->entries[i];

		text_append(text, size,
			    "{\"function\":\"%s\",\"calls\":%llu,\"failed\":%llu,\"ns\":%llu,"
			    "\"bytes\":%llu}%s\n",
			    names[i], (unsigned long long)load_relaxed(&entry->calls),
			    (unsigned long long)load_relaxed(&entry->failed),
			    (unsigned long long)load_relaxed(&entry->ns),
			    (unsigned long long)load_relaxed(&entry->bytes),
			    i + 1 < COUNT_FUNCTIONS ? "," : "]}");
	}
	return strlen(text);
}

__attribute__((destructor)) static void end_process(void)
{
	struct count_file *file = load_relaxed(&book.file);
	char path[COUNT_PATH_BYTES + 8], text[COUNT_JSON_BYTES];
	size_t length;
	int fd;

	if (file == NULL || file->pid != (int32_t)getpid())
		return;
	length = json_text(file, text, sizeof(text));
	text_format(path, sizeof(path), "%s.json", book.path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd == -1)
		return;
	if (write(fd, text, length) != (ssize_t)length)
		(void)unlink(path); /* a truncated document is worse than the mapped file alone */
	close(fd);
}

/*
 * Wrappers around NCCL: each counts the call and calls the real function. Own declarations; all parameters are
 * passed unchanged. Programs that look up NCCL's functions with dlsym() on their own handle bypass these.
 */

struct ncclComm;
struct CUstream_st;

/* ncclSystemError: no NCCL found. */
enum { COUNT_NO_NCCL = 2, COUNT_NO_TYPE = -1 };

#define COUNTED(function, name, parameters, arguments, elements, type)                            \
	EXPORTED int name parameters;                                                             \
	int name parameters                                                                       \
	{                                                                                         \
		static void *kept;                                                                \
		int(*next) parameters =                                                           \
			(int(*) parameters)count_next(&kept, #name, __builtin_return_address(0)); \
		struct count_call call;                                                           \
		int result;                                                                       \
                                                                                                  \
		count_begin(&call, function, next != NULL);                                       \
		result = next ? next arguments : COUNT_NO_NCCL;                                   \
		count_end(&call, elements, type, result);                                         \
		return result;                                                                    \
	}

COUNTED(COUNT_ALL_REDUCE, ncclAllReduce,
	(const void *from, void *to, size_t count, int type, int op, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, op, comm, stream), count, type)

COUNTED(COUNT_ALL_GATHER, ncclAllGather,
	(const void *from, void *to, size_t count, int type, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, comm, stream), count, type)

COUNTED(COUNT_REDUCE_SCATTER, ncclReduceScatter,
	(const void *from, void *to, size_t count, int type, int op, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, op, comm, stream), count, type)

COUNTED(COUNT_BROADCAST, ncclBroadcast,
	(const void *from, void *to, size_t count, int type, int root, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, root, comm, stream), count, type)

COUNTED(COUNT_BROADCAST, ncclBcast,
	(void *buffer, size_t count, int type, int root, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(buffer, count, type, root, comm, stream), count, type)

COUNTED(COUNT_REDUCE, ncclReduce,
	(const void *from, void *to, size_t count, int type, int op, int root,
	 struct ncclComm *comm, struct CUstream_st *stream),
	(from, to, count, type, op, root, comm, stream), count, type)

COUNTED(COUNT_SEND, ncclSend,
	(const void *from, size_t count, int type, int peer, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, count, type, peer, comm, stream), count, type)

COUNTED(COUNT_RECV, ncclRecv,
	(void *to, size_t count, int type, int peer, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(to, count, type, peer, comm, stream), count, type)

COUNTED(COUNT_ALL_TO_ALL, ncclAlltoAll,
	(const void *from, void *to, size_t count, int type, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, comm, stream), count, type)

COUNTED(COUNT_GATHER, ncclGather,
	(const void *from, void *to, size_t count, int type, int root, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, root, comm, stream), count, type)

COUNTED(COUNT_SCATTER, ncclScatter,
	(const void *from, void *to, size_t count, int type, int root, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, root, comm, stream), count, type)

COUNTED(COUNT_GROUP_START, ncclGroupStart, (void), (), 0, COUNT_NO_TYPE)

COUNTED(COUNT_GROUP_END, ncclGroupEnd, (void), (), 0, COUNT_NO_TYPE)
