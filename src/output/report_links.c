/* Links of a report as text, JSON and CSV: what ranks sent to each other, and their speed on the wire. */
#include "output/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/text.h"
#include "output/csv.h"
#include "output/table.h"

enum { SHOWN = 8 };
static const double clearly_slower = 2; /* than the median link: the one that is named */

/* "3", "node1:4711", "rank 2 of world": the rank at the other end was not recorded. */
static void peer_words(const struct timeline_report *report, const struct wire_row *row,
		       char to[static REPORT_KEY_TEXT])
{
	const struct job *job = &report->job;

	if (row->to != UINT32_MAX)
		text_copy(to, REPORT_KEY_TEXT, job->ranks[job->seats[row->to].rank].label);
	else
		text_format(to, REPORT_KEY_TEXT, "%" PRId32 " of %.100s", row->peer,
			    job->comms[job->seats[row->from].comm].label);
}

static const char *own_words(const struct timeline_report *report, const struct wire_row *row)
{
	return report->job.ranks[report->job.seats[row->from].rank].label;
}

void report_words_links(const struct timeline_report *report, char to[static REPORT_WORDS])
{
	const struct wires *wires = &report->wires;
	char middle[REPORT_BANDWIDTH], low[REPORT_BANDWIDTH], high[REPORT_BANDWIDTH],
		peer[REPORT_KEY_TEXT];
	const struct wire_row *slowest;

	to[0] = '\0';
	if (wires->known == 0)
		return;
	slowest = &wires->list[wires->slowest];
	text_format(to, REPORT_WORDS, "%s GB/s on the wire",
		    report_bandwidth(middle, wires->median));
	if (wires->known > 1)
		text_append(to, REPORT_WORDS, " (median of %zu links, %s to %s)", wires->known,
			    report_bandwidth(low, wires->least),
			    report_bandwidth(high, wires->most));
	if (wires->least * clearly_slower < wires->median) {
		peer_words(report, slowest, peer);
		text_append(to, REPORT_WORDS, "; slowest: %s -> %s", own_words(report, slowest),
			    peer);
	}
}

/* The order of the table: links that carry enough, the slowest first; unknown ones and the others by their bytes. */
static int by_rate(const void *one, const void *other)
{
	const struct wire_row *a = *(const struct wire_row *const *)one,
			      *b = *(const struct wire_row *const *)other;
	double rate_a = a->is_main ? wire_rate(a) : 0, rate_b = b->is_main ? wire_rate(b) : 0;

	if ((rate_a > 0) != (rate_b > 0))
		return rate_a > 0 ? -1 : 1;
	return ORDER(rate_a, rate_b) ?: ORDER(b->bytes, a->bytes) ?: ORDER(a, b);
}

static void add_row(struct report_grid *grid, const struct timeline_report *report,
		    const struct wire_row *row)
{
	const struct job *job = &report->job;
	const struct job_seat *seat = &job->seats[row->from];
	char peer[REPORT_KEY_TEXT], rate[REPORT_BANDWIDTH], bytes[UNITS_TEXT], time[UNITS_TEXT];

	peer_words(report, row, peer);
	report_grid_cell(grid, own_words(report, row));
	report_grid_cell(grid, peer);
	report_grid_cell(grid, job->hosts[job->ranks[seat->rank].host].name);
	report_grid_cell(grid,
			 row->to == UINT32_MAX
				 ? "-"
				 : job->hosts[job->ranks[job->seats[row->to].rank].host].name);
	report_grid_cell(grid, job->comms[seat->comm].label);
	report_grid_cell(grid, report_bandwidth(rate, wire_rate(row)));
	report_grid_cell(grid, units_bytes(bytes, row->bytes));
	report_grid_cell(grid, row->wire_ns > 0 ? units_duration(time, row->wire_ns) : "-");
	report_grid_cellf(grid, "%" PRIu64, row->transfers);
}

enum status report_text_links(struct sink *sink, const struct timeline_report *report,
			      const struct report_text_options *options)
{
	const struct wires *wires = &report->wires;
	const struct wire_row **order = calloc(wires->count + 1, sizeof(const struct wire_row *));
	size_t shown = options->has_all || wires->count < SHOWN ? wires->count : SHOWN;
	enum status status = ERR_NO_SPACE;
	struct report_grid grid;

	if (order == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < wires->count; i++)
		order[i] = &wires->list[i];
	qsort(order, wires->count, sizeof(const struct wire_row *), by_rate);
	report_grid_init(&grid);
	report_grid_column(&grid, "FROM", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "TO", TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "HOST", TABLE_LEFT, 8, 6);
	report_grid_column(&grid, "TO HOST", TABLE_LEFT, 8, 7);
	report_grid_column(&grid, "COMMUNICATOR", TABLE_LEFT, 0, 4);
	report_grid_column(&grid, "GB/S", TABLE_RIGHT, 0, 2);
	report_grid_column(&grid, "BYTES", TABLE_RIGHT, 0, 3);
	report_grid_column(&grid, "ON THE WIRE", TABLE_RIGHT, 0, 5);
	report_grid_column(&grid, "TRANSFERS", TABLE_RIGHT, 0, 8);
	for (size_t i = 0; i < shown; i++)
		add_row(&grid, report, order[i]);
	status = report_grid_write(&grid, sink, options->width, NULL);
	report_grid_release(&grid);
	free(order);
	if (status == OK && shown < wires->count)
		sink_format(sink, "(%zu more %s; --all shows them)\n", wires->count - shown,
			    text_which(wires->count - shown, "link", "links"));
	return status;
}

void report_json_put_links(struct json *json, const struct timeline_report *report)
{
	const struct job *job = &report->job;
	const struct wires *wires = &report->wires;

	json_put_array(json, "links");
	for (size_t i = 0; i < wires->count; i++) {
		const struct wire_row *row = &wires->list[i];
		const struct job_seat *from = &job->seats[row->from];

		json_object(json);
		json_put_unsigned(json, "from_index", from->rank);
		json_put_known(json, "to_index", row->to != UINT32_MAX,
			       row->to != UINT32_MAX ? job->seats[row->to].rank : 0);
		json_put_unsigned(json, "comm_index", from->comm);
		json_put_signed(json, "peer_comm_rank", row->peer);
		json_put_unsigned(json, "bytes", row->bytes);
		json_put_unsigned(json, "transfers", row->transfers);
		json_put_known(json, "wire_ns", row->wire_ns > 0, row->wire_ns);
		json_put_known_double(json, "bytes_per_second", row->wire_ns > 0,
				      round(wire_rate(row)));
		json_end(json);
	}
	json_end(json);
}

enum status report_csv_links(struct sink *sink, const struct timeline_report *report)
{
	const struct job *job = &report->job;

	sink_text(sink, "from,to,host,to_host,comm,bytes,transfers,wire_ns,bytes_per_second");
	csv_line(sink);
	for (size_t i = 0; i < report->wires.count; i++) {
		const struct wire_row *row = &report->wires.list[i];
		const struct job_seat *from = &job->seats[row->from];
		char peer[REPORT_KEY_TEXT];

		peer_words(report, row, peer);
		csv_text(sink, own_words(report, row));
		sink_byte(sink, ',');
		csv_text(sink, peer);
		sink_byte(sink, ',');
		csv_text(sink, job->hosts[job->ranks[from->rank].host].name);
		sink_byte(sink, ',');
		csv_text(sink,
			 row->to == UINT32_MAX
				 ? ""
				 : job->hosts[job->ranks[job->seats[row->to].rank].host].name);
		sink_byte(sink, ',');
		csv_text(sink, job->comms[from->comm].label);
		sink_format(sink, ",%" PRIu64 ",%" PRIu64 ",", row->bytes, row->transfers);
		if (row->wire_ns > 0)
			sink_format(sink, "%" PRIu64 ",%.0f", row->wire_ns, wire_rate(row));
		else
			sink_byte(sink, ',');
		csv_line(sink);
	}
	return sink->status;
}
