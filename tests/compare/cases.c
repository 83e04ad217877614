// SPDX-License-Identifier: MIT
/* Structs in C that readers of debug information have got wrong. */
struct atomics {
	_Atomic long a;
	_Atomic char b;
};

struct bits_then_int {
	long a : 62;
	int b;
	long c : 55;
};

struct __attribute__((packed)) across_units {
	char a : 1, b : 3, c : 3;
	int d : 7, e : 20;
};

typedef unsigned word;
struct qualified_bits {
	volatile unsigned a : 1;
	const word b : 1;
	_Bool c : 1;
};

struct unnamed_bits {
	int a : 5, : 6, b : 8;
	char c : 4, : 0, d : 4;
};

struct bits_alone {
	unsigned char a : 5;
	signed char b : 8;
	unsigned c : 20;
};

struct flexible {
	char n : 3;
	char data[];
};

struct bits_then_flexible {
	enum colour { RED, GREEN } colour : 8;
	char data[];
};

struct aligned_flexible {
	int n;
	char data[] __attribute__((aligned(8)));
};

struct flexible_inside {
	int n;
	struct flexible f;
	int tail;
};

struct empty_arrays {
	int a;
	char pad[0] __attribute__((aligned(64)));
	int b;
	char none[4 - sizeof(int)];
};

struct table {
	int cells[5][5];
	int (*calls[3])(int, void *);
	int (*row)[5];
};

union overlay {
	struct {
		char c;
		long l;
	};
	struct {
		short s;
		int i;
	} named[2];
	long double d;
};

struct __attribute__((packed)) key {
	char type;
	long objectid, offset;
};

struct __attribute__((packed)) item {
	struct key key;
	int offset, size;
};

struct inside {
	volatile struct {
		char c;
		int i;
	} state;
	struct {
		long a;
		char b;
	} * elsewhere;
	enum { ONE, TWO } one : 2;
	_Atomic(struct key *) pointer;
};

typedef struct {
	int x, y;
} point;

struct __attribute__((aligned(64))) counter {
	long count;
};

struct counters {
	struct counter per_cpu[4];
	point at;
};

struct atomics v1;
struct bits_then_int v2;
struct across_units v3;
struct qualified_bits v4;
struct unnamed_bits v5;
struct bits_alone v6;
struct bits_then_flexible v7;
struct aligned_flexible v8;
struct flexible_inside v9;
struct empty_arrays v10;
struct table v11;
union overlay v12;
struct item v13;
struct inside v14;
struct counters v15;
