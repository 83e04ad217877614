/* SPDX-License-Identifier: MIT */
#include "general.h"
