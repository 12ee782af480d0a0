#!/usr/bin/env node
// Runs the bough of the optional package for this system, as if it had been called itself.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const { name, version, optionalDependencies: packages } = require("../package.json");

function fail(message, hint) {
  process.stderr.write(`[ERROR] ${message}\n${hint}\n`);
  process.exit(1);
}

/** The packages for this processor and system. On Linux the one for its C library comes first. */
function candidates() {
  const suffix = `${process.platform}-${process.arch}`;
  const names = [suffix, `${suffix}-musl`].flatMap((end) =>
    Object.keys(packages).filter((each) => each.endsWith(`/${end}`) || each.endsWith(`-${end}`)),
  );
  if (process.platform !== "linux" || process.report === undefined) return names;
  // Without this, the report asks for the names of all network addresses.
  process.report.excludeNetwork = true;
  const usesGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  return usesGlibc ? names : names.reverse();
}

function findProgram() {
  const names = candidates();
  if (names.length === 0) {
    const systems = Object.keys(packages).map((each) => each.replace(/^.*?\/(bough-)?/, ""));
    fail(
      `there is no bough for ${process.platform}-${process.arch}`,
      `There is one for ${systems.join(", ")}.`,
    );
  }
  for (const each of names) {
    try {
      return require.resolve(`${each}/bin/bough${process.platform === "win32" ? ".exe" : ""}`);
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return fail(
    `the package ${names[0]} with the program is missing: ${name} needs it`,
    `Optional packages may have been left out, or node_modules comes from another system. To install it: npm install ${names[0]}@${version}`,
  );
}

const program = findProgram();
// A signal of the terminal reaches both processes; bough takes a second one at once for an echo.
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
const forward = (signal) => child.kill(signal);
// Before the program starts: it gets even a signal that comes at once.
for (const signal of signals) process.on(signal, forward);
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) =>
  fail(`cannot run ${program}: ${error.message}`, "Does the package belong to this system?"),
);
child.on("exit", (exitCode, signal) => {
  if (signal === null) process.exit(exitCode);
  for (const each of signals) process.off(each, forward);
  process.kill(process.pid, signal);
  process.exitCode = 128 + constants.signals[signal];
});
