#!/bin/sh
# usage: demo.sh AIPERF.  Starts the simulator, runs a small streaming load against it, shows the report.
set -eu
aiperf=$1
work=$(mktemp -d)
echo "demo: starting a simulated inference server on this machine (aiperf simulate)"
"$aiperf" simulate --port 0 >"$work/said" 2>&1 &
simulator=$!
finish() {
  kill "$simulator" 2>/dev/null || true
  wait "$simulator" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 141' PIPE  # as in: make demo | head
trap 'exit 143' TERM

url=
tries=0
while [ -z "$url" ]; do
  if [ "$tries" -ge 300 ] || ! kill -0 "$simulator" 2>/dev/null; then
    echo "demo: the simulator did not start" >&2
    cat "$work/said" >&2
    exit 1
  fi
  sleep 0.1
  tries=$((tries + 1))
  url=$(sed -n 's/.*listening on //p' "$work/said")
done

echo "demo: it listens on $url; sending it 80 streaming chat requests, 8 at a time, which takes a few seconds:"
echo "aiperf profile --model simulated --url $url --endpoint-type chat --streaming --tokenizer builtin \\"
echo "  --concurrency 8 --request-count 80 --isl 200 --osl 64 --random-seed 1 --artifact-dir artifacts/demo"
"$aiperf" profile --model simulated --url "$url" --endpoint-type chat --streaming --tokenizer builtin \
  --concurrency 8 --request-count 80 --isl 200 --osl 64 --random-seed 1 --artifact-dir artifacts/demo
echo "demo: done; the simulated server is stopped. The files named above are in artifacts/demo."
echo "demo: for a server of yours: $aiperf profile --model NAME --url http://HOST:PORT --endpoint-type chat --streaming"
