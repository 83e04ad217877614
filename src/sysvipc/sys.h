/* SPDX-License-Identifier: MIT */
/*
 * System calls, made without the C library: a library that is preloaded beside this one may
 * replace any of its functions, and some do (fakeroot replaces stat and chown).
 *
 * Each returns what the kernel returns: a negative errno value on failure. errno is untouched.
 * None is a cancellation point.
 */
#ifndef HL_SYSVIPC_SYS_H
#define HL_SYSVIPC_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)
static inline long hl_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline void hl_relax(void)
{
	__builtin_ia32_pause();
}
#elif defined(__aarch64__)
static inline long hl_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

static inline void hl_relax(void)
{
	__asm__ volatile("yield" : : : "memory");
}
#else
#error "src/sysvipc/sys.h has no system call for this architecture: add hl_sys6() and hl_relax()"
#endif

#define HL_SYS(n, a, b, c, d, e, f) \
	hl_sys6((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline int hl_sys_openat(int dir, const char *path, int flags, unsigned mode)
{
	return (int)HL_SYS(SYS_openat, dir, path, flags | O_CLOEXEC, mode, 0, 0);
}

static inline int hl_sys_close(int fd)
{
	return (int)HL_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
}

static inline long hl_sys_read(int fd, void *to, size_t bytes)
{
	return HL_SYS(SYS_read, fd, to, bytes, 0, 0, 0);
}

static inline long hl_sys_pread(int fd, void *to, size_t bytes, int64_t at)
{
	return HL_SYS(SYS_pread64, fd, to, bytes, at, 0, 0);
}

static inline long hl_sys_pwrite(int fd, const void *from, size_t bytes, int64_t at)
{
	return HL_SYS(SYS_pwrite64, fd, from, bytes, at, 0, 0);
}

static inline int hl_sys_fstat(int fd, struct stat *to)
{
	return (int)HL_SYS(SYS_fstat, fd, to, 0, 0, 0, 0);
}

static inline int hl_sys_ftruncate(int fd, int64_t bytes)
{
	return (int)HL_SYS(SYS_ftruncate, fd, bytes, 0, 0, 0, 0);
}

static inline int hl_sys_fallocate(int fd, int mode, int64_t at, int64_t bytes)
{
	return (int)HL_SYS(SYS_fallocate, fd, mode, at, bytes, 0, 0);
}

static inline int hl_sys_fchmod(int fd, unsigned mode)
{
	return (int)HL_SYS(SYS_fchmod, fd, mode, 0, 0, 0, 0);
}

static inline int hl_sys_fchown(int fd, unsigned uid, unsigned gid)
{
	return (int)HL_SYS(SYS_fchown, fd, uid, gid, 0, 0, 0);
}

static inline int hl_sys_flock(int fd, int how)
{
	return (int)HL_SYS(SYS_flock, fd, how, 0, 0, 0, 0);
}

static inline int hl_sys_mkdirat(int dir, const char *path, unsigned mode)
{
	return (int)HL_SYS(SYS_mkdirat, dir, path, mode, 0, 0, 0);
}

static inline int hl_sys_symlinkat(const char *target, int dir, const char *path)
{
	return (int)HL_SYS(SYS_symlinkat, target, dir, path, 0, 0, 0);
}

static inline long hl_sys_readlinkat(int dir, const char *path, char *to, size_t bytes)
{
	return HL_SYS(SYS_readlinkat, dir, path, to, bytes, 0, 0);
}

static inline int hl_sys_unlinkat(int dir, const char *path)
{
	return (int)HL_SYS(SYS_unlinkat, dir, path, 0, 0, 0, 0);
}

static inline long hl_sys_getdents(int fd, void *to, size_t bytes)
{
	return HL_SYS(SYS_getdents64, fd, to, bytes, 0, 0, 0);
}

/* The address, or a negative errno value: see hl_sys_failed(). */
static inline void *hl_sys_mmap(void *at, size_t bytes, int prot, int flags, int fd, int64_t offset)
{
	return (void *)HL_SYS(SYS_mmap, at, bytes, prot, flags, fd, offset);
}

/* The negative errno value that was returned in place of an address, or 0. */
static inline int hl_sys_failed(const void *address)
{
	return (unsigned long)address >= (unsigned long)-4095L ? (int)(long)address : 0;
}

static inline int hl_sys_munmap(void *at, size_t bytes)
{
	return (int)HL_SYS(SYS_munmap, at, bytes, 0, 0, 0, 0);
}

static inline int hl_sys_madvise(void *at, size_t bytes, int advice)
{
	return (int)HL_SYS(SYS_madvise, at, bytes, advice, 0, 0, 0);
}

static inline int hl_sys_getpid(void)
{
	return (int)HL_SYS(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static inline int hl_sys_gettid(void)
{
	return (int)HL_SYS(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static inline unsigned hl_sys_geteuid(void)
{
	return (unsigned)HL_SYS(SYS_geteuid, 0, 0, 0, 0, 0, 0);
}

static inline unsigned hl_sys_getegid(void)
{
	return (unsigned)HL_SYS(SYS_getegid, 0, 0, 0, 0, 0, 0);
}

static inline int hl_sys_kill(int pid, int signal)
{
	return (int)HL_SYS(SYS_kill, pid, signal, 0, 0, 0, 0);
}

static inline void hl_sys_yield(void)
{
	HL_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static inline int hl_sys_nanosleep(long ns)
{
	struct timespec for_so_long = { .tv_nsec = ns };

	return (int)HL_SYS(SYS_nanosleep, &for_so_long, NULL, 0, 0, 0, 0);
}

/*
 * @until: a time of CLOCK_MONOTONIC, or NULL
 * @bits: the bits that hl_sys_futex_wake() must name one of
 *
 * Return: 0, or -EAGAIN: the word was not @value, -EINTR, -ETIMEDOUT.
 */
static inline int hl_sys_futex_wait(_Atomic(uint32_t) *word, uint32_t value,
				    const struct timespec *until, uint32_t bits)
{
	return (int)HL_SYS(SYS_futex, word, FUTEX_WAIT_BITSET, value, until, NULL, bits);
}

/* How many were woken of those that wait with one of @bits, in processes that share the page. */
static inline int hl_sys_futex_wake(_Atomic(uint32_t) *word, int most, uint32_t bits)
{
	return (int)HL_SYS(SYS_futex, word, FUTEX_WAKE_BITSET, most, NULL, NULL, bits);
}

#endif
