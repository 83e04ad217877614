#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# PostgreSQL 15 of Debian's source with System V semaphores and shared_memory_type=sysv: a server
# under pgbench, one that is killed and recovers, and what it asks of the kernel.
#
# The build takes ten minutes on one processor and is kept. POSTGRESQL, if set, is a directory with
# bin/postgres that is so configured. SECONDS_EACH is how long each pgbench takes (10).
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

built=${POSTGRESQL:-$kept/postgresql}
seconds=${SECONDS_EACH:-10}
limit=$((seconds + 60))
port=54329

build_postgresql()
{
	packages gcc make bison flex libreadline-dev zlib1g-dev
	debian_source postgresql-15
	mkdir -p "$built/build" && cd "$built/build" || return
	PREFERRED_SEMAPHORES=SYSV "$source/configure" --prefix="$built" --without-readline \
		--without-icu CFLAGS=-O2 &&
		make -j2 && make install
}

if [ ! -x "$built/bin/postgres" ]; then
	echo "# PostgreSQL is built into $built" >&2
	(build_postgresql) >"$scratch/build.log" 2>&1 ||
		{ tail -n 20 "$scratch/build.log" >&2; exit 1; }
fi

# The server refuses to run as root.
owner=()
if [ "$(id -u)" = 0 ]; then
	owner=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi
data=$scratch/data

# start: the server, as a job of this shell; $server is its process.
start()
{
	limit=600 run "${owner[@]}" "$built/bin/postgres" -D "$data" -p $port -k "$scratch" \
		-c listen_addresses= -c shared_memory_type=sysv -c dynamic_shared_memory_type=sysv \
		-c fsync=off -c max_connections=80 -c shared_buffers=32MB \
		>>"$scratch/server.$way" 2>&1 &
	server=$!
	until "$built/bin/pg_isready" -q -h "$scratch" -p $port; do
		kill -0 $server 2>/dev/null || { tail -n 5 "$scratch/server.$way" >&2; return 1; }
		sleep 0.1
	done
}

stop()
{
	kill -INT "$(head -n 1 "$data/postmaster.pid")" && wait $server
}

sql()
{
	"$built/bin/psql" -h "$scratch" -p $port -U postgres -Atqc "$1" postgres
}

# initialise: a cluster, by a server that attaches shared memory as well.
initialise()
{
	rm -rf "$data"
	run "${owner[@]}" "$built/bin/initdb" -A trust -U postgres -N -D "$data" >/dev/null &&
		start && "$built/bin/pgbench" -h "$scratch" -p $port -U postgres -iqs 5 postgres \
		>/dev/null && stop && echo ok
}

# bench CLIENTS OPTION...: transactions a second.
bench()
{
	local clients=$1 result
	shift

	start || return
	"$built/bin/pgbench" -h "$scratch" -p $port -U postgres -n -c "$clients" -T "$seconds" "$@" \
		postgres >"$scratch/pgbench.$way"
	result=$?
	[ $result = 0 ] || tail -n 5 "$scratch/server.$way" >&2
	stop || result=1
	sed -n 's/^tps = \([0-9]*\).*/\1/p' "$scratch/pgbench.$way"
	return $result
}

# recovers: a backend is killed; the server ends the others, makes its memory and semaphores anew
# and goes on, with the sums right.
recovers()
{
	start || return
	"$built/bin/pgbench" -h "$scratch" -p $port -U postgres -n -c 8 -T 30 postgres \
		>/dev/null 2>&1 &
	local pgbench=$! victim= sums

	until victim=$(sql "select pid from pg_stat_activity where application_name = 'pgbench'
		limit 1") && [ -n "$victim" ]; do
		sleep 0.1
	done
	kill -KILL "$victim"
	wait $pgbench
	until sums=$(sql "select (select sum(abalance) from pgbench_accounts) =
		(select sum(bbalance) from pgbench_branches)" 2>/dev/null); do
		kill -0 $server || return
		sleep 0.1
	done
	stop && [ "$sums" = t ] && echo "sums right"
}

# second: a second server on the same data, whose first has been killed while a backend lives.
second()
{
	local result backend

	start || return
	sql "select pg_sleep(60)" >/dev/null 2>&1 &
	until backend=$(sql "select pid from pg_stat_activity where query like '%pg_sleep(60)'
		and pid <> pg_backend_pid() limit 1") && [ -n "$backend" ]; do
		sleep 0.1
	done
	# Backends notice that the server is gone only where they wait: this one is stopped.
	kill -STOP "$backend"
	kill -KILL "$(head -n 1 "$data/postmaster.pid")"
	wait $server
	start 2>"$scratch/second.$way"
	result=$?
	kill -KILL "$backend"
	if [ $result = 0 ]; then
		stop
		echo "started beside a backend"
		return 1
	fi
	grep -q 'pre-existing shared memory block' "$scratch/second.$way" && echo refused
}

again()
{
	start && sql "select 'recovered'" && stop
}

table "PostgreSQL 15"
same "initdb, a database of pgbench" initialise
figure "pgbench, 1 client, transactions/s" bench 1
figure "pgbench, 16 clients, transactions/s" bench 16
figure "pgbench -S, 16 clients, transactions/s" bench 16 -S
figure "pgbench -S, 64 clients, transactions/s" bench 64 -S
same "a backend is killed" recovers
same "a second server while a backend lives" second
same "it starts when the backend is gone" again
seconds=2
quiet bench 8
finish
