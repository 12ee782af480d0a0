/**
 * Commands that take all of a machine that they can get, each with small limits: they end in bounded time, the engine and the
 * machine go on, and nothing is left of them. The compiled program serves the engine, as root and as an ordinary user.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstanceRequest, ResourcesLimits } from "../../../src/service/wire/instance.ts";
import type { LimitHit, OperationRecord } from "../../../src/service/wire/operation.ts";
import { diskForTests, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { compileBough } from "../../support/compiled.ts";
import { decode } from "../../support/engine.ts";
import { removeHome } from "../../support/homes.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../../support/ordinary-user.ts";
import { addPerl } from "../../support/perl-files.ts";
import { rowsFor } from "../../support/rows.ts";

const mebibyte = 1024 ** 2;

interface Attack {
  command: string;
  limits: ResourcesLimits;
  /** Root's run has a part of a processor: of those that go on until they are ended one that takes all is enough. */
  isSlow?: true;
  /** The limit that it runs into, as its record says. */
  hits?: LimitHit["limit"];
  /** The operation's own error, where it could not be kept. */
  error?: RegExp;
  /** Default: any but 0. */
  exitCode?: number;
  /** Default 40. It would go on for as long as it is let. */
  seconds?: number;
  request?: Partial<InstanceRequest>;
}

const memory: ResourcesLimits = { max_memory_bytes: 64 * mebibyte };
const processes: ResourcesLimits = { max_processes: 64 };
const layer: ResourcesLimits = { max_layer_bytes: mebibyte };
const tooLarge = /^the layer is larger than max_layer_bytes \(1048576\)/;

/** `memfd_create`. */
const memoryFileCall = process.arch === "arm64" ? 279 : 319;

const attacks: Record<string, Attack> = {
  "memory: one hog": {
    command: "head -c 1024m /dev/zero | tail; sleep 60 & false",
    limits: memory,
    hits: "max_memory_bytes",
  },
  "memory: many hogs, each of them small": {
    command: [
      // Each holds what it has taken until all have taken theirs, however long a busy machine needs to start them.
      "for i in $(seq 40); do (head -c 8m /dev/zero; : > /tmp/$i; until [ -e /all ]; do sleep 0.5; done) | tail & done",
      "n=0; until [ $(ls /tmp | wc -l) -ge 40 ] || [ $n -ge 60 ]; do n=$((n + 1)); sleep 0.25; done",
      "sleep 1; touch /all; wait; false",
    ].join("\n"),
    limits: memory,
    hits: "max_memory_bytes",
  },
  "memory: a hog that starts again whenever it is killed": {
    command: "while :; do head -c 1024m /dev/zero | tail; done",
    limits: { max_memory_bytes: 32 * mebibyte },
    hits: "max_memory_bytes",
    exitCode: 137,
  },
  "memory: files in memory that no process has mapped": {
    command: `perl -e 'my $n = "x"; open my $f, ">&=", syscall(${memoryFileCall}, $n, 0); 1 while syswrite $f, "x" x 1048576; sleep 60'`,
    limits: memory,
    hits: "max_memory_bytes",
  },
  "processes: a fork bomb": {
    // Again and again: where a limit is kept by looking, a busy machine may not look in time to see one bomb.
    command: "bomb() { bomb | bomb & }; for i in 1 2 3 4 5 6 7 8; do bomb; sleep 0.5; done; false",
    limits: processes,
    hits: "max_processes",
  },
  "processes: a fork bomb that never gives up": {
    command: "perl -e '1 while defined fork || 1'",
    limits: processes,
    hits: "max_processes",
    exitCode: 137,
    seconds: 60,
  },
  "processes: orphans in sessions of their own": {
    command: "while :; do setsid sh -c 'sleep 60 & sleep 60 &' 2>/dev/null; done",
    limits: processes,
    isSlow: true,
    hits: "max_processes",
  },
  "processes: zombies": {
    command: "perl -e 'while (1) { my $p = fork; exit if defined $p && !$p }'",
    limits: processes,
    isSlow: true,
    hits: "max_processes",
    exitCode: 137,
  },
  "processes: zombies of many users": {
    command:
      "perl -e 'my $u = 1000; while (1) { $u++; my $p = fork; if (defined $p && !$p) { $< = $> = $u; exit } }'",
    limits: processes,
    isSlow: true,
    hits: "max_processes",
    exitCode: 137,
  },
  "processes: threads": {
    command: `perl -Mthreads -e '$SIG{__WARN__} = sub {}; while (1) { my $t = threads->create({ stack_size => 65536 }, sub { sleep 60 }); $t->detach if $t }'`,
    limits: processes,
    isSlow: true,
    hits: "max_processes",
  },
  "layer: one file that grows": {
    command: "cat /dev/zero > /grown; sleep 60",
    limits: layer,
    error: tooLarge,
  },
  "layer: many files": {
    command: "i=0; while :; do i=$((i+1)); head -c 100000 /dev/zero > /file$i; done",
    limits: layer,
    error: tooLarge,
  },
  "layer: many files that are empty": {
    command: `perl -e 'open my $f, ">", "/tmp/" . $i++ while 1'`,
    limits: layer,
    error: tooLarge,
  },
  "layer: many names of one file": {
    command: `touch /one; perl -e 'link "/one", "/tmp/" . $i++ while 1'`,
    limits: layer,
    error: tooLarge,
  },
  "layer: a file behind directories too deep to be asked for": {
    command: `perl -e 'for (1..60) { mkdir "d" x 200; chdir "d" x 200 } for my $n (1..3) { open my $f, ">", $n; print $f "x" x 2000000 }'`,
    limits: layer,
    error: tooLarge,
    request: { cwd: "/tmp" },
  },
  "layer: a short command that is over before anybody looks": {
    command: "for i in 1 2 3; do head -c 500000 /dev/zero > /file$i; done",
    limits: layer,
    error: tooLarge,
  },
  "layer: the copy of a large file of the image, for one changed byte": {
    command: "printf x >> /large",
    limits: layer,
  },
};

/** What looks like an attack to somebody who counts wrongly. */
const honest: Record<string, Attack> = {
  "files on the disk are read and written; their cache is not the command's memory": {
    command: "head -c 128m /dev/zero > /large && cat /large > /dev/null",
    limits: memory,
    exitCode: 0,
  },
  "processes one after the other": {
    command: "i=0; while [ $i -lt 300 ]; do i=$((i+1)); /bin/true; done",
    limits: processes,
    exitCode: 0,
  },
  "a layer of just less than the limit": {
    command: "head -c 1000000 /dev/zero > /file; head -c 100m /dev/zero > /dev/null",
    limits: layer,
    exitCode: 0,
  },
};

const floods: [stream: string, command: string][] = [
  ["standard output", "head -c 320m /dev/zero"],
  ["standard error", "head -c 320m /dev/zero >&2"],
  ["standard error that begins as runc's own", "(printf 'runc run failed: '; head -c 320m /dev/zero) >&2"],
];

let layout: string;
beforeAll(async () => {
  layout = temporaryDirectory();
  await makeBusyboxLayout(layout, {
    prepare(image) {
      addPerl(image);
      writeFileSync(join(image, "large"), Buffer.alloc(8 * mebibyte, "x"));
    },
  });
});

describe.each(["root", "an ordinary user"])("as %s", (who) => {
  let engine: ServedEngine;
  beforeAll(async () => {
    // In memory a command's files would count for its memory.
    engine = await ServedEngine.start(
      who === "root" ? makeRoot(diskForTests()) : makeOrdinaryUser({ parent: diskForTests() }),
    );
  });
  afterAll(() => engine.stop());

  const isOfProcesses = ([name]: readonly [string, Attack]) => name.startsWith("processes: ");
  const rows = rowsFor(
    who,
    Object.entries({ ...attacks, ...honest }),
    // Of layers one: they are counted for everybody in the same way.
    Object.keys({ ...attacks, ...honest }).filter(
      (name) => !name.startsWith("layer: ") || name.includes("many files that are empty"),
    ),
  );
  // Control groups tell them apart. Each would go on for the same seconds before it is ended.
  const together = who === "root" ? test.concurrent : test;
  together.each(rows.filter(isOfProcesses))("%s", (_, attack) => expectEnd(attack));
  test.each(rows.filter((row) => !isOfProcesses(row)))("%s", (_, attack) => expectEnd(attack));

  async function expectEnd(attack: Attack): Promise<void> {
    const { command, limits, isSlow, hits, error, exitCode, seconds = 40, request } = attack;
    const impatience = new AbortController();
    const answering = engine.longestAnswer(impatience.signal);
    const operation = await engine.run(command, {
      resources_limits: isSlow && who === "root" ? { ...limits, cpus: 0.2 } : limits,
      timeout: seconds,
      ...request,
    });
    impatience.abort();
    const result = operation.metadata?.result;
    expect(result?.state?.timed_out ?? false).toBe(false);
    expect(operation.error ?? "").toMatch(error ?? /^$/);
    expect(result?.limits_hit?.map(({ limit }) => limit)).toEqual(hits === undefined ? undefined : [hits]);
    if (error === undefined) {
      if (exitCode === undefined) expect(result?.state?.exit_code).not.toBe(0);
      else expect(result?.state?.exit_code).toBe(exitCode);
    } else {
      expect(operation.result?.image ?? null).toBeNull();
    }
    // The engine has answered all the while, and nothing of the command is left.
    expect(await answering).toBeLessThan(10_000);
    expect(engine.memory()).toBeLessThan(300 * mebibyte);
    expect(engine.controlGroups(operation.uuid)).toEqual([]);
    const next = await engine.run("echo fine", {});
    expect(decode(next.metadata?.result?.stdout)).toBe("fine\n");
  }

  test.each(rowsFor(who, floods, ["standard error that begins as runc's own"]))(
    "a flood of %s takes no memory and no disk of the engine's",
    async (_, command) => {
      const operation = await engine.run(command, { truncate_output_at: mebibyte, timeout: 60 });
      const result = operation.metadata?.result;
      expect(result?.state).toMatchObject({ exit_code: 0, timed_out: false });
      const [stdout, stderr] = [result?.stdout, result?.stderr];
      expect(stdout?.truncated === true || stderr?.truncated === true).toBe(true);
      expect(decode(stdout).length + decode(stderr).length).toBeLessThanOrEqual(mebibyte);
      expect(engine.memory()).toBeLessThan(300 * mebibyte);
    },
  );

  test("shared memory ends at its 64 MiB, or at the command's limit", async () => {
    const operation = await engine.run("cat /dev/zero > /dev/shm/x", {
      resources_limits: { max_memory_bytes: 32 * mebibyte },
      timeout: 20,
    });
    const { state, stderr } = operation.metadata?.result ?? {};
    expect(state?.timed_out).toBe(false);
    expect([1, 137]).toContain(state?.exit_code ?? 0);
    if (state?.exit_code === 1) expect(decode(stderr)).toContain("No space left on device");
  });
});

test("processes of many users in a namespace leave its own user a quarter of those that he may have", async () => {
  const user = makeOrdinaryUser();
  try {
    const forks =
      "my $n = 0; for my $u (1000..2000) { my $p = fork; last if !defined $p; $p ? $n++ : ($< = $> = $u, sleep 60) } print $n";
    const words = ["run", "-D", "--use", "base:1", "--", "perl", "-e", forks];
    const bound = ["prlimit", "--nproc=300:300"];
    const { stdout } = Bun.spawnSync([
      ...user.prefix,
      ...bound,
      ...boughFor(user).slice(user.prefix.length),
      ...words,
    ]);
    expect(Number(stdout.toString())).toBeGreaterThan(50);
    // bough and its helpers have some of them, too.
    expect(Number(stdout.toString())).toBeLessThan(225);
  } finally {
    user.remove();
  }
});

type User = Pick<OrdinaryUser, "home" | "prefix" | "give" | "giveBough" | "remove">;

/** Root, with a home of its own. */
function makeRoot(parent: string): User {
  const home = mkdtempSync(join(parent, "bough-root-"));
  return {
    home,
    prefix: [],
    give: (path) => path,
    giveBough: compileBough,
    remove: () => removeHome(home),
  };
}

/** The compiled program's command line, with an engine that has the image `base:1`. */
function boughFor(user: User): string[] {
  const { home } = user;
  const bough = user.giveBough();
  const given = user.give(layout, "layout");
  const prefix = [...user.prefix, "env", "-i", `PATH=${process.env.PATH}`, `HOME=${home}`, bough];
  const imported = Bun.spawnSync([...prefix, "images", "import", `oci:${given}:latest`, "--tag", "base:1"]);
  if (imported.exitCode !== 0) throw new Error(imported.stderr.toString());
  return prefix;
}

/** `bough serve` in a process of its own. */
class ServedEngine {
  readonly #user: User;
  readonly #process: Bun.Subprocess<"ignore", "pipe", "ignore">;
  readonly #url: string;
  readonly #headers: Record<string, string>;

  private constructor(
    user: User,
    child: Bun.Subprocess<"ignore", "pipe", "ignore">,
    { url, token }: { url: string; token: string },
  ) {
    this.#user = user;
    this.#process = child;
    this.#url = url;
    this.#headers = { Authorization: `Bearer ${token}` };
  }

  static async start(user: User): Promise<ServedEngine> {
    const prefix = boughFor(user);
    const child = Bun.spawn([...prefix, "-f", "json", "serve"], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    let said = "";
    for await (const chunk of child.stdout) {
      said += Buffer.from(chunk).toString();
      if (said.trimEnd().endsWith("}")) break;
    }
    return new ServedEngine(user, child, JSON.parse(said) as { url: string; token: string });
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGTERM");
    await this.#process.exited;
    this.#user.remove();
  }

  async run(command: string, request: Partial<InstanceRequest>): Promise<OperationRecord> {
    const body = { image: "tag:base:1", command, shell: true, cwd: "/", disposable: false, ...request };
    const started = await this.#json<{ uuid: string }>("instances", JSON.stringify(body));
    for (;;) {
      const operation = await this.#json<OperationRecord>(`operations/${started.uuid}`);
      if (["SUCCESS", "FAILED"].includes(operation.status)) return operation;
      await Bun.sleep(20);
    }
  }

  /** Asks again and again; returns the milliseconds that the slowest answer took. */
  async longestAnswer(signal: AbortSignal): Promise<number> {
    let longest = 0;
    while (!signal.aborted) {
      const began = performance.now();
      await this.#json("whoami");
      longest = Math.max(longest, performance.now() - began);
      await Bun.sleep(50);
    }
    return longest;
  }

  /** Bytes that it has had at most. */
  memory(): number {
    const status = readFileSync(`/proc/${this.#process.pid}/status`, "utf8");
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }

  /** Those of an operation's container. */
  controlGroups(operation: string): string[] {
    return readdirSync("/sys/fs/cgroup", { recursive: true })
      .map(String)
      .filter((path) => path.endsWith(operation));
  }

  async #json<Body>(path: string, body?: string): Promise<Body> {
    const response = await fetch(`${this.#url}/v1/${path}`, {
      headers: this.#headers,
      ...(body === undefined ? {} : { method: "POST", body }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Body;
  }
}
