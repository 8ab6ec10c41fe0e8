#include "inspector/inspector_prom.h"

#include <string.h>

#include "base/attributes.h"
#include "base/text.h"
#include "base/utf8.h"
#include "inspector/inspector_line.h"

/* The format's version as NCCL Inspector tells it: profiler interface 5, first revision. */
#define FORMAT_VERSION "v5.1"

static const struct {
	const char *name, *help;
} metrics[] = {
	[INSPECTOR_BUS_BANDWIDTH] = { "nccl_bus_bandwidth_gbs",
				      "Bus bandwidth of timed collectives finished in the "
				      "last interval, in GB/s (10^9 bytes)." },
	[INSPECTOR_EXEC_TIME] = { "nccl_collective_exec_time_microseconds",
				  "Mean execution time of timed collectives finished in the "
				  "last interval, in microseconds." },
	[INSPECTOR_P2P_BUS_BANDWIDTH] = { "nccl_p2p_bus_bandwidth_gbs",
					  "Bandwidth of timed Send and Recv finished in the "
					  "last interval, in GB/s (10^9 bytes)." },
	[INSPECTOR_P2P_EXEC_TIME] = { "nccl_p2p_exec_time_microseconds",
				      "Mean execution time of timed Send and Recv finished in the "
				      "last interval, in microseconds." },
};

const char *inspector_metric_name(enum inspector_metric metric)
{
	return (size_t)metric < ARRAY_LENGTH(metrics) ? metrics[metric].name : "?";
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* 0 for nothing, 1 below 1 KiB, then one per power of two. */
enum { SIZE_KIB = 2, SIZE_MIB = 12, SIZE_GIB = 22, SIZE_64GIB = 28, SIZE_TIB = 29 };

unsigned int inspector_size_class(uint64_t bytes)
{
	unsigned int power;

	if (bytes < 1024)
		return bytes > 0;
	power = 63 - (unsigned int)__builtin_clzll(bytes);
	if (power >= 40)
		return SIZE_TIB;
	return power - 10 + SIZE_KIB < SIZE_64GIB ? power - 10 + SIZE_KIB : SIZE_64GIB;
}

const char *inspector_size_text(char text[static INSPECTOR_SIZE_BYTES], unsigned int size_class)
{
	static const char *const units[] = { "KB", "MB", "GB" };
	unsigned int power = size_class - SIZE_KIB;

	if (size_class < SIZE_KIB)
		text_copy(text, INSPECTOR_SIZE_BYTES, size_class == 0 ? "0B" : "1-1024B");
	else if (size_class >= SIZE_64GIB)
		text_copy(text, INSPECTOR_SIZE_BYTES,
			  size_class == SIZE_64GIB ? "64-1024GB" : "1-1024TB");
	else
		text_format(text, INSPECTOR_SIZE_BYTES, "%u-%u%s", 1u << power % 10,
			    2u << power % 10, units[power / 10]);
	return text;
}

/* ---- lines ----------------------------------------------------------------------------------- */

enum { VALUE_BYTES = 520 }; /* 255 bytes, each two when it is escaped */

/* What may stand between the quotes of a label; bytes that are not UTF-8 become '?'. */
static const char *escape(char to[static VALUE_BYTES], const char *text)
{
	size_t length, used = 0;

	if (text == NULL || text[0] == '\0')
		text = "unknown";
	length = strnlen(text, 255);
	for (size_t at = 0, bytes; at < length; at += bytes) {
		unsigned char byte = (unsigned char)text[at];

		bytes = byte < 0x80 ? 1 : utf8_bytes((const unsigned char *)text + at, length - at);
		if (bytes > 1) {
			memcpy(to + used, text + at, bytes);
			used += bytes;
		} else if (byte == '"' || byte == '\\' || byte == '\n') {
			to[used++] = '\\';
			to[used++] = byte == '\n' ? 'n' : (char)byte;
		} else {
			to[used++] = bytes == 1 && byte >= 0x20 && byte != 0x7f ? (char)byte : '?';
			bytes = 1;
		}
	}
	to[used] = '\0';
	return to;
}

static bool is_p2p_metric(enum inspector_metric metric)
{
	return metric == INSPECTOR_P2P_BUS_BANDWIDTH || metric == INSPECTOR_P2P_EXEC_TIME;
}

size_t inspector_metric_head(char text[static INSPECTOR_SAMPLE_BYTES], enum inspector_metric metric)
{
	text_format(text, INSPECTOR_SAMPLE_BYTES, "# HELP %s %s\n# TYPE %s gauge\n",
		    metrics[metric].name, metrics[metric].help, metrics[metric].name);
	return strlen(text);
}

/* What Inspector does not have: behind all that it has. */
static void add_own_labels(char *to, size_t size, const struct inspector_labels *labels)
{
	char uuid[VALUE_BYTES], process[40] = "";

	if (labels->process > 1)
		text_format(process, sizeof(process), ",process=\"%u\"", labels->process);
	text_format(to, size, ",gpu_uuid=\"%s\"%s", escape(uuid, labels->gpu_uuid), process);
}

size_t inspector_metric_sample(char text[static INSPECTOR_SAMPLE_BYTES],
			       enum inspector_metric metric, const struct inspector_labels *labels,
			       double value)
{
	char job[VALUE_BYTES], node[VALUE_BYTES], name[VALUE_BYTES], algorithm[VALUE_BYTES];
	char protocol[VALUE_BYTES], own[VALUE_BYTES + 64], kind[2 * VALUE_BYTES + 32] = "";
	char gpu[24] = "unknown", size[INSPECTOR_SIZE_BYTES], number[INSPECTOR_NUMBER_BYTES];

	if (labels->gpu >= 0)
		text_format(gpu, sizeof(gpu), "GPU%d", labels->gpu);
	if (!is_p2p_metric(metric))
		text_format(kind, sizeof(kind), ",algo_proto=\"%s_%s\"",
			    escape(algorithm, labels->algorithm),
			    escape(protocol, labels->protocol));
	add_own_labels(own, sizeof(own), labels);
	text_format(text, INSPECTOR_SAMPLE_BYTES,
		    "%s{version=\"" FORMAT_VERSION "\",slurm_job_id=\"%s\",node=\"%s\",gpu=\"%s\","
		    "comm_name=\"%s\",n_nodes=\"%d\",nranks=\"%d\",%s=\"%s\",message_size=\"%s\""
		    "%s%s} %s\n",
		    metrics[metric].name, escape(job, labels->job), escape(node, labels->node), gpu,
		    escape(name, labels->comm_name), labels->nnodes, labels->nranks,
		    is_p2p_metric(metric) ? "p2p_operation" : "collective", labels->function,
		    inspector_size_text(size, labels->size), kind, own,
		    inspector_number(number, value));
	return strlen(text);
}

/* A file's name must not lead elsewhere, whatever a driver says. */
void inspector_prom_name(char name[static INSPECTOR_PROM_NAME_BYTES], const char *gpu_uuid,
			 uint32_t process)
{
	char uuid[48], number[16] = "";

	if (strncmp(gpu_uuid, "GPU-", 4) == 0)
		gpu_uuid += 4;
	text_copy(uuid, sizeof(uuid), gpu_uuid[0] != '\0' ? gpu_uuid : "unknown");
	for (char *at = uuid; *at != '\0'; at++)
		if (*at == '/' || (unsigned char)*at <= 0x20 || (unsigned char)*at >= 0x7f)
			*at = '_';
	if (process > 1)
		text_format(number, sizeof(number), "_%u", process);
	text_format(name, INSPECTOR_PROM_NAME_BYTES, "nccl_inspector_metrics_%s%s.prom", uuid,
		    number);
}
