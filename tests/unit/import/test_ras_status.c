/* Answers of NCCL's RAS: real ones of five releases, and what else may come from that port. */
#include "import/ras.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "tests/tap.h"

/* Jobs of three ranks, see tests/gpu/ras_answers. */
static struct ras_status read_real(const char *release, const char *scene, const char *ending)
{
	struct ras_status status;
	char path[200], text[8192];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "tests/gpu/ras/%s-%s.%s", release, scene, ending);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd != -1 ? read(fd, text, sizeof(text)) : -1;
	ras_status_init(&status);
	EXPECT_THAT(path, length > 0 && ras_status_read(&status, text, (size_t)length) == OK);
	EXPECT_THAT("the release is named", strncmp(status.version, release, strlen(release)) == 0);
	close(fd);
	return status;
}

static size_t count_missing(const struct ras_status *status, int32_t rank)
{
	size_t count = 0;

	for (size_t i = 0; i < status->rank_count; i++)
		count += status->ranks[i].is_missing && status->ranks[i].rank == rank;
	return count;
}

static size_t count_errors(const struct ras_status *status, int32_t error)
{
	size_t count = 0;

	for (size_t i = 0; i < status->rank_count; i++)
		count += status->ranks[i].error == error;
	return count;
}

static bool is_behind(const struct ras_status *status, int32_t rank)
{
	for (size_t i = 0; i < status->rank_count; i++)
		for (size_t j = 0; j < status->function_count; j++)
			if (status->ranks[i].rank == rank && status->ranks[i].counts[j] == 10 &&
			    status->comms[status->ranks[i].comm].highest[j] == 11 &&
			    strcmp(status->functions[j], "AllReduce") == 0)
				return true;
	return false;
}

static void real_answers(void)
{
	static const char *const releases[] = { "2.27.7", "2.28.9", "2.29.7", "2.30.7", "2.31.0" };

	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++)
		for (int is_json = 0; is_json < 2; is_json++) {
			const char *ending = is_json ? "json" : "txt";
			struct ras_status status;

			if (is_json && strcmp(releases[i], "2.27.7") == 0)
				continue; /* text only */
			status = read_real(releases[i], "calm", ending);
			EXPECT_THAT("nothing is wrong",
				    count_missing(&status, 1) == 0 &&
					    count_errors(&status, 0) == status.rank_count &&
					    status.is_json == is_json);
			EXPECT_THAT("JSON has all ranks of both communicators",
				    !is_json ||
					    (status.comm_count == 2 && status.rank_count == 6 &&
					     status.comms[0].size == 3 && status.ranks[0].pid > 0));
			ras_status_release(&status);
			status = read_real(releases[i], "skip", ending);
			EXPECT_THAT("the rank that skipped a call is behind",
				    is_behind(&status, 2));
			EXPECT_THAT("and no other",
				    !is_behind(&status, 0) && !is_behind(&status, 1));
			ras_status_release(&status);
			status = read_real(releases[i], "stop", ending);
			EXPECT_THAT("a stopped rank does not answer",
				    count_missing(&status, 2) > 0);
			ras_status_release(&status);
			status = read_real(releases[i], "kill", ending);
			EXPECT_THAT("nor does a killed one", count_missing(&status, 1) > 0);
			EXPECT_THAT("its peers have an error, from 2.28 on; JSON has all of them",
				    i == 0 || count_errors(&status, 6) > 0);
			ras_status_release(&status);
		}
}

static enum status read_text(const char *text, struct ras_status *status)
{
	ras_status_init(status);
	return ras_status_read(status, text, strlen(text));
}

static void hostile_answers(void)
{
	static const char *const rejected[] = {
		"",
		"{",
		"{}",
		"{\"communicators\": 7}",
		"{\"communicators\": [",
		"{\"communicators\": [{\"hash\": \"0x1\", \"ranks\": [{\"rank\": 0",
		"{\"communicators\": [7]}",
		"{\"x\": [[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]], \"communicators\": []}",
		"{\"x\": \"",
		"HTTP/1.1 400 Bad Request\n",
		"NCCL version 2.28.9 compiled with CUDA 13.0\nCommunicators... (0.000s)\n",
	};
	struct ras_status status;
	char deep[100];

	for (size_t i = 0; i < ARRAY_LENGTH(rejected); i++) {
		snprintf(deep, sizeof(deep), "answer %zu is rejected", i);
		EXPECT_THAT(deep, read_text(rejected[i], &status) == ERR_FORMAT);
		ras_status_release(&status);
	}
	EXPECT_EQUAL(
		read_text("{\"communicators\":[{\"hash\":\"0x1\",\"size\":99999999999999999999,"
			  "\"ranks\":[{\"rank\":-3},{\"rank\":4,\"pid\":\"7\",\"host\":\"a\\u001b["
			  "2Jb\",\"status\":{\"async_error\":4294967302}}]}]}",
			  &status),
		ERR_FORMAT);
	ras_status_release(&status);
	EXPECT_EQUAL(
		read_text("{\"communicators\":[{\"hash\":\"0x1\",\"size\":99999999999999999999,"
			  "\"ranks\":[{\"rank\":-3},{\"rank\":4,\"pid\":-7,\"host\":\"a\\u001b["
			  "2Jb\",\"status\":{\"async_error\":4294967302}}]}]}",
			  &status),
		OK);
	EXPECT_THAT("numbers out of range are unknown, control characters do not survive",
		    status.comms[0].size == -1 && status.rank_count == 1 &&
			    status.ranks[0].pid == -1 && status.ranks[0].error == 0 &&
			    strcmp(status.ranks[0].host, "a?001b[2Jb") == 0);
	ras_status_release(&status);
}

/* The text lists dead processes before the ranks that miss them; silent ones are not dead. */
static void dead_processes(void)
{
	static const char text[] = "NCCL version 2.28.9 compiled with CUDA 12\n"
				   "DEAD\n"
				   "  Process 11 on node a managing GPU 0\n"
				   "  Process 12 on node a managing GPU 1\n"
				   "INCOMPLETE\n"
				   "  Process 13 on node a managing GPU 2\n"
				   "Communicators\n"
				   "Warnings\n"
				   "#0-0 (1302323d034ea535) INCOMPLETE\n"
				   "  Rank 1 -- GPU 0 managed by process 11 on node a\n"
				   "  Rank 2 -- GPU 1 managed by process 12 on node b\n"
				   "  Rank 3 -- GPU 2 managed by process 13 on node c\n"
				   "  Rank 4 -- GPU 3 managed by process 0 on node c\n";
	struct ras_status status;

	ras_status_init(&status);
	EXPECT(ras_status_read(&status, text, sizeof(text) - 1) == OK);
	EXPECT(strcmp(status.version, "2.28.9") == 0 && status.comm_count == 1 &&
	       status.comms[0].hash == 0x1302323d034ea535);
	EXPECT_EQUAL(status.rank_count, 4);
	EXPECT(status.ranks[0].rank == 1 && status.ranks[0].pid == 11 &&
	       status.ranks[0].is_missing && status.ranks[0].is_gone);
	EXPECT(status.ranks[1].pid == 12 && status.ranks[1].is_gone &&
	       strcmp(status.ranks[1].host, "b") == 0);
	EXPECT(status.ranks[2].pid == 13 && status.ranks[2].is_missing && !status.ranks[2].is_gone);
	EXPECT(status.ranks[3].pid == -1 && !status.ranks[3].is_gone);
	ras_status_release(&status);
}

int main(void)
{
	dead_processes();
	real_answers();
	hostile_answers();
	EXPECT(strcmp(ras_error_text(6), "remote process error") == 0 &&
	       strcmp(ras_error_text(99), "an error") == 0);
	return tap_done();
}
