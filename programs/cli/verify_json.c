#include <string.h>

#include "common/nccl_interface.h"
#include "common/op.h"
#include "programs/cli/cli_process.h"
#include "programs/cli/verify_show.h"
#include "recording/recording.h"
#include "view/report_json.h"

static void put_comm(struct json *json, const struct recording_process *process,
		     const struct recording_account_comm *comm)
{
	json_object(json);
	cli_comm_json(json, comm->id, recording_comm(process, comm->id));
	json_put_bool(json, "has_counts", comm->has_counts);
	json_put_unsigned(json, "issued", comm->issued);
	json_put_unsigned(json, "recorded", comm->recorded);
	json_put_unsigned(json, "timed", comm->timed);
	json_put_unsigned(json, "untrusted", comm->untrusted);
	json_put_unsigned(json, "captured", comm->captured);
	json_put_unsigned(json, "replayed", comm->replayed);
	json_put_unsigned(json, "abandoned", comm->abandoned);
	json_put_unsigned(json, "untracked", comm->untracked);
	json_put_unsigned(json, "in_flight", comm->in_flight);
	json_put_unsigned(json, "readable", comm->kept);
	json_put_signed(json, "missing", comm->missing);
	json_end(json);
}

/* Reasons that occurred, by name. */
static void put_reasons(struct json *json, const char *key, const uint64_t *counts, size_t count,
			const char *(*name)(unsigned int))
{
	json_put_object(json, key);
	for (unsigned int i = 0; i < count; i++)
		if (counts[i] > 0)
			json_put_unsigned(json, name(i) ? name(i) : "unknown", counts[i]);
	json_end(json);
}

static void put_files(struct json *json, const struct recording_process *process)
{
	json_put_array(json, "files");
	for (size_t i = 0; i < process->file_count; i++) {
		const struct recording_file *file = &process->files[i];

		json_object(json);
		json_put_string(json, "path", file->path);
		json_put_unsigned(json, "bytes", file->bytes);
		json_put_unsigned(json, "operations", file->records);
		json_put_unsigned(json, "details", file->details);
		json_put_unsigned(json, "damages", file->damages);
		json_put_bool(json, "is_closed", file->is_closed);
		if (file->is_snapshot)
			json_put_bool(json, "is_snapshot", true);
		cli_json_time_or_null(json, "cut_offset", file->is_closed ? 0 : file->cut_offset);
		json_end(json);
	}
	json_end(json);
}

static void put_notes(struct json *json, const char *key, const struct verify_process *of,
		      bool is_trouble)
{
	json_put_array(json, key);
	for (size_t i = 0; i < of->note_count; i++)
		if ((of->notes[i].weight == VERIFY_TROUBLE) == is_trouble)
			json_string(json, of->notes[i].text);
	json_end(json);
}

static void put_kernel_events(struct json *json, const struct recording_process *process)
{
	char is_on[8], reason[RECORDING_REASON];

	recording_kernel_events(process, is_on, reason);
	cli_json_text_or_null(json, "kernel_events", is_on);
	cli_json_text_or_null(json, "kernel_events_reason", reason);
	json_put_string(json, "kernel_events_missed",
			strcmp(is_on, "off") == 0 ? op_kernel_events_missed() : NULL);
}

static void put_process(struct json *json, const struct verify_process *of)
{
	const struct recording_process *process = of->process;
	const struct recording_account *account = &of->account;

	json_object(json);
	cli_process_json(json, process);
	json_put_string(json, "state", recording_life_name(process->life));
	cli_json_text_or_null(json, "mode", process->mode);
	json_put_unsigned(json, "interface", process->interface);
	json_put_string(json, "nccl", op_interface_releases(process->interface));
	json_put_bool(json, "is_exact", account->is_exact);
	json_put_bool(json, "is_moving", account->is_moving);
	json_put_bool(json, "keeps_all", account->keeps_all);
	json_put_unsigned(json, "issued", account->issued);
	json_put_unsigned(json, "recorded", account->recorded);
	json_put_unsigned(json, "timed", account->timed);
	json_put_unsigned(json, "untrusted", account->untrusted);
	json_put_unsigned(json, "in_flight", account->in_flight);
	json_put_unsigned(json, "readable", account->kept);
	json_put_unsigned(json, "lost_operations", account->lost_operations);
	json_put_unsigned(json, "lost_details", account->lost_details);
	json_put_signed(json, "missing", account->missing);
	json_put_signed(json, "unread", account->unread);
	put_reasons(json, "lost", process->lost, LOST_REASONS, op_lost_name);
	put_reasons(json, "odd", process->odd, ODD_REASONS, op_odd_name);
	json_put_string(json, "region", process->region_path);
	put_files(json, process);
	put_kernel_events(json, process);
	put_notes(json, "troubles", of, true);
	put_notes(json, "remarks", of, false);
	json_put_array(json, "communicators");
	for (size_t i = 0; i < account->comm_count; i++)
		put_comm(json, process, &account->comms[i]);
	json_end(json);
	json_end(json);
}

static void put_blind_spots(struct json *json, const struct verify *verify)
{
	json_put_array(json, "blind_spots");
	for (unsigned int version = 1; version <= OP_INTERFACES; version++) {
		if (!verify_has_interface(verify, version))
			continue;
		json_object(json);
		json_put_unsigned(json, "interface", version);
		json_put_string(json, "nccl", op_interface_releases(version));
		json_put_array(json, "spots");
		for (size_t i = 0; op_blind_spot(version, i) != NULL; i++)
			verify_blind_spot_json(json, version, i);
		json_end(json);
		json_end(json);
	}
	json_end(json);
}

void verify_show_json(const struct verify *verify, struct sink *sink)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_bool(&json, "is_complete", verify->first_trouble == NULL);
	json_put_string(&json, "trouble", verify->first_trouble);
	json_put_array(&json, "processes");
	for (size_t i = 0; i < verify->count; i++)
		put_process(&json, &verify->processes[i]);
	json_end(&json);
	report_json_put_troubles(&json, &verify->input->recording);
	put_blind_spots(&json, verify);
	json_end(&json);
	json_line(&json);
}
