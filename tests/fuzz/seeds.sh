#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes what a fuzzer begins with, in DIRECTORY/TARGET for each target: small files
# of the kinds that are read; types of any kind; rules. seeds.sh DIRECTORY
# What the tools at hand cannot make is left out.

set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$1/file" "$1/graph" "$1/rules"
out=$(cd "$1/file" && pwd)
graphs=$(cd "$1/graph" && pwd)
rules=$(cd "$1/rules" && pwd)
cd "$work" || exit
# The same files wherever they are made.
map=-ffile-prefix-map=$work=/src

cat >c.c <<'END'
typedef int (*func_t)(void *, ...);
enum mode { SLOW = -1, FAST = 70000 };
struct list { struct list *next, *prev; };
struct inner { char c; long l; short s[3]; };
struct call {
	struct list node; volatile int lock; func_t func; void *info;
	unsigned a : 3, : 2, b : 7; enum mode mode; struct inner in;
	union { int i; float f; struct { char x, y; }; };
	_Alignas(64) int count; const char name[5];
};
struct __attribute__((packed)) packed { char c; long long l; int bits : 20; };
struct flexible { unsigned n; struct call *to[]; };
typedef struct { _Atomic int refs; long double d; } anonymous;
struct per_cpu { int count; } workers[4];
struct call call; struct packed packed; struct flexible *flexible; anonymous anon;
int vector __attribute__((vector_size(16)));
END
cat >cxx.cc <<'END'
namespace ns {
struct empty {};
struct base { virtual ~base(); int i; char c; };
struct left : virtual base { int l; };
struct right : virtual base { int r; };
struct both : left, right, empty { char tail; static int s; int &ref; int &&rref; both(int &); };
template <typename T, int N> struct holder { T value[N]; int base::*member; void (base::*call)(int); };
enum class color : unsigned char { red, green };
}
ns::both *both; ns::holder<short, 3> holder; ns::color color; decltype(nullptr) null;
ns::base::~base() {}
int use(ns::both *b) { struct local { int x; } l{b->l}; return l.x + b->i; }
END
cat >two.c <<'END'
struct list { struct list *next, *prev; };
struct shared { struct list list; int lock; long size; } shared;
END

# Only the debug sections: what else a linked file holds is not read.
keep()
{
	objcopy --only-keep-debug --remove-section=.comment --remove-section=.note.* \
		--remove-section=.symtab "$1" "$2" 2>/dev/null
}

# c NAME COMPILER OPTIONS...: two C files, linked.
c()
{
	name=$1
	shift
	"$@" "$map" -fPIC -shared -nostdlib -Wl,--build-id=none -o "$name" c.c two.c 2>/dev/null &&
		keep "$name" "$out/$name"
}

cxx()
{
	name=$1
	shift
	"$@" "$map" -fPIC -shared -nostdlib -Wl,--build-id=none -o "$name" cxx.cc 2>/dev/null &&
		keep "$name" "$out/$name"
}

for v in 2 3 4 5; do
	c gcc-$v gcc -g -gdwarf-$v
	c clang-$v clang -g -gdwarf-$v
	cxx g++-$v g++ -g -gdwarf-$v
	cxx clang++-$v clang++ -g -gdwarf-$v
done
c gcc-32 gcc -g -m32
c gcc-strict gcc -g -gdwarf-3 -gstrict-dwarf
c gcc-dwarf64 gcc -g -gdwarf64
cxx g++-types-4 g++ -g -gdwarf-4 -fdebug-types-section
cxx g++-types-5 g++ -g -gdwarf-5 -fdebug-types-section
cxx clang++-types clang++ -g -gdwarf-5 -fdebug-types-section
cxx clang++-standalone clang++ -g -fstandalone-debug

# Objects, whose sections are relocated; an archive of them; split DWARF.
{
	gcc "$map" -g -c c.c -o c.o && cp c.o "$out/object"
	gcc "$map" -g -c two.c -o two.o && cp two.o "$out/object-small"
	clang "$map" -g -c two.c -o clang.o && cp clang.o "$out/object-clang"
	gcc "$map" -g -m32 -c two.c -o two32.o && cp two32.o "$out/object-32"
	ar rc "$out/archive.a" two.o clang.o
	for v in 4 5; do
		gcc "$map" -g -gdwarf-$v -gsplit-dwarf -c two.c -o split-$v.o &&
			cp split-$v.o "$out/skeleton-$v" && cp split-$v.dwo "$out/two-$v.dwo"
		clang "$map" -g -gdwarf-$v -gsplit-dwarf -c c.c -o clang-$v.o &&
			cp clang-$v.dwo "$out/clang-$v.dwo"
	done
	dwp -o "$out/package-4.dwp" split-4.dwo
	llvm-dwp -o "$out/package-5.dwp" split-5.dwo clang-5.dwo
	for how in zlib-gabi zlib-gnu; do
		objcopy --compress-debug-sections=$how "$out/gcc-5" "$out/compressed-$how"
	done
	cp "$out/gcc-4" dwz-1 && cp "$out/g++-4" dwz-2 &&
		dwz -m "$out/dwz-common" -M dwz-common dwz-1 dwz-2 && cp dwz-1 "$out/dwz-user"

	# BTF: in an ELF file, and by itself.
	clang "$map" -target bpf -g -c c.c -o bpf.o && cp bpf.o "$out/bpf-object" &&
		llvm-objcopy --dump-section=.BTF="$out/clang.btf" bpf.o
	pahole -J --btf_encode_detached="$out/pahole.btf" c.o
	clang "$map" -target bpfeb -g -c two.c -o bpfeb.o &&
		llvm-objcopy --dump-section=.BTF="$out/big-endian.btf" bpfeb.o
} >/dev/null 2>&1
find "$out" -type f -size 0 -delete

# Numbers of no meaning, always the same.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	LC_ALL=C awk -v n=$i 'BEGIN {
		x = n * 7919
		for (i = 0; i < n * 60; i++) {
			x = (x * 16807) % 2147483647
			printf "%c", int(x / 256) % 255 + 1
		}
	}' >"$graphs/$i"
done

cat >"$rules/all-forms" <<'END'
struct a: size <= 64
a: lock and next on different lines
a: next within lines 0 to 1
a: head at 16
outer::inner::a: no holes
accept straddle struct a # why
list_head: fits in one line
a: group hot = lock, next, and head[1].next
a: hot on the same line
alias: align >= 8
variable workers: size = 2 lines
END
exit 0
