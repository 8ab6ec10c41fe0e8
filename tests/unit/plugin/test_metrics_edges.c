/* Inspector's metrics: disks and locks that fail, names that are taken, and a table that is full. */
#include <stdarg.h>

#include "tests/unit/plugin/thread_play.h"

/* ---- locks that fail ---------------------------------------------------------------------------- */

static int lock_error; /* 0: none */

/* Replaces libc's. */
int fcntl(int fd, int command, ...)
{
	va_list list;
	void *argument;

	va_start(list, command);
	argument = va_arg(list, void *);
	va_end(list);
	if (command == F_SETLK && lock_error != 0) {
		errno = lock_error;
		return -1;
	}
	return (int)syscall(SYS_fcntl, fd, command, argument);
}

static bool is_swapped; /* the next time, somebody else replaces the file first */

/* Replaces libc's. */
int lstat(const char *restrict path, struct stat *restrict st)
{
	if (is_swapped) {
		char other[600];
		int fd;

		is_swapped = false;
		/* Made before the old one goes, so that it has another inode. */
		text_format(other, sizeof(other), "%s.new", path);
		fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd == -1 || close(fd) == -1 || rename(other, path) == -1)
			_exit(3);
	}
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

/* ---- helpers ------------------------------------------------------------------------------------ */

static struct inspector_series series;
static char content[4 << 20];
static char dir[256];

static struct comm_info comm_of(const char *name, const char *gpu, int nnodes)
{
	struct comm_info comm = { .id = 1, .rank = 1, .nranks = 4, .nnodes = nnodes };

	text_copy(comm.name, sizeof(comm.name), name);
	text_format(comm.gpu_uuid, sizeof(comm.gpu_uuid), "GPU-%s", gpu);
	return comm;
}

static bool add(const char *name, const char *gpu, int nnodes, uint64_t bytes)
{
	struct comm_info comm = comm_of(name, gpu, nnodes);
	struct op_record op = { .function = OP_ALL_REDUCE,
				.algorithm = OP_RING,
				.protocol = OP_SIMPLE,
				.bytes = bytes,
				.state = OP_DONE,
				.time_source = OP_TIME_KERNEL_GPU,
				.gpu_start_ns = 1000,
				.gpu_stop_ns = 2000 };

	return inspector_series_add(&series, &comm, &op);
}

static void path_of(char path[512], const char *name)
{
	text_format(path, 512, "%s/%s", dir, name);
}

/* NULL: there is none. */
static const char *text_of(const char *name)
{
	char path[512];
	FILE *file;
	size_t got;

	path_of(path, name);
	file = fopen(path, "re");
	if (file == NULL)
		return NULL;
	got = fread(content, 1, sizeof(content) - 1, file);
	fclose(file);
	content[got] = '\0';
	return content;
}

static bool exists(const char *name)
{
	char path[512];
	struct stat st;

	path_of(path, name);
	return lstat(path, &st) == 0;
}

static unsigned int count_of(const char *text, const char *what)
{
	unsigned int count = 0;

	for (const char *at = text; at != NULL && (at = strstr(at, what)) != NULL; count++)
		at += strlen(what);
	return count;
}

static void begin(void)
{
	text_format(dir, sizeof(dir), "%s/files", thread_dir);
	expect(mkdir(dir, 0755) == 0);
	expect(inspector_series_init(&series, dir, "1", "n"));
}

/* True if so many operations were published, with this error. */
static bool publishes(uint64_t count, int error)
{
	enum status status = OK;
	uint64_t published;

	errno = 99;
	published = inspector_series_publish(&series, &status);
	if (published == count && errno == error && status == (error == 0 ? OK : ERR_SYSTEM))
		return true;
	printf("# published %llu, %s, status %d\n", (unsigned long long)published, strerror(errno),
	       status);
	return false;
}

#define METRICS "nccl_inspector_metrics_"

/* ---- disks -------------------------------------------------------------------------------------- */

static void write_in_pieces(void)
{
	const int plan[] = { 100, -EINTR, 1, 300, -EINTR };
	static char whole[4096];

	begin();
	add("a", "1", 1, 4096);
	expect(publishes(1, 0));
	text_copy(whole, sizeof(whole), text_of(METRICS "1.prom"));
	expect(count_of(whole, "\nnccl_") == 2);
	add("a", "1", 1, 4096);
	thread_plan_writes(5, plan);
	expect(publishes(1, 0));
	expect(thread_writes == 6 && strcmp(text_of(METRICS "1.prom"), whole) == 0);
	expect(thread_sizes[0] == strlen(whole) && thread_sizes[2] == strlen(whole) - 100 &&
	       thread_sizes[5] == strlen(whole) - 401);
}

/* The file of the last interval stays, and no draft. */
static void fail_to_write(int result, int error)
{
	int plan[] = { 50, result };
	static char whole[4096];

	begin();
	add("a", "1", 1, 4096);
	expect(publishes(1, 0));
	text_copy(whole, sizeof(whole), text_of(METRICS "1.prom"));
	add("b", "1", 1, 4096);
	thread_plan_writes(2, plan);
	expect(publishes(0, error));
	expect(thread_writes == 2 && strcmp(text_of(METRICS "1.prom"), whole) == 0);
	expect(!exists("." METRICS "1.prom.draft"));
	add("b", "1", 1, 4096);
	expect(publishes(1, 0) && count_of(text_of(METRICS "1.prom"), "comm_name=\"b\"") == 2);
	expect(count_of(content, "comm_name=\"a\"") == 0);
}

static void fail_with_an_error(void)
{
	fail_to_write(-EIO, EIO);
}

/* Nothing is written, without an error. */
static void fail_without_an_error(void)
{
	const int plan[] = { 0 };

	begin();
	add("a", "1", 1, 4096);
	expect(publishes(1, 0));
	add("a", "1", 1, 4096);
	thread_plan_writes(1, plan);
	enum status status = OK;

	expect(inspector_series_publish(&series, &status) == 0 && status == ERR_SYSTEM);
	expect(thread_writes == 1 && !exists("." METRICS "1.prom.draft"));
}

/* A directory has the name of the file. */
static void fail_to_rename(void)
{
	char path[512];

	begin();
	path_of(path, METRICS "1.prom");
	expect(mkdir(path, 0755) == 0);
	add("a", "1", 1, 4096);
	expect(publishes(0, EISDIR));
	expect(!exists("." METRICS "1.prom.draft") && exists("." METRICS "1.lock"));
	expect(rmdir(path) == 0);
	add("a", "1", 1, 4096);
	expect(publishes(1, 0));
}

/* One GPU's trouble is not another's. */
static void fail_on_one_gpu(void)
{
	char path[512];

	begin();
	path_of(path, "." METRICS "1.lock");
	expect(mkdir(path, 0755) == 0);
	add("a", "1", 1, 4096);
	add("a", "2", 1, 4096);
	add("a", "2", 1, 4096);
	add("a", "3", 1, 4096);
	expect(publishes(3, EISDIR));
	expect(!exists(METRICS "1.prom") && exists(METRICS "2.prom") && exists(METRICS "3.prom"));
	expect(series.count == 0 && series.used == 0);
	inspector_series_leave(&series);
	expect(!exists(METRICS "2.prom") && !exists(METRICS "3.prom"));
	expect(!exists("." METRICS "2.lock") && exists("." METRICS "1.lock"));
}

static void be_readable_for_all(void)
{
	char path[512];
	struct stat st;

	umask(077);
	begin();
	add("a", "1", 1, 4096);
	expect(publishes(1, 0));
	path_of(path, METRICS "1.prom");
	expect(stat(path, &st) == 0 && (st.st_mode & 07777) == 0644);
	path_of(path, "." METRICS "1.lock");
	expect(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
}

/* ---- names that are taken ----------------------------------------------------------------------- */

/* By a link, which belongs to nobody, for the first so many processes. */
static void take_names(unsigned int count)
{
	char path[512], name[64];

	for (unsigned int i = 1; i <= count; i++) {
		text_format(name, sizeof(name),
			    i == 1 ? "." METRICS "1.lock" : "." METRICS "1_%u.lock", i);
		path_of(path, name);
		expect(symlink("/nowhere", path) == 0);
	}
}

static void be_the_second(void)
{
	begin();
	take_names(1);
	add("a", "1", 1, 4096);
	expect(publishes(1, 0));
	expect(series.gpus[0].process == 2 && exists(METRICS "1_2.prom"));
	expect(count_of(text_of(METRICS "1_2.prom"), "process=\"2\"") == 2);
}

static void be_the_last(void)
{
	begin();
	take_names(63);
	add("a", "1", 1, 4096);
	expect(publishes(1, 0) && series.gpus[0].process == 64);
}

static void be_too_many(void)
{
	begin();
	take_names(64);
	add("a", "1", 1, 4096);
	expect(publishes(0, EBUSY) && series.gpus[0].process == 0);
	inspector_series_leave(&series);
}

/* A pipe is no lock file; opening it must not block. */
static void find_a_pipe(void)
{
	char path[512];

	begin();
	path_of(path, "." METRICS "1.lock");
	expect(mkfifo(path, 0600) == 0);
	add("a", "1", 1, 4096);
	expect(publishes(1, 0) && series.gpus[0].process == 2);
}

/* Its last owner left, and another process came, between opening and locking. */
static void find_another_file(void)
{
	begin();
	is_swapped = true;
	add("a", "1", 1, 4096);
	expect(publishes(1, 0));
	expect(!is_swapped && series.gpus[0].process == 2);
}

/* A signature that is no host's. */
static void find_a_long_signature(void)
{
	char path[512], text[300];
	FILE *file;

	begin();
	memset(text, 'h', sizeof(text));
	path_of(path, "." METRICS "9.lock");
	file = fopen(path, "we");
	expect(file != NULL && fwrite(text, 1, sizeof(text), file) == sizeof(text));
	expect(fclose(file) == 0 && publishes(0, 0) && exists("." METRICS "9.lock"));
}

static int open_files(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

static void leave_nothing_open(void)
{
	int before = open_files(), between;

	begin();
	add("a", "1", 1, 4096);
	expect(publishes(1, 0));
	between = open_files();
	expect(between == before + 1); /* the lock */
	for (int i = 0; i < 3; i++)
		expect(publishes(0, 0) && open_files() == between);
	inspector_series_leave(&series);
	expect(open_files() == before);
}

/* Where nothing can be locked, the pid is in the name. */
static void have_no_locks(void)
{
	static const int errors[] = { ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL };
	char name[64];

	begin();
	text_format(name, sizeof(name), METRICS "1_%d.prom", getpid());
	for (size_t i = 0; i < ARRAY_LENGTH(errors); i++) {
		lock_error = errors[i];
		add("a", "1", 1, 4096);
		expect(publishes(1, 0));
		expect(series.gpus[0].process == (uint32_t)getpid() && exists(name));
		inspector_series_leave(&series);
		expect(!exists(name));
		expect(inspector_series_init(&series, dir, "1", "n"));
	}
	lock_error = EIO;
	add("a", "1", 1, 4096);
	expect(publishes(0, EIO) && series.gpus[0].process == 0);
}

/* Both say that another process has the lock. */
static void find_all_locked(void)
{
	begin();
	lock_error = EAGAIN;
	add("a", "1", 1, 4096);
	expect(publishes(0, EBUSY));
	lock_error = EACCES;
	add("a", "1", 1, 4096);
	expect(publishes(0, EBUSY));
	lock_error = 0;
	add("a", "1", 1, 4096);
	expect(publishes(1, 0) && series.gpus[0].process == 1);
}

/* Files of killed processes, with names as long as ours can be, and longer ones. */
static void clean_by_name(void)
{
	static const char *const stay[] = { METRICS "9.lock", "." METRICS "9.lock2",
					    "." METRICS "9", "other.lock" };
	char path[512], longest[160], longer[160];
	char tail[120];

	begin();
	memset(tail, 'x', sizeof(tail));
	text_format(longest, sizeof(longest), "." METRICS "%.*s.lock", 128 - 29, tail);
	text_format(longer, sizeof(longer), "." METRICS "%.*s.lock", 128 - 28, tail);
	expect(strlen(longest) == 128 && strlen(longer) == 129);
	path_of(path, longest);
	expect(close(creat(path, 0600)) == 0);
	path_of(path, longer);
	expect(close(creat(path, 0600)) == 0);
	for (size_t i = 0; i < ARRAY_LENGTH(stay); i++) {
		path_of(path, stay[i]);
		expect(close(creat(path, 0600)) == 0);
	}
	expect(publishes(0, 0));
	expect(!exists(longest) && exists(longer));
	for (size_t i = 0; i < ARRAY_LENGTH(stay); i++)
		expect(exists(stay[i]));
}

/* ---- a full table ------------------------------------------------------------------------------- */

/* The first value of a series, in the file that was read last. */
static bool has_value(const char *labels, const char *value)
{
	const char *at = strstr(content, labels);

	at = at != NULL ? strstr(at, "} ") : NULL;
	return at != NULL && strncmp(at + 2, value, strlen(value)) == 0;
}

static void fill_the_table(void)
{
	enum { EASY = INSPECTOR_SERIES / 4 * 3 };
	char name[32];

	begin();
	for (int i = 0; i < EASY; i++) {
		text_format(name, sizeof(name), "group-%d", i);
		expect(add(name, "1", 1, 4096));
	}
	expect(series.used == EASY);
	expect(add("group-5", "1", 1, 4096) && series.used == EASY);
	expect(add("late-1", "1", 1, 4096) && series.used == EASY + 1);
	expect(add("late-2", "1", 1, 4096) && series.used == EASY + 1);
	/* One node and several are kept apart, however many there are. */
	expect(add("late-3", "1", 2, 6000) && series.used == EASY + 2);
	expect(add("late-4", "1", 3, 6000) && series.used == EASY + 2);
	expect(series.count == EASY + 5);
	expect(publishes(EASY + 5, 0));
	expect(count_of(text_of(METRICS "1.prom"), "\nnccl_") == 2 * (EASY + 2));
	expect(count_of(content, "comm_name=\"other\",") == 4);
	expect(count_of(content, "comm_name=\"late") == 0);
	expect(has_value("comm_name=\"other\",n_nodes=\"1\",nranks=\"0\"", "6.144000\n"));
	expect(has_value("comm_name=\"other\",n_nodes=\"0\",nranks=\"0\"", "9.000000\n"));
	for (int i = 0; i < EASY; i++) {
		text_format(name, sizeof(name), "comm_name=\"group-%d\",", i);
		expect(count_of(content, name) == 2);
	}
}

/* Even "other" has so many GPUs and sizes only; one entry stays free. */
static void fill_the_table_with_others(void)
{
	uint32_t lost = 0, added = 0;
	char name[32], gpu[8];

	begin();
	for (int i = 0; i < INSPECTOR_SERIES / 4 * 3; i++) {
		text_format(name, sizeof(name), "group-%d", i);
		added += add(name, "0", 1, 4096);
	}
	for (int i = 0; i < INSPECTOR_GPUS; i++)
		for (int bits = 9; bits < 36; bits++) {
			bool is_added;

			text_format(gpu, sizeof(gpu), "%d", i);
			is_added = add("late", gpu, 1, UINT64_C(1) << bits);
			added += is_added;
			lost += !is_added;
		}
	expect(series.used == INSPECTOR_SERIES - 1 && lost > 0);
	expect(added == INSPECTOR_SERIES - 1 && series.count == added);
	expect(add("late", "0", 1, 4096)); /* this one is there */
	expect(publishes(added + 1, 0));
	expect(add("late", "15", 1, UINT64_C(1) << 35));
}

int main(void)
{
	static const struct {
		const char *name;
		void (*body)(void);
	} cases[] = {
		{ "a disk may take a file in pieces", write_in_pieces },
		{ "after an error the last file stays", fail_with_an_error },
		{ "and if nothing can be written", fail_without_an_error },
		{ "or the file has no name", fail_to_rename },
		{ "one GPU's trouble is not another's", fail_on_one_gpu },
		{ "everybody may read metrics, whatever the umask", be_readable_for_all },
		{ "a second process on a GPU has a number", be_the_second },
		{ "up to 64", be_the_last },
		{ "and no more", be_too_many },
		{ "a pipe is no lock", find_a_pipe },
		{ "nor is one that was replaced", find_another_file },
		{ "a lock of another host is left alone", find_a_long_signature },
		{ "only the lock stays open", leave_nothing_open },
		{ "without locks the pid is the number", have_no_locks },
		{ "a lock of another process is respected", find_all_locked },
		{ "only files with our names are removed", clean_by_name },
		{ "from 768 series on new ones are \"other\"", fill_the_table },
		{ "of which there is room for 255", fill_the_table_with_others },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		thread_test(cases[i].name, cases[i].body);
	return tap_done();
}
