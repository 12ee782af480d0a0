/**
 * Commands that take all they can get of a machine, each with small limits: they end in bounded time, the engine and the
 * machine go on, and no process of them is left. The compiled program serves the engine, as root and as an ordinary user.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstanceBody, ResourcesLimits } from "../../../src/service/wire/instance.ts";
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
/** The timeout of commands that would never end: bough ends them long before, also on a busy machine. */
const maxSeconds = 120;

interface Attack {
  command: string;
  limits: ResourcesLimits;
  /** The run as root gets a part of a processor, since it would otherwise take a whole one until it is ended. */
  isSlow?: true;
  /** The limit that it reaches, as the operation's record names it. */
  hits?: LimitHit["limit"];
  /** The operation's error, if the layer could not be kept. */
  error?: RegExp;
  /** By default any but 0. */
  exitCode?: number;
  request?: Partial<InstanceBody>;
}

const memory: ResourcesLimits = { max_memory_bytes: 64 * mebibyte };
const processes: ResourcesLimits = { max_processes: 64 };
const layer: ResourcesLimits = { max_layer_bytes: mebibyte };
const tooLarge = /^the layer is larger than max_layer_bytes \(1048576\)/;

/** The number of the system call `memfd_create`. */
const memoryFileCall = process.arch === "arm64" ? 279 : 319;

const attacks: Record<string, Attack> = {
  "memory: one hog": {
    command: "head -c 1024m /dev/zero | tail; sleep 60 & false",
    limits: memory,
    hits: "max_memory_bytes",
  },
  "memory: many hogs, each of them small": {
    command: [
      // Each process keeps its memory until all have theirs, however long a busy machine needs to start them.
      "for i in $(seq 40); do (head -c 8m /dev/zero; : > /tmp/$i; until [ -e /all ]; do sleep 0.5; done) | tail & done",
      "n=0; until [ $(ls /tmp | wc -l) -ge 40 ] || [ $n -ge 60 ]; do n=$((n + 1)); sleep 0.25; done",
      // They keep it until the kernel or bough has ended one of them.
      "n=0; until [ $(pidof tail | wc -w) -lt 40 ] || [ $n -ge 60 ]; do n=$((n + 1)); sleep 0.25; done",
      "touch /all; wait; false",
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
    // A shell that cannot fork ends, so perl starts the bombs. Without control groups, bough polls, and may miss the first ones.
    command: [
      'perl -e \'$SIG{CHLD} = "IGNORE"; for (1..60) { my $p = fork; select undef, undef, undef, 0.25;',
      'exec "sh", "-c", "bomb() { bomb | bomb & }; bomb" if defined $p && !$p } exit 1\'',
    ].join("\n"),
    limits: processes,
    hits: "max_processes",
  },
  "processes: a fork bomb that never gives up": {
    command: "perl -e '1 while defined fork || 1'",
    limits: processes,
    hits: "max_processes",
    exitCode: 137,
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
  "layer: a file below directories with a path that is too long for a call": {
    command: `perl -e 'for (1..60) { mkdir "d" x 200; chdir "d" x 200 } for my $n (1..3) { open my $f, ">", $n; print $f "x" x 2000000 }'`,
    limits: layer,
    error: tooLarge,
    request: { cwd: "/tmp" },
  },
  "layer: a short command that ends before the first poll": {
    command: "for i in 1 2 3; do head -c 500000 /dev/zero > /file$i; done",
    limits: layer,
    error: tooLarge,
  },
  "layer: the copy of a large file of the image, for one changed byte": {
    command: "printf x >> /large",
    limits: layer,
  },
};

/** Commands that would exceed a limit only if bough counted wrongly. */
const honest: Record<string, Attack> = {
  "the page cache of files on the disk does not count as memory": {
    command: "head -c 128m /dev/zero > /large && cat /large > /dev/null",
    limits: memory,
    exitCode: 0,
  },
  "100 processes one after the other do not exceed 64 processes": {
    command: "i=0; while [ $i -lt 100 ]; do i=$((i+1)); /bin/true; done",
    limits: processes,
    exitCode: 0,
  },
  "a layer just below its limit is kept": {
    command: "head -c 1000000 /dev/zero > /file; head -c 100m /dev/zero > /dev/null",
    limits: layer,
    exitCode: 0,
  },
};

const floods: [stream: string, command: string][] = [
  ["both streams", "head -c 160m /dev/zero; head -c 160m /dev/zero >&2"],
  [
    "standard error that begins like an error of runc",
    "(printf 'runc run failed: '; head -c 320m /dev/zero) >&2",
  ],
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
    // On a file system in memory, a command's files would count as its memory.
    engine = await ServedEngine.start(
      who === "root" ? makeRoot(diskForTests()) : makeOrdinaryUser({ parent: diskForTests() }),
    );
  });
  afterAll(() => engine.stop());

  const isOfProcesses = ([name]: readonly [string, Attack]) => name.startsWith("processes: ");
  const rows = rowsFor(
    who,
    Object.entries({ ...attacks, ...honest }),
    // One of the layers is enough: they are measured in the same way for both.
    Object.keys({ ...attacks, ...honest }).filter(
      (name) => !name.startsWith("layer: ") || name.includes("many files that are empty"),
    ),
  );
  // Control groups count them separately, so that they can run at the same time.
  const together = who === "root" ? test.concurrent : test;
  together.each(rows.filter(isOfProcesses))("%s", (_, attack) => expectEnd(attack));
  test.each(rows.filter((row) => !isOfProcesses(row)))("%s", (_, attack) => expectEnd(attack));

  async function expectEnd(attack: Attack): Promise<void> {
    const { command, limits, isSlow, hits, error, exitCode, request } = attack;
    const ended = new AbortController();
    const slowest = engine.maxResponseMilliseconds(ended.signal);
    const operation = await engine.run(command, {
      resources_limits: isSlow && who === "root" ? { ...limits, cpus: 0.2 } : limits,
      timeout: maxSeconds,
      ...request,
    });
    ended.abort();
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
    // The engine has responded all the time, and no control group of the command is left.
    expect(await slowest).toBeLessThan(10_000);
    expect(engine.peakMemory()).toBeLessThan(300 * mebibyte);
    expect(engine.controlGroups(operation.uuid)).toEqual([]);
    const next = await engine.run("echo fine", {});
    expect(decode(next.metadata?.result?.stdout)).toBe("fine\n");
  }

  test.each(rowsFor(who, floods, ["standard error that begins like an error of runc"]))(
    "a flood of %s takes no memory of the engine",
    async (_, command) => {
      const operation = await engine.run(command, { truncate_output_at: mebibyte, timeout: 100 });
      const result = operation.metadata?.result;
      expect(result?.state).toMatchObject({ exit_code: 0, timed_out: false });
      const [stdout, stderr] = [result?.stdout, result?.stderr];
      expect(stdout?.truncated === true || stderr?.truncated === true).toBe(true);
      for (const stream of [stdout, stderr]) expect(decode(stream).length).toBeLessThanOrEqual(mebibyte);
      expect(engine.peakMemory()).toBeLessThan(300 * mebibyte);
    },
    120_000,
  );

  test("a request's own limits and size of /dev/shm apply", async () => {
    const operation = await engine.run(
      "ulimit -Sn; ulimit -Hn; df -k /dev/shm | awk 'END { print $2 }'; ulimit -n 201 2>/dev/null || echo refused",
      { resources_limits: { ulimits: { nofile: { soft: 100, hard: 200 } }, shm_bytes: mebibyte } },
    );
    const lines = decode(operation.metadata?.result?.stdout).trim().split("\n");
    expect(lines).toEqual(["100", "200", "1024", "refused"]);
  });

  test("/dev/shm is limited to 64 MiB and to the command's memory", async () => {
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

test("processes of many users in a namespace leave a quarter of its owner's processes free", async () => {
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
    // bough and its helper programs need some of them, too.
    expect(Number(stdout.toString())).toBeLessThan(225);
  } finally {
    user.remove();
  }
});

type User = Pick<OrdinaryUser, "home" | "prefix" | "give" | "giveBough" | "remove">;

/** Root, with a separate home. */
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

/** Returns the start of a command line of the compiled program, whose engine has the image `base:1`. */
function boughFor(user: User): string[] {
  const { home } = user;
  const bough = user.giveBough();
  const given = user.give(layout, "layout");
  const prefix = [...user.prefix, "env", "-i", `PATH=${process.env.PATH}`, `HOME=${home}`, bough];
  const imported = Bun.spawnSync([...prefix, "images", "import", `oci:${given}:latest`, "--tag", "base:1"]);
  if (imported.exitCode !== 0) throw new Error(imported.stderr.toString());
  return prefix;
}

/** A process of `bough serve`. */
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
    let output = "";
    for await (const chunk of child.stdout) {
      output += Buffer.from(chunk).toString();
      if (output.trimEnd().endsWith("}")) break;
    }
    return new ServedEngine(user, child, JSON.parse(output) as { url: string; token: string });
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGTERM");
    await this.#process.exited;
    this.#user.remove();
  }

  async run(command: string, request: Partial<InstanceBody>): Promise<OperationRecord> {
    const body = { image: "tag:base:1", command, shell: true, cwd: "/", disposable: false, ...request };
    const started = await this.#json<{ uuid: string }>("instances", JSON.stringify(body));
    for (;;) {
      const operation = await this.#json<OperationRecord>(`operations/${started.uuid}`);
      if (["SUCCESS", "FAILED"].includes(operation.status)) return operation;
      await Bun.sleep(20);
    }
  }

  /** Sends requests until the signal. Returns the milliseconds of the slowest response. */
  async maxResponseMilliseconds(signal: AbortSignal): Promise<number> {
    let max = 0;
    while (!signal.aborted) {
      const began = performance.now();
      await this.#json("whoami");
      max = Math.max(max, performance.now() - began);
      await Bun.sleep(50);
    }
    return max;
  }

  /** The largest number of bytes that the process has had. */
  peakMemory(): number {
    const status = readFileSync(`/proc/${this.#process.pid}/status`, "utf8");
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }

  /** Paths of the control groups of an operation's container. */
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
