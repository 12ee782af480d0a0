/** Processes that bough has started end at once when bough is killed, whatever they do. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { lastingProcesses } from "../../support/processes.ts";
import { type Attacker, makeAttacker, users } from "../attacker.ts";

/** `MARK` is a number of seconds by which the test finds the processes; each command prints a line when it is ready. */
const commands: [name: string, command: string][] = [
  ["sleeps", "echo begun; sleep MARK"],
  ["writes continuously", "echo begun; while true; do echo more; done & sleep MARK"],
  [
    "starts a session in the background",
    "setsid sleep MARK < /dev/null > /dev/null 2>&1 & echo begun; sleep MARK",
  ],
  ["ignores signals", "trap '' TERM INT HUP QUIT PIPE; echo begun; sleep MARK; sleep MARK"],
  ["is stopped", "(sleep 0.1; echo begun; kill -STOP -1) & sleep MARK"],
  ["has replaced its standard streams", "echo begun; exec < /dev/null > /dev/null 2>&1; sleep MARK"],
];

let marks = 0;

describe.each(users)("as %s", (who) => {
  let attacker: Attacker;
  beforeAll(async () => {
    attacker = makeAttacker(who);
    await attacker.importImage("base:1");
  });
  afterAll(() => attacker.close());

  test.each(commands)("a command that %s ends", async (_, command) => {
    const mark = `61${process.pid}.${++marks}`;
    const words = ["run", "-s", "--use", "tag:base:1", "--", command.replaceAll("MARK", mark)];
    const child = Bun.spawn([...attacker.bough, ...words], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    await firstOutput(child.stdout, "begun");
    child.kill("SIGKILL");
    await child.exited;
    expect(await lastingProcesses(`sleep ${mark}`)).toEqual([]);
  });

  test("an import from a registry that never responds ends", async () => {
    const asked = Promise.withResolvers<void>();
    const registry = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch() {
        asked.resolve();
        return new Promise<Response>(() => {});
      },
    });
    const source = `127.0.0.1:${registry.port}/image:1`;
    const child = Bun.spawn([...attacker.bough, "images", "import", source], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    await asked.promise;
    child.kill("SIGKILL");
    await child.exited;
    expect(await lastingProcesses(source)).toEqual([]);
    await registry.stop(true);
  });
});

async function firstOutput(stream: ReadableStream<Uint8Array>, expected: string): Promise<void> {
  let text = "";
  const reader = stream.getReader();
  while (!text.includes(expected)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`ended before it said ${expected}: ${text}`);
    text += new TextDecoder().decode(value);
  }
  reader.releaseLock();
}
