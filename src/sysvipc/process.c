/* SPDX-License-Identifier: MIT */
/*
 * Memory ordering
 *
 * SELF_KNOWN: hl_ipc_self_renew() stores the other fields of the page, then .pid with release;
 *	hl_ipc_self() loads .pid with acquire. Without it a thread takes itself for a process
 *	that began at 0, and the living for dead.
 * SELF_LOCK: taken with acquire, given back with release: what the last holder wrote in the
 *	tables is seen.
 */
#include "process.h"

#include "clock.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

/* What /proc/PID/stat has, as far as it is read: the 20th and the 22nd word. */
#define STAT_BYTES 512
#define PAGE_BYTES 4096

static struct hl_ipc_self first_page;
struct hl_ipc_self *hl_ipc_self_page = &first_page;
_Thread_local struct hl_ipc_thread hl_ipc_this_thread;

/* Whether the page is zeroed in children; else nobody's pid is remembered. */
static bool page_is_wiped;

struct stat_line {
	char state;
	uint64_t threads;
	uint64_t start;
};

static char *put_number(char *to, uint32_t number)
{
	char digits[10];
	int n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

static const char *skip_words(const char *at, const char *end, int words)
{
	while (words--) {
		while (at < end && *at != ' ')
			at++;
		at += at < end;
	}
	return at;
}

static uint64_t read_number(const char *at, const char *end)
{
	uint64_t number = 0;

	for (; at < end && *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	return number;
}

/* Return: 0, or a negative errno value: nobody has the id, or there is no /proc. */
static int read_stat(int32_t id, struct stat_line *to)
{
	char path[32] = "/proc/", text[STAT_BYTES], *p = put_number(path + 6, (uint32_t)id);
	const char *at, *end;
	long n;
	int fd;

	__builtin_memcpy(p, "/stat", sizeof("/stat"));
	fd = hl_sys_openat(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	n = hl_sys_read(fd, text, sizeof(text));
	hl_sys_close(fd);
	if (n <= 0)
		return n ? (int)n : -ESRCH;
	/* Behind the name, which may hold anything, a parenthesis included. */
	end = text + n;
	for (at = end; at > text && at[-1] != ')'; at--)
		;
	at += at < end;
	to->state = at < end ? *at : 'X';
	at = skip_words(at, end, 17);
	to->threads = read_number(at, end);
	at = skip_words(at, end, 2);
	to->start = read_number(at, end);
	return 0;
}

static bool ended(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}

bool hl_ipc_alive(int32_t pid, uint64_t start)
{
	const struct hl_ipc_self *self = hl_ipc_self();
	struct stat_line line;

	if (pid <= 0)
		return false;
	if (pid == atomic_load_explicit(&self->pid, memory_order_relaxed))
		return !start || start == self->start;
	if (!self->start)
		return hl_sys_kill(pid, 0) != -ESRCH;
	if (read_stat(pid, &line))
		return false;
	if (start && line.start != start)
		return false;
	/* The first thread may end before the others: it then waits for them as a zombie. */
	return !ended(line.state) || line.threads > 1;
}

bool hl_ipc_thread_alive(int32_t tid)
{
	struct stat_line line;

	if (tid <= 0)
		return false;
	if (!hl_ipc_self()->start)
		return hl_sys_kill(tid, 0) != -ESRCH;
	return !read_stat(tid, &line) && !ended(line.state);
}

static uint64_t pid_namespace(void)
{
	char text[64];
	long n = hl_sys_readlinkat(AT_FDCWD, "/proc/self/ns/pid", text, sizeof(text));

	/* "pid:[4026531836]" */
	return n > 5 ? read_number(text + 5, text + n) : 0;
}

static int count_cpus(void)
{
	unsigned long mask[128];
	long bytes = HL_SYS(SYS_sched_getaffinity, 0, sizeof(mask), mask, 0, 0, 0);
	int n = 0;
	long i;

	for (i = 0; i < bytes / (long)sizeof(*mask); i++)
		n += __builtin_popcountl(mask[i]);
	return n ? n : 1;
}

static void map_page(void)
{
	void *page = hl_sys_mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (hl_sys_failed(page))
		return;
	if (hl_sys_madvise(page, PAGE_BYTES, MADV_WIPEONFORK)) {
		hl_sys_munmap(page, PAGE_BYTES);
		return;
	}
	hl_ipc_self_page = page;
	page_is_wiped = true;
}

/* Before main(), and so before the second thread; a constructor of another library may be
 * earlier, and is served as if pages were not wiped. */
__attribute__((constructor)) static void begin(void)
{
	hl_ipc_clock_init();
	map_page();
}

const struct hl_ipc_self *hl_ipc_self_renew(void)
{
	static _Thread_local struct hl_ipc_self unwiped __attribute__((tls_model("initial-exec")));
	struct hl_ipc_self *self = hl_ipc_self_page;
	struct stat_line line = { 0 };
	int32_t pid = hl_sys_getpid();

	if (!page_is_wiped) {
		if (atomic_load_explicit(&unwiped.pid, memory_order_relaxed) == pid)
			return &unwiped;
		self = &unwiped;
	}
	self->start = read_stat(pid, &line) ? 0 : line.start;
	self->pid_namespace = pid_namespace();
	self->cpus = count_cpus();
	/* SELF_KNOWN; threads that come here at once write the same. */
	atomic_store_explicit(&self->pid, pid, memory_order_release);
	return self;
}

void hl_ipc_thread_renew(struct hl_ipc_thread *thread, int32_t pid)
{
	struct robust_list_head *head = NULL;
	size_t bytes = 0;

	if (HL_SYS(SYS_get_robust_list, 0, &head, &bytes, 0, 0, 0) || bytes != sizeof(*head))
		head = NULL;
	thread->robust = head;
	thread->tid = hl_sys_gettid();
	thread->held = NULL;
	thread->pid = pid;
}

void hl_ipc_self_lock(void)
{
	struct hl_ipc_thread *thread = hl_ipc_thread();
	int32_t nobody = 0;

	/* SELF_LOCK */
	while (!atomic_compare_exchange_weak_explicit(&hl_ipc_self_page->lock, &nobody, thread->tid,
						      memory_order_acquire, memory_order_relaxed)) {
		nobody = 0;
		hl_sys_yield();
	}
}

void hl_ipc_self_unlock(void)
{
	/* SELF_LOCK */
	atomic_store_explicit(&hl_ipc_self_page->lock, 0, memory_order_release);
}
