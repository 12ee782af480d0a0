/** `--add-host` of `bough build` and `run`, on the embedded engine and on a service without it. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "bun:test";
import { machineAddress } from "../../src/engine/network/networks.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { openLocalBough } from "../support/local-bough.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const local = await openLocalBough();
const { engine, base } = await openSharedEngine();

function makeContext(dockerfile: string): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile });
  return context;
}

const hostsOf = (...options: string[]) =>
  ["a:10.0.0.1", "B.example=10.0.0.2", ...options].flatMap((value) => ["--add-host", value]);
const ownLines = (host: string) =>
  `127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t${host}\n`;

describe.each([
  ["--docker", "buildkitsandbox"],
  ["--no-docker", "linuxkit"],
])("build %s", (mode, host) => {
  const own = ownLines(host);
  test("/etc/hosts of each RUN has the lines, and no layer has the file", async () => {
    const run = "RUN cat /etc/hosts > /seen";
    const context = makeContext(`FROM base:1\n${run}\nRUN --network=none cat /etc/hosts > /none\n`);
    const hosts = hostsOf("six=[2001:db8::6]", "six:2001:db8::7,a:10.0.0.9");
    const { exitCode, stdout, stderr } = await local(context, "build", "-q", mode, ".", ...hosts);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const lines = "10.0.0.1\ta\n10.0.0.2\tb.example\n2001:db8::6\tsix\n2001:db8::7\tsix\n10.0.0.9\ta\n";
    for (const file of ["/seen", "/none"])
      expect((await local("/", "cat", `${stdout.trim()}:${file}`)).stdout).toBe(own + lines);
    expect((await local("/", "ls", `${stdout.trim()}:/etc`)).stdout).not.toContain("hosts");
  });

  test("a command resolves the name", async () => {
    const context = makeContext("FROM base:1\nRUN ping -c 1 -w 0 mirror 2>&1 | head -n 1 > /seen; true\n");
    const { stdout } = await local(context, "build", "-q", mode, ".", "--add-host", "Mirror=127.0.0.7");
    expect((await local("/", "cat", `${stdout.trim()}:/seen`)).stdout).toContain("127.0.0.7");
  });

  test("the names are part of the chain hash, and the addresses are not", async () => {
    const context = makeContext("FROM base:1\nRUN true > /x\n");
    const counts = async (...options: string[]) => {
      const { stderr } = await local(context, "build", mode, ".", "--progress", "plain", ...options);
      return /(\d+) of 1 layer cached/.exec(stderr)?.[1];
    };
    expect(await counts()).toBe("0");
    expect(await counts(...hostsOf())).toBe("0");
    expect(await counts("--add-host", "b.example:1.1.1.1", "--add-host", "a:::1")).toBe("1");
    expect(await counts(...hostsOf("c:10.0.0.1"))).toBe("0");
    expect(await counts()).toBe("1");
  });
});

test("a copy of staged files does not depend on the hosts", async () => {
  const context = makeContext("FROM base:1\nCOPY Dockerfile /\n");
  await local(context, "build", "--docker", ".");
  const { stderr } = await local(context, "build", "--docker", ".", "--progress", "plain", ...hostsOf());
  expect(stderr).toContain("1 of 1 layer cached");
});

test("--explain names the option", async () => {
  const context = makeContext("FROM base:1\nRUN true > /x\n");
  await local(context, "build", ".");
  const { stderr } = await local(context, "build", ".", "--explain", "--progress", "plain", ...hostsOf());
  expect(stderr).toContain("--add-host has changed");
});

test("run and --failed-step have the lines, the command line's first", async () => {
  const cat = ["cat", "/etc/hosts"];
  const { stdout } = await local("/", "run", "-D", ...hostsOf(), "base:1", ...cat);
  expect(stdout).toBe(`${ownLines("linuxkit")}10.0.0.1\ta\n10.0.0.2\tb.example\n`);
  const context = makeContext("FROM base:1\nRUN false\n");
  const failed = await local(context, "build", ".", ...hostsOf());
  const session = /build:\w{16}/.exec(failed.stderr)?.[0] ?? "";
  const words = ["-S", session, "run", "-D", "--failed-step", "--add-host", "a:10.0.0.8", "--", ...cat];
  expect((await local(context, ...words)).stdout).toBe(
    `${ownLines("linuxkit")}10.0.0.8\ta\n10.0.0.1\ta\n10.0.0.2\tb.example\n`,
  );
});

describe("host-gateway", () => {
  let server: ReturnType<typeof Bun.serve>;
  beforeAll(() => {
    server = Bun.serve({ hostname: "0.0.0.0", port: 0, fetch: () => new Response("here\n") });
  });
  afterAll(() => server.stop(true));

  test.each([["default"], ["host"]])("reaches this machine over the network %s", async (network) => {
    const get = ["wget", "-q", "-O", "-", `http://gateway:${server.port}/`];
    const options = ["--network", network, "--add-host", "gateway:host-gateway"];
    const { stdout, stderr } = await local("/", "run", "-D", ...options, "base:1", ...get);
    expect({ stdout, stderr }).toEqual({ stdout: "here\n", stderr: "" });
  });

  const address = (address: string, internal = false) =>
    ({ address, internal, family: "IPv4", netmask: "", mac: "", cidr: null }) as const;
  const route = "Iface\tDestination\tGateway\neth1\t00000000\t010200C0\neth1\t000200C0\t00000000\n";
  const both = { lo: [address("127.0.0.1", true)], eth0: [address("10.0.0.1")], eth1: [address("10.0.0.2")] };
  test.each([
    ["the interface of the default route", both, route, "10.0.0.2"],
    ["another one without such a route", both, "", "10.0.0.1"],
    ["none but the loopback", { lo: both.lo }, route, undefined],
  ])("the machine's address is that of %s", (_, interfaces, routes, expected) => {
    expect(machineAddress(interfaces, routes)).toBe(expected);
  });
});

test.each([
  ["", "a", "a:", ":10.0.0.1", "a:b", "a:1.2.3", "a=10.0.0.1:80", "a:[::1", "a:::1]"],
  ["a b:10.0.0.1", "a\n:10.0.0.1", "a#:10.0.0.1", "a:fe80::1%eth0", "a:host-gateway:1", "[::1]:a"],
])("refused: %j and others", async (...values) => {
  for (const value of values) {
    for (const words of [
      ["build", "."],
      ["build", "--check", "."],
      ["run", "-D", "--use", "base:1"],
    ]) {
      const { exitCode, stderr } = await local(makeContext("FROM base:1"), ...words, `--add-host=${value}`);
      expect({ exitCode, stderr }).toEqual({
        exitCode: 2,
        stderr: expect.stringContaining(`--add-host takes NAME:IP, not ${JSON.stringify(value)}\n`),
      });
    }
  }
});

test("a service that does not offer it gets no request", async () => {
  const fake = await startFakeService({ extensions: ["host-network"] });
  onTestFinished(() => fake.close());
  fake.state.addImage("base:1");
  const options = {
    workingDirectory: makeContext("FROM base:1\nRUN true\n"),
    environment: { BOUGH_HOME: temporaryDirectory(), CONTREE_URL: fake.url, CONTREE_TOKEN: "token" },
  };
  for (const words of [
    ["build", "."],
    ["run", "-D", "--use", "base:1"],
    ["run", "-d", "--use", "base:1"],
  ]) {
    const { exitCode, stderr } = await runBough(
      [...words, ...hostsOf(), ...(words[0] === "run" ? ["--", "true"] : [])],
      options,
    );
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining(`[ERROR] ${fake.url} does not support --add-host\n`),
    });
  }
  expect(fake.requests.filter(({ method }) => method !== "GET")).toEqual([]);
});

test.each<[string, unknown, string]>([
  ["a text", "a:1.1.1.1", "extra_hosts must be a list"],
  ["a list of texts", ["a:1.1.1.1"], "extra_hosts[0] must be an object"],
  ["no name", [{ ip: "1.1.1.1" }], "host is missing"],
  ["two words as a name", [{ host: "a b", ip: "1.1.1.1" }], "extra_hosts[0].host must be letters"],
  ["a name as an address", [{ host: "a", ip: "b" }], "extra_hosts[0].ip must be an IP address"],
  ["another line", [{ host: "a", ip: "::1\n::2" }], "extra_hosts[0].ip must be an IP address"],
  ["another field", [{ host: "a", ip: "::1", port: 1 }], "extra_hosts[0].port is not a known field"],
])("the engine refuses %s", async (_, extra_hosts, message) => {
  const response = await engine.fetch("POST", "/v1/instances", { image: base, command: "true", extra_hosts });
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(message)]);
});
