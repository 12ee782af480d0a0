/**
 * A machine for attacks, run in its own network namespace. It has services on its loopback that no RUN may reach, and prints a
 * line for each contact with them. It has a name server on its loopback, and a public service on another address. For each line
 * on standard input it sends that line as a datagram to its own service. With the argument `ipv6` it has a default route for IPv6
 * only.
 */
import { spawnSync } from "node:child_process";

export const outsideAddress = "198.51.100.7";
export const outsideIpv6Address = "2001:db8::7";
export const canaryPort = 7001;

/** Arguments of ip(8): the default route leads nowhere, and the service's address is on the loopback. */
const ipv6Words = [
  ["link", "add", "eth0", "type", "veth"],
  ["link", "set", "eth0", "up"],
  ["addr", "add", "2001:db8:1::2/64", "dev", "eth0"],
  ["-6", "route", "add", "default", "via", "2001:db8:1::1", "dev", "eth0"],
  ["addr", "add", `${outsideIpv6Address}/128`, "dev", "lo"],
];

async function serve(): Promise<void> {
  for (const words of [
    ["link", "set", "lo", "up"],
    ["addr", "add", `${outsideAddress}/32`, "dev", "lo"],
    ...(process.argv[2] === "ipv6" ? ipv6Words : []),
  ]) {
    const { status, stderr } = spawnSync("/bin/busybox", ["ip", ...words], { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
  }
  const print = (contact: string): void => {
    process.stdout.write(`${contact}\n`);
  };
  const canary = (name: string) => ({
    socket: {
      open: () => print(`TCP ${name}`),
      data() {},
    },
  });
  Bun.listen({ ...canary("127.0.0.1"), hostname: "127.0.0.1", port: canaryPort });
  Bun.listen({ ...canary("::1"), hostname: "::1", port: canaryPort });
  Bun.listen({ ...canary("abstract socket"), unix: "\0canary" });
  await Bun.udpSocket({
    hostname: "127.0.0.1",
    port: canaryPort,
    socket: { data: (_, bytes) => print(`UDP ${bytes.toString()}`) },
  });
  await Bun.udpSocket({
    hostname: "127.0.0.1",
    port: 53,
    socket: {
      data(socket, query, port, address) {
        socket.send(addressRecord(query), port, address);
      },
    },
  });
  Bun.serve({ hostname: outsideAddress, port: 80, fetch: () => new Response("from outside") });
  if (process.argv[2] === "ipv6") await serveIpv6();
  print("ready");
  const own = await Bun.udpSocket({});
  for await (const line of console) own.send(line, canaryPort, "127.0.0.1");
}

/** On a busy machine, the kernel takes some time until a new IPv6 address can be used. */
async function serveIpv6(): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      Bun.serve({ hostname: outsideIpv6Address, port: 80, fetch: () => new Response("from IPv6") });
      return;
    } catch (error) {
      if (attempt === 500) throw error;
      await Bun.sleep(10);
    }
  }
}

/** Returns a response with one A record for any name (RFC 1035, 4.1), and with no record for other types. */
function addressRecord(query: Buffer): Buffer {
  const nameEnd = query.indexOf(0, 12);
  const question = query.subarray(12, nameEnd + 5);
  const isAddress = query.readUInt16BE(nameEnd + 1) === 1;
  const header = Buffer.from([
    query[0] ?? 0,
    query[1] ?? 0,
    0x81,
    0x80,
    0,
    1,
    0,
    isAddress ? 1 : 0,
    0,
    0,
    0,
    0,
  ]);
  const record = Buffer.from([
    0xc0,
    12,
    0,
    1,
    0,
    1,
    0,
    0,
    0,
    0,
    0,
    4,
    ...outsideAddress.split(".").map(Number),
  ]);
  return Buffer.concat([header, question, ...(isAddress ? [record] : [])]);
}

if (import.meta.main) await serve();
