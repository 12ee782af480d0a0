#!/bin/sh
echo "tool ${TOOL_VERSION} on $(uname -s)"
