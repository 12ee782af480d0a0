import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { BoughError } from "../../src/errors.ts";
import { describeFailure } from "../../src/terminal/failure.ts";
import { createLog } from "../../src/terminal/log.ts";
import { formatBytes, formatCount } from "../../src/terminal/quantity.ts";
import { renderTable } from "../../src/terminal/table.ts";

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1000, "1.0 kB"],
  [1500, "1.5 kB"],
  [9949, "9.9 kB"],
  [9951, "10 kB"],
  [999_499, "999 kB"],
  [999_500, "1.0 MB"],
  [1_073_741_824, "1.1 GB"],
  [5e15, "5000 TB"],
])("%d bytes are %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));

test.each([
  [0, "0 files"],
  [1, "1 file"],
  [2, "2 files"],
])("%d: %s", (count, text) => expect(formatCount(count, "file")).toBe(text));

test("a table's columns are as wide as the visible text of their widest cell", () => {
  const rows = [
    ["1", "日本", "x"],
    ["200", "-", "steer\u001b[2J\nthe terminal"],
  ];
  expect(renderTable({ header: ["ID", "TITLE", "END"], rows })).toBe(
    ["ID   TITLE  END", "1    日本   x", "200  -      steer [2J the terminal", ""].join("\n"),
  );
});

describe("log lines", () => {
  test.each([
    ["debug", "[DEBUG] d\n[INFO] i\n[WARN] w\n[ERROR] e\n"],
    ["info", "[INFO] i\n[WARN] w\n[ERROR] e\n"],
    ["warn", "[WARN] w\n[ERROR] e\n"],
    ["error", "[ERROR] e\n"],
  ] as const)("from %s on", (level, expected) => {
    let written = "";
    const log = createLog(level, (text) => {
      written += text;
    });
    log.debug("d");
    log.info("i");
    log.warn("w");
    log.error("e");
    expect(written).toBe(expected);
  });

  test("a line that is repeated is printed each time", () => {
    let written = "";
    const log = createLog("info", (text) => {
      written += text;
    });
    for (let count = 0; count < 20; count++) log.info("same");
    expect(written).toBe("[INFO] same\n".repeat(20));
  });
});

describe("the message and exit code of a failure", () => {
  test.each([
    ["failed", "[ERROR] it broke\nMend it.\n", 1],
    ["usage", "[ERROR] it broke\nMend it.\n", 2],
    ["interrupted", "[ERROR] it broke\nMend it.\n", 130],
  ] as const)("%s", (kind, text, exitCode) => {
    const error = new BoughError("it broke", { kind, hint: "Mend it." });
    expect(describeFailure(error, "table")).toEqual({ text, exitCode });
  });

  test("cuts a pattern or a reference of 50 kB, and leaves a path whole", () => {
    const [pattern, path] = ["[".repeat(50_000), "p".repeat(4096)];
    const { text } = describeFailure(new BoughError(`${pattern} is not valid in ${path}`), "table");
    expect(text).toBe(`[ERROR] ${"[".repeat(200)}... is not valid in ${path}\n`);
  });

  test("is one object as JSON", () => {
    const { text } = describeFailure(new BoughError("wrong\nflag", { kind: "usage" }), "json");
    expect(JSON.parse(text)).toEqual({ error: { code: "usage", message: "wrong\nflag", hint: null } });
  });

  test("reports a violated constraint of a database as a defect", () => {
    using database = new Database(":memory:", { strict: true });
    database.run("CREATE TABLE one (id INTEGER PRIMARY KEY) STRICT");
    let failure: unknown;
    try {
      database.run("INSERT INTO one VALUES (1), (1)");
    } catch (error) {
      failure = error;
    }
    expect(describeFailure(failure, "table").text).toStartWith(
      "[ERROR] bough itself failed: UNIQUE constraint failed: one.id\nThis is a bug in bough",
    );
  });

  test("reports a defect of bough as such, without a stack", () => {
    const { text, exitCode } = describeFailure(new TypeError("x is undefined"), "table");
    expect(text).toStartWith("[ERROR] bough itself failed: x is undefined\n");
    expect(text).not.toContain("    at ");
    expect(exitCode).toBe(1);
  });
});
