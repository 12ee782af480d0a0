import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestEngine } from "../support/engine.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

const run = async (command: string, image = base) => (await engine.run(image, command)).stdout;

describe("a command has", () => {
  test("Docker's default capabilities, and none as another user", async () => {
    expect(await run("grep -E 'Cap(Eff|Bnd)' /proc/self/status")).toBe(
      "CapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\n",
    );
    const other = await engine.run(base, "grep CapEff /proc/self/status", { uid: 1000 });
    expect(other.stdout).toBe("CapEff:\t0000000000000000\n");
  });

  test("its own processes, mounts, host name, System V objects and network", async () => {
    const inside = await run("for n in pid mnt uts ipc net; do readlink /proc/self/ns/$n; done; echo $$");
    const [pid, mnt, uts, ipc, net, self] = inside.split("\n");
    const outside = ["pid", "mnt", "uts", "ipc", "net"].map((name) => readlink(`/proc/self/ns/${name}`));
    for (const namespace of [pid, mnt, uts, ipc, net]) expect(outside).not.toContain(namespace ?? "");
    expect(self).toBe("1");
  });

  test("masked and read-only paths", async () => {
    expect(await run("cat /proc/keys /proc/timer_list | wc -c; ls /sys/firmware | wc -l")).toBe("0\n0\n");
    const write =
      "echo 1 > /proc/sys/kernel/domainname || echo 1 > /proc/sysrq-trigger || mkdir /sys/x || echo refused";
    expect(await run(`(${write}) 2>/dev/null`)).toBe("refused\n");
  });

  test("the usual devices, and no access to the machine's", async () => {
    const devices =
      "for d in null zero full random urandom tty ptmx fd stdin stdout stderr shm mqueue; do ls -d /dev/$d; done";
    expect((await run(devices)).split("\n")).toHaveLength(14);
    expect(await run("echo x > /dev/null && head -c 3 /dev/zero | od -An -tx1; echo y > /dev/stdout")).toBe(
      " 00 00 00\ny\n",
    );
    expect(await run("mknod /tmp/disk b 254 0 && head -c 1 /tmp/disk 2>&1 | grep -o 'not permitted'")).toBe(
      "not permitted\n",
    );
  });

  test("shared memory", async () => {
    expect(
      await run("echo kept > /dev/shm/x && cat /dev/shm/x; stat -f -c %T /dev/shm; stat -c %a /dev/shm"),
    ).toBe("kept\ntmpfs\n1777\n");
  });

  test("its own /etc/hosts, without the machine's names", async () => {
    const { stdout } = await engine.run(base, "cat /etc/hosts", { hostname: "own" });
    expect(stdout).toBe("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\town\n");
  });

  test("a resolv.conf that it can change only for itself", async () => {
    const resolvConf = readFileSync("/etc/resolv.conf", "utf8");
    expect(await run("cat /etc/resolv.conf")).toStartWith("nameserver ");
    expect(await run("hostname -i")).toBe("127.0.1.1\n");
    expect(await run("echo nameserver 192.0.2.1 > /etc/resolv.conf && cat /etc/resolv.conf")).toBe(
      "nameserver 192.0.2.1\n",
    );
    expect(readFileSync("/etc/resolv.conf", "utf8")).toBe(resolvConf);
  });

  test("read-only network files if the request says so", async () => {
    const words = "for file in hosts resolv.conf; do cat /etc/$file >/dev/null && echo >> /etc/$file; done";
    const { stderr } = await engine.run(base, words, { readonly_network_files: true });
    expect(stderr.match(/Read-only file system/g)).toHaveLength(2);
  });

  test("a umask of its own", async () => {
    const before = process.umask(0o077);
    try {
      expect(await run("umask; touch /f && stat -c %a /f")).toBe("0022\n644\n");
      const readable = await engine.run(base, "cat /etc/hosts /etc/resolv.conf > /dev/null", { uid: 1000 });
      expect(readable.stderr).toBe("");
    } finally {
      process.umask(before);
    }
  });

  test("nothing of this process's environment", async () => {
    process.env.BOUGH_TEST_SECRET = "secret";
    expect(await run("env | grep -c -i bough; true")).toBe("0\n");
    delete process.env.BOUGH_TEST_SECRET;
  });
});

describe("a layer has nothing of the sandbox's setup:", () => {
  test("an image without /proc and /sys gets none", async () => {
    const { image } = await engine.run(base, "touch /made; ls -d /proc /sys /dev /etc/hosts");
    expect(await tree(image)).toEqual([...(await tree(base)), "/made"].sort());
  });

  test("an image without /etc gets none", async () => {
    const bare = await engine.importConfigured({
      prepare: (root) => Bun.spawnSync(["rm", "-r", join(root, "etc")]),
    });
    const { image } = await engine.run(bare, "touch /made");
    expect(await tree(image)).toEqual([...(await tree(bare)), "/made"].sort());
  });

  test("a dangling link as resolv.conf works, and stays dangling", async () => {
    const linked = await engine.importConfigured({
      prepare: (root) =>
        symlinkSync("../run/systemd/resolve/stub-resolv.conf", join(root, "etc/resolv.conf")),
    });
    const { stdout, image } = await engine.run(linked, "cat /etc/resolv.conf; touch /made");
    expect(stdout).toStartWith("nameserver ");
    expect(await tree(image)).toEqual([...(await tree(linked)), "/made"].sort());
    expect((await engine.run(linked, "true")).image).toBe(linked);
  });

  test("files that the command adds next to the target of such a link stay", async () => {
    const linked = await engine.importConfigured({
      prepare: (root) => symlinkSync("/run/resolv.conf", join(root, "etc/resolv.conf")),
    });
    const { image } = await engine.run(linked, "touch /run/mine");
    const added = (await tree(image)).filter((path) => path.startsWith("/run"));
    expect(added).toEqual(["/run", "/run/mine"]);
  });

  test("an image's own files at mount points stay", async () => {
    const owning = await engine.importConfigured({
      prepare(root) {
        writeFileSync(join(root, "etc/hosts"), "mine\n");
        mkdirSync(join(root, "proc"));
        writeFileSync(join(root, "proc/kept"), "");
      },
    });
    const { image } = await engine.run(owning, "echo other > /etc/hosts; touch /made");
    const hosts = await engine.fetch("GET", `/v1/inspect/${image}/download?path=/etc/hosts`);
    expect(await hosts.text()).toBe("mine\n");
    expect(await tree(image)).toContain("/proc/kept");
  });
});

describe("a sandbox that cannot be set up is a failed operation, not a failed command", () => {
  test("a working directory below a file", async () => {
    const { operation } = await engine.run(base, "true", { cwd: "/etc/passwd/x" });
    expect(operation.status).toBe("FAILED");
    expect(operation.error).toContain("not a directory");
  });
});

test("closing the engine leaves no mount, container or directory behind", async () => {
  const closed = await TestEngine.open();
  const image = await closed.importBase();
  await Promise.all(Array.from({ length: 4 }, (_, index) => closed.run(image, `echo ${index} > /f`)));
  await closed.engine.close();
  expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(closed.directory);
  for (const name of ["containers", "operations"])
    expect(readdirSync(join(closed.directory, name))).toEqual([]);
  rmSync(closed.directory, { recursive: true });
});

/** Returns every path in an image, sorted. */
async function tree(image: string | undefined): Promise<string[]> {
  const archive = await engine.fetch("GET", `/v1/inspect/${image}/archive?path=/`);
  const list = Bun.spawnSync(["tar", "-t"], {
    stdin: new Uint8Array(await archive.arrayBuffer()),
  }).stdout.toString();
  return list
    .split("\n")
    .filter((name) => name !== "" && name !== "./")
    .map((name) => name.slice(1).replace(/\/$/, ""))
    .sort();
}

function readlink(path: string): string {
  return Bun.spawnSync(["readlink", path]).stdout.toString().trim();
}
