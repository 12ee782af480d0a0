import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import type { InstanceResult, OperationEvent } from "../../src/service/wire/operation.ts";
import { decode, openInput, TestEngine } from "../support/engine.ts";
import { commandLines } from "../support/processes.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

/** Keeps an instance running during `use`. */
async function whileRunning<T>(
  request: Partial<InstanceBody>,
  use: (instance: string) => Promise<T>,
): Promise<T> {
  const { uuid } = await engine.start({ image: base, command: "sleep 100", ...request });
  try {
    return await use(uuid);
  } finally {
    await engine.fetch("DELETE", `/v1/operations/${uuid}`);
    await engine.finish({ uuid });
  }
}

const pathOf = (instance: string, spid?: number, rest = "") =>
  `/v1/operations/${instance}/subprocesses${spid === undefined ? "" : `/${spid}`}${rest}`;

async function create(instance: string, spec: object): Promise<number> {
  return (await engine.json<{ spid: number }>("POST", pathOf(instance), spec)).spid;
}

const look = (instance: string, spid: number) => engine.json<InstanceResult>("GET", pathOf(instance, spid));

async function ended(instance: string, spid: number): Promise<InstanceResult> {
  for (;;) {
    const result = await look(instance, spid);
    if (result.state?.exit_code !== -1 || result.state.signal !== -1) return result;
    await Bun.sleep(5);
  }
}

const write = (instance: string, spid: number, body: object) =>
  engine.fetch("POST", pathOf(instance, spid, "/stdin"), body);
const signal = (instance: string, spid: number, query = "") =>
  engine.fetch("DELETE", pathOf(instance, spid, query));

async function refusal(response: Response): Promise<[number, string]> {
  const { error } = (await response.json()) as { error: string };
  return [response.status, error];
}

describe("another process of an instance", () => {
  test("leaves no files in the directory of the operation", async () => {
    await whileRunning({}, async (instance) => {
      await ended(instance, await create(instance, { command: "true" }));
      await ended(instance, await create(instance, { command: "/missing" }));
      const files = readdirSync(join(engine.directory, "operations", instance));
      expect(files.filter((name) => name.startsWith("process"))).toEqual([]);
    });
  });

  test("has its exit code and output; while it runs, exit code and signal are -1", async () => {
    await whileRunning({}, async (instance) => {
      const quick = await create(instance, { command: "echo out; echo err >&2; exit 3", shell: true });
      expect(quick).toBe(2);
      const slow = await create(instance, { command: "sleep", args: ["100"] });
      expect(slow).toBe(3);
      const result = await ended(instance, quick);
      expect(result).toMatchObject({
        state: { exit_code: 3, signal: -1, timed_out: false, pid: expect.any(Number) },
        stdout: { value: "out\n", encoding: "ascii", truncated: false },
        stderr: { value: "err\n", encoding: "ascii", truncated: false },
        resources: { elapsed_time: expect.any(Number), user_cpu_time: expect.any(Number) },
      });
      const running = await look(instance, slow);
      expect(running.state).toMatchObject({ exit_code: -1, signal: -1 });
      expect(running.resources).toBeUndefined();
    });
  });

  test("shares its files with the command, and the image has the changes of both", async () => {
    const command = "echo main > /main; cat; cat /beside";
    const { uuid } = await engine.start({ image: base, command, stdin: openInput });
    // The shell creates /main before echo writes to it.
    const spid = await create(uuid, {
      command: "while ! [ -s /main ]; do sleep 0.01; done; cat /main > /beside",
      shell: true,
    });
    expect((await ended(uuid, spid)).state?.exit_code).toBe(0);
    await engine.closeInput({ uuid });
    const operation = await engine.finish({ uuid });
    expect(decode(operation.metadata?.result?.stdout)).toBe("main\n");
    const download = await engine.fetch(
      "GET",
      `/v1/inspect/${operation.result_image_uuid}/download?path=/beside`,
    );
    expect(await download.text()).toBe("main\n");
  });

  test("has the command's user, directory and variables, unless it says otherwise", async () => {
    const request = { uid: 65_534, cwd: "/tmp", env: { A: "main", B: "main" } };
    await whileRunning(request, async (instance) => {
      const print = "id -u; id -G; pwd; echo $A $B";
      const same = await ended(
        instance,
        await create(instance, { command: print, shell: true, env: { B: "own" } }),
      );
      expect(decode(same.stdout)).toBe("65534\n65534 100\n/tmp\nmain own\n");
      const other = { command: print, shell: true, uid: 1, gid: 5, cwd: "/var" };
      expect(decode((await ended(instance, await create(instance, other))).stdout)).toBe(
        "1\n5\n/var\nmain main\n",
      );
    });
  });

  test("gets its args from a shell as separate words", async () => {
    await whileRunning({}, async (instance) => {
      const spec = { command: "printf '[%s]'", shell: true, args: ["a b", "$HOME", "'"] };
      expect(decode((await ended(instance, await create(instance, spec))).stdout)).toBe("[a b][$HOME][']");
    });
  });

  test.each<[string, object, number, string]>([
    ["is missing", { command: "nope" }, 127, "not found"],
    ["is not a program", { command: "/etc/passwd" }, 126, "permission denied"],
    ["has a missing working directory", { command: "true", cwd: "/nope" }, 126, "/nope"],
  ])("whose command %s has a shell's exit code and message", async (_, spec, code, said) => {
    await whileRunning({}, async (instance) => {
      const { state, stderr } = await ended(instance, await create(instance, spec));
      expect(state).toMatchObject({ exit_code: code, signal: -1 });
      expect(decode(stderr)).toContain(said);
    });
  });

  test("has output of at most truncate_output_at", async () => {
    await whileRunning({}, async (instance) => {
      const spec = { command: "seq 1000", shell: true, truncate_output_at: 10 };
      const { stdout, stderr } = await ended(instance, await create(instance, spec));
      expect(stdout).toEqual({ value: "1\n2\n3\n4\n5\n", encoding: "ascii", truncated: true });
      expect(stderr?.truncated).toBe(false);
    });
  });

  test("ends with the instance, and its exit event is before the instance's", async () => {
    const { uuid } = await engine.start({ image: base, command: "cat", stdin: openInput, disposable: true });
    const spid = await create(uuid, { command: "trap '' TERM INT HUP; sleep 33.7", shell: true });
    await engine.closeInput({ uuid });
    const types = (await engine.events(uuid)).map((event) => `${event.type} ${event.spid}`);
    expect(types.indexOf("exit 2")).toBeGreaterThan(0);
    expect(types.indexOf("exit 2")).toBeLessThan(types.indexOf("completion 0"));
    expect(types.at(-1)).toBe("completion 0");
    expect((await look(uuid, spid)).state).toMatchObject({ exit_code: -1, signal: 9 });
    expect(commandLines().filter((line) => line.includes("sleep 33.7"))).toEqual([]);
  });

  test("ends when the instance is cancelled at any moment", async () => {
    for (const wait of [0, 5, 15, 30, 60]) {
      const { uuid } = await engine.start({ image: base, command: "sleep 100" });
      const creating = engine.fetch("POST", pathOf(uuid), { command: "sleep", args: ["33.8"] });
      await Bun.sleep(wait);
      await engine.fetch("DELETE", `/v1/operations/${uuid}`);
      expect([201, 409]).toContain((await creating).status);
      expect((await engine.finish({ uuid })).status).toBe("CANCELLED");
      expect((await engine.events(uuid)).at(-1)?.type).toBe("completion");
    }
    expect(commandLines().filter((line) => line.includes("sleep 33.8"))).toEqual([]);
  });

  test("has the same sandbox as the command", async () => {
    const walls = [
      "grep -E '^(Cap|Seccomp|NoNewPrivs|Groups)' /proc/self/status",
      "cat /proc/self/cgroup; ulimit -a",
      "for name in ipc mnt net pid uts cgroup user; do readlink /proc/self/ns/$name; done",
      "ls /proc /sys /dev",
    ].join("; ");
    for (const request of [{}, { uid: 65_534 }, { networking: { enabled: false } }]) {
      const { uuid } = await engine.start({
        image: base,
        command: `{ ${walls}; } | grep -v '^[0-9]*$'; cat`,
        stdin: openInput,
        ...request,
      });
      const beside = `{ ${walls}; } | grep -v '^[0-9]*$'`;
      const seen = decode((await ended(uuid, await create(uuid, { command: beside, shell: true }))).stdout);
      await engine.closeInput({ uuid });
      expect(seen).toContain("Seccomp:\t2");
      expect(seen).toBe(decode((await engine.finish({ uuid })).metadata?.result?.stdout));
    }
  });

  test("is refused if 32 processes run", async () => {
    await whileRunning({}, async (instance) => {
      for (let count = 0; count < 32; count++) await create(instance, { command: "sleep", args: ["100"] });
      const one = await engine.fetch("POST", pathOf(instance), { command: "true" });
      expect(one.headers.get("Retry-After")).toBe("1");
      expect(await refusal(one)).toEqual([429, expect.stringContaining("32 processes already run")]);
      expect((await signal(instance, 2)).status).toBe(202);
      await ended(instance, 2);
      expect((await engine.fetch("POST", pathOf(instance), { command: "true" })).status).toBe(201);
    });
  }, 180_000);
});

describe("a signal", () => {
  test.each<[string, number]>([
    ["", 9],
    ["?signal=TERM", 15],
    ["?signal=SIGKILL", 9],
    ["?signal=int", 2],
    ["?signal=10", 10],
  ])("%p ends a process, and is in its state", async (query, number) => {
    await whileRunning({}, async (instance) => {
      const spid = await create(instance, { command: "sleep", args: ["100"] });
      expect((await signal(instance, spid, query)).status).toBe(202);
      expect((await ended(instance, spid)).state).toMatchObject({ exit_code: -1, signal: number });
      expect(await refusal(await signal(instance, spid))).toEqual([409, "process 2 has already ended"]);
    });
  });

  test("reaches the command itself if it handles it", async () => {
    const command = "trap 'echo bye; exit 4' TERM; echo begun; while true; do sleep 0.01; done";
    const { uuid } = await engine.start({ image: base, command });
    while (decode((await look(uuid, 1)).stdout) !== "begun\n") await Bun.sleep(5);
    expect((await signal(uuid, 1, "?signal=TERM")).status).toBe(202);
    await engine.finish({ uuid });
    expect(await look(uuid, 1)).toMatchObject({
      state: { exit_code: 4, signal: -1 },
      stdout: { value: "begun\nbye\n" },
    });
  });

  test.each(["nope", "0", "65", "-9", "9.5"])("%p is refused", async (name) => {
    await whileRunning({}, async (instance) => {
      const spid = await create(instance, { command: "sleep", args: ["100"] });
      expect((await signal(instance, spid, `?signal=${name}`)).status).toBe(400);
      expect((await look(instance, spid)).state).toMatchObject({ exit_code: -1, signal: -1 });
    });
  });
});

describe("a standard input", () => {
  test("that stays open accepts writes until it is closed", async () => {
    await whileRunning({}, async (instance) => {
      const spid = await create(instance, { command: "cat", stdin: { value: "one ", close: false } });
      expect((await write(instance, spid, { value: "two " })).status).toBe(202);
      const bytes = Buffer.from("drei ü\n").toString("base64");
      expect((await write(instance, spid, { value: bytes, encoding: "base64", close: true })).status).toBe(
        202,
      );
      const { stdout, state } = await ended(instance, spid);
      expect(state?.exit_code).toBe(0);
      expect(decode(stdout)).toBe("one two drei ü\n");
    });
  });

  test("is closed by default, and then refuses writes", async () => {
    await whileRunning({}, async (instance) => {
      const spid = await create(instance, { command: "cat; sleep 100", shell: true });
      expect(await refusal(await write(instance, spid, { value: "x" }))).toEqual([
        409,
        "the standard input of process 2 is closed",
      ]);
    });
  });

  test("of the command itself can be kept open too", async () => {
    const { uuid } = await engine.start({ image: base, command: "cat", stdin: openInput });
    expect((await write(uuid, 1, { value: "later\n" })).status).toBe(202);
    await engine.closeInput({ uuid });
    const { metadata } = await engine.finish({ uuid });
    expect(decode(metadata?.result?.stdout)).toBe("later\n");
    // The events have no input, because it may be a secret.
    const stdin = (await engine.events(uuid)).filter(({ type }) => type === "stdin");
    expect(stdin.map(({ spid }) => spid)).toEqual([1]);
    expect(stdin[0]?.data).toEqual({ value: "", encoding: "ascii", truncated: true, bytes: 6 });
  });

  test("that the process does not read is limited in memory", async () => {
    await whileRunning({}, async (instance) => {
      const spid = await create(instance, { command: "sleep", args: ["100"], stdin: openInput });
      const megabytes = { value: "x".repeat(4 * 1024 * 1024) };
      const statuses: number[] = [];
      for (let count = 0; count < 8; count++) statuses.push((await write(instance, spid, megabytes)).status);
      expect(statuses).toEqual([202, 202, 202, 202, 429, 429, 429, 429]);
    });
  });
});

describe("an invalid request", () => {
  test("is refused with the reason", async () => {
    await whileRunning({}, async (instance) => {
      const other = await TestEngine.open({ directory: engine.directory });
      const rows: [Response, number, string][] = [
        [await engine.fetch("GET", pathOf(instance, 7)), 404, "has no process 7"],
        [await engine.fetch("GET", `${pathOf(instance)}/x`), 404, "has no process x"],
        [await signal(instance, 7), 404, "has no process 7"],
        [await write(instance, 0, { value: "" }), 404, "has no process 0"],
        [await engine.fetch("POST", pathOf("nope"), { command: "true" }), 404, "no operation nope"],
        [await engine.fetch("POST", pathOf(instance), {}), 400, "command is missing"],
        [
          await engine.fetch("POST", pathOf(instance), { command: "x", image: "y" }),
          400,
          "image is not a known field",
        ],
        [await engine.fetch("POST", pathOf(instance), { command: "x", cwd: "/proc/self/fd/3" }), 400, "cwd"],
        [await write(instance, 1, { value: "", end: true }), 400, "end is not a known field"],
        [await write(instance, 1, {}), 400, "value is missing"],
        [await other.fetch("POST", pathOf(instance), { command: "true" }), 409, "another bough"],
        [await other.fetch("DELETE", pathOf(instance, 1)), 409, "another bough"],
      ];
      for (const [response, status, text] of rows)
        expect(await refusal(response)).toEqual([status, expect.stringContaining(text)]);
      // Every engine on the directory can read the process's result so far.
      expect((await other.json<InstanceResult>("GET", pathOf(instance, 1))).state?.exit_code).toBe(-1);
      await other.engine.close();
    });
    const imported = (await engine.json<{ uuid: string }[]>("GET", "/v1/operations?kind=image_import"))[0]
      ?.uuid;
    expect(await refusal(await engine.fetch("POST", pathOf(imported ?? ""), { command: "true" }))).toEqual([
      409,
      expect.stringContaining("is an import"),
    ]);
    const { uuid } = await engine.start({ image: base, command: "true" });
    await engine.finish({ uuid });
    expect(await refusal(await engine.fetch("POST", pathOf(uuid), { command: "true" }))).toEqual([
      409,
      `operation ${uuid} has already ended (SUCCESS)`,
    ]);
    expect((await look(uuid, 1)).state).toMatchObject({ exit_code: 0 });
  });
});

test("the events of one process can be requested alone, after a given event", async () => {
  await whileRunning({}, async (instance) => {
    const spid = await create(instance, { command: "echo beside", shell: true });
    await ended(instance, spid);
    const read = async (query: string): Promise<OperationEvent[]> =>
      (await (await engine.fetch("GET", `/v1/operations/${instance}/events?${query}`)).text())
        .split("\n\n")
        .flatMap((frame) => frame.match(/^data: (.*)$/m)?.slice(1) ?? [])
        .map((data) => JSON.parse(data) as OperationEvent);
    const own = await read(`spid=${spid}`);
    expect(own.map(({ type }) => type)).toEqual(["spawn", "stdout", "exit"]);
    expect((await read(`since=${own[1]?.id}&follow=0`)).map(({ type }) => type)).toEqual(["exit"]);
    expect((await read("spid=1")).map(({ type }) => type)).toEqual(["spawn"]);
    expect((await engine.fetch("GET", `/v1/operations/${instance}/events?spid=x`)).status).toBe(400);
  });
});
