# What the scripts here share: a simulator in the background, on a port of its choice. To be sourced; OUT is a folder.
server= # its process
URL=

stop_all() {
	trap - EXIT INT TERM
	[ -z "$(jobs -p)" ] || kill $(jobs -p) 2>/dev/null || true
	wait
}
trap stop_all EXIT
trap 'exit 130' INT TERM

# start_server COMMAND...: the simulator by this command line, up within 5 s.
start_server() {
	: >"$OUT/sim.log"
	setpriv --pdeathsig TERM "$@" --addr 127.0.0.1:0 >"$OUT/sim.log" 2>&1 &
	server=$!
	for _ in $(seq 50); do
		URL=$(sed -n "s,^listening on ,,p" "$OUT/sim.log")
		[ -z "$URL" ] || return 0
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	echo "$0: the simulator did not start:" >&2
	tail -n 5 "$OUT/sim.log" >&2
	exit 1
}

# stop_server ends the simulator, which writes what is left of its truth.
stop_server() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; server=; }
}
