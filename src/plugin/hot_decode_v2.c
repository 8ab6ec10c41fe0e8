#define ABI_VERSION 2
#include "plugin/abi_v2.h"
#include "plugin/decode.inc"
