#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Apache's httpd with `Mutex sysvsem default`: processes that take turns at accepting, by semop with
# SEM_UNDO on a semaphore that root has made and given to the user of the workers.
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

packages apache2-bin apache2-utils
httpd=$(command -v apache2 || echo /usr/sbin/apache2)
modules=/usr/lib/apache2/modules
port=54380
requests=20000

mkdir "$scratch/htdocs"
echo hello >"$scratch/htdocs/index.html"
cat >"$scratch/httpd.conf" <<EOF
ServerRoot $scratch
ServerName localhost
# With one listener nobody waits his turn.
Listen 127.0.0.1:$port
Listen 127.0.0.1:$((port + 1))
PidFile $scratch/httpd.pid
ErrorLog $scratch/error.log
LogLevel warn
DocumentRoot $scratch/htdocs
LoadModule mpm_prefork_module $modules/mod_mpm_prefork.so
LoadModule authz_core_module $modules/mod_authz_core.so
Mutex sysvsem default
StartServers 8
MinSpareServers 4
MaxSpareServers 16
MaxRequestWorkers 16
MaxConnectionsPerChild 500
EOF
[ "$(id -u)" != 0 ] || printf 'User nobody\nGroup nogroup\n' >>"$scratch/httpd.conf"

start()
{
	: >"$scratch/error.log"
	limit=300 run "$httpd" -f "$scratch/httpd.conf" -DFOREGROUND >"$scratch/httpd.$way" 2>&1 &
	server=$!
	until ab -q -n 1 "http://127.0.0.1:$port/" >/dev/null 2>&1; do
		kill -0 $server 2>/dev/null ||
			{ cat "$scratch/httpd.$way" "$scratch/error.log" >&2; return 1; }
		sleep 0.1
	done
}

# The pid file is removed before the last child has ended: the server itself is waited for.
stop()
{
	kill -TERM "$(cat "$scratch/httpd.pid")"
	wait $server
}

# load REQUESTS: requests a second; each has to be answered.
load()
{
	timeout 100 ab -q -r -n "$1" -c 16 "http://127.0.0.1:$port/" >"$scratch/ab.$way" 2>&1
	awk '/^Complete requests:/ { done = $3 } /^Failed requests:/ { failed = $3 }
		/^Requests per second:/ { speed = $4 }
		END { printf "%.0f\n", speed; exit !(done == n && failed == 0) }' n="$1" \
		"$scratch/ab.$way"
}

served()
{
	start || return
	load "$1"
	local result=$?

	stop
	# What the server says of its lock.
	grep -iE 'mutex|semaphore|AH00(02|14)' "$scratch/error.log" >&2 && result=1
	return $result
}

# killed N: workers are killed one after another under load, also those that hold the lock; then
# everyone is served.
killed()
{
	local n victim

	start || return
	ab -q -r -n 1000000 -c 16 -t 60 "http://127.0.0.1:$port/" >/dev/null 2>&1 &
	local ab=$!
	for ((n = 0; n < $1; n++)); do
		victim=$(pgrep -P "$(cat "$scratch/httpd.pid")" | shuf -n 1)
		[ -z "$victim" ] || kill -KILL "$victim" 2>/dev/null
		sleep 0.05
	done
	kill $ab
	wait $ab 2>/dev/null
	load 2000 >/dev/null
	local result=$?

	stop
	[ $result = 0 ] && echo "all served"
	return $result
}

table "apache2, Mutex sysvsem, 2 listeners"
figure "requests a second, $requests of 16 clients" served $requests
same "100 workers are killed under load" killed 100
quiet served 2000
finish
