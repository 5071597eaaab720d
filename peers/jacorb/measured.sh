#!/bin/sh
# One of the programs that are measured, as its name says: latency-server, latency-client, servants-server, servants-client.
# `--cpu N`, in front of everything else, is seen to before the Java machine starts any thread.
here=$(dirname "$0")
cpu=
if [ "$1" = --cpu ]; then
  cpu=$2
  shift 2
fi
# `exec` leaves one process, which the caller measures and ends.
exec ${cpu:+taskset --cpu-list "$cpu"} java -classpath "$here/classes:$here/lib/*" Measured "$(basename "$0")" "$@"
