#include "programs/cli/verify_judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_process.h"

static char *format(const char *text, va_list values)
{
	char *made = NULL;

	if (vasprintf(&made, text, values) == -1)
		cli_no_memory();
	return made;
}

static void note(struct verify_process *of, enum verify_weight weight, const char *text, ...)
	PRINTF_LIKE(3, 4);

static void note(struct verify_process *of, enum verify_weight weight, const char *text, ...)
{
	va_list values;

	of->notes = cli_realloc(of->notes, (of->note_count + 1) * sizeof(*of->notes));
	va_start(values, text);
	of->notes[of->note_count++] = (struct verify_note){ weight, format(text, values) };
	va_end(values);
}

/* "1 operation was", "2 operations were" */
#define WERE(count) (count) == 1 ? " was" : "s were"

static void judge_counts(struct verify_process *of)
{
	const struct recording_account *account = &of->account;

	if (!of->process->has_counts)
		note(of, VERIFY_TROUBLE,
		     "how many operations were issued is not known: the file was cut "
		     "before its first counts");
	if (of->process->is_snapshot)
		note(of, VERIFY_FACT,
		     "a snapshot, one moment of it: of %" PRIu64
		     " recorded operations it was given the last %" PRIu64,
		     of->process->recorded, account->kept);
	if (account->is_moving)
		note(of, VERIFY_FACT, "it runs: its counts were taken while they changed");
	if (account->is_moving || !of->process->has_counts)
		return;
	if (account->missing != 0)
		note(of, VERIFY_TROUBLE,
		     "%" PRId64 " operations were issued that are neither recorded nor counted as "
		     "lost",
		     account->missing);
	if (!of->process->is_snapshot && !account->keeps_all && account->kept < account->recorded)
		note(of, VERIFY_FACT,
		     "mode %s keeps the last operations only: %" PRIu64 " of %" PRIu64
		     " can be read",
		     of->process->mode, account->kept, account->recorded);
	if (account->keeps_all && account->unread != 0)
		note(of, VERIFY_TROUBLE, "%" PRId64 " recorded operations cannot be read back",
		     account->unread);
}

/* Another tool has other reasons. */
static const char *lost_words(const struct recording_process *process, unsigned int reason)
{
	char recorder[32];

	if (!recording_info(process, "recorder", recorder, sizeof(recorder)))
		return verify_lost_words(reason);
	switch (reason) {
	case LOST_RING_OVERRUN:
		return "overwritten in its recorder's ring before they were written";
	case LOST_OFF:
		return "NCCL counted them, its recorder did not write them: too small for it, not "
		       "finished, or lost";
	default:
		return verify_lost_words(reason);
	}
}

/* Its recorder counts nothing at the end, and NCCL's numbers tell only of what came before. */
static void judge_recorder(struct verify_process *of)
{
	char recorder[32];

	if (recording_info(of->process, "recorder", recorder, sizeof(recorder)))
		note(of, VERIFY_REMARK,
		     "recorded by %s: whether operations followed its last record is not known",
		     recorder);
}

static void judge_losses(struct verify_process *of)
{
	uint64_t recovered = of->account.walk.recovered;

	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		uint64_t count = of->process->lost[i];
		const char *words = lost_words(of->process, i);

		if (count == 0)
			continue;
		if (op_lost_is_whole(i))
			note(of, VERIFY_TROUBLE, "%" PRIu64 " operation%s lost: %s", count,
			     WERE(count), words ? words : "for a reason of a newer version");
		else
			note(of, VERIFY_REMARK, "%" PRIu64 " %s", count,
			     words ? words : "losses for a reason of a newer version");
	}
	if (of->account.lost_uncounted > 0)
		note(of, VERIFY_TROUBLE,
		     "%" PRIu64 " operation%s lost: overwritten in the region before they reached "
		     "the file, and uncounted, for the process was killed",
		     of->account.lost_uncounted, WERE(of->account.lost_uncounted));
	if (recovered > 0)
		note(of, VERIFY_FACT,
		     "%" PRIu64 " of the operations counted as lost are still in the region",
		     recovered);
}

static void judge_damage(struct verify_process *of)
{
	const struct recording_walk *walk = &of->account.walk;

	if (of->status != OK)
		note(of, VERIFY_TROUBLE, "its operations cannot be read: %s",
		     of->status == ERR_SYSTEM ? strerror(errno) : status_text(of->status));
	if (walk->damages > 0)
		note(of, VERIFY_TROUBLE, "%" PRIu64 " %s%s of its %s cannot be read: damaged",
		     walk->damages, of->process->foreign ? "line" : "block",
		     walk->damages == 1 ? "" : "s", of->process->foreign ? "log" : "trace");
	if (walk->refused > 0)
		note(of, VERIFY_TROUBLE, "%" PRIu64 " record%s damaged (%s)", walk->refused,
		     walk->refused == 1 ? " is" : "s are", walk->problem ? walk->problem : "?");
	if (of->process->refused > 0)
		note(of, VERIFY_TROUBLE, "%zu slots of its region are damaged",
		     of->process->refused);
	if (walk->untimed > 0)
		note(of, VERIFY_REMARK, "%" PRIu64 " record%s times that contradict each other",
		     walk->untimed, walk->untimed == 1 ? " has" : "s have");
	if (walk->torn > 0 && of->process->life != RECORDING_ALIVE)
		note(of,
		     of->account.keeps_all && of->account.unread != 0 ? VERIFY_TROUBLE
								      : VERIFY_REMARK,
		     "%" PRIu64 " record%s being written when it died", walk->torn,
		     WERE(walk->torn));
	if (walk->repeated > 0)
		note(of, VERIFY_REMARK, "%" PRIu64 " records came twice and were taken once",
		     walk->repeated);
}

static const char *cut_words(enum recording_life life, bool is_whole)
{
	if (is_whole)
		return "the region has the rest";
	if (life == RECORDING_KILLED)
		return "its process was killed, and what it recorded after that is not known";
	return "its process was killed, or still runs on another machine";
}

/* A cut file costs nothing where the region has the rest. */
static void judge_files(struct verify_process *of)
{
	const struct recording_process *process = of->process;
	bool is_whole = process->region && of->account.is_exact;

	for (size_t i = 0; i < process->file_count; i++) {
		const struct recording_file *file = &process->files[i];

		if (file->is_closed || process->life == RECORDING_ALIVE ||
		    (file->is_snapshot && process->is_final))
			continue;
		note(of, is_whole ? VERIFY_FACT : VERIFY_TROUBLE,
		     "%s ends at byte %" PRIu64 " without its closing record: %s", file->path,
		     file->cut_offset, cut_words(process->life, is_whole));
	}
	for (size_t i = 0; i < process->file_count; i++)
		if (process->files[i].unknown_blocks > 0)
			note(of, VERIFY_REMARK, "%s has %" PRIu64 " blocks of a newer version",
			     process->files[i].path, process->files[i].unknown_blocks);
}

static void judge_trust(struct verify_process *of)
{
	if (of->account.untrusted > 0)
		note(of, VERIFY_REMARK,
		     "%" PRIu64 " operation%s GPU times that are not believed and not used",
		     of->account.untrusted, of->account.untrusted == 1 ? " has" : "s have");
	for (unsigned int i = 0; i < ODD_REASONS; i++)
		if (of->process->odd[i] > 0)
			note(of, VERIFY_REMARK, "odd: %" PRIu64 " %s", of->process->odd[i],
			     verify_odd_words(i) ? verify_odd_words(i)
						 : "for a reason of a newer version");
}

/* What the recorder had to say to its user, who may not have seen it. */
static void judge_messages(struct verify_process *of)
{
	char key[24], message[1024];

	for (unsigned int i = 1; text_format(key, sizeof(key), "message.%u", i) &&
				 recording_info(of->process, key, message, sizeof(message));
	     i++)
		note(of, VERIFY_FACT, "message: %s", message);
}

static void judge(struct verify_process *of)
{
	judge_damage(of);
	judge_counts(of);
	judge_losses(of);
	judge_recorder(of);
	judge_files(of);
	judge_trust(of);
	judge_messages(of);
}

static void set_first_trouble(struct verify *verify, const char *text, ...) PRINTF_LIKE(2, 3);

static void set_first_trouble(struct verify *verify, const char *text, ...)
{
	va_list values;

	if (verify->first_trouble)
		return;
	va_start(values, text);
	verify->first_trouble = format(text, values);
	va_end(values);
}

/* A file's own trouble first: the rest may follow from it. */
static void find_first_trouble(struct verify *verify)
{
	const struct recording *recording = &verify->input->recording;
	char who[CLI_PROCESS_TEXT];

	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		/* Whether a cut matters is judged with its process. */
		if (trouble->kind != RECORDING_CUT && cli_input_is_trouble(verify->input, trouble))
			set_first_trouble(verify, "%s: %s", trouble->path, trouble->what);
	}
	for (size_t i = 0; i < verify->count; i++) {
		struct verify_process *of = &verify->processes[i];

		for (size_t j = 0; j < of->note_count; j++)
			if (of->notes[j].weight == VERIFY_TROUBLE)
				set_first_trouble(verify, "%s: %s",
						  cli_process_text(of->process, who),
						  of->notes[j].text);
	}
	if (verify->count == 0)
		set_first_trouble(verify, "%s",
				  verify->input->path_count > 0 ? "nothing is recorded there"
								: CLI_INPUT_NOTHING);
}

/* An operation that is over stays in its live slot for a moment, in case more events of it come. For
 * the recorder it is not recorded yet; for people it is, and can be read. */
static void count_lingering(struct verify_process *of)
{
	struct recording_account *account = &of->account;

	for (size_t i = 0; i < of->process->flight_count; i++) {
		const struct recording_flight *flight = &of->process->flights[i];
		struct recording_account_comm *comm = NULL;

		for (size_t j = 0; j < account->comm_count; j++)
			if (account->comms[j].id == flight->op.comm)
				comm = &account->comms[j];
		if (flight->op.state != OP_DONE || flight->is_retiring || comm == NULL ||
		    comm->in_flight == 0 || account->in_flight == 0)
			continue;
		comm->in_flight--;
		comm->recorded++;
		comm->kept++;
		account->in_flight--;
		account->recorded++;
		account->kept++;
	}
}

void verify_init(struct verify *verify, const struct cli_input *input, bool is_strict)
{
	size_t count = input->recording.count;

	*verify = (struct verify){ .input = input, .count = count };
	verify->processes = cli_realloc(NULL, (count ? count : 1) * sizeof(*verify->processes));
	memset(verify->processes, 0, count * sizeof(*verify->processes));
	for (size_t i = 0; i < count; i++) {
		struct verify_process *of = &verify->processes[i];

		of->process = input->recording.processes[i];
		of->status = recording_account(&of->account, of->process);
		if (of->status == ERR_NO_SPACE)
			cli_no_memory();
		judge(of);
		count_lingering(of);
		for (size_t j = 0; j < of->note_count && is_strict; j++)
			if (of->notes[j].weight == VERIFY_REMARK)
				of->notes[j].weight = VERIFY_TROUBLE;
	}
	find_first_trouble(verify);
}

void verify_release(struct verify *verify)
{
	for (size_t i = 0; i < verify->count; i++) {
		struct verify_process *of = &verify->processes[i];

		for (size_t j = 0; j < of->note_count; j++)
			free(of->notes[j].text);
		free(of->notes);
		recording_account_release(&of->account);
	}
	free(verify->processes);
	free(verify->first_trouble);
}
