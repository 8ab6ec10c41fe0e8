/*
 * ncclsee's CSV is read strictly: anything its writer would not write is rejected, with the line.
 */
#include "import/foreign.h"

#include <stdio.h>
#include <string.h>

#include "common/op_layout.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

#define HEAD "CollectiveType,BucketLabel,BucketMin,BucketMax,Calls,BytesTransferred,TotalTime_us\n"
#define GROUPS "Group,N/A,0,0,12,0,1.5\n"

static struct ncclsee_profile profile;

static enum status read_text(const char *text)
{
	return ncclsee_read_memory(&profile, text, strlen(text));
}

static void test_classes(void)
{
	uint64_t from, to;

	EXPECT_EQUAL(ncclsee_class_of(0), 0);
	EXPECT_EQUAL(ncclsee_class_of(127), 0);
	EXPECT_EQUAL(ncclsee_class_of(128), 1);
	EXPECT_EQUAL(ncclsee_class_of(1024), 2);
	EXPECT_EQUAL(ncclsee_class_of(33554431), 6);
	EXPECT_EQUAL(ncclsee_class_of(UINT64_MAX), 7);
	ncclsee_class_bounds(2, &from, &to);
	EXPECT_THAT("a class begins where the one before ends", from == 1024 && to == 8192);
	ncclsee_class_bounds(7, &from, &to);
	EXPECT_THAT("the last class has no end", from == 33554432 && to == UINT64_MAX);
}

static void test_whole(void)
{
	enum status status =
		read_text(HEAD "AllReduce,1024-8192,1024,8192,205,419840,8123.25\n"
			       "Reduce,>33554432,33554432,2147483647,5,7,-nan\n" GROUPS);

	EXPECT_EQUAL(status, OK);
	EXPECT_EQUAL(profile.row_count, 2);
	EXPECT(profile.rows[0].function == OP_ALL_REDUCE && profile.rows[0].calls == 205);
	EXPECT_THAT("times become nanoseconds", profile.rows[0].total_ns == 8123250);
	EXPECT(profile.rows[0].size_class == 2 && profile.rows[1].size_class == 7);
	EXPECT_THAT("an invalid time counts as missing",
		    !profile.rows[1].has_time && profile.rows[1].total_ns == 0);
	EXPECT_EQUAL(profile.groups, 12);
	EXPECT_EQUAL(ncclsee_other_label(OP_REDUCE), OP_REDUCE_SCATTER);
	EXPECT_EQUAL(ncclsee_other_label(OP_ALL_GATHER), OP_ALL_GATHER);
}

static void test_refused(void)
{
	static const struct {
		const char *text;
		enum status status;
		size_t line;
	} cases[] = {
		{ "", ERR_TRUNCATED, 0 },
		{ "a,b\n", ERR_FORMAT, 1 },
		{ HEAD, ERR_TRUNCATED, 1 },
		{ HEAD "AllReduce,1024-8192,1024,8192,205,1,1.5\n", ERR_TRUNCATED, 2 },
		{ HEAD "Group,N/A,0,0,12,0,1.5", ERR_TRUNCATED, 2 },
		{ HEAD GROUPS GROUPS, ERR_FORMAT, 3 },
		{ HEAD "AllReduce,1024-8192,1024,8192,205,1\n" GROUPS, ERR_FORMAT, 2 },
		{ HEAD "AllReduce,1024-8192,1024,8192,205,1,1.5,2\n" GROUPS, ERR_FORMAT, 2 },
		{ HEAD "AllReduce,1024-8192,1024,4096,205,1,1.5\n" GROUPS, ERR_FORMAT, 2 },
		{ HEAD "AllReduce,1024-8193,1024,8192,205,1,1.5\n" GROUPS, ERR_FORMAT, 2 },
		{ HEAD "AllReduces,1024-8192,1024,8192,205,1,1.5\n" GROUPS, ERR_FORMAT, 2 },
		{ HEAD "AllReduce,1024-8192,1024,8192,-5,1,1.5\n" GROUPS, ERR_FORMAT, 2 },
		{ HEAD "AllReduce,1024-8192,1024,8192,0,1,1.5\n" GROUPS, ERR_FORMAT, 2 },
		{ HEAD "AllReduce,1024-8192,1024,8192,5,1,soon\n" GROUPS, ERR_FORMAT, 2 },
		{ HEAD "AllReduce,0-128,0,128,5,1,1\nAllReduce,0-128,0,128,5,1,1\n" GROUPS,
		  ERR_FORMAT, 3 },
		{ HEAD "Group,none,0,0,12,0,1.5\n", ERR_FORMAT, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum status status = read_text(cases[i].text);

		printf("# %zu: line %zu: %s\n", i, profile.line,
		       profile.problem ? profile.problem : "fine");
		EXPECT_EQUAL(status, cases[i].status);
		EXPECT_EQUAL(profile.line, cases[i].line);
		EXPECT(profile.problem != NULL);
	}
}

static void test_file(void)
{
	const char *directory = scratch_make();
	char path[128];
	FILE *file;

	EXPECT_EQUAL(ncclsee_read(&profile, "/nowhere/4711.csv"), ERR_SYSTEM);
	snprintf(path, sizeof(path), "%s/4711.csv", directory);
	file = fopen(path, "w");
	if (file) {
		fputs(HEAD "AllGather,0-128,0,128,5,1,1\n" GROUPS, file);
		fclose(file);
	}
	EXPECT_EQUAL(ncclsee_read(&profile, path), OK);
	EXPECT_EQUAL(profile.pid, 4711);
	EXPECT_EQUAL(profile.row_count, 1);
	EXPECT_EQUAL(ncclsee_read(&profile, directory), ERR_SYSTEM);
}

static void test_rows(void)
{
	EXPECT_THAT("a duplicate of any row is refused",
		    read_text(HEAD "AllReduce,0-128,0,128,5,1,1\nBroadcast,0-128,0,128,5,1,1\n"
				   "Broadcast,0-128,0,128,5,1,1\n" GROUPS) == ERR_FORMAT &&
			    profile.line == 4);
	EXPECT(read_text(HEAD "AllReduce,0-128,0,128,5,1,1000000000000000000\nBroadcast,0-128,0,"
			      "128,5,1,900000000000000000\n"
			      "AllGather,0-128,0,128,5,1,0\n" GROUPS) == OK);
	EXPECT_THAT("times from 0 to 10^18 us are known",
		    profile.row_count == 3 && !profile.rows[0].has_time &&
			    profile.rows[1].has_time && profile.rows[1].total_ns == 9e20 &&
			    !profile.rows[2].has_time);
}

int main(void)
{
	test_rows();
	test_classes();
	test_whole();
	test_refused();
	test_file();
	return tap_done();
}
