/** bough at a real terminal, except for builds: questions without echo, tables that fit. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { openTerminal, type Terminal } from "../support/terminal.ts";

setDefaultTimeout(30_000);

let service: FakeService;
let programs: string;
let terminal: Terminal | undefined;
let home: string;
beforeAll(async () => {
  service = await startFakeService();
  for (const tag of ["app:dev", "app:latest", "base:1"]) service.state.addImage(tag);
  programs = temporaryDirectory();
  writeFileSync(join(programs, "bough"), `#!/bin/sh\nexec '${compileBough()}' "$@"\n`);
  chmodSync(join(programs, "bough"), 0o755);
});
afterAll(() => service.close());
afterEach(() => {
  terminal?.close();
  terminal = undefined;
});

async function open(environment: Record<string, string> = {}, columns = 80): Promise<Terminal> {
  home = temporaryDirectory();
  terminal = await openTerminal({
    columns,
    rows: 24,
    workingDirectory: home,
    environment: {
      PATH: `${programs}:${process.env.PATH}`,
      HOME: home,
      BOUGH_HOME: join(home, "state"),
      ...environment,
    },
  });
  return terminal;
}

/** Waits until the last line of the screen is `expected`. */
const waitForLastLine = (shown: Terminal, expected: string) =>
  shown.waitFor(new RegExp(`(^|\\n)${expected.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`));

test("a token that is typed is not shown, and backspace works", async () => {
  const shown = await open();
  shown.type(`bough auth --url ${service.url}`);
  await waitForLastLine(shown, "Token:");
  shown.write("my-sX");
  shown.press("BSpace");
  shown.type("ecret-token");
  const screen = await shown.waitFor("default  *");
  expect(screen).not.toContain("cret");
  const saved = readFileSync(join(home, ".config/contree/auth.ini"), "utf8");
  expect(saved).toContain("token = my-secret-token\n");
});

test("Ctrl-C at the question saves nothing, and the terminal is restored", async () => {
  const shown = await open();
  shown.type(`bough auth --url ${service.url}; echo "exit code $?"`);
  await waitForLastLine(shown, "Token:");
  shown.press("C-c");
  await shown.waitFor("exit code 130");
  shown.type("echo visible");
  expect(await shown.waitFor("\nvisible")).toContain("$ echo visible");
});

test("an empty password is refused, and nothing is imported", async () => {
  const shown = await open({ CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken" });
  shown.type('bough images import host/app:1 --username me; echo "exit code $?"');
  await waitForLastLine(shown, "Password of me:");
  shown.press("C-d");
  expect(await shown.waitFor("exit code 2")).toContain("no password was given");
  expect(service.state.operations.size).toBe(0);
});

test("in CI there is no question", async () => {
  const shown = await open({ CI: "true" });
  shown.type(`bough auth --url ${service.url}; echo "exit code $?"`);
  expect(await shown.waitFor("exit code 2")).toContain(
    "no token given, and there is no terminal to ask for it",
  );
});

test("tables fit the terminal, and are whole with --wide", async () => {
  const shown = await open({ CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken" }, 60);
  shown.type("bough -L error images; bough -L error images --wide");
  // The terminal wraps the whole lines of --wide.
  const screen = await shown.waitFor("T00:00:03.000Z");
  expect(screen).toMatch(/^a0000000-0000-4000-8000-000000000003 +base:1 +\d+ .*…$/m);
});
