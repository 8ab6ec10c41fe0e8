#define ABI_VERSION 4
#include "abi/abi_v4.h"
#include "capture/decode.inc"
