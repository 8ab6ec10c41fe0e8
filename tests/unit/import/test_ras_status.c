/* Answers of NCCL's RAS: real ones of five releases, and what else may come from that port. */
#include "import/ras.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "tests/support/shown_text.h"
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

/* ---- all that was read, as text ------------------------------------------------------------------ */

static void show_counts(const struct ras_status *status, const int64_t *counts)
{
	for (size_t i = 0; i < RAS_FUNCTIONS_MAX; i++)
		if (counts[i] != -1)
			show(" %s=%" PRId64,
			     i < status->function_count ? status->functions[i] : "?", counts[i]);
	show("\n");
}

static void show_status(const char *name, const char *text, size_t length)
{
	struct ras_status status;
	enum status code;
	char *copy = malloc(length + 1);

	/* In memory that ends where the text ends: nothing behind it is read. */
	memcpy(copy + 1, text, length);
	ras_status_init(&status);
	code = ras_status_read(&status, copy + 1, length);
	free(copy);
	show("=== %s\n%s, version '%s', %zu functions%s%s\n", name,
	     code == OK ? "read" : "rejected", status.version, status.function_count,
	     status.is_json ? ", JSON" : "", status.is_cut ? ", cut" : "");
	for (size_t i = 0; i < status.comm_count; i++) {
		show("comm %" PRIx64 ", %d ranks:", status.comms[i].hash, status.comms[i].size);
		show_counts(&status, status.comms[i].highest);
		for (size_t j = 0; j < status.rank_count; j++) {
			const struct ras_rank *rank = &status.ranks[j];

			if (rank->comm != i)
				continue;
			show("  rank %d '%s' pid %" PRId64, rank->rank, rank->host, rank->pid);
			if (rank->error != 0)
				show(", error %d", rank->error);
			show("%s%s%s:", rank->is_missing ? ", missing" : "",
			     rank->is_gone ? ", gone" : "", rank->is_aborted ? ", aborted" : "");
			show_counts(&status, rank->counts);
		}
	}
	ras_status_release(&status);
}

static void whole_real_answers(void)
{
	static const char *const releases[] = { "2.27.7", "2.28.9", "2.31.0" };
	static const char *const scenes[] = { "calm", "skip", "stop", "kill" };
	char path[100], text[8192];

	for (size_t i = 0; i < 3 * 4 * 2; i++) {
		size_t length;
		FILE *file;

		snprintf(path, sizeof(path), "tests/gpu/ras/%s-%s.%s", releases[i / 8],
			 scenes[i / 2 % 4], i % 2 ? "json" : "txt");
		file = fopen(path, "re");
		if (file == NULL)
			continue; /* 2.27.7 has no JSON */
		length = fread(text, 1, sizeof(text), file);
		fclose(file);
		show_status(strrchr(path, '/') + 1, text, length);
	}
	EXPECT_THAT("real answers are read as expected",
		    shown_is_expected("tests/unit/import/expected/ras_real.txt"));
}

#define JSON(ranks) "{\"communicators\":[{\"hash\":\"0x1\",\"ranks\":[" ranks "]}]}"
#define DEEP15 "[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]"
#define LONG60 "123456789-123456789-123456789-123456789-123456789-123456789-"
#define TEXT(errors) "NCCL version 2.28.9 x\nCommunicators\n" errors "Warnings\n"
#define COMM(state) "#0-0 (1f) " state "\n"

static const struct {
	const char *name, *text;
} answers[] = {
	{ "blanks before JSON", " \n\n {\"communicators\":[]}" },
	{ "nothing but blanks", " \n" },
	{ "ranks at their limits", JSON("{\"rank\":0},{\"rank\":2147483647},{\"rank\":2147483648},"
					"{\"rank\":-1},{\"pid\":5},{\"rank\":1,\"pid\":0},"
					"{\"rank\":2,\"pid\":1},{\"rank\":3,\"pid\":2147483647},"
					"{\"rank\":4,\"pid\":2147483648}") },
	{ "hosts",
	  JSON("{\"rank\":1,\"host\":\"a b~\x7f\x80\x1f\\u0001\"},"
	       "{\"rank\":2,\"host\":7},{\"rank\":3,\"host\":\"" LONG60 "12345\"},"
	       "{\"rank\":4,\"host\":[1,\"2\",{\"rank\":9}]},{\"rank\":5,\"hosts\":\"b\"}") },
	{ "a text ends with a backslash", "{\"nccl_version\":\"2\\" },
	{ "a backslash before the last byte", "{\"nccl_version\":\"2\\\"" },
	{ "codes",
	  JSON("{\"rank\":1,\"status\":{\"init_state\":7,\"async_error\":0}},"
	       "{\"rank\":2,\"status\":{\"init_state\":3,\"async_error\":7}},"
	       "{\"rank\":3,\"status\":{\"async_error\":1000}},"
	       "{\"rank\":4,\"status\":{\"async_error\":1001}},"
	       "{\"rank\":5,\"status\":{\"abort_flag\":true,\"unresponsive\":false}},"
	       "{\"rank\":6,\"status\":{\"unresponsive\":true,\"considered_dead\":false}},"
	       "{\"rank\":7,\"status\":{\"considered_dead\":true,\"abort_flag\":1,\"x\":{}}}") },
	{ "no object where one belongs", JSON("{\"rank\":1,\"status\":7}") },
	{ "no counts where some belong", JSON("{\"rank\":1,\"collective_counts\":[]}") },
	{ "nine functions",
	  JSON("{\"rank\":1,\"collective_counts\":{\"A\":1,\"B\":2,\"C\":3,\"D\":4,"
	       "\"E\":5,\"F\":6,\"G\":7,\"\":70,\"H\":8,\"I\":9,\"A\":10}},"
	       "{\"rank\":2,\"collective_counts\":{\"H\":9,\"B\":-2,\"C\":1,"
	       "\"D\":9223372036854775807}}") },
	{ "long words", JSON("{\"rank\":1,\"x\":a" LONG60 "123456}, {\"rank\":00" LONG60 "5}") },
	{ "16 levels", "{\"x\":[" DEEP15 "],\"communicators\":[]}" },
	{ "17 levels", "{\"x\":[[" DEEP15 "]],\"communicators\":[]}" },
	{ "two values of 15 levels", "{\"x\":" DEEP15 ",\"y\":" DEEP15 ",\"communicators\":[]}" },
	{ "an end without a begin", "{\"x\":],\"communicators\":[]}" },
	{ "commas and colons are optional",
	  "{\"nccl_version\" \"2.28\"\t\"communicators\"\r[{\"size\" 3}]}" },
	{ "a hash that is no text",
	  "{\"communicators\":[{\"hash\":5,\"other\":\"0x7\",\"size\":1}]}" },
	{ "a version that is no text", "{\"nccl_version\":2.5,\"x\":\"y\",\"communicators\":[]}" },
	{ "ranks that are no list",
	  "{\"communicators\":[{\"ranks\":7,\"missing_ranks\":{}},{\"list\":[{\"rank\":1}]}]}" },
	{ "missing ranks", "{\"communicators\":[{\"missing_ranks\":[{\"rank\":5}],\"size\":0},{"
			   "\"size\":2147483647}]}" },
	{ "no list of communicators", "{\"comms\":[],\"nccl_version\":\"2.28\"}" },
	{ "what is not a value", "{\"x\":!,\"communicators\":[]}" },
	{ "text without communicators", "NCCL version 2.28.9 x\nWarnings\n" },
	{ "text without warnings", "NCCL version 2.28.9 x\nCommunicators\n" },
	{ "text without a version", "Communicators\nWarnings\n" },
	{ "two versions", TEXT("NCCL version 2.29\n") },
	{ "ranks without a communicator", TEXT("  Rank 1 -- on node a\n") },
	{ "communicators without a number",
	  TEXT("#0-0 INCOMPLETE\n#0-0 (zz) INCOMPLETE\n  Rank 1\n#0-0 (1f INCOMPLETE\n") },
	{ "errors",
	  TEXT(COMM(
		  "ERROR") "  3 ranks reported Internal error\n  Rank 0 -- on node a b\n"
			   "  Rank 1 reported Unhandled CUDA error\n  Rank 2 reported System "
			   "error\n"
			   "  Rank 3 reported Internal error\n  Rank 4 reported Invalid argument\n"
			   "  Rank 5 reported Invalid usage\n  Rank 6 reported Remote process "
			   "error\n"
			   "  Rank 7 reported something else\n" COMM(
				   "ERROR") "  Rank 8 -- on node a\n") },
	{ "counts",
	  TEXT(COMM("MISMATCH") "  Communicator ranks have different AllReduce operation counts\n"
				"  2 ranks have launched up to operation 11\n"
				"  Rank 2 has launched up to operation 10 -- managed by process "
				"2147483647 on node h\n"
				"  Rank 3 has not launched any -- managed by process 2147483648 on "
				"node h\n"
				"  Rank 4 -- managed by process 1\n"
				"  2 ranks have not launched any\n  Rank 5\n  Rank 6\n"
				"  Communicator ranks have different Broadcast operation counts\n"
				"  1 ranks have launched up to operation 0\n  Rank 0\n  Rank "
				"2147483647\n"
				"  Rank 2147483648\n  Rank -1\n  Rank x\n"
				"  Communicator ranks have different opinions\n  Rank 7 has "
				"launched up to operation 5\n" COMM(
					"MISMATCH") "  Rank 8 has launched up to operation 5\n") },
	{ "counts of communicators with another problem",
	  TEXT(COMM("INCOMPLETE") "  Communicator ranks have different AllReduce operation counts\n"
				  "  2 ranks have launched up to operation 11\n  Rank 2 has "
				  "launched up to operation 10\n") },
	{ "control bytes", TEXT(COMM("INCOMPLETE") "  Rank 1 on node a\x1f\x7f\x80~\tb c\n") },
};

static void made_up_answers(void)
{
	static char text[1 << 13];
	int used;

	for (size_t i = 0; i < ARRAY_LENGTH(answers); i++)
		show_status(answers[i].name, answers[i].text, strlen(answers[i].text));
	show_status("a byte 0", "{\"communicators\":[{\"size\":1\0}]}", 32);
	used = snprintf(text, sizeof(text), "NCCL version 2.28.9 x\nDEAD\n  Process 0 on node a\n");
	for (int i = 1; i <= 66; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 "  Process %d on node a\n", i);
	used += snprintf(
		text + used, sizeof(text) - (size_t)used,
		"Communicators\n" COMM(
			"INCOMPLETE") "  Rank 1 process 1\n  Rank 64 process 64\n"
				      "  Rank 65 process 65\n  Rank 3 process 0\nWarnings\n");
	show_status("64 dead processes are known", text, (size_t)used);
	used = snprintf(text, sizeof(text),
			TEXT(COMM("INCOMPLETE") "  Rank 1%494son node abcdef\n  Rank 2\n"), "");
	show_status("a line has 511 bytes, what is longer is cut", text, (size_t)used);
	EXPECT_THAT("other answers are read as expected",
		    shown_is_expected("tests/unit/import/expected/ras_made_up.txt"));
}

int main(void)
{
	static const char *const errors[] = {
		"an error",	    "CUDA error",    "system error",	     "internal error",
		"invalid argument", "invalid usage", "remote process error", "an error"
	};

	whole_real_answers();
	made_up_answers();
	for (int i = 0; i < 8; i++)
		EXPECT(strcmp(ras_error_text(i), errors[i]) == 0);
	dead_processes();
	real_answers();
	hostile_answers();
	return tap_done();
}
