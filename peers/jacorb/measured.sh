#!/bin/sh
# Starts the measured program that this script is named after: latency-server, latency-client, inflight-client, servants-server, servants-client.
# `--cpu N`, the first argument, pins the process before the Java VM starts any thread.
here=$(dirname "$0")
cpu=
if [ "$1" = --cpu ]; then
  cpu=$2
  shift 2
fi
# `exec` leaves one process, which the caller measures and kills.
exec ${cpu:+taskset --cpu-list "$cpu"} java -classpath "$here/classes:$here/lib/*" Measured "$(basename "$0")" "$@"
