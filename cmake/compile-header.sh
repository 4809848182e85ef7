#!/bin/sh
# Runs the command of a compiler. Before it writes a precompiled header, the former one is removed: a compiler cache takes a
# precompiled header beside the header for its input, and would give the result that it has for another state of the sources.
for argument; do
  case $argument in
    *.gch) rm -f "$argument" ;;
  esac
done
exec "$@"
