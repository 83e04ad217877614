#!/bin/sh
# SPDX-License-Identifier: MIT
#
# python3-sysv-ipc: the module that Python programs use.

set -eu
. "$(dirname "$0")/common.sh"
PYTHON=${PYTHON:-/usr/bin/python3}
"$PYTHON" -c 'import sysv_ipc' 2>/dev/null || {
	echo "skipped: no sysv_ipc; install python3-sysv-ipc"
	exit 77
}

cat >"$WORK/probe.py" <<'END'
import os
import signal
import sysv_ipc

sem = sysv_ipc.Semaphore(None, sysv_ipc.IPC_CREX, initial_value=1)
sem.undo = True
pid = os.fork()
if not pid:
    sem.acquire()
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(pid, 0)
sem.acquire(timeout=10)
assert sem.last_pid == os.getpid()
assert sem.value == 0
try:
    sem.acquire(timeout=0.02)
    raise SystemExit("acquired twice")
except sysv_ipc.BusyError:
    pass
sem.remove()
try:
    sem.release()
    raise SystemExit("released what is gone")
except sysv_ipc.ExistentialError:
    pass

queue = sysv_ipc.MessageQueue(None, sysv_ipc.IPC_CREX)
pid = os.fork()
if not pid:
    queue.send(b"hello", type=7)
    os._exit(0)
assert queue.receive(type=7) == (b"hello", 7)
os.waitpid(pid, 0)
assert queue.last_send_pid == pid and queue.current_messages == 0
queue.remove()

memory = sysv_ipc.SharedMemory(None, sysv_ipc.IPC_CREX, size=5000)
memory.write(b"text", 100)
pid = os.fork()
if not pid:
    memory.write(b"TEXT", 100)
    os._exit(0)
os.waitpid(pid, 0)
assert memory.read(4, 100) == b"TEXT" and memory.number_attached == 1
memory.remove()
memory.detach()
print("fine")
END
for HOW in enosys sigsys; do
	with_library "$PYTHON" "$WORK/probe.py" || exit 1
done
[ -z "$(left)" ] || { echo "left behind:"; left; exit 1; }
