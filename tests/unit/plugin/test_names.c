/* Names that are in no table: interned once per process, and hashed by their text. */
#include "common/hash.h"
#include "common/op.h"
#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

static uint64_t *names_used(void)
{
	return &recorder.region.header->names_used;
}

static uint64_t signature_of(const char *function)
{
	void *context = play_init(0, 1, 2, 0);
	uint64_t signature;

	play_issue(context, function, 7, "ncclInt8", 1);
	signature = hot_comm(context)->shared->counts.signature;
	ncclProfiler_v5.finalize(context);
	return signature;
}

/* What any rank computes, whichever number the name has there. */
static uint64_t signature_by_text(const char *function)
{
	struct region_name name = { "" };

	memcpy(name.text, function, strlen(function));
	return op_signature(0, hash_bytes(name.text, sizeof(name.text)),
			    op_signature_name(OP_NAMES_DATATYPE, OP_INT8), 0, 7);
}

static void a_signature_has_the_text_of_the_name(void)
{
	static const char *const names[] = { "Quantum", "Nova", "Nebula" };

	for (uint64_t i = 0; i < ARRAY_LENGTH(names); i++) {
		EXPECT_EQUAL(signature_of(names[i]), signature_by_text(names[i]));
		EXPECT_EQUAL(hot_name(OP_NAMES_FUNCTION, names[i]), OP_NAME_INTERNED + i);
		EXPECT_EQUAL(*names_used(), i + 1);
	}
	EXPECT_EQUAL(signature_of("AllReduce"),
		     op_signature(0, op_signature_name(OP_NAMES_FUNCTION, OP_ALL_REDUCE),
				  op_signature_name(OP_NAMES_DATATYPE, OP_INT8), 0, 7));
}

/* Names differ if any of their bytes does, up to the last that is kept. */
static void a_name_is_kept_whole(void)
{
	char text[41];
	uint8_t first;

	memset(text, 'x', sizeof(text));
	text[31] = '\0';
	first = hot_name(OP_NAMES_ALGORITHM, text);
	EXPECT_EQUAL(strcmp(recorder.region.names[first - OP_NAME_INTERNED].text, text), 0);
	for (int at = 0; at < 31; at += 10) {
		text[at] = 'y';
		EXPECT(hot_name(OP_NAMES_ALGORITHM, text) != first);
		text[at] = 'x';
	}
	EXPECT_EQUAL(hot_name(OP_NAMES_ALGORITHM, text), first);
	text[31] = 'x';
	text[40] = '\0';
	EXPECT_THAT("what is longer is cut", hot_name(OP_NAMES_ALGORITHM, text) == first);
}

static void a_name_is_written_to_its_own_place(void)
{
	struct region_name *next = &recorder.region.names[*names_used() + 1], untouched;

	memset(next, 0x55, sizeof(*next));
	untouched = *next;
	EXPECT_EQUAL(hot_name(OP_NAMES_PROTOCOL, "Narrow"),
		     OP_NAME_INTERNED + (uint64_t)(next - 1 - recorder.region.names));
	EXPECT_EQUAL(memcmp(next, &untouched, sizeof(*next)), 0);
	memset(next, 0, sizeof(*next));
}

static void a_full_table_has_no_number_for_a_new_name(void)
{
	struct region_name *behind = &recorder.region.names[OP_NAMES_INTERNED_MAX], saved = *behind;
	char text[32];

	while (*names_used() < OP_NAMES_INTERNED_MAX) {
		uint64_t used = *names_used();

		snprintf(text, sizeof(text), "Name%u", (unsigned int)used);
		if (hot_name(OP_NAMES_FUNCTION, text) != OP_NAME_INTERNED + used)
			break;
	}
	EXPECT_EQUAL(*names_used(), OP_NAMES_INTERNED_MAX);
	EXPECT_EQUAL(hot_name(OP_NAMES_FUNCTION, text),
		     OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX - 1);
	EXPECT_EQUAL(hot_name(OP_NAMES_FUNCTION, "OneTooMany"), 0);
	EXPECT_EQUAL(*names_used(), OP_NAMES_INTERNED_MAX);
	memset(behind, 0, sizeof(*behind));
	memcpy(behind->text, "Behind", 6);
	EXPECT_THAT("what lies behind the table is no name",
		    hot_name(OP_NAMES_FUNCTION, "Behind") == 0);
	*behind = saved;
}

int main(void)
{
	play_setup("flight");
	a_signature_has_the_text_of_the_name();
	a_name_is_kept_whole();
	a_name_is_written_to_its_own_place();
	a_full_table_has_no_number_for_a_new_name();
	return tap_done();
}
