/** The extension `terminals`: a command on a terminal, over the API. */
import { expect, test } from "bun:test";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import { openInput } from "../support/engine.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

const size = { columns: 91, rows: 33 };
const start = (command: string, request: Partial<InstanceBody> = {}) =>
  engine.start({ image: base, command, stdin: openInput, terminal: size, disposable: true, ...request });

const pathOf = ({ uuid }: { uuid: string }, rest = "terminal") => `/v1/operations/${uuid}/${rest}`;
const type = (instance: { uuid: string }, value: string) =>
  engine.fetch("POST", pathOf(instance, "subprocesses/1/stdin"), { value, encoding: "ascii" });

async function attach(instance: { uuid: string }) {
  const response = await engine.fetch("GET", pathOf(instance));
  expect(response.status).toBe(200);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let text = "";
  const read = async () => {
    const { done, value } = await reader.read();
    text += Buffer.from(value ?? []).toString();
    return !done;
  };
  return {
    reader,
    async until(expected: string) {
      while (!text.includes(expected)) if (!(await read())) throw new Error(`ended with ${text}`);
    },
    async rest() {
      while (await read());
      return text;
    },
  };
}

test("a command's standard streams are a terminal of the requested size, which can be changed", async () => {
  const instance = await start(
    "tty; stty size; trap 'stty size; exit 5' WINCH; while read x; do echo $x; done",
  );
  const screen = await attach(instance);
  await screen.until("33 91\n");
  await type(instance, "typed\n");
  // The terminal and the command each print the line once.
  await screen.until("typed\ntyped\n");
  const response = await engine.fetch("POST", pathOf(instance), { columns: 120, rows: 40 });
  expect(response.status).toBe(204);
  await type(instance, "\n");
  expect(await screen.rest()).toStartWith("/dev/pts/0\n33 91\n");
  expect(await screen.rest()).toContain("40 120\n");
  const { status, metadata } = await engine.finish(instance);
  expect(status).toBe("SUCCESS");
  expect(metadata).toMatchObject({ terminal: size, result: { state: { exit_code: 5 } } });
});

test("input and output of a terminal are not kept", async () => {
  const instance = await start("read x; echo shown $x");
  const screen = await attach(instance);
  await type(instance, "hunter2\n");
  expect(await screen.rest()).toContain("shown hunter2");
  const record = await engine.finish(instance);
  const kept = JSON.stringify([record, await engine.events(instance.uuid)]);
  expect(kept).toContain('"terminal"');
  expect(kept).not.toMatch(/hunter2|"stdin"|"shown/);
});

test("unread output stays out of memory, and the command ends at its timeout", async () => {
  const instance = await start("yes", { timeout: 2 });
  const screen = await attach(instance);
  await screen.until("y\ny\n");
  const before = process.memoryUsage().rss;
  const { metadata } = await engine.finish(instance);
  expect(metadata?.result?.state).toMatchObject({ timed_out: true });
  expect(process.memoryUsage().rss - before).toBeLessThan(32 * 1024 ** 2);
  expect((await screen.reader.read()).done).toBe(true);
});

test("a terminal has one client: HEAD does not attach, a second is refused, and the command ends with the first", async () => {
  const instance = await start("cat");
  const look = await engine.fetch("HEAD", pathOf(instance));
  expect(look.status).toBe(200);
  const screen = await attach(instance);
  await type(instance, "x\n");
  await screen.until("x\nx\n");
  expect((await engine.fetch("GET", pathOf(instance))).status).toBe(409);
  await screen.reader.cancel();
  expect((await engine.finish(instance)).status).toBe("CANCELLED");
});

test("a command that cannot be started prints the reason on the terminal", async () => {
  const instance = await start("nothing-there", { shell: false });
  expect(await (await attach(instance)).rest()).toContain('exec: "nothing-there": executable file not found');
  expect((await engine.finish(instance)).metadata?.result?.state?.exit_code).toBe(127);
});

test("the descriptors of a terminal are closed after it", async () => {
  const { readdirSync, readlinkSync } = await import("node:fs");
  const open = () =>
    readdirSync("/proc/self/fd").filter((fd) => {
      try {
        return /\/(ptmx|pts\/\d+)$/.test(readlinkSync(`/proc/self/fd/${fd}`));
      } catch {
        return false;
      }
    });
  const before = open().length;
  const instance = await start("true");
  await engine.finish(instance);
  for (let attempt = 0; attempt < 100 && open().length > before; attempt++) await Bun.sleep(20);
  // A descriptor of an earlier command may have been closed meanwhile.
  expect(open().length).toBeLessThanOrEqual(before);
});

test.each([
  [{ terminal: { columns: 0, rows: 1 } }, 400, "terminal.columns must be a whole number of at least 1"],
  [{ terminal: { columns: 70_000, rows: 1 } }, 400, "terminal.columns must be at most 65535"],
  [{ terminal: { columns: 80 } }, 400, "terminal.rows is missing"],
  [{ terminal: { ...size, color: true } }, 400, "terminal.color is not a known field"],
  [{ terminal: size, command: "", copies: [] }, 400, "terminal must be left out if there is no command"],
])("%j is refused", async (request, status, message) => {
  const body = { image: base, command: "true", shell: true, ...request };
  const response = await engine.fetch("POST", "/v1/instances", body);
  expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([status, message]);
});

test("an instance without a terminal refuses to attach and to resize", async () => {
  const instance = await start("cat", { terminal: undefined as never });
  for (const method of ["GET", "POST"]) {
    const response = await engine.fetch(method, pathOf(instance), method === "POST" ? size : undefined);
    expect([response.status, await response.json()]).toMatchObject([
      409,
      { error: `operation ${instance.uuid} has no terminal` },
    ]);
  }
  await engine.closeInput(instance);
  await engine.finish(instance);
});
