import { afterAll, expect, test } from "bun:test";
import { lstatSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { openAgentSocket } from "../../../src/engine/mounts/prepare-mounts.ts";
import type { InstanceMount } from "../../../src/service/wire/mount.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { leftOpen } from "../../support/descriptors.ts";
import { openSharedEngine } from "../../support/shared-engine.ts";
import { tinyProgram } from "../../support/tiny-program.ts";

type SshMount = Extract<InstanceMount<string>, { type: "ssh" }>;

const { engine, base } = await openSharedEngine();
for (const command of ["true", "true"]) await engine.run(base, command);
const agent = join(temporaryDirectory(), "agent");
// An agent that sends back its input in upper case.
const server = createServer((socket) => {
  socket.on("data", (chunk) => socket.end(chunk.toString().toUpperCase()));
  socket.on("error", () => undefined);
});
await new Promise<void>((resolve) => server.listen(agent, resolve));
afterAll(() => void server.close());

const path = "/run/agent\0";
const address = `\x01\0${path}`;
const said = "hello\n";
/** A program that connects, sends a text, and writes the response to a pipe. */
const client = tinyProgram([
  { x64: 41, arm64: 198, args: [1, 1, 0] },
  { x64: 42, arm64: 203, args: [3, address, address.length] },
  { x64: 1, arm64: 64, args: [3, said, said.length] },
  { x64: 275, arm64: 76, args: [3, 0, 1, 0, said.length, 0] },
]);
const talk = "stat -c '%F %a %u:%g' /run/agent; /client | cat";

async function run(command: string, mount: Partial<SshMount>, uid = 0) {
  const { uuid } = await engine.upload(client);
  const mounts: SshMount[] = [{ type: "ssh", target: "/run/agent", agent, ...mount }];
  const files = { "/client": { uuid, uid: 0, gid: 0, mode: "0755" } };
  return engine.run(base, command, { mounts, files, uid, disposable: true });
}

test("a mounted socket leads to the agent, and has the requested owner", async () => {
  const before = lstatSync(agent);
  const { stdout, stderr } = await run(talk, { mode: "0620", uid: 5, gid: 6 }, 5);
  expect([stdout, stderr]).toEqual(["socket 620 5:6\nHELLO\n", ""]);
  expect([lstatSync(agent).mode, lstatSync(agent).uid]).toEqual([before.mode, before.uid]);
});

test("a mounted socket belongs to root by default, and is not in the result", async () => {
  const mounts = [{ type: "ssh" as const, target: "/run/agent", agent }];
  const made = await engine.run(base, `${talk.split(";")[0]}; touch /made`, { mounts });
  expect(made.stdout).toBe("socket 600 0:0\n");
  expect((await engine.run(made.image ?? "", "ls -d /run /made 2>/dev/null")).stdout).toBe("/made\n");
});

test("a mounted socket cannot be used by other users", async () => {
  expect((await run("/client | cat; echo over", {}, 5)).stdout).toBe("over\n");
});

test("a missing agent closes the connection", async () => {
  expect((await run("/client | cat; echo over", { agent: `${agent}.gone` })).stdout).toBe("over\n");
});

test("a socket is closed with its command, and if its owner cannot be set", async () => {
  expect(await leftOpen(() => run(talk, {}))).toEqual([]);
  const unknownOwner = { type: "ssh", agent, mode: 0o600, uid: -2, gid: 0 } as const;
  const refused = async () =>
    await expect(openAgentSocket(unknownOwner, temporaryDirectory())).rejects.toThrow(
      "cannot create a socket",
    );
  expect(await leftOpen(refused)).toEqual([]);
});
