/* A peer on the port of NCCL's RAS: any bytes, in any pieces. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_main.h"
#include "import/ras.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ras_talk talk;
	enum status status = OK;
	size_t at = 1;

	if (size == 0)
		return 0;
	ras_talk_init(&talk, (enum ras_request)(data[0] % 3), data[0]);
	while (at < size && status == OK) {
		size_t piece = 1 + data[at] % 32;

		piece = piece < size - at ? piece : size - at;
		status = ras_talk_take(&talk, (const char *)data + at, piece);
		if (memchr(talk.request, '\0', sizeof(talk.request)) == NULL ||
		    strcasestr(talk.request, "control") != NULL)
			abort();
		talk.request[0] = data[0] & 2 ? '\0' : talk.request[0];
		at += piece;
	}
	if (status == OK)
		status = ras_talk_end(&talk);
	if (status == ERR_FORMAT && talk.why[0] == '\0')
		abort();
	for (size_t i = 0; i < talk.answer_length; i++)
		if ((unsigned char)talk.answer[i] < 0x20 && talk.answer[i] != '\n' &&
		    talk.answer[i] != '\t')
			abort();
	ras_talk_release(&talk);
	return 0;
}
