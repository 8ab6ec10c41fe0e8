/* An answer of NCCL's RAS from any bytes, and what the doctor makes of it next to a hang. */
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "fuzz/fuzz_main.h"
#include "import/ras.h"

static void check_text(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20)
			abort();
}

static void check_status(const struct ras_status *status)
{
	check_text(status->version);
	if (status->function_count > RAS_FUNCTIONS_MAX || status->comm_count > RAS_COMMS_MAX ||
	    status->rank_count > RAS_RANKS_MAX)
		abort();
	for (size_t i = 0; i < status->rank_count; i++) {
		const struct ras_rank *rank = &status->ranks[i];

		check_text(rank->host);
		if (rank->comm >= status->comm_count || rank->rank < 0 || rank->pid == 0)
			abort();
		for (size_t j = 0; j < RAS_FUNCTIONS_MAX; j++)
			if (rank->counts[j] > status->comms[rank->comm].highest[j])
				abort();
	}
}

/* Rank 2 of the communicator that the seeds have, and one that hangs. */
static void check_verdicts(const struct ras_status *status)
{
	static struct recording_process process = { .pid = 1902, .rank = 2, .host = "gpuhost" };
	static struct recording_comm comm = {
		.info = { .hash = UINT64_C(0xec73d04b8ba8c7f5), .rank = 2, .nranks = 3 }
	};
	struct recording_process *list[] = { &process };
	struct recording recording = { .processes = list, .count = 1 };

	process.comms = &comm;
	process.comm_count = 1;
	for (int has_hang = 0; has_hang < 2; has_hang++) {
		struct verdicts verdicts;

		verdicts_init(&verdicts);
		if (has_hang) {
			struct verdict *hang =
				verdicts_add(&verdicts, VERDICT_NEVER_ISSUED, VERDICT_ERROR);

			hang->pid = 1902;
			hang->comm_hash = comm.info.hash;
			memcpy(hang->host, "gpuhost", 8);
		}
		if (ras_find(&verdicts, &recording, status, "fuzz") != OK)
			abort();
		for (size_t i = 0; i < verdicts.count; i++) {
			check_text(verdicts.list[i].title);
			for (size_t j = 0; j < verdicts.list[i].evidence.count; j++)
				check_text(verdicts.list[i].evidence.list[j]);
			if (!(verdicts.list[i].confidence >= 0 && verdicts.list[i].confidence <= 1))
				abort();
		}
		verdicts_release(&verdicts);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ras_status status;
	char *text = malloc(size + 1);

	if (size > 0)
		memcpy(text, data, size);
	ras_status_init(&status);
	if (ras_status_read(&status, text, size) == OK) {
		check_status(&status);
		check_verdicts(&status);
	}
	ras_status_release(&status);
	free(text);
	return 0;
}
