/* How functions of src/ say that they failed. They print nothing; programs do. */
#ifndef STATUS_H
#define STATUS_H

enum status {
	OK = 0,
	ERR_SYSTEM = -1,    /* a system call failed; errno says why */
	ERR_FORMAT = -2,    /* bytes that are not what they claim to be */
	ERR_VERSION = -3,   /* written by a newer major version */
	ERR_TRUNCATED = -4, /* ends too early; what came before is good */
	ERR_NO_SPACE = -5,  /* no room: memory, disk or table */
	ERR_RANGE = -6,	    /* a number outside what is allowed */
	ERR_UNKNOWN = -7,   /* a name nobody knows */
	ERR_GONE = -8,	    /* was there and no longer is */
};

const char *status_text(enum status status);

#endif
