/**
 * A build on a terminal, at two sizes. `test/cases/terminal/<scene>-<columns>x<rows>.txt` are the screens;
 * `UPDATE_GOLDEN=1 ./scripts/test` writes them.
 */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { writeFiles } from "../support/files.ts";
import { expectGolden } from "../support/golden.ts";
import { openTerminal, type Terminal } from "../support/terminal.ts";

// Longer than the wait for a condition, whose error shows the screen.
setDefaultTimeout(180_000);

const cases = join(import.meta.dir, "../cases/terminal");
const opened: { close(): void | Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

interface Scene {
  service: FakeService;
  terminal: Terminal;
  /** Compares the screen with the golden file. */
  expectScreen(name: string, screen: string): void;
}

describe.each([
  [80, 24],
  [200, 50],
])("at %dx%d", (columns, rows) => {
  async function open(files: Record<string, string>, options: FakeServiceOptions): Promise<Scene> {
    const service = await startFakeService(options);
    opened.push(service);
    service.state.addImage("base:1");
    const context = temporaryDirectory();
    writeFiles(context, files);
    const terminal = await openTerminal({
      columns,
      rows,
      workingDirectory: context,
      programs: { bough: [compileBough()] },
      environment: {
        BOUGH_HOME: temporaryDirectory(),
        CONTREE_URL: service.url,
        CONTREE_TOKEN: "t0ken-t0ken",
      },
    });
    opened.push(terminal);
    return {
      service,
      terminal,
      expectScreen(name, screen) {
        const shown = `${normalise(screen)}\n`;
        expectGolden(join(cases, `${name}-${columns}x${rows}.txt`), shown);
      },
    };
  }

  test("an upload counts files and bytes, and leaves its step's row", async () => {
    const files = Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, name.repeat(100_000)]));
    const { terminal, service, expectScreen } = await open(
      { Dockerfile: "FROM base:1\nCOPY . /app/\nRUN make\n", ".dockerignore": "Dockerfile\n.*", ...files },
      {},
    );
    const gate = Promise.withResolvers<undefined>();
    let sent = 0;
    service.intercept = async ({ method, url }) => {
      if (method === "POST" && url.endsWith("/v1/files") && ++sent > 3) await gate.promise;
      return undefined;
    };
    terminal.type("bough build --tag app:dev");
    expectScreen("upload", await terminal.waitFor(/uploading 3 of 4 files.*B\/s$/m));
    gate.resolve(undefined);
    expectScreen("upload-done", await terminal.waitFor(/\n\$$/));
    expect(terminal.isCursorShown()).toBe(true);
  });

  test("a long RUN shows its last lines, which do not control the terminal", async () => {
    const more = Promise.withResolvers<undefined>();
    const end = Promise.withResolvers<undefined>();
    const numbered = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join("");
    const hostile = "\u001b[2J\u001b[H\u001b]0;title\u0007\u001b[31mred\u001b[0m and \u0008\u0007bell\n";
    const { terminal, expectScreen } = await open(
      { Dockerfile: "FROM base:1\nENV A=1\nRUN make all\nRUN make check\n" },
      {
        run: (_, count) =>
          count > 0
            ? {}
            : {
                chunks: [
                  { stream: "stdout", data: `${numbered(1, 30)}${hostile}` },
                  { stream: "stderr", data: `wide ${"0123456789".repeat(30)}\n` },
                  { stream: "stdout", data: "10 %\r20 %\r" },
                  { stream: "stdout", data: "30 %\n日本語\n", after: more.promise },
                ],
                until: end.promise,
              },
      },
    );
    terminal.type("bough build --progress tty");
    expectScreen("run", await terminal.waitFor("20 %"));
    more.resolve(undefined);
    expectScreen("run-later", await terminal.waitFor("日本語"));
    end.resolve(undefined);
    expectScreen("run-done", await terminal.waitFor(/\n\$$/));
    expect(terminal.isCursorShown()).toBe(true);
  });

  test("a resized terminal shows the view in its new size, without remains of the old one", async () => {
    const more = Promise.withResolvers<undefined>();
    const again = Promise.withResolvers<undefined>();
    const title = `make ${"target ".repeat(40)}`;
    const { terminal, expectScreen } = await open(
      { Dockerfile: `FROM base:1\nRUN ${title}\n` },
      {
        run: () => ({
          chunks: [
            { stream: "stdout", data: `${"wide ".repeat(60)}\nsecond\n` },
            { stream: "stdout", data: "narrow\n", after: more.promise },
            { stream: "stdout", data: "as before\n", after: again.promise },
          ],
          until: new Promise(() => {}),
        }),
      },
    );
    terminal.type("bough build");
    await terminal.waitFor("second");
    terminal.resize(50, 20);
    more.resolve(undefined);
    // Once the window has been of that width for a while.
    expectScreen("resized", await terminal.waitFor(/^\[2\/2\] .{43}\n(.*\n)*.*narrow/m));
    terminal.resize(columns, rows);
    again.resolve(undefined);
    await terminal.waitFor("as before");
    expect(terminal.history().match(/^\[1\/2\] FROM base:1 /gm)).toHaveLength(1);
  });

  test("text that is wider on the terminal than bough expects leaves no remains", async () => {
    const gates = Array.from({ length: 10 }, () => Promise.withResolvers<undefined>());
    const wide = "हिन्दी में संदेश ".repeat(columns);
    const { terminal } = await open(
      { Dockerfile: `FROM base:1\nRUN echo ${wide}\n` },
      {
        run: () => ({
          chunks: gates.map(({ promise }, line) => ({
            stream: "stdout",
            data: `${line} ${wide}\n`,
            after: promise,
          })),
          until: new Promise(() => {}),
        }),
      },
    );
    terminal.type("bough build");
    for (const [line, { resolve }] of gates.entries()) {
      resolve(undefined);
      await terminal.waitFor(new RegExp(`^  ${line} हिन्दी`, "m"));
    }
    expect(terminal.history().match(/^\[2\/2\] RUN .*\d\.\ds$/gm)).toHaveLength(1);
  });

  test("a failure leaves the whole output and the place in the Dockerfile", async () => {
    const { terminal, expectScreen } = await open(
      { Dockerfile: "FROM base:1\nRUN make\n" },
      { run: () => ({ exitCode: 2, stdout: "compiling\n", stderr: "main.c:1: error\n", delayMs: 300 }) },
    );
    terminal.type("bough build; echo exit code $?");
    expectScreen("failure", await terminal.waitFor(/^exit code \d+\n\$$/m));
    expect(terminal.isCursorShown()).toBe(true);
  });

  test("Ctrl-Z leaves the terminal clean, and the view continues below what was written meanwhile", async () => {
    const more = Promise.withResolvers<undefined>();
    const { terminal } = await open(
      { Dockerfile: "FROM base:1\nRUN make\n" },
      {
        run: () => ({
          chunks: [
            { stream: "stdout", data: "first\n" },
            { stream: "stdout", data: "second\n", after: more.promise },
          ],
          until: new Promise(() => {}),
        }),
      },
    );
    terminal.type("bough build");
    await terminal.waitFor(/^ {2}first$/m);
    terminal.press("C-z");
    const stopped = await terminal.waitFor(/Stopped .*\n\$$/);
    expect(stopped).not.toContain("first");
    terminal.type("echo meanwhile");
    await terminal.waitFor(/^meanwhile$/m);
    terminal.type("fg");
    await terminal.waitFor(/^ {2}first$/m);
    // bough can't notice SIGSTOP: its rows stay, and nothing below them is overwritten.
    process.kill(terminal.jobs()[0] ?? 0, "SIGSTOP");
    await terminal.waitFor(/Stopped .*\n\$$/);
    terminal.type("fg");
    more.resolve(undefined);
    const screen = await terminal.waitFor(/^ {2}second$/m);
    expect(screen).toContain("\nmeanwhile\n$ fg\n");
    expect(screen).toMatch(
      /^ {2}first\n\n?\[1\]\+ {2}Stopped .*\n\$ fg\nbough build\n\[2\/2\] .*\n {2}first\n {2}second$/m,
    );
  });

  test("Ctrl-C cancels, and leaves the terminal clean", async () => {
    const { terminal, service, expectScreen } = await open(
      { Dockerfile: "FROM base:1\nRUN sleep inf\n" },
      { run: () => ({ chunks: [{ stream: "stdout", data: "sleeping\n" }], until: new Promise(() => {}) }) },
    );
    terminal.type("bough build; echo exit code $?");
    await terminal.waitFor(/^ {2}sleeping$/m);
    terminal.press("C-c");
    expectScreen("interrupted", await terminal.waitFor(/^exit code \d+\n\$$/m));
    expect(terminal.isCursorShown()).toBe(true);
    expect([...service.state.operations.values()][0]?.record.status).toBe("CANCELLED");
  });

  test("a second Ctrl-C ends bough at once, names what may still run, and leaves the terminal clean", async () => {
    const { terminal, service } = await open(
      { Dockerfile: "FROM base:1\nRUN sleep inf\n" },
      { run: () => ({ chunks: [{ stream: "stdout", data: "sleeping\n" }], until: new Promise(() => {}) }) },
    );
    // A service that does not respond to a cancellation.
    service.intercept = ({ method }) => (method === "DELETE" ? new Promise<never>(() => {}) : undefined);
    terminal.type("bough build; echo exit code $?");
    await terminal.waitFor(/^ {2}sleeping$/m);
    terminal.press("C-c");
    await terminal.waitFor(/cancelling/);
    // Signals within a fifth of a second count as one interruption.
    await Bun.sleep(250);
    terminal.press("C-c");
    const screen = await terminal.waitFor(/^exit code \d+\n\$$/m);
    const said = screen.replaceAll(/(?<=^.{80})\n/gm, "");
    expect(said).toContain(`\n[ERROR] ended without waiting; operation 000000000000 may still run\n`);
    expect(screen).not.toContain("[2/2]");
    expect(screen).toEndWith("exit code 130\n$");
    expect(terminal.isCursorShown()).toBe(true);
  });

  test("SIGKILL leaves the cursor shown and the prompt on a new line", async () => {
    const { terminal } = await open(
      { Dockerfile: "FROM base:1\nRUN sleep inf\n" },
      { run: () => ({ chunks: [{ stream: "stdout", data: "sleeping\n" }], until: new Promise(() => {}) }) },
    );
    terminal.type("bough build");
    await terminal.waitFor(/^ {2}sleeping$/m);
    for (const job of terminal.jobs()) process.kill(job, "SIGKILL");
    expect(await terminal.waitFor(/\n\$$/)).toMatch(/\n {2}sleeping\nKilled.*\n\$$/);
    expect(terminal.isCursorShown()).toBe(true);
  });
});

/** Replaces everything that differs between runs, with the same width if it is at the right edge. */
function normalise(screen: string): string {
  return screen
    .replace(/127\.0\.0\.1:\d+/g, "127.0.0.1:PORT")
    .replace(/\d\.\ds$/gm, "0.0s")
    .replace(/in \d+\.\d+ s$/gm, "in TIME")
    .replace(/, [\d.]+ [kM]?B\/s$/gm, ", RATE")
    .replace(/build:[0-9a-f]{16}/g, "build:SESSION")
    .replace(/layer:[0-9a-f]{12}/g, "layer:CHAIN_HASH__");
}
