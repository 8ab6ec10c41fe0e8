#define ABI_VERSION 6
#include "abi/abi_v6.h"
#include "capture/decode.inc"
