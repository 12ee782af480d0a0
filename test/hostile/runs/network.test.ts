/**
 * A RUN reaches the network outside of the machine, and nothing of the machine's loopback. The tests run in their own network
 * namespace, see network-world.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { compileBough } from "../../support/compiled.ts";
import { endOf } from "../../support/ended.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../../support/ordinary-user.ts";
import { addPerl } from "../../support/perl-files.ts";
import { canaryPort, outsideAddress, outsideIpv6Address } from "./network-world.ts";

let world: World;
let layout: string;
beforeAll(async () => {
  layout = temporaryDirectory();
  await makeBusyboxLayout(layout, { prepare: addPerl });
  world = await World.start();
});
afterAll(() => world.stop());

/** The beginning of the Perl programs. */
const prelude = `use Socket qw(:all);
sub try { my ($family, $type, $address, $device) = @_;
  socket(my $s, $family, $type, 0) or die "no socket: $!\\n";
  if ($device) { setsockopt($s, SOL_SOCKET, 25, $device) or die "no device: $!\\n" }
  connect($s, $address) and syswrite($s, "contact") }
sub ipv4 { pack_sockaddr_in(${canaryPort}, inet_aton($_[0])) }
# A frame as no kernel would send it, with a UDP packet that claims to come from $from.
sub raw { my ($from, $to) = @_;
  socket(my $s, 17, SOCK_RAW, 0) or die "no device: $!\n";
  open(my $index, "<", "/sys/class/net/tap0/ifindex") or die "no device: $!\n";
  my $udp = pack("nnnn", 40000, ${canaryPort}, 15, 0) . "contact";
  my $sum = 0; my $ip = sub { pack("CCnnnCCna4a4", 0x45, 0, 20 + length $udp, 1, 0, 64, 17, $_[0], inet_aton($from), inet_aton($to)) };
  $sum += $_ for unpack("n*", $ip->(0)); $sum = ($sum & 0xffff) + ($sum >> 16) while $sum >> 16;
  my $frame = pack("H12H12n", "52550a000302", "525400123456", 0x0800) . $ip->(~$sum & 0xffff) . $udp;
  send($s, $frame, 0, pack("SnlSCCa8", 17, 0x0800, <$index>, 0, 0, 6, pack("H12", "52550a000302"))) or die "not sent: $!\n" }
`;

/** Attempts in Perl, with the contact that each makes with `--network=host`; "" for those that need slirp4netns. */
const attacks: readonly (readonly [perl: string, contact: string])[] = [
  ["try(AF_INET, SOCK_STREAM, ipv4('127.0.0.1'))", "TCP 127.0.0.1"],
  ["try(AF_INET, SOCK_STREAM, ipv4('0.0.0.0'))", "TCP 127.0.0.1"],
  [`try(AF_INET6, SOCK_STREAM, pack_sockaddr_in6(${canaryPort}, inet_pton(AF_INET6, '::1')))`, "TCP ::1"],
  ["try(AF_INET, SOCK_DGRAM, ipv4('127.0.0.1'))", "UDP contact"],
  ["try(AF_UNIX, SOCK_STREAM, pack('S', AF_UNIX) . qq(\\0canary))", "TCP abstract socket"],
  [`try(AF_INET, SOCK_STREAM, ipv4('${outsideAddress}'))`, ""],
  // slirp4netns has aliases of the machine.
  ...["10.0.2.2", "10.0.3.2", "255.255.255.255"].map(
    (address) => [`try(AF_INET, SOCK_STREAM, ipv4('${address}'))`, ""] as const,
  ),
  // Out of the interface, whatever the routes are.
  ...["127.0.0.1", "0.0.0.0", "10.0.2.2", "10.0.3.2"].flatMap((address) =>
    (["STREAM", "DGRAM"] as const).map(
      (type) => [`try(AF_INET, SOCK_${type}, ipv4('${address}'), 'tap0')`, ""] as const,
    ),
  ),
  ...["127.0.0.1", "0.0.0.0", "10.0.2.2", "10.0.3.2", "10.0.2.100"].flatMap((address) =>
    ["10.0.3.100", "127.0.0.1", address].map((from) => [`raw('${from}', '${address}')`, ""] as const),
  ),
];

/** Returns a program that makes all attempts at the same time. Each ends after a second at most, refused or not. */
const assaultBy = (attempts: readonly string[]) => `${prelude}
for my $attempt (${attempts.map((perl) => `sub { ${perl} }`).join(", ")}) {
  next if fork;
  $SIG{ALRM} = sub { exit }; alarm 1;
  $attempt->(); exit;
}
1 while wait > 0;`;

const sniff = `socket(my $s, 17, SOCK_RAW, 0x0300) or die "refused: $!\\n";
alarm 1; $SIG{ALRM} = sub { print "heard nothing\\n"; exit };
for (;;) { sysread($s, my $packet, 65536); if ($packet =~ /Bearer (\\S+)/) { print "token $1\\n"; exit } }`;

describe.each(["root", "an ordinary user"])("as %s", (who) => {
  let user: OrdinaryUser | undefined;
  let prefix: string[] = [];
  beforeAll(async () => {
    user = who === "root" ? undefined : makeOrdinaryUser({ staysInNamespace: true });
    const home = user?.home ?? temporaryDirectory();
    const bough = user?.giveBough() ?? compileBough();
    const source = user?.give(layout, "layout") ?? layout;
    prefix = [...(user?.prefix ?? []), "env", "-i", `PATH=${process.env.PATH}`, `HOME=${home}`, bough];
    const imported = await world.run([
      ...prefix,
      "images",
      "import",
      `oci:${source}:latest`,
      "--tag",
      "base:1",
    ]);
    if (imported.exitCode !== 0) throw new Error(imported.stderr);
  });
  afterAll(() => user?.remove());

  const run = (words: string[], ...options: string[]) =>
    world.run([...prefix, "run", "-D", "--use", "tag:base:1", ...options, "--", ...words]);
  /** Returns the contacts that all attempts make. */
  const contactsOf = async (...options: string[]) => {
    const since = world.contacts.length;
    const { stderr } = await run(["perl", "-e", assaultBy(attacks.map(([perl]) => perl))], ...options);
    expect(stderr.replaceAll(/^no device: .*\n/gm, "")).toBe("");
    await world.settle();
    return world.contacts.slice(since);
  };

  test("no attempt reaches a service of the machine", async () => {
    expect(await contactsOf()).toEqual([]);
    expect(await contactsOf("--network=none")).toEqual([]);
  });

  test("the same attempts succeed on the machine's network", async () => {
    const expected = attacks.map(([, contact]) => contact).filter((contact) => contact !== "");
    expect((await contactsOf("--network=host")).toSorted()).toEqual(expected.toSorted());
  });

  test.each([
    ["default", "", "heard nothing\n"],
    ["host", "refused: Operation not permitted\n", ""],
    ["none", "", "heard nothing\n"],
  ])(
    "raw packets with --network=%s do not show the token of a `bough serve`",
    async (mode, stderr, stdout) => {
      const stop = await world.talkToServer(prefix);
      const sniffed = await run(["perl", "-e", `use Socket; ${sniff}`], `--network=${mode}`);
      await stop();
      expect(sniffed).toMatchObject({ stdout, stderr });
    },
  );

  test("a RUN reaches the outside by name", async () => {
    const { stdout, stderr } = await run(["wget", "-qO-", "http://outside.example/"]);
    expect(stderr).toBe("");
    expect(stdout).toBe("from outside");
    expect((await run(["cat", "/etc/resolv.conf"])).stdout).toBe(
      "nameserver 10.0.2.3\nsearch example\noptions timeout:1\n",
    );
    expect((await run(["wget", "-qO-", "http://outside/"])).stdout).toBe("from outside");
  });

  test("a RUN with --network=none has only a loopback, which works", async () => {
    // The client's input stays open, so that nc ends only when the other side does.
    const talk =
      "ls /sys/class/net; mkfifo /open; (echo hello | nc -l -p 80 &) ; until nc 127.0.0.1 80 <>/open 2>&-; do sleep 0.05; done";
    expect((await run(["sh", "-c", talk], "--network=none")).stdout).toBe("lo\nhello\n");
    expect((await run(["wget", "-qO-", `http://${outsideAddress}/`], "--network=none")).exitCode).toBe(1);
  });

  test("a RUN sees its own network in /sys", async () => {
    expect((await run(["ls", "/sys/class/net"])).stdout).toBe("lo\ntap0\n");
    expect((await run(["sh", "-c", "mkdir /sys/x || echo 1 > /sys/class/net/lo/mtu"])).stderr).toContain(
      "Read-only",
    );
  });
});

test("resolv.conf may be a link to a file outside of /etc and /run", async () => {
  const other = await World.start("link");
  try {
    const bough = ["env", "-i", `PATH=${process.env.PATH}`, `HOME=${temporaryDirectory()}`, compileBough()];
    await other.run([...bough, "images", "import", `oci:${layout}:latest`, "--tag", "base:1"]);
    const fetched = ["run", "-D", "--use", "tag:base:1", "--", "wget", "-qO-", "http://outside.example/"];
    expect(await other.run([...bough, ...fetched])).toMatchObject({ stdout: "from outside" });
  } finally {
    await other.stop();
  }
});

test.each(["root", "an ordinary user"])(
  "on a machine with a default route for IPv6 only, as %s",
  async (who) => {
    const other = await World.start("file", "ipv6");
    const user = who === "root" ? undefined : makeOrdinaryUser({ staysInNamespace: true });
    try {
      const [home, program] = [user?.home ?? temporaryDirectory(), user?.giveBough() ?? compileBough()];
      const bough = [
        ...(user?.prefix ?? []),
        "env",
        "-i",
        `PATH=${process.env.PATH}`,
        `HOME=${home}`,
        program,
      ];
      const run = (...words: string[]) =>
        other.run([...bough, "run", "-D", "--use", "tag:base:1", "--", ...words]);
      const source = user?.give(layout, "layout") ?? layout;
      await other.run([...bough, "images", "import", `oci:${source}:latest`, "--tag", "base:1"]);

      const fetched = await run("wget", "-qO-", `http://[${outsideIpv6Address}]/`);
      expect(fetched).toEqual({ exitCode: 0, stdout: "from IPv6", stderr: "" });
      const attempts = [["::1"], ["::1", "'tap0'"], ["fd00::2"], ["fd00::3"]].map(
        ([address, device = "''"]) => {
          const target = `pack_sockaddr_in6(${canaryPort}, inet_pton(AF_INET6, '${address}'))`;
          return `try(AF_INET6, SOCK_STREAM, ${target}, ${device})`;
        },
      );
      await run("perl", "-e", assaultBy(attempts));
      await other.settle();
      expect(other.contacts).toEqual([]);
      const { stdout } = await other.run([...bough, "doctor"]);
      expect(stdout).toMatch(
        /^ok +engine's network .*: a RUN reaches the outside, but not this machine's loopback$/m,
      );
    } finally {
      await other.stop();
      user?.remove();
    }
  },
);

/** A process of network-world.ts. */
class World {
  readonly contacts: string[] = [];
  readonly #process: Bun.Subprocess<"pipe", "pipe", "inherit">;
  #sentinels = 0;

  private constructor(process: Bun.Subprocess<"pipe", "pipe", "inherit">) {
    this.#process = process;
  }

  /** `resolvConf`: `/etc/resolv.conf` is a file, or a link to a file elsewhere. */
  static async start(resolvConf: "file" | "link" = "file", ...options: "ipv6"[]): Promise<World> {
    const path = join(temporaryDirectory(), "resolv.conf");
    writeFileSync(path, "nameserver 127.0.0.1\nsearch example\noptions timeout:1\n");
    const provide = {
      file: `mount --bind "$1" /etc/resolv.conf`,
      link: `cp -a /etc "$1.etc"; ln -sf "$1" "$1.etc/resolv.conf"; mount --bind "$1.etc" /etc`,
    }[resolvConf];
    const script = `${provide}; shift; exec "$@"`;
    const enter = [
      "unshare",
      "--net",
      "--mount",
      "--propagation",
      "private",
      "sh",
      "-ec",
      script,
      "sh",
      path,
    ];
    const program = join(import.meta.dir, "network-world.ts");
    const world = Bun.spawn([...enter, process.execPath, program, ...options], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    const started = new World(world);
    const ready = Promise.withResolvers<void>();
    void started.#listen(ready.resolve).then(() => ready.reject(new Error("the world has ended")));
    await ready.promise;
    return started;
  }

  async #listen(ready: () => void): Promise<void> {
    let text = "";
    for await (const chunk of this.#process.stdout) {
      text += Buffer.from(chunk).toString();
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
        const contact = text.slice(0, end);
        text = text.slice(end + 1);
        if (contact === "ready") ready();
        else this.contacts.push(contact);
      }
    }
  }

  get #enter(): string[] {
    return ["nsenter", `--target=${this.#process.pid}`, "--net", "--mount", "--"];
  }

  async run(command: readonly string[]): Promise<{ stdout: string; stderr: string; exitCode: number }> {
    const ran = Bun.spawn([...this.#enter, ...command], {
      cwd: "/",
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    return endOf(ran);
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
  }

  /** Waits until a new datagram has arrived, and with it everything that was on its way to a service before. */
  async settle(): Promise<void> {
    const mark = `sentinel ${this.#sentinels++}`;
    this.#process.stdin.write(`${mark}\n`);
    this.#process.stdin.flush();
    while (!this.contacts.includes(`UDP ${mark}`)) await Bun.sleep(5);
    this.contacts.splice(this.contacts.indexOf(`UDP ${mark}`), 1);
  }

  /** Starts a server of the engine, and a client that keeps sending it requests with the token. */
  async talkToServer(bough: readonly string[]): Promise<() => Promise<void>> {
    const token = "token-of-the-server";
    const server = ["serve", "--listen", "127.0.0.1:7010", "--token", token, "-q"];
    const request = `wget -qO- --header 'Authorization: Bearer ${token}' http://127.0.0.1:7010/v1/whoami >/dev/null 2>&1`;
    const spawn = (command: readonly string[]) =>
      Bun.spawn([...this.#enter, ...command], {
        cwd: "/",
        stdout: "ignore",
        stderr: "pipe",
        detached: true,
      });
    const serving = spawn([...bough, ...server]);
    const talking = spawn(["sh", "-c", `while :; do busybox ${request}; sleep 0.02; done`]);
    while ((await this.run(["sh", "-c", `busybox ${request}`])).exitCode !== 0) {
      if (serving.exitCode !== null) throw new Error(await new Response(serving.stderr).text());
      await Bun.sleep(20);
    }
    return async () => {
      for (const { pid } of [serving, talking]) process.kill(-pid, "SIGKILL");
      // The next server needs the port.
      await Promise.all([serving.exited, talking.exited]);
    };
  }
}
