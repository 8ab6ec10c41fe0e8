/*
 * The receiver and the channel of a slow link, from recordings with details: four ranks on four hosts, and AllReduces in which
 * what rank 1 sends is six times as long on the wire.
 */
#include "analysis/straggler.h"

#include <string.h>

#include "analysis/timeline_report.h"
#include "tests/tap.h"
#include "tests/unit/output/whole_job.h"

enum { RANKS = 4, ROUNDS = 160, SENDER = 1, DETAILS_MAX = 8 };
#define US UINT64_C(1000)

/* A detail of the sender. */
struct seen {
	int32_t peer;
	uint8_t channel;
	uint64_t us; /* from posted to done */
	uint64_t bytes;
	uint8_t kind;
	uint16_t flags;
	uint32_t comm;
};

static void add_rank(struct recording *recording, int number, const struct seen *seen)
{
	struct whole_rank *rank = calloc(1, sizeof(*rank));
	char info[200];

	if (rank == NULL)
		abort();
	whole_comm(rank, 0x11, "world", number, RANKS, RANKS);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		struct op_record *op =
			whole_op(rank, 1, OP_ALL_REDUCE, 32 << 20, 5000 * US, i * WHOLE_ROUND_NS);

		op->send_steps = op->recv_steps = 16;
		op->wait_ns[OP_WAIT_SEND_NET] = 16 * (number == SENDER ? 300 : 50) * US;
	}
	for (int i = 0; number == SENDER && i < DETAILS_MAX && seen[i].kind != 0; i++) {
		struct op_detail *detail = whole_detail(rank, seen[i].kind, seen[i].flags,
							(uint64_t)(i + 1) * 1000 * US);

		detail->comm = seen[i].comm;
		detail->peer = seen[i].peer;
		detail->channel = seen[i].channel;
		detail->bytes = seen[i].bytes;
		detail->time_ns[3] = detail->time_ns[1] + seen[i].us * US;
	}
	snprintf(info, sizeof(info), "host=node-%d\npid=%d\njob=j\nrank=%d\nmode=full\n", number,
		 100 + number, number);
	whole_file(recording, rank, info, true);
	free(rank);
}

enum { SEND = OP_DETAIL_IS_SEND, MIB = 1 << 20 };

int main(void)
{
	static const struct {
		const char *what;
		struct seen seen[DETAILS_MAX];
		uint32_t peer; /* UINT32_MAX: unknown */
		int32_t channel;
	} cases[] = {
		{ "without details nothing is known", { { .kind = 0 } }, UINT32_MAX, -1 },
		{ "one connection", { { 2, 7, 300, MIB, OP_DETAIL_PROXY, SEND, 1 } }, 2, 7 },
		{ "all channels to one peer: it is not a channel",
		  { { 2, 0, 300, MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 2, 1, 900, MIB, OP_DETAIL_PROXY, SEND, 1 } },
		  2,
		  -1 },
		{ "the slowest by time per byte, of two peers",
		  { { 2, 0, 300, MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 3, 5, 400, MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 0, 6, 900, 3 * MIB, OP_DETAIL_PROXY, SEND, 1 } },
		  3,
		  5 },
		{ "details of one connection are added up",
		  { { 2, 0, 100, MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 3, 5, 400, MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 3, 5, 100, 3 * MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 2, 0, 400, MIB, OP_DETAIL_PROXY, SEND, 1 } },
		  2,
		  0 },
		{ "few bytes are slow by nature",
		  { { 2, 0, 300, MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 3, 5, 300, MIB / 21, OP_DETAIL_PROXY, SEND, 1 } },
		  2,
		  -1 },
		{ "a twentieth of the bytes counts",
		  { { 2, 0, 300, MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 3, 5, 300, MIB / 19, OP_DETAIL_PROXY, SEND, 1 } },
		  3,
		  5 },
		{ "only what this communicator sends counts",
		  { { 2, 0, 300, MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 3, 1, 900, MIB, OP_DETAIL_PROXY, 0, 1 },
		    { 3, 2, 900, MIB, OP_DETAIL_STEP, SEND, 1 },
		    { 3, 3, 900, MIB, OP_DETAIL_PROXY, SEND | OP_DETAIL_IS_FOREIGN, 1 },
		    { 3, 4, 900, MIB, OP_DETAIL_PROXY, SEND, 2 },
		    { 3, 5, 0, MIB, OP_DETAIL_PROXY, SEND, 1 },
		    { 3, 6, 900, 0, OP_DETAIL_PROXY, SEND, 1 } },
		  2,
		  -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct timeline_options options = TIMELINE_OPTIONS_INIT;
		const struct straggler *link;
		struct timeline_report report;
		struct recording recording;

		recording_init(&recording);
		for (int rank = 0; rank < RANKS; rank++)
			add_rank(&recording, rank, cases[i].seen);
		if (recording_finish(&recording) != OK ||
		    timeline_report_make(&report, &recording, NULL, &options) != OK)
			abort();
		link = report.stragglers.list;
		EXPECT(report.stragglers.count == 1 && link->class == STRAGGLER_SLOW_LINK &&
		       link->rank == SENDER);
		if (!EXPECT_THAT(cases[i].what, report.stragglers.count == 1 &&
							link->peer == cases[i].peer &&
							link->channel == cases[i].channel) &&
		    report.stragglers.count > 0)
			printf("# peer %u, channel %d\n", link->peer, link->channel);
		EXPECT(report.stragglers.count == 1 &&
		       link->peer_confidence == (cases[i].peer == UINT32_MAX ? 0 : 0.95));
		timeline_report_release(&report);
		recording_release(&recording);
	}
	return tap_done();
}
