/* SPDX-License-Identifier: MIT */
#include "../map.h"
