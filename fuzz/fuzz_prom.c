/*
 * Prometheus' answers: any bytes, in pieces that end at a NUL. The first byte of a piece selects
 * the query that it answers, and whether it is a raw answer or the samples of a valid one. The
 * result must satisfy what recording.h guarantees, and verdicts can be derived from it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "doctor/prom.h"
#include "fuzz/fuzz_main.h"

#define BEFORE "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
#define BEHIND "]}}"

static void must(bool is_so)
{
	if (!is_so)
		abort();
}

static bool is_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return length < size;
}

static void take(struct prom *prom, const uint8_t *piece, size_t length)
{
	bool is_whole = piece[0] & 0x80;
	size_t room = length + sizeof(BEFORE BEHIND);
	char *text = malloc(room), why[PROM_WHY_SIZE] = "";
	size_t used = 0;

	if (text == NULL)
		return;
	if (!is_whole) {
		memcpy(text, BEFORE, sizeof(BEFORE) - 1);
		used = sizeof(BEFORE) - 1;
	}
	memcpy(text + used, piece + 1, length - 1);
	used += length - 1;
	if (!is_whole) {
		memcpy(text + used, BEHIND, sizeof(BEHIND) - 1);
		used += sizeof(BEHIND) - 1;
	}
	/* The exact size, so that reads past the end are caught. */
	text = realloc(text, used == 0 ? 1 : used);
	if (prom_take(prom, (piece[0] & 0x7f) % 23, text, used, why, sizeof(why)) != OK)
		must(why[0] != '\0' && is_text(why, sizeof(why)));
	free(text);
}

static void look_at(const struct recording_process *process)
{
	must(is_text(process->job, sizeof(process->job)));
	must(is_text(process->host, sizeof(process->host)));
	for (size_t i = 0; i < process->comm_count; i++)
		must(process->comms[i].info.id == i + 1 &&
		     is_text(process->comms[i].info.name, sizeof(process->comms[i].info.name)));
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];
		const struct op_record *before = i > 0 ? &flight[-1].op : NULL;

		must(recording_comm(process, flight->op.comm) != NULL);
		must(op_check_live(&flight->op) == NULL);
		must(before == NULL || before->comm < flight->op.comm ||
		     (before->comm == flight->op.comm && before->number < flight->op.number));
		must(flight->proxy_count <= 1 || flight->proxies != NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prom_options options = { .job = "", .hang_ns = 1000000000 };
	struct prom *prom = prom_new(&options);
	struct recording recording;
	struct verdicts verdicts;
	struct job job;

	if (prom == NULL)
		return 0;
	for (const uint8_t *at = data, *end = data + size; at < end;) {
		const uint8_t *stop = memchr(at, '\0', (size_t)(end - at));
		size_t length = (size_t)((stop ? stop : end) - at);

		if (length > 0)
			take(prom, at, length);
		at += length + 1;
	}
	recording_init(&recording);
	must(prom_finish(prom, &recording) == OK);
	for (size_t i = 0; i < recording.count; i++)
		look_at(recording.processes[i]);
	verdicts_init(&verdicts);
	if (job_make(&job, &recording) == OK) {
		struct hang_options hang = { .hang_ns = options.hang_ns };
		struct slow_sums_options slow = { .threshold = 0.01 };

		hang.sources = prom_sources(prom, &hang.source_count);
		must(hang_find(&verdicts, &job, &hang) == OK);
		must(prom_slow(prom, &verdicts, &slow) == OK);
		job_release(&job);
	}
	verdicts_release(&verdicts);
	recording_release(&recording);
	prom_free(prom);
	return 0;
}
