#!/bin/sh
# Prints its argument, the directory and the mode.
echo "$1 from $APP_HOME ($APP_MODE)"
