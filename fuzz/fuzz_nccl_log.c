/*
 * A log of NCCL from any bytes, and the doctor's verdicts on it: every line is counted once, no
 * index is out of range.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/hash.h"
#include "doctor/doctor.h"
#include "fuzz/fuzz_main.h"
#include "import/nccl_log.h"

static void check_text(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20)
			abort();
}

static void check_facts(const struct nccl_log *log)
{
	uint64_t kinds = 0, others = log->others_left_out;

	for (int i = 0; i < NCCL_LOG_KINDS; i++)
		kinds += log->kinds[i];
	for (size_t i = 0; i < log->other_count; i++) {
		check_text(log->others[i].beginning);
		others += log->others[i].lines;
	}
	if (kinds != log->nccl_lines || others != log->kinds[NCCL_LOG_KIND_OTHER])
		abort();
	for (size_t i = 0; i < log->comm_count; i++)
		if (log->comms[i].process >= log->process_count || log->comms[i].rank < 0 ||
		    log->comms[i].rank >= log->comms[i].nranks ||
		    log->comms[i].previous >= (int32_t)i)
			abort();
	for (size_t i = 0; i < log->link_count; i++) {
		check_text(log->links[i].detail);
		if (log->links[i].process >= log->process_count ||
		    log->links[i].comm >= (int32_t)log->comm_count ||
		    log->links[i].transport >= NCCL_LOG_TRANSPORTS)
			abort();
	}
	for (size_t i = 0; i < log->report_count; i++)
		check_text(log->reports[i].text);
	for (size_t i = 0; i < log->queue_count; i++) {
		check_text(log->queues[i].device);
		check_text(log->queues[i].peer);
		if (log->queues[i].process >= log->process_count || log->queues[i].number < 0 ||
		    log->queues[i].stall_lines + log->queues[i].slow_lines > log->nccl_lines)
			abort();
	}
	for (size_t i = 0; i < log->diagnosis_count; i++) {
		check_text(log->diagnoses[i].text);
		if (log->diagnoses[i].process >= log->process_count ||
		    log->diagnoses[i].rank_count > NCCL_LOG_DIAGNOSIS_RANKS)
			abort();
	}
	for (size_t i = 0; i < log->warning_count; i++) {
		check_text(log->warnings[i].text);
		if (log->warnings[i].process >= log->process_count ||
		    log->warnings[i].place.line > log->files[log->warnings[i].place.file].lines)
			abort();
	}
}

static void check_verdicts(const struct nccl_log *log)
{
	struct verdicts verdicts;
	struct verdict *hang;

	verdicts_init(&verdicts);
	/* A hang that queue pairs may belong to. */
	hang = verdicts_add(&verdicts, VERDICT_NETWORK_STUCK, VERDICT_ERROR);
	memcpy(hang->host, "n1", 3);
	hang->pid = 100;
	verdict_title(hang, "stuck");
	if (setup_find(&verdicts, log, NULL) != OK)
		abort();
	for (size_t i = 0; i < verdicts.count; i++) {
		const struct verdict *verdict = &verdicts.list[i];

		check_text(verdict->title);
		if (!(verdict->confidence >= 0 && verdict->confidence <= 1))
			abort();
		if (verdict->class != VERDICT_SETUP)
			continue;
		if (verdict->rule[0] == '\0' || verdict->title[0] == '\0' ||
		    verdict->evidence.count == 0 || verdict->advice.count == 0)
			abort();
		for (size_t j = 0; j < verdict->evidence.count; j++)
			check_text(verdict->evidence.list[j]);
	}
	verdicts_release(&verdicts);
}

/* The same result in one piece and through a descriptor. */
static void read_both(const char *text, size_t length)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct nccl_log one, other;

	if (fd == -1 || write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	nccl_log_init(&one);
	nccl_log_init(&other);
	if (nccl_log_add_memory(&one, "log", text, length) != OK ||
	    nccl_log_add_fd(&other, "log", fd) != OK)
		abort();
	if (one.lines != other.lines || one.nccl_lines != other.nccl_lines ||
	    one.link_count != other.link_count || one.comm_count != other.comm_count ||
	    memcmp(one.kinds, other.kinds, sizeof(one.kinds)) != 0)
		abort();
	check_facts(&one);
	check_verdicts(&one);
	nccl_log_release(&one);
	nccl_log_release(&other);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char head[] = "n1:1:1 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 "
				   "cudaDev 0 nvmlDev 0 "
				   "busId 1 commId 0x7 - Init START\nn1:1:1 [0] NCCL INFO ";
	char *text = malloc(sizeof(head) + size);
	size_t used = sizeof(head) - 1;

	memcpy(text, head, used);
	/* Each line of the input is a message of its own. */
	if (size > 0)
		memcpy(text + used, data, size);
	read_both(text, used + size);
	read_both(text + used, size);
	free(text);
	return 0;
}
