#include "base/status.h"

const char *status_text(enum status status)
{
	switch (status) {
	case OK:
		return "ok";
	case ERR_SYSTEM:
		return "system call failed";
	case ERR_FORMAT:
		return "not in the expected format";
	case ERR_VERSION:
		return "written by a newer version of Ringside";
	case ERR_TRUNCATED:
		return "ends too early";
	case ERR_NO_SPACE:
		return "no room";
	case ERR_RANGE:
		return "number out of range";
	case ERR_UNKNOWN:
		return "unknown name";
	case ERR_GONE:
		return "no longer there";
	}
	return "unknown status";
}
