#!/bin/bash
# Holds the gates to disturbances that are made on purpose: each must be caught by the gate that is meant for it, and a slow
# server must fail no gate on the client. Beside each stands what the run's TTFT is off by from the simulator's truth. Needs
# Linux and taskset; takes a minute. The case of lost packets needs root, ip and nft, and is named when it cannot be had.
#
#   bench/detect.sh
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=$(mktemp -d)
. bench/simulator.sh
space= # the network namespace of the lossy case, while there is one
trap 'stop_all; [ -z "$space" ] || ip netns del "$space"; rm -rf "$OUT"' EXIT
go build -o "$OUT/tare" ./cmd/tare
go build -o "$OUT/accuracy" ./bench/accuracy

quick="--ttft 20ms --gap 5ms"
slow="--ttft 2s --gap 50ms"

# begin NAME SIMULATOR: five seconds of load on a simulator of its own, in the background; $client is its process
begin() {
	start_server "$OUT/tare" sim $2 --truth "$OUT/$1.truth"
	taskset -c 0 "$OUT/tare" run "$URL" --model sim --rate 100 --duration 5s --output-tokens 20 --quiet --out "$OUT/$1" >/dev/null &
	client=$!
}

# end NAME: waits for the load, and says how far its latencies are off
end() {
	wait "$client"
	stop_server
	"$OUT/accuracy" -truth "$OUT/$1.truth" "$OUT/$1" | awk -F' *[|] *' -v name="$1" '
		$2 == "TTFT, kernel stamps" { kernel = $5 " / " $6 }
		$2 == "TTFT, user-space stamps" { user = $5 " / " $6 }
		END { printf "      %s: TTFT recorded − true, p50 / p99 µs: kernel stamps %s, user-space %s\n", name, kernel, user }'
}

levels() { tr -d '\n' <"$OUT/$1/verdict.json" | sed 's/{/\n{/g' | sed -n 's/.*"id": "\([^"]*\)".*"level": "\([^"]*\)".*/\1 \2/p'; }

faults=0
# caught NAME GATES: one of the gates at least has failed
caught() {
	for gate in $2; do
		if levels "$1" | grep -x "$gate failed" >/dev/null; then
			echo "ok    $1: $gate"
			return
		fi
	done
	echo "FAULT $1: none of $2 failed"
	faults=1
}

begin undisturbed "$quick"
end undisturbed
echo "      undisturbed: $(sed -n 's/.*"class": "\(.*\)".*/\1/p' "$OUT/undisturbed/verdict.json")"

begin stopped "$quick"
sleep 2.5
kill -STOP "$client"
sleep 1
kill -CONT "$client"
end stopped
caught stopped "C3"

hogs=""
for i in 1 2 3; do
	taskset -c 0 sh -c 'while :; do :; done' &
	hogs="$hogs $!"
done
begin hogged "$quick"
end hogged
for pid in $hogs; do kill "$pid"; done
caught hogged "C8d"

# The client handles each event in one thread, 500 µs long; C1 fails there for the work was added on purpose, so it does not count.
GOMAXPROCS=1 "$OUT/tare" bias --service 500us --loops 1 --traffic mixed --load 1.2 --json >"$OUT/laden.json" 2>/dev/null
laden=$(tr -d ' \n' <"$OUT/laden.json" | sed -n 's/.*"failed_gates":\[\([^]]*\)\].*/\1/p')
case $laden in
*C6*) echo "ok    laden: C6, of $laden" ;;
*) echo "FAULT laden: C6 is not among $laden"; faults=1 ;;
esac
tr -d ' \n' <"$OUT/laden.json" | sed 's/.*"ttft_kernel_ms":{"p50":\([0-9.]*\)[^}]*"p99":\([0-9.]*\).*"ttft_user_ms":{"p50":\([0-9.]*\)[^}]*"p99":\([0-9.]*\).*/      laden: TTFT p50 \/ p99 ms: kernel stamps \1 \/ \2, user-space \3 \/ \4; the server takes 0 to 20 ms\n/'

begin slow "$slow"
end slow
if levels slow | grep -v '^C8[a-d]\|^C9\|^C1[01]' | grep '^C.* failed'; then
	echo "FAULT slow: a gate on the client failed"
	faults=1
else
	echo "ok    slow: no gate on the client failed"
fi

# lossy: one packet of the server's in twenty is lost, in a network namespace of its own.
lossy() {
	space=tare-detect-$$
	ip netns add "$space"
	ip -n "$space" link set lo up
	ip netns exec "$space" nft -f - <<-'RULES'
		table inet lossy {
			chain in {
				type filter hook input priority 0;
				iif lo tcp sport 1024-65535 meta length > 100 numgen random mod 100 < 5 drop
			}
		}
	RULES
	ip netns exec "$space" "$OUT/tare" sim $quick --addr 127.0.0.1:8000 --truth "$OUT/lossy.truth" >"$OUT/sim.log" 2>&1 &
	server=$!
	until grep -q '^listening' "$OUT/sim.log"; do sleep 0.1; done
	ip netns exec "$space" taskset -c 0 "$OUT/tare" run http://127.0.0.1:8000 --model sim --rate 100 --duration 5s --output-tokens 20 \
		--quiet --out "$OUT/lossy" >/dev/null &
	client=$!
	end lossy
	caught lossy "C11"
}
if [ "$(id -u)" = 0 ] && command -v ip nft >/dev/null; then
	lossy
else
	echo "      lossy: not tried, it needs root, ip and nft"
fi
exit $faults
