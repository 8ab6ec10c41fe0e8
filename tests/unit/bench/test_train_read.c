#include "bench/profilers.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

#define HEAD                                                                                       \
	"{\"rank\":1,\"ranks\":2,\"pid\":17,\"host\":\"node01\",\"parameters\":7978856,\"steps\":" \
	"20,"
#define NAMES "\"torch\":\"2.9.0\",\"nccl\":\"2.28.9\","

static enum status read_text(struct train_result *result, const char *text)
{
	return train_read(result, text, strlen(text));
}

static void test_read(void)
{
	struct train_result result;

	EXPECT_THAT("the result of a rank is read",
		    read_text(&result, HEAD NAMES "\"more\":[1,{}],\"epochs\":["
						  "{\"begin_ns\":5,\"ns\":6,\"more\":null},"
						  "{\"begin_ns\":15,\"ns\":7}]}") == OK);
	EXPECT(result.rank == 1 && result.ranks == 2 && result.steps == 20);
	EXPECT(result.parameters == 7978856);
	EXPECT(strcmp(result.torch, "2.9.0") == 0 && strcmp(result.nccl, "2.28.9") == 0);
	EXPECT(strcmp(result.host, "node01") == 0 && result.gpu[0] == '\0');
	EXPECT(result.epoch_count == 2);
	EXPECT(result.epochs[1].begin_ns == 15 && result.epochs[1].ns == 7);
}

static void test_refuse(void)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{}",
		HEAD "\"epochs\":[]}",
		HEAD "\"epochs\":{}}",
		HEAD "\"epochs\":[{\"begin_ns\":5}]}",
		HEAD "\"epochs\":[{\"begin_ns\":5,\"ns\":-6}]}",
		HEAD "\"epochs\":[{\"begin_ns\":5,\"ns\":\"6\"}]}",
		HEAD "\"epochs\":[{\"begin_ns\":5,\"ns\":6}]",
		HEAD "\"epochs\":[{\"begin_ns\":5,\"ns\":6}]} 1",
		"{\"rank\":2,\"ranks\":2,\"epochs\":[{\"begin_ns\":5,\"ns\":6}]}",
		"{\"ranks\":2,\"epochs\":[{\"begin_ns\":5,\"ns\":6}]}",
	};
	struct train_result result = { .rank = 77 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		EXPECT_THAT(wrong[i], read_text(&result, wrong[i]) == ERR_FORMAT);
	EXPECT_THAT("and nothing is written", result.rank == 77);
}

static void test_many(void)
{
	static char text[8192];
	struct train_result result;
	size_t used = (size_t)snprintf(text, sizeof(text), HEAD "\"epochs\":[");

	for (int i = 0; i <= TRAIN_EPOCHS_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s{\"begin_ns\":5,\"ns\":6}", i ? "," : "");
	snprintf(text + used, sizeof(text) - used, "]}");
	EXPECT_THAT("too many epochs are rejected", read_text(&result, text) == ERR_RANGE);
}

int main(void)
{
	test_read();
	test_refuse();
	test_many();
	return tap_done();
}
