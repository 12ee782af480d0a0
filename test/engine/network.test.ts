import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { findAddresses, privateResolvConf } from "../../src/engine/network/host-network.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";
import { removeHome } from "../support/homes.ts";

const machine = readlinkSync("/proc/self/ns/net");
const network = "readlink /proc/self/ns/net";
const rawPackets = "grep -E 'Cap(Bnd|Eff)' /proc/self/status";
const withRaw = "CapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\n";
const withoutRaw = "CapEff:\t00000000a80405fb\nCapBnd:\t00000000a80405fb\n";

let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "bough-network-"));
});
afterAll(() => removeHome(scratch));

describe("an engine's network", () => {
  let engine: TestEngine;
  let base: string;
  beforeAll(async () => {
    engine = await TestEngine.open();
    base = await engine.importBase();
  });
  afterAll(() => engine.close());

  test("is not started before a command needs it", () => {
    expect(carriersOf(process.pid)).toEqual([]);
  });

  test("is used by one command after another, with raw packets as in Docker", async () => {
    const one = (await engine.run(base, network)).stdout.trim();
    expect(one).toStartWith("net:");
    expect(one).not.toBe(machine);
    expect((await engine.run(base, `${network}; exit 3`)).stdout.trim()).toBe(one);
    expect((await engine.run(base, rawPackets)).stdout).toBe(withRaw);
    expect(carriersOf(process.pid)).toHaveLength(2);
  });

  test("ends without waiting for its devices to be removed", async () => {
    const other = await TestEngine.open();
    const before = carriersOf(process.pid);
    await other.run(await other.importBase(), "true");
    const started = carriersOf(process.pid).filter((pid) => !before.includes(pid));
    // The first of the two slirp4netns has its own network namespace, which has the second one's device.
    const [inner = 0] = started.filter((pid) => readlinkSync(`/proc/${pid}/ns/net`) !== machine);
    const inside = Bun.spawn(["nsenter", `--net=/proc/${inner}/ns/net`, "cat"], { stdin: "pipe" });
    try {
      while (readlinkSync(`/proc/${inside.pid}/ns/net`) === machine) await Bun.sleep(2);
      await other.close();
      expect(carriersOf(process.pid)).toEqual(before);
      expect(readFileSync(`/proc/${inside.pid}/net/dev`, "utf8")).toContain("tap0:");
    } finally {
      inside.kill();
      await inside.exited;
    }
  });

  test("is replaced for the next command if it has failed", async () => {
    const broken = carriersOf(process.pid);
    process.kill(broken[0] ?? 0, "SIGKILL");
    while (carriersOf(process.pid).length > 0) await Bun.sleep(5);
    let seen = "";
    // The engine notices the end a moment later, which may be too late for the next command.
    while (carriersOf(process.pid).length === 0) seen = (await engine.run(base, network)).stdout.trim();
    expect(seen).not.toBe(machine);
    const carriers = carriersOf(process.pid);
    expect(carriers).toHaveLength(2);
    expect(carriers).not.toEqual(broken);
  });

  test.each([
    ["enabled: false", { enabled: false }],
    ["mode: none", { mode: "none" }],
  ] as const)("%s gives a separate network with only a loopback, and raw packets", async (_, networking) => {
    const looks = `${network}; ls /sys/class/net; ip -o addr | grep -c 'inet 127.0.0.1/8'; cat /etc/resolv.conf`;
    const [first, second] = await Promise.all(
      [1, 2].map(async () => (await engine.run(base, looks, { networking })).stdout.split("\n")),
    );
    expect(first?.slice(1)).toEqual(["lo", "1", ""]);
    expect(new Set([first?.[0], second?.[0], machine]).size).toBe(3);
    expect((await engine.run(base, rawPackets, { networking })).stdout).toBe(withRaw);
  });

  test("mode: host gives the machine's network, without raw packets", async () => {
    const networking = { mode: "host" } as const;
    expect((await engine.run(base, `${network}; cat /etc/resolv.conf`, { networking })).stdout).toBe(
      `${machine}\n${readFileSync("/etc/resolv.conf", "utf8")}`,
    );
    expect((await engine.run(base, rawPackets, { networking })).stdout).toBe(withoutRaw);
    expect(await engine.json("GET", "/v1/whoami")).toMatchObject({
      extensions: expect.arrayContaining(["host-network"]),
    });
  });

  test("is another one for each command that runs at the same time, with ports of its own", async () => {
    const listen = `nc -l -p 8080 -e echo & ${network}; sleep 1; nc 127.0.0.1 8080 </dev/null; wait`;
    const commands = Array.from({ length: 6 }, (_, at) => listen.replace("echo", `echo of ${at}`));
    const runs = await Promise.all(commands.map((command) => engine.run(base, command)));
    expect(runs.map(({ stdout }) => stdout.split("\n")[1])).toEqual(commands.map((_, at) => `of ${at}`));
    expect(new Set([machine, ...runs.map(({ stdout }) => stdout.split("\n")[0])]).size).toBe(7);
    // Not all of them are kept.
    while (carriersOf(process.pid).length > 8) await Bun.sleep(5);
    expect(carriersOf(process.pid)).toHaveLength(8);
  });

  test.each([
    ["an unknown mode", { mode: "bridge" }, "networking.mode must be default, none or host"],
    ["a mode that is not a string", { mode: 1 }, "mode must be a string"],
    ["a text as enabled", { enabled: "no" }, "enabled must be true or false"],
    ["a string as networking", "none", "networking must be an object"],
  ])("%s is refused", async (_, networking, message) => {
    const body = { image: base, command: "true", networking };
    const response = await engine.fetch("POST", "/v1/instances", body);
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(message)]);
  });

  test("mode: host is refused for a client on a socket", async () => {
    const served = await TestEngine.open({ directory: engine.directory, isServer: true });
    try {
      const body = { image: base, command: "true", networking: { mode: "host" } };
      const response = await served.fetch("POST", "/v1/instances", body);
      expect([response.status, await response.text()]).toEqual([
        403,
        expect.stringContaining("networking.mode host"),
      ]);
      const { extensions } = await served.json<{ extensions: string[] }>("GET", "/v1/whoami");
      expect(extensions).not.toContain("host-network");
    } finally {
      await served.engine.close();
    }
  });
});

test("closing the engine leaves nothing of its network", async () => {
  const engine = await TestEngine.open();
  await engine.run(await engine.importBase(), "true");
  expect(carriersOf(process.pid)).toHaveLength(2);
  await engine.close();
  expect(carriersOf(process.pid)).toEqual([]);
});

test("killing the engine's process leaves nothing of its network", async () => {
  const layout = await makeBusyboxLayout(join(scratch, "layout"));
  const script = join(import.meta.dir, "../support/engine-child.ts");
  const child = Bun.spawn([process.execPath, script, join(scratch, "engine"), layout], {
    env: { PATH: process.env.PATH },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  let text = "";
  for await (const chunk of child.stdout) {
    text += Buffer.from(chunk).toString();
    if (text.includes("step-")) break;
  }
  let carriers: number[] = [];
  while (carriers.length < 2) {
    await Bun.sleep(5);
    carriers = carriersOf(child.pid);
  }
  child.kill("SIGKILL");
  await child.exited;
  while (carriers.some(isRunning)) await Bun.sleep(5);
});

/** A clock that skips the wait for slirp4netns. */
const impatient: Clock = {
  now: systemClock.now,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds === 10_000 ? 100 : milliseconds, signal),
};

describe("if slirp4netns fails, commands have the machine's network without raw packets, with one warning:", () => {
  test.each([
    [
      "it fails",
      "echo 'WARNING: experimental' >&2; echo 'no such device' >&2; exit 1",
      systemClock,
      "no such device",
    ],
    [
      "it reports that it passes on the device",
      "echo 'sent tapfd=6 for tap0' >&2; echo 'received tapfd=6' >&2; echo 'cannot pivot_root to /tmp' >&2; exit 1",
      systemClock,
      "cannot pivot_root to /tmp",
    ],
    ["it says nothing", "exit 1", systemClock, "slirp4netns exited without an error message"],
    ["it never gets ready", "sleep 1000", impatient, "slirp4netns was not ready within 10 seconds"],
  ])("%s", async (name, script, clock, reason) => {
    const programs = join(scratch, name);
    writeFileSync(join(makeDirectory(programs), "slirp4netns"), `#!/bin/sh\n${script}\n`);
    chmodSync(join(programs, "slirp4netns"), 0o755);
    const warnings: string[] = [];
    const engine = await TestEngine.open({
      environment: { PATH: `${programs}:${process.env.PATH}` },
      clock,
      warn: (message) => warnings.push(message),
    });
    try {
      const base = await engine.importBase();
      const { stdout } = await engine.run(base, `${network}; ${rawPackets}; cat /etc/resolv.conf`);
      expect(stdout).toBe(`${machine}\n${withoutRaw}${readFileSync("/etc/resolv.conf", "utf8")}`);
      await engine.run(base, "true");
      expect(warnings).toEqual([expect.stringContaining(reason)]);
      expect(carriersOf(process.pid)).toEqual([]);
    } finally {
      await engine.close();
    }
  });
});

const routeHeader = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
const route = (destination: string, mask: string) =>
  `eth0\t${destination}\t00000000\t0003\t0\t0\t0\t${mask}\t0\t0\t0\n`;
const defaultRoute = route("00000000", "00000000");
const ipv6Default = `${"0".repeat(32)} 00 ${"0".repeat(32)} 00 ${"0".repeat(31)}1 00000400 00000001 00000000 00000003     eth0\n`;
const ipv6Unreachable = `${"0".repeat(32)} 00 ${"0".repeat(32)} 00 ${"0".repeat(32)} ffffffff 00000001 00000000 00200200       lo\n`;

test.each([
  ["no routes", "", "10.0.2", "10.0.3"],
  ["other networks", defaultRoute + route("0001A8C0", "00FFFFFF"), "10.0.2", "10.0.3"],
  ["a virtual machine in 10.0.2.0/24", defaultRoute + route("0002000A", "00FFFFFF"), "10.0.3", "172.29.251"],
  ["a single machine of 10.0.3.0/24", route("0703000A", "FFFFFFFF"), "10.0.2", "172.29.251"],
  ["all of 10.0.0.0/8", route("0000000A", "000000FF"), "172.29.251", "172.29.252"],
  [
    "a VPN that halves the default route",
    route("00000000", "00000080") + route("00000080", "00000080"),
    "10.0.2",
    "10.0.3",
  ],
  [
    "all private networks",
    route("0000000A", "000000FF") + route("000010AC", "0000F0FF") + route("0000A8C0", "0000FFFF"),
    "10.0.2",
    "10.0.3",
  ],
])("the networks' addresses hide nothing of %s", (_, routes, outer, inner) => {
  const found = findAddresses({ resolvConf: "", routes: routeHeader + routes, ipv6Routes: ipv6Unreachable });
  expect(found).toEqual({ outer, inner, hasIpv6: false, nameServers: [`${outer}.3`] });
});

test.each<[string, string, string, string, { hasIpv6: boolean; nameServers: string[] } | string]>([
  [
    "IPv6 name servers only",
    "nameserver 2001:db8::1\n",
    defaultRoute,
    "",
    "a private network reaches no name server of /etc/resolv.conf: 2001:db8::1",
  ],
  [
    "IPv6 name servers only, and IPv6",
    "nameserver fe80::1%eth0\nnameserver 2001:db8::1\n",
    defaultRoute,
    ipv6Default,
    { hasIpv6: true, nameServers: ["2001:db8::1"] },
  ],
  [
    "IPv6 only, and name servers in its own network",
    "nameserver ::1\nnameserver fe80::1%eth0\n",
    "",
    ipv6Default,
    "a private network reaches no name server of /etc/resolv.conf: ::1, fe80::1%eth0",
  ],
  [
    "an IPv6 default route only",
    "nameserver 127.0.0.53\n",
    "",
    ipv6Default,
    { hasIpv6: true, nameServers: ["10.0.2.3"] },
  ],
  [
    "name servers of both kinds",
    "nameserver 2001:db8::1\nnameserver 192.0.2.1\n",
    defaultRoute,
    ipv6Default,
    { hasIpv6: false, nameServers: ["10.0.2.3"] },
  ],
  [
    "no network",
    "nameserver 127.0.0.53\n",
    "",
    ipv6Unreachable,
    { hasIpv6: false, nameServers: ["10.0.2.3"] },
  ],
])("a machine with %s", (_, resolvConf, routes, ipv6Routes, expected) => {
  const find = () => findAddresses({ resolvConf, routes: routeHeader + routes, ipv6Routes });
  if (typeof expected === "string") expect(find).toThrow(expected);
  else expect(find()).toMatchObject(expected);
});

test.each([
  ["", "nameserver 10.0.2.3\n"],
  [
    "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch a.example b.example\n",
    "nameserver 10.0.2.3\noptions edns0 trust-ad\nsearch a.example b.example\n",
  ],
  [
    "# domain x\ndomain a.example\nsearching y\nsortlist 192.0.2.0",
    "nameserver 10.0.2.3\ndomain a.example\n",
  ],
])("the sandbox's resolv.conf for the machine's %j", (own, seen) => {
  expect(privateResolvConf(own, ["10.0.2.3"])).toBe(seen);
});

/** Returns the slirp4netns processes that process `parent` has started. */
function carriersOf(parent: number): number[] {
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    return pid > 0 && isRunning(pid, parent) ? [pid] : [];
  });
}

function isRunning(pid: number, parent?: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const isChild = parent === undefined || Number(ppid) === parent;
    return state !== "Z" && isChild && stat.includes("(slirp4netns)");
  } catch {
    return false;
  }
}

function makeDirectory(path: string): string {
  Bun.spawnSync(["mkdir", "-p", path]);
  return path;
}
