/** Differences between systems, as far as they can be tested without the system. */
import { describe, expect, test } from "bun:test";
import { homedir } from "node:os";
import { join } from "node:path";
import { ignoringCase } from "../../src/cli/process/environment.ts";
import { endingSignals } from "../../src/cli/process/interrupts.ts";
import { stateDirectory } from "../../src/cli/process/runtime.ts";
import { checkLocalNames } from "../../src/context/file-system/local-name.ts";
import { homeDirectory } from "../../src/home-directory.ts";
import { colonAfterPath, isWrittenAsPath } from "../../src/paths/local-path.ts";
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

test.each<[NodeJS.Platform, Record<string, string>, string]>([
  ["win32", { USERPROFILE: "C:\\Users\\Ann", HOME: "/c/Users/Ann" }, "C:\\Users\\Ann"],
  ["win32", { HOME: "/c/Users/Ann" }, "/c/Users/Ann"],
  ["linux", { USERPROFILE: "C:\\Users\\Ann", HOME: "/home/ann" }, "/home/ann"],
])("the home directory on %s with %j is %s", (platform, environment, expected) => {
  expect(homeDirectory(environment, platform)).toBe(expected);
});

test.each<[NodeJS.Platform, string, string]>([
  ["win32", "C:\\x.tar:app:1", ":app:1"],
  ["win32", "C:/x:/k", ":/k"],
  ["win32", "C:/x", ""],
  ["win32", "x:/k", ""],
  ["win32", "dir:/k", ":/k"],
  ["linux", "C:/k", ":/k"],
  ["linux", "/x.tar:app:1", ":app:1"],
])("on %s the path in %s ends before %j", (platform, text, rest) => {
  const colon = colonAfterPath(text, platform);
  expect(colon < 0 ? "" : text.slice(colon)).toBe(rest);
});

test.each<[NodeJS.Platform, string, boolean]>([
  ["win32", "C:\\cache", true],
  ["win32", ".\\cache", true],
  ["win32", "\\\\host\\share", true],
  ["win32", "../cache", true],
  ["win32", "c:1", false],
  ["linux", "./cache", true],
  ["linux", ".\\cache", false],
  ["linux", "C:\\cache", false],
])("on %s %s is written as a path: %p", (platform, text, expected) => {
  expect(isWrittenAsPath(text, platform)).toBe(expected);
});

test("variables without case are found by any name, and listed once, also in copies", () => {
  const variables = ignoringCase({ Path: "C:\\bin", mysec: "s" });
  expect([variables.PATH, variables.path, variables.MySec, variables.other]).toEqual([
    "C:\\bin",
    "C:\\bin",
    "s",
    undefined,
  ]);
  expect("mySEC" in variables && Object.hasOwn(variables, "pAtH")).toBe(true);
  expect({ ...variables }).toEqual({ PATH: "C:\\bin", MYSEC: "s" });
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
