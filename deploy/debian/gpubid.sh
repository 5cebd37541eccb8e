#!/bin/sh
# gpubid on the service's own files. Isolated: neither the folder it is called in nor a variable lends it modules.
export GPUBID_CONFIG="${GPUBID_CONFIG:-/etc/gpubid/agent.toml}"
exec /usr/lib/gpubid/bin/python3 -IB -X faulthandler /usr/lib/gpubid/bin/gpubid "$@"
