#!/bin/sh
echo "$1 from the sandbox"
