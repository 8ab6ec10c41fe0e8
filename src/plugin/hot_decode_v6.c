#define ABI_VERSION 6
#include "plugin/abi_v6.h"
#include "plugin/decode.inc"
