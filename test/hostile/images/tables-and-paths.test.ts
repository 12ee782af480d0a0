/** Malicious user tables and links in images. */
import { beforeAll, describe, expect, test } from "bun:test";
import { createImageInspection } from "../../../src/builder/cache/image-inspection.ts";
import { clientOf } from "../../service/client.ts";
import { usableRuntimes } from "../../support/runtimes.ts";
import { openSharedEngine } from "../../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

const user = "mallory:x:1000:1000::/:/bin/sh";

describe("a process starts despite", () => {
  test.each<[attack: string, passwd: string, group: string, ids: string]>([
    ["a negative gid of a group", user, "bad:x:-1:mallory\ngood:x:50:mallory", "1000 1000 50"],
    ["a gid of 20 digits", user, "bad:x:99999999999999999999:mallory", "1000 1000"],
    ["a gid of 2^32", user, "bad:x:4294967296:mallory\ngood:x:50:mallory", "1000 1000 50"],
    ["a gid that is not a number", user, "bad:x:0x10:mallory\nworse:x:1e3:mallory", "1000 1000"],
    ["a negative primary gid", "mallory:x:1000:-5::/:/bin/sh", "", "1000 0"],
    ["a primary gid of 2^32 - 1", "mallory:x:1000:4294967295::/:/bin/sh", "", "1000 0"],
    ["a user without a name", ":x:1000:7::/:/bin/sh", "bad:x:50:", "1000 7"],
    ["rows of only colons", `${":".repeat(60_000)}\n${user}`, ":".repeat(60_000), "1000 1000"],
  ])("%s", async (_, passwd, group, ids) => {
    const write = 'cat > /etc/passwd; echo; printf %s "$GROUP" > /etc/group';
    const made = await engine.run(base, write, {
      stdin: { value: `${passwd}\n`, encoding: "ascii" },
      env: { GROUP: `${group}\n` },
    });
    const finished = await engine.run(made.image ?? "", 'echo "$(id -u) $(id -G)"', { uid: 1000 });
    expect(finished).toMatchObject({ stdout: `${ids}\n` });
  });

  const fill = "rm -f /etc/passwd /etc/group; head -c 4000000 /dev/zero | tr '\\0'";
  test.each([
    ["tables of only line ends", `${fill} '\\n' > /etc/passwd; cp /etc/passwd /etc/group`],
    ["no tables", "rm -f /etc/passwd /etc/group"],
    ["tables that are links to each other", "ln -sf group /etc/passwd; ln -sf passwd /etc/group"],
  ])(
    "%s",
    async (_, attack) => {
      const made = await engine.run(base, attack);
      const finished = await engine.run(made.image ?? "", 'echo "$(id -u) $(id -G)"', { uid: 1000 });
      expect(finished).toMatchObject({ stdout: "1000 0\n" });
    },
    180_000,
  );
});

describe("an operation fails in time if the runtime cannot start its process:", () => {
  const [chosen] = usableRuntimes().reverse();
  test.each([
    ["tables that are directories (runc)", "rm -f /etc/passwd /etc/group; mkdir /etc/passwd /etc/group"],
    ["a table of one line (runc)", "rm /etc/passwd; head -c 20000000 /dev/zero > /etc/passwd"],
  ])("%s", async (_, attack) => {
    const made = await engine.run(base, attack);
    const finished = await engine.run(made.image ?? "", "echo run", { uid: 1000 });
    if (chosen === "crun") expect(finished.stdout).toBe("run\n");
    else expect(finished).toMatchObject({ stdout: "", operation: { status: "FAILED" } });
    expect(String(finished.operation.error)).not.toContain("bough itself");
  });

  test.each([
    ["a pipe for users (runc and crun)", "rm /etc/passwd; mkfifo /etc/passwd"],
    ["a pipe for groups (runc and crun)", "rm /etc/group; mkfifo /etc/group"],
    ["a pipe behind a link (runc and crun)", "rm /etc/group; mkfifo /p; ln -s ../../p /etc/group"],
  ])("%s", async (_, attack) => {
    const made = await engine.run(base, attack);
    const finished = await engine.run(made.image ?? "", "echo run", { uid: 1000 });
    expect(finished).toMatchObject({ stdout: "", operation: { status: "FAILED" } });
    expect(String(finished.operation.error)).not.toContain("bough itself");
  });
});

test("a command with 40,000 variables of its image is refused: it would start after many seconds", async () => {
  const count = 40_000;
  const config = { Env: Array.from({ length: count }, (_, index) => `V${index}=x`) };
  const { uuid } = await engine.json<{ uuid: string }>("POST", `/v1/images/${base}/config`, { config });
  const { operation } = await engine.run(uuid, "true");
  expect(operation).toMatchObject({
    status: "FAILED",
    // PATH is the one that every command has.
    error: `the command would have ${count + 1} variables, with those of its image, and at most 20000 are supported`,
  });
});

test("a name cannot be looked up in a giant table: the error says to write numbers", async () => {
  const made = await engine.run(base, "head -c 5000000 /dev/zero | tr '\\0' '\\n' > /etc/passwd");
  const { service } = clientOf("http://engine", {
    fetch: (input, init) => engine.engine.fetch(input instanceof Request ? input : new Request(input, init)),
  });
  const inspection = createImageInspection(
    service,
    { inspection: () => true },
    { get: () => undefined, set() {} },
  );
  const failure = await inspection
    .readTextFile(made.image ?? "", "/etc/passwd")
    .catch((error: unknown) => error);
  expect(failure).toMatchObject({
    message: "/etc/passwd in the image is too large to look up names in it",
    hint: "Write numbers in place of names, such as 1000:1000.",
  });
});

describe("a path that leads nowhere gets status 404, and is not requested again:", () => {
  const name = "n".repeat(255);
  let image: string;
  beforeAll(async () => {
    const made = await engine.run(
      base,
      `mkdir /d; ln -s b /d/a; ln -s a /d/b; ln -s self /d/self; ln -s /d/long/../long /d/long; printf x > /d/file
       i=0; cd /d; while [ $i -lt 45 ]; do ln -s l$((i + 1)) l$i; i=$((i + 1)); done; ln -s . l45
       i=0; while [ $i -lt 20 ]; do mkdir ${name}; cd ${name}; i=$((i + 1)); done`,
    );
    image = made.image ?? "";
  });

  test.each<[attack: string, path: string]>([
    ["two links in a circle", "/d/a"],
    ["below two links in a circle", "/d/a/x"],
    ["a link to itself", "/d/self"],
    ["a link to itself through ..", "/d/long"],
    ["more links than Linux follows", "/d/l0"],
    ["a name that is too long", `/${"n".repeat(256)}`],
    ["a path that is too long", "/d".repeat(2000)],
    ["a path of 200,000 bytes", "/d".repeat(100_000)],
    ["an existing directory with a path that is too long", `/d/${`${name}/`.repeat(19)}`],
    ["below a file", "/d/file/x"],
  ])("%s", async (_, path) => {
    let requests = 0;
    const { service } = clientOf("http://engine", {
      fetch: (input, init) => {
        requests++;
        return engine.engine.fetch(input instanceof Request ? input : new Request(input, init));
      },
    });
    for (const what of ["list", "download", "archive"]) {
      const { status } = await engine.fetch(
        "GET",
        `/v1/inspect/${image}/${what}?path=${encodeURIComponent(path)}`,
      );
      expect([what, status]).toEqual([what, 404]);
    }
    await expect(service.openFile(image, path)).rejects.toThrow("there is no such file");
    // The file, and the image's root with the image's record, which tell a missing file from a missing route.
    expect(requests).toBeLessThan(4);
  });
});
