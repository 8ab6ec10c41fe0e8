#include "bench/profilers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static struct count_file sample(void)
{
	struct count_file file = {
		.magic = COUNT_MAGIC,
		.size = sizeof(file),
		.functions = COUNT_FUNCTIONS,
		.pid = 17,
		.rank = 3,
		.host = "node01",
	};

	file.entries[COUNT_ALL_REDUCE] = (struct count_entry){ 11, 1, 200, 40000 };
	file.entries[COUNT_GROUP_END] = (struct count_entry){ 2, 0, 10, 0 };
	return file;
}

static void test_read(void)
{
	struct count_file file = sample(), got;

	EXPECT_THAT("a file is read", count_read(&got, &file, sizeof(file)) == OK);
	EXPECT(got.pid == 17 && got.rank == 3 && strcmp(got.host, "node01") == 0);
	EXPECT(got.entries[COUNT_ALL_REDUCE].calls == 11);
	EXPECT_THAT("a truncated one is not",
		    count_read(&got, &file, sizeof(file) - 1) == ERR_TRUNCATED);
	memset(file.host, 'x', sizeof(file.host));
	EXPECT_THAT("an unterminated host name is terminated",
		    count_read(&got, &file, sizeof(file)) == OK);
	EXPECT(strlen(got.host) == sizeof(got.host) - 1);
}

static void test_refuse(void)
{
	struct count_file good = sample(), file, got = { .pid = 1 };

	file = good;
	file.magic++;
	EXPECT_THAT("another magic is rejected",
		    count_read(&got, &file, sizeof(file)) == ERR_FORMAT);
	file = good;
	file.size--;
	EXPECT_THAT("another size is rejected",
		    count_read(&got, &file, sizeof(file)) == ERR_FORMAT);
	file = good;
	file.functions++;
	EXPECT_THAT("more functions are rejected",
		    count_read(&got, &file, sizeof(file)) == ERR_FORMAT);
	file = good;
	file.pid = 0;
	EXPECT_THAT("a missing pid is rejected",
		    count_read(&got, &file, sizeof(file)) == ERR_FORMAT);
	EXPECT_THAT("and nothing is written", got.pid == 1);
}

static void test_functions(void)
{
	EXPECT(count_op_function(COUNT_ALL_REDUCE) == OP_ALL_REDUCE);
	EXPECT(count_op_function(COUNT_BROADCAST) == OP_BROADCAST);
	EXPECT(count_op_function(COUNT_SCATTER) == OP_SCATTER);
	EXPECT_THAT("a group is not an operation",
		    count_op_function(COUNT_GROUP_START) == OP_FUNCTION_UNKNOWN);
	EXPECT(count_op_function(COUNT_FUNCTIONS) == OP_FUNCTION_UNKNOWN);
}

static void put_file(const char *directory, const char *name, const void *bytes, size_t length)
{
	char path[100];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
		exit(1);
}

static void test_directory(void)
{
	const char *directory = scratch_make();
	struct count_file file = sample();
	struct count_sum sum;

	put_file(directory, "a.count", &file, sizeof(file));
	put_file(directory, "b.count", &file, sizeof(file));
	put_file(directory, "b.json", "{}", 2);
	put_file(directory, "c.count", &file, 100);
	EXPECT_THAT("the files of a directory are added up",
		    count_sum_directory(&sum, directory) == OK);
	EXPECT(sum.processes == 2 && sum.unreadable == 1);
	EXPECT(sum.entries[COUNT_ALL_REDUCE].calls == 22);
	EXPECT(sum.entries[COUNT_ALL_REDUCE].failed == 2);
	EXPECT(sum.entries[COUNT_ALL_REDUCE].bytes == 80000);
	EXPECT(sum.entries[COUNT_GROUP_END].ns == 20);
	EXPECT_THAT("a missing directory is reported",
		    count_sum_directory(&sum, "/nonexistent") == ERR_SYSTEM);
}

int main(void)
{
	test_read();
	test_refuse();
	test_functions();
	test_directory();
	return tap_done();
}
