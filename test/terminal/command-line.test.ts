/** bough at a real terminal, except for builds: questions without echo, tables that fit. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import type { Terminal } from "../support/terminal.ts";
import { openBoughTerminal } from "./bough-terminal.ts";

setDefaultTimeout(180_000);

let service: FakeService;
let terminal: Terminal | undefined;
let home: string;
beforeAll(async () => {
  service = await startFakeService({
    run: () => ({ chunks: [{ stream: "stdout", data: "serving\n" }], until: new Promise(() => {}) }),
  });
  for (const tag of ["app:dev", "app:latest", "base:1"]) service.state.addImage(tag);
});
afterAll(() => service.close());
afterEach(() => {
  terminal?.close();
  terminal = undefined;
});

async function open(environment: Record<string, string> = {}, columns = 80): Promise<Terminal> {
  home = temporaryDirectory();
  terminal = await openBoughTerminal({ home, columns, environment });
  return terminal;
}

test("a token that is typed is not shown, and backspace works", async () => {
  const shown = await open();
  shown.type(`bough auth --url ${service.url}`);
  await shown.waitForLastLine("Token:");
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
  await shown.waitForLastLine("Token:");
  shown.press("C-c");
  await shown.waitFor("exit code 130");
  shown.type("echo visible");
  expect(await shown.waitFor("\nvisible")).toContain("$ echo visible");
});

test("an empty password is refused, and nothing is imported", async () => {
  const shown = await open({ CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken" });
  shown.type('bough images import host/app:1 --username me; echo "exit code $?"');
  await shown.waitForLastLine("Password of me:");
  shown.press("C-d");
  expect(await shown.waitFor("exit code 2")).toContain("no password was given");
  expect(service.state.operations.size).toBe(0);
});

test("Ctrl-C during a run leaves one line", async () => {
  const shown = await open({ CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken" });
  shown.type("bough -S s use app:dev -q; clear; bough -S s run -D -- serve");
  await shown.waitForLastLine("serving");
  shown.press("C-c");
  expect(await shown.waitFor(/\n\$$/)).toBe("serving\n^C[ERROR] interrupted\n$");
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
