#include "programs/bench/count_read.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/op_layout.h"
#include "common/text.h"

enum status count_read(struct count_file *file, const void *bytes, size_t length)
{
	struct count_file got;
	char host[sizeof(got.host)];

	if (length < sizeof(got))
		return ERR_TRUNCATED;
	memcpy(&got, bytes, sizeof(got));
	if (got.magic != COUNT_MAGIC || got.size != sizeof(got) ||
	    got.functions != COUNT_FUNCTIONS || got.pid <= 0 || got.rank < -1)
		return ERR_FORMAT;
	text_from_field(host, sizeof(host), got.host, sizeof(got.host));
	memcpy(got.host, host, sizeof(host));
	*file = got;
	return OK;
}

unsigned int count_op_function(unsigned int function)
{
	static const unsigned char functions[COUNT_FUNCTIONS] = {
		[COUNT_ALL_REDUCE] = OP_ALL_REDUCE,
		[COUNT_ALL_GATHER] = OP_ALL_GATHER,
		[COUNT_REDUCE_SCATTER] = OP_REDUCE_SCATTER,
		[COUNT_BROADCAST] = OP_BROADCAST,
		[COUNT_REDUCE] = OP_REDUCE,
		[COUNT_SEND] = OP_SEND,
		[COUNT_RECV] = OP_RECV,
		[COUNT_ALL_TO_ALL] = OP_ALL_TO_ALL,
		[COUNT_GATHER] = OP_GATHER,
		[COUNT_SCATTER] = OP_SCATTER,
	};

	return function < COUNT_FUNCTIONS ? functions[function] : OP_FUNCTION_UNKNOWN;
}

static enum status read_file(struct count_file *file, int directory, const char *name)
{
	unsigned char bytes[sizeof(*file)];
	int fd = file_open(directory, name, false);
	enum status status;
	size_t got = 0;

	if (fd == -1)
		return ERR_SYSTEM;
	status = file_pread_some(fd, bytes, sizeof(bytes), 0, &got);
	close(fd);
	return status == OK ? count_read(file, bytes, got) : status;
}

static void add(struct count_sum *sum, const struct count_file *file)
{
	sum->processes++;
	for (size_t i = 0; i < COUNT_FUNCTIONS; i++) {
		sum->entries[i].calls += file->entries[i].calls;
		sum->entries[i].failed += file->entries[i].failed;
		sum->entries[i].ns += file->entries[i].ns;
		sum->entries[i].bytes += file->entries[i].bytes;
	}
}

enum status count_sum_directory(struct count_sum *sum, const char *directory)
{
	struct count_file file;
	struct dirent *entry;
	DIR *list = opendir(directory);

	memset(sum, 0, sizeof(*sum));
	if (list == NULL)
		return ERR_SYSTEM;
	while ((entry = readdir(list)) != NULL) {
		if (!text_ends_with(entry->d_name, ".count"))
			continue;
		if (read_file(&file, dirfd(list), entry->d_name) == OK)
			add(sum, &file);
		else
			sum->unreadable++;
	}
	closedir(list);
	return OK;
}
