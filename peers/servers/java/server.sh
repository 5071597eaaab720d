#!/bin/sh
# Starts the server in this process; the classes lie beside this file.
exec java -cp "$(dirname "$0")" TransferServer "$@"
