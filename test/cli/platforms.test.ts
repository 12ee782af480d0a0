/** Differences between systems, as far as they can be tested without the system. */
import { describe, expect, test } from "bun:test";
import { homedir } from "node:os";
import { join } from "node:path";
import { endingSignals } from "../../src/cli/process/interrupts.ts";
import { stateDirectory } from "../../src/cli/process/runtime.ts";
import { checkLocalNames } from "../../src/context/file-system/local-name.ts";
import { runBough } from "../support/bough.ts";

const home = { HOME: "/home/ann" };
const windows = { HOME: "/c/Users/Ann", LOCALAPPDATA: "/c/Users/Ann/AppData/Local" };

test.each<[NodeJS.Platform, Record<string, string>, string]>([
  ["linux", home, "/home/ann/.local/state/bough"],
  ["darwin", home, "/home/ann/.local/state/bough"],
  ["linux", { ...home, XDG_STATE_HOME: "/state" }, "/state/bough"],
  ["linux", { ...home, XDG_STATE_HOME: "state" }, "/home/ann/.local/state/bough"],
  ["linux", { ...home, BOUGH_HOME: "" }, "/home/ann/.local/state/bough"],
  // Never below the current directory, which may be a build context.
  ["linux", { HOME: "" }, join(homedir(), ".local/state/bough")],
  ["linux", { ...windows, ...home }, "/home/ann/.local/state/bough"],
  ["win32", windows, "/c/Users/Ann/AppData/Local/bough"],
  ["win32", { ...windows, XDG_STATE_HOME: "/state" }, "/state/bough"],
  ["win32", { ...windows, BOUGH_HOME: "/b" }, "/b"],
  ["win32", { HOME: "/c/Users/Ann" }, "/c/Users/Ann/.local/state/bough"],
])("state on %s with %j is in %s", (platform, environment, expected) => {
  expect(stateDirectory({ platform, environment })).toBe(expected);
});

test.each<[NodeJS.Platform, boolean, NodeJS.Signals[]]>([
  ["linux", false, ["SIGINT", "SIGTERM", "SIGHUP"]],
  ["linux", true, ["SIGINT", "SIGTERM"]],
  ["darwin", false, ["SIGINT", "SIGTERM", "SIGHUP"]],
  ["win32", true, ["SIGINT", "SIGBREAK", "SIGHUP"]],
])("signals that end bough on %s (SIGHUP is ignored: %p)", (platform, ignoresHangup, signals) => {
  expect(endingSignals(platform, ignoresHangup)).toEqual(signals);
});

describe("names in an image that mean something else on Windows", () => {
  test.each([
    "..\\..\\evil",
    "C:",
    "C:\\x",
    "file:stream",
    "CON",
    "nul.txt",
    "com1",
    "a.",
    "a ",
    "a\nb",
    "a?",
    "conin$",
    "com0",
    "lpt\u00b2.txt",
    "nul .txt",
  ])("%j", (name) => {
    expect(() => checkLocalNames([name], "win32", "advice")).toThrow(
      "can't be the name of a file on Windows",
    );
    expect(() => checkLocalNames([name], "linux", "advice")).not.toThrow();
    expect(() => checkLocalNames([name], "darwin", "advice")).not.toThrow();
  });

  test.each(["a", ".hidden", "a b", "console", "com", "naïve.txt", "lpt10"])(
    "%j is an ordinary name",
    (name) => {
      expect(() => checkLocalNames([name], "win32", "advice")).not.toThrow();
    },
  );
});

describe("on other systems than Linux the error says that the engine needs Linux:", () => {
  test.each(["images", "serve", "engine df", "engine prune"])("bough %s", async (line) => {
    for (const platform of ["darwin", "win32"] as const) {
      const { exitCode, stderr } = await runBough(line.split(" "), { workingDirectory: "/", platform });
      expect(exitCode).toBeGreaterThan(0);
      expect(stderr).toContain("the embedded engine needs Linux");
    }
  });
});
