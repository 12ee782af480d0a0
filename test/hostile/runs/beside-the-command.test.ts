/** Subprocesses beside the command of an instance: isolated as the command is, and gone when bough is killed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type InstanceResult,
  isTerminal,
  type LimitHit,
  type OperationRecord,
} from "../../../src/service/wire/operation.ts";
import { decode } from "../../support/engine.ts";
import { lastingProcesses } from "../../support/processes.ts";
import { type Attacker, makeAttacker, users, type WatchedCanary } from "../attacker.ts";

const token = "beside-the-command";

/** Shell commands that succeed if the sandbox does not stop them; CANARY is a file of the machine. */
const attempts: [name: string, command: string][] = [
  ["mounts a file system", "mount -t tmpfs none /mnt"],
  ["takes the mask off /proc/kcore", "umount /proc/kcore"],
  ["reads a disk", "mknod /d b 8 0 && head -c 1 /d || { mknod /e b 254 0 && head -c 1 /e; }"],
  ["makes a user namespace", "unshare -U true || unshare -r true"],
  ["sees bough's own processes", "cat /proc/[0-9]*/comm | grep -E '^(bough|runc|nsenter|unshare|setpriv)$'"],
  [
    "reaches the machine's files through its parent",
    "cat /proc/$PPID/root/CANARY || cat /proc/1/root/CANARY",
  ],
  [
    "reaches the machine's files through its descriptors",
    "for fd in /proc/self/fd/*; do cat $fd/CANARY && exit; cat $fd/../../../../../..CANARY && exit; done; false",
  ],
  [
    "overwrites the program that started it",
    "for pid in $PPID 1; do echo x > /proc/$pid/exe && exit; done; false",
  ],
];

describe.each(users)("as %s", (who) => {
  let attacker: Attacker;
  let canary: WatchedCanary;
  let server: { child: Bun.Subprocess; url: string };

  beforeAll(async () => {
    attacker = makeAttacker(who);
    canary = attacker.layCanary();
    await attacker.importImage("base:1");
    server = await serve();
  });
  afterAll(async () => {
    server.child.kill("SIGINT");
    await server.child.exited;
    attacker.close();
  });

  async function serve() {
    const child = Bun.spawn([...attacker.bough, "-f", "json", "--token", token, "serve"], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    const { value } = await child.stdout.getReader().read();
    const { url } = JSON.parse(new TextDecoder().decode(value)) as { url: string };
    return { child, url };
  }

  async function call<T>(method: string, path: string, body?: object, { url } = server): Promise<T> {
    const response = await fetch(`${url}/v1/${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  const start = async (command: string, at = server) =>
    (await call<{ uuid: string }>("POST", "instances", { image: "tag:base:1", command, shell: true }, at))
      .uuid;

  async function run(instance: string, command: string): Promise<InstanceResult> {
    const beside = `operations/${instance}/subprocesses`;
    const { spid } = await call<{ spid: number }>("POST", beside, { command, shell: true });
    for (;;) {
      const result = await call<InstanceResult>("GET", `${beside}/${spid}`);
      if (result.state?.exit_code !== -1 || result.state.signal !== -1) return result;
      await Bun.sleep(10);
    }
  }

  test("no subprocess gets out of the sandbox", async () => {
    const instance = await start("sleep 1000");
    for (const [name, command] of attempts) {
      const { state, stdout } = await run(instance, command.replaceAll("CANARY", canary.file));
      expect([name, state?.exit_code === 0, decode(stdout)]).toEqual([
        name,
        false,
        expect.not.stringContaining("bait"),
      ]);
    }
    expect(canary.changes()).toEqual([]);
    await call("DELETE", `operations/${instance}`);
  }, 180_000);

  test("a working directory that the command replaced by a link to a descriptor is refused", async () => {
    const instance = await start(
      `mkdir /w; sleep 0.1; rmdir /w; ln -s /proc/self/fd/7 /w; echo ready > /ready; sleep 1000`,
    );
    while ((await run(instance, "test -e /ready")).state?.exit_code !== 0) await Bun.sleep(10);
    const body = { command: "pwd", cwd: "/w" };
    const refused = await call("POST", `operations/${instance}/subprocesses`, body).catch(
      (error: Error) => error.message,
    );
    expect(refused).toContain(": 400 ");
    await call("DELETE", `operations/${instance}`);
  });

  test.each<[string, string, object, LimitHit["limit"]]>([
    [
      "memory",
      [
        // All keep their memory until the kernel or bough has ended one of them, however long a busy machine needs.
        "for i in 1 2 3 4; do (head -c 40m /dev/zero; : > /tmp/$i; until [ -e /all ]; do sleep 0.1; done) | tail & done",
        "until [ $(ls /tmp | wc -l) -ge 4 ]; do sleep 0.1; done",
        "until [ $(pidof tail | wc -w) -lt 4 ]; do sleep 0.1; done",
        "touch /all; wait; false",
      ].join("\n"),
      { max_memory_bytes: 64 * 1024 ** 2 },
      "max_memory_bytes",
    ],
    [
      "processes",
      // The sleeps don't have the output, so that the subprocess ends with its shell, which cannot start another one.
      "i=0; while [ $i -lt 200 ]; do sleep 50 > /dev/null 2>&1 & i=$((i + 1)); done; wait; false",
      { max_processes: 40 },
      "max_processes",
    ],
  ])(
    "the instance's limit of %s counts its subprocesses",
    async (_, command, limits, limit) => {
      const body = {
        image: "tag:base:1",
        command: "sleep 1000",
        shell: true,
        resources_limits: limits,
        timeout: 60,
      };
      const { uuid } = await call<{ uuid: string }>("POST", "instances", body);
      // With control groups, the kernel may kill the subprocess alone. Without them, bough ends the instance, and with it
      // the subprocess. On a busy machine that may happen with control groups, too: the request for the subprocess then fails.
      const ended = await run(uuid, command).catch(() => undefined);
      expect(ended?.state ?? {}).not.toMatchObject({ exit_code: 0 });
      await call("DELETE", `operations/${uuid}/subprocesses/1`).catch(() => {});
      let operation: OperationRecord;
      do operation = await call<OperationRecord>("GET", `operations/${uuid}`);
      while (!isTerminal(operation.status));
      expect(operation.metadata?.result?.limits_hit?.map((hit) => hit.limit)).toEqual([limit]);
    },
    120_000,
  );

  test.each<[string, string]>([
    ["sleeps", "sleep MARK"],
    ["ignores signals and starts its own session", "trap '' TERM INT HUP; setsid sleep MARK & sleep MARK"],
    ["writes continuously", "while true; do echo more; done & sleep MARK"],
  ])(
    "a subprocess that %s ends when bough is killed",
    async (_, command) => {
      const mark = `62${process.pid}.${command.length}`;
      const doomed = await serve();
      const instance = await start(`sleep ${mark}`, doomed);
      const spec = { command: command.replaceAll("MARK", mark), shell: true };
      await call("POST", `operations/${instance}/subprocesses`, spec, doomed);
      doomed.child.kill("SIGKILL");
      await doomed.child.exited;
      expect(await lastingProcesses(`sleep ${mark}`)).toEqual([]);
      expect(await lastingProcesses(instance)).toEqual([]);
    },
    180_000,
  );
});
