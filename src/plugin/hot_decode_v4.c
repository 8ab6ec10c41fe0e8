#define ABI_VERSION 4
#include "plugin/abi_v4.h"
#include "plugin/decode.inc"
