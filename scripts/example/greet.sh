#!/bin/sh
# Says what it was given, where, and in which mode.
echo "$1 from $APP_HOME ($APP_MODE)"
