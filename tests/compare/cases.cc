// SPDX-License-Identifier: MIT
// Classes in C++ that readers of debug information have got wrong.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct empty {
};

struct holds_empty {
	empty e;
	int a;
};

struct shares_empty {
	[[no_unique_address]] empty e;
	int a;
};

struct derives_empty : empty {
	int a;
};

struct base {
	virtual ~base()
	{
	}
	int x;
};

struct derived : base {
	char c;
	struct nested {
		int q;
		char r;
	} in;
};

struct left : virtual base {
	char c;
};

struct right : virtual base {
	long l;
};

struct diamond : left, right {
	int d;
};

struct holds_own_type {
	static holds_own_type shared;
	int q;
};

struct pointers {
	int base::*data;
	void (base::*function)();
	char c;
};

struct references {
	std::string &lvalue;
	std::string &&rvalue;
	char c;
};

struct bits {
	volatile unsigned a : 1;
	bool b : 1;
	int : 6;
	long c : 40;
	char d;
};

namespace one
{
struct A1 {
	char a;
	long b;
};
} // namespace one

struct A1 {
	int x;
};

template <class T> struct box {
	T t;
	char c;
};

enum class colour : char { RED };

struct library {
	std::optional<int> o;
	std::vector<std::string> v;
	std::unique_ptr<int> p;
	std::map<int, std::string> m;
	colour c;
};

union overlay {
	int a;
	struct {
		char x;
		int y;
	} s;
	struct {
		char p;
		long q;
	};
};

holds_empty v1;
shares_empty v2;
derives_empty v3;
derived v4;
diamond v5;
holds_own_type v6;
pointers v7;
bits v8;
one::A1 v9;
A1 v10;
box<int> v11;
box<box<long>> v12;
library v13;
overlay v14;
auto v15 = [x = 1, c = 'a'](int i) { return x + c + i; };

int take(references r)
{
	struct local {
		char a;
		long b;
	} l = { r.c, 2 };
	return (int)l.b + v15(1);
}
