#include "bench/cost_model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/cost_parts.h"
#include "common/op_layout.h"
#include "common/text.h"

static const char *const parameter_names[COST_PARAMETERS] = {
	[COST_CALL] = "call overhead",
	[COST_LATENCY_INSIDE] = "latency inside a node",
	[COST_LATENCY_BETWEEN] = "latency between nodes",
	[COST_TIME_INSIDE] = "bandwidth inside a node",
	[COST_TIME_BETWEEN] = "bandwidth between nodes",
};

const char *cost_parameter_name(enum cost_parameter parameter)
{
	return (unsigned int)parameter < COST_PARAMETERS ? parameter_names[parameter] : "?";
}

void cost_model_init(struct cost_model *model)
{
	memset(model, 0, sizeof(*model));
}

void cost_model_note(struct cost_model *model, const char *format, ...)
{
	char note[COST_NOTE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(note, sizeof(note), format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < model->note_count; i++)
		if (strcmp(model->notes[i], note) == 0)
			return;
	if (model->note_count == COST_NOTES_MAX) {
		model->notes_lost++;
		return;
	}
	memcpy(model->notes[model->note_count++], note, sizeof(note));
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void put(struct cost_group *group, enum cost_parameter parameter, double value,
		enum cost_source source)
{
	group->value[parameter] = value;
	group->source[parameter] = (uint8_t)source;
	group->inseparable &= ~(1u << parameter);
	for (int p = 0; p < COST_PARAMETERS; p++)
		group->covariance[parameter][p] = group->covariance[p][parameter] = 0;
}

/* Protocols of a textbook keep their proportion: what is said by hand is the last one's,
 * Simple's. */
static double in_proportion(const struct cost_model *model, const struct cost_group *group, int p)
{
	const struct cost_group *simple = &model->groups[model->group_count - 1];

	if (group->source[p] != COST_FROM_HARDWARE || simple->source[p] != COST_FROM_HARDWARE ||
	    simple->value[p] <= 0)
		return 1;
	return group->value[p] / simple->value[p];
}

enum status cost_model_set(struct cost_model *model, enum cost_parameter parameter, double value)
{
	bool is_time = parameter == COST_TIME_INSIDE || parameter == COST_TIME_BETWEEN;

	if ((unsigned int)parameter >= COST_PARAMETERS || !isfinite(value) || value < 0 ||
	    (is_time && value == 0))
		return ERR_RANGE;
	if (model->group_count == 0)
		model->group_count = 1;
	for (size_t i = 0; i < model->group_count; i++) {
		struct cost_group *group = &model->groups[i];

		put(group, parameter, value * in_proportion(model, group, parameter), COST_BY_HAND);
		if (is_time)
			group->faster &= ~(1u << (parameter - COST_TIME_INSIDE));
	}
	return OK;
}

/* ---- textbooks ------------------------------------------------------------------------------- */

/* Line rates times what NCCL usually gets of them. */
static const struct cost_hardware machines[] = {
	{ "a100-ib", "8 A100 SXM with NVLink 3 a node, 8 NICs of 200 Gb/s", 8, 8, 230, 24 },
	{ "h100-ib", "8 H100 or H200 SXM with NVLink 4 a node, 8 NICs of 400 Gb/s", 8, 8, 370, 48 },
	{ "b200-ib", "8 B200 with NVLink 5 a node, 8 NICs of 400 Gb/s", 8, 8, 700, 48 },
	{ "pcie4-eth", "4 GPUs on PCIe 4 a node, 1 NIC of 100 Gb/s", 4, 1, 20, 11 },
};

/* What a protocol costs, whatever the machine: round numbers. LL sends a flag with every four
 * bytes, LL128 one with every 120; Simple waits for whole chunks. */
static const struct {
	uint8_t protocol;
	double call_ns;
	double inside_ns;
	double between_ns;
	double share; /* of the bandwidth */
} protocols[] = {
	{ OP_LL, 7000, 700, 4000, 0.4 },
	{ OP_LL128, 9000, 1500, 6000, 0.9 },
	{ OP_SIMPLE, 9000, 3500, 14000, 1 },
};

enum { PROTOCOLS = sizeof(protocols) / sizeof(protocols[0]) };

const struct cost_hardware *cost_hardware(size_t index)
{
	return index < sizeof(machines) / sizeof(machines[0]) ? &machines[index] : NULL;
}

static void textbook(struct cost_group *group, const struct cost_hardware *machine, size_t row)
{
	const double values[COST_PARAMETERS] = {
		[COST_CALL] = protocols[row].call_ns,
		[COST_LATENCY_INSIDE] = protocols[row].inside_ns,
		[COST_LATENCY_BETWEEN] = protocols[row].between_ns,
		[COST_TIME_INSIDE] = 1 / (machine->inside * protocols[row].share),
		[COST_TIME_BETWEEN] = 1 / (machine->between * protocols[row].share),
	};

	for (int p = 0; p < COST_PARAMETERS; p++)
		if (group->source[p] == 0)
			put(group, (enum cost_parameter)p, values[p], COST_FROM_HARDWARE);
	/* They are known now, so they count. */
	group->faster = 0;
}

/* Of a protocol that nobody told: the one of large messages. */
static size_t row_of(uint8_t protocol)
{
	for (size_t row = 0; row < PROTOCOLS; row++)
		if (protocols[row].protocol == protocol)
			return row;
	return PROTOCOLS - 1;
}

bool cost_model_hardware(struct cost_model *model, const char *name)
{
	const struct cost_hardware *machine = NULL;

	for (size_t i = 0; cost_hardware(i) != NULL && machine == NULL; i++)
		if (strcmp(cost_hardware(i)->name, name) == 0)
			machine = cost_hardware(i);
	if (machine == NULL)
		return false;
	text_copy(model->hardware, sizeof(model->hardware), machine->name);
	if (model->rails == 0)
		model->rails = machine->rails;
	if (model->group_count == 0) {
		for (size_t row = 0; row < PROTOCOLS; row++)
			model->groups[row].protocol = protocols[row].protocol;
		model->group_count = PROTOCOLS;
	}
	for (size_t i = 0; i < model->group_count; i++)
		textbook(&model->groups[i], machine, row_of(model->groups[i].protocol));
	return true;
}

/* ---- the formula ----------------------------------------------------------------------------- */

/* Links that are known to be the faster ones need no speed where the others decide. */
static bool is_needed(const struct cost_group *group, const struct cost_work *work, int parameter)
{
	int link = (parameter - COST_LATENCY_INSIDE) % COST_LINKS;

	if (parameter == COST_CALL)
		return false;
	if (parameter < COST_TIME_INSIDE)
		return work->hops[link] > 0;
	return work->bytes[link] + work->fill[link] > 0 &&
	       !(group->faster & 1u << link && work->bytes[1 - link] > 0);
}

bool cost_time(const struct cost_group *group, const struct cost_work *work, double *time_ns,
	       enum cost_parameter *missing)
{
	double row[COST_PARAMETERS];

	for (int p = 0; p < COST_PARAMETERS; p++) {
		if (group->source[p] != 0 || (group->inseparable & 1u << p) ||
		    !is_needed(group, work, p))
			continue;
		if (missing)
			*missing = (enum cost_parameter)p;
		return false;
	}
	cost_row(work, cost_slow(work, group->value), row);
	*time_ns = cost_product(row, group->value);
	return true;
}
