/* Names of directories as Hive has them: key=value, one level a key. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "programs/cli/export_job.h"
#include "view/json.h"
#include "view/sink.h"

/* What readers take as null. */
#define PARTITION_NULL "__HIVE_DEFAULT_PARTITION__"

static bool is_plain(unsigned char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || strchr("-_.+,@~ ", byte) != NULL;
}

/* Letters beyond ASCII stay as they are; what is no text becomes U+FFFD, as in the files. */
static void put_value(struct sink *sink, const char *value)
{
	const unsigned char *at = (const unsigned char *)value;

	if (*at == '\0')
		sink_text(sink, PARTITION_NULL);
	while (*at != '\0') {
		size_t length = json_utf8_length(at);

		if (length > 0)
			sink_write(sink, at, length);
		else if (*at >= 0x80)
			sink_text(sink, "\xef\xbf\xbd");
		else if (is_plain(*at))
			sink_byte(sink, (char)*at);
		else
			sink_format(sink, "%%%02X", *at);
		at += length ? length : 1;
	}
}

bool export_partition_name(char *name, size_t size, const struct recording_process *process,
			   unsigned int part, const char *suffix)
{
	char rank[24] = "";
	struct sink sink;
	bool fits;

	if (process->rank >= 0)
		text_format(rank, sizeof(rank), "%" PRId64, process->rank);
	sink_init_memory(&sink);
	sink_text(&sink, "job=");
	put_value(&sink, process->job);
	sink_text(&sink, "/host=");
	put_value(&sink, process->host);
	sink_text(&sink, "/rank=");
	put_value(&sink, rank);
	sink_format(&sink, "/part-%u%s", part, suffix);
	fits = text_copy(name, size, sink_string(&sink)) && sink.status == OK;
	sink_release(&sink);
	return fits;
}
