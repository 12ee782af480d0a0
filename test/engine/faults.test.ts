import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { checkQuickly } from "../../src/engine/check/check.ts";
import { openEngine } from "../../src/engine/engine.ts";
import { describeFault } from "../../src/engine/faults.ts";
import { BoughError } from "../../src/errors.ts";
import { nameSeconds } from "../../src/programs/helper.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";
import { removeHome } from "../support/homes.ts";
import { ociFiles, writeRawFiles } from "../support/image-bytes.ts";
import { tarOf } from "../support/tar-bytes.ts";

let scratch: string;
let layout: string;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "bough-faults-"));
  layout = await makeBusyboxLayout(join(scratch, "layout"));
});

afterAll(() => removeHome(scratch));

/** Runs a script with `engine` open on `directory` in a mount namespace that `setUp` prepares. */
function inNamespace(setUp: string, directory: string, script: string): unknown {
  const program = `
    import { TestEngine } from ${JSON.stringify(join(import.meta.dir, "../support/engine.ts"))};
    const engine = await TestEngine.open({ directory: ${JSON.stringify(directory)} });
    const layout = ${JSON.stringify(layout)};
    ${script}
    await engine.engine.close();`;
  const shell = ["unshare", "--mount", "sh", "-ec", `${setUp}; exec "$@"`, "sh"];
  const child = Bun.spawnSync([...shell, process.execPath, "-e", program], {
    env: { PATH: process.env.PATH },
  });
  expect(child.stderr.toString()).toBe("");
  return JSON.parse(child.stdout.toString());
}

describe("an error names the missing program and its package:", () => {
  test.each([
    ["crun", "a command", "/v1/instances", '{ image, command: "true" }'],
    ["skopeo", "an import from a registry", "/v1/images/import", '{ registry: { url: "docker://a/b:1" } }'],
    ["crun", "an import of a directory", "/v1/images/import", "{ registry: { url: layout } }"],
  ])("%s, for %s", async (program, _, path, body) => {
    const directory = join(scratch, `without-${program}-${crypto.randomUUID()}`);
    const engine = await TestEngine.open({ directory });
    const image = await engine.importBase("base:1", layout);
    await engine.engine.close();
    const answer = inNamespace(
      `for p in ${program === "crun" ? "crun runc" : program}; do place=$(command -v $p) && mount --bind /dev/null "$place" || true; done`,
      directory,
      `const image = ${JSON.stringify(image)};
       const response = await engine.fetch("POST", "${path}", ${body});
       console.log(JSON.stringify(await response.json()));`,
    );
    expect(answer).toEqual({
      error:
        program === "crun"
          ? "neither crun nor runc is installed, and the embedded engine needs one of them. Install the faster one: apt-get install crun. Where it does not work: apt-get install runc"
          : `${program} is not installed, and the embedded engine needs it. Install the package ${program}: apt-get install ${program}`,
      status: 501,
    });
  });
});

test("an archive without the program tar leaves no process behind", async () => {
  const directory = join(scratch, "without-tar");
  const engine = await TestEngine.open({ directory });
  const { image } = await engine.run(await engine.importBase("base:1", layout), "touch /x");
  await engine.engine.close();
  const answer = inNamespace(
    'mount --bind /dev/null "$(command -v tar)"',
    directory,
    `const { leftOpen } = await import(${JSON.stringify(join(import.meta.dir, "../support/descriptors.ts"))});
     let status;
     const left = await leftOpen(async () => {
       ({ status } = await engine.fetch("GET", "/v1/inspect/${image}/archive?path=/"));
     });
     console.log(JSON.stringify([status, left]));`,
  );
  expect(answer).toEqual([501, []]);
});

describe("a full disk is an error with the engine's directory in", () => {
  const directory = () => {
    const path = join(scratch, `full-${crypto.randomUUID()}`);
    mkdirSync(path);
    return path;
  };
  const small = (path: string, size: string) => `mount -t tmpfs -o size=${size} tmpfs ${path}`;
  const message = (path: string) => `no space left on the disk that holds ${path}`;

  test("an upload", () => {
    const path = directory();
    const answer = inNamespace(
      small(path, "4m"),
      path,
      `const first = await engine.fetch("POST", "/v1/files", new Uint8Array(8_000_000));
       const second = await engine.fetch("POST", "/v1/files", new Uint8Array(1_000_000));
       console.log(JSON.stringify([await first.json(), second.status]));`,
    );
    // The failed upload was removed, so a smaller one fits.
    expect(answer).toEqual([{ error: message(path), status: 507 }, 201]);
  });

  const largeLayer = () => {
    const layers = [tarOf([{ name: "large", content: new Uint8Array(6_000_000) }])];
    return `oci:${writeRawFiles(join(scratch, "large"), ociFiles({ layers }))}:latest`;
  };
  test.each([
    ["a small layer", () => layout],
    ["a layer that is unpacked in a thread", largeLayer],
  ])("an import of %s", (_, imageOf) => {
    const [path, url] = [directory(), imageOf()];
    const answer = inNamespace(
      small(path, "3m"),
      path,
      `const asked = { url: ${JSON.stringify(url)}, timeoutSeconds: 60 };
       const { message, hint } = await engine.service().importImage(asked).catch((error) => error);
       console.log(JSON.stringify([message, String(hint)]));`,
    );
    const reason = `${message(path)}: ${url} unpacks to more than the`;
    expect(answer).toEqual([expect.stringContaining(reason), expect.stringMatching(/^Free some space: /)]);
  });

  test("a command, whose operation ends, and the next command works", () => {
    const path = directory();
    const answer = inNamespace(
      small(path, "24m"),
      path,
      `const base = await engine.importBase("base:1", layout);
       const filling = await engine.run(base, "dd if=/dev/zero of=/filled bs=1M", { disposable: true });
       const next = await engine.run(base, "echo works");
       console.log(JSON.stringify([filling.operation.status, filling.operation.error ?? filling.stderr, next.stdout]));`,
    ) as string[];
    expect([message(path), "No space left on device"].some((text) => answer[1]?.includes(text))).toBe(true);
    expect(answer[2]).toBe("works\n");
  });
});

describe("the engine's directory", () => {
  test("is readable by its owner only", async () => {
    const directory = join(scratch, "private");
    const engine = await TestEngine.open({ directory });
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(statSync(join(directory, "engine.db")).mode & 0o777).toBe(0o600);
    await engine.engine.close();
  });

  test("is refused if a newer version wrote it", async () => {
    const directory = join(scratch, "newer");
    mkdirSync(directory);
    const database = new Database(join(directory, "engine.db"));
    database.run("PRAGMA user_version = 99");
    database.close();
    const opening = openEngine({ directory, clock: systemClock, environment: {} });
    await expect(opening).rejects.toThrow("was written by a newer bough (version 99 of its tables)");
  });

  test("is named in the error if it is damaged or cannot be written", async () => {
    const damaged = join(scratch, "damaged");
    mkdirSync(damaged);
    writeFileSync(join(damaged, "engine.db"), "garbage".repeat(1000));
    const file = join(scratch, "file");
    writeFileSync(file, "");
    const open = (directory: string) => openEngine({ directory, clock: systemClock, environment: {} });
    for (const [directory, use, hint] of [
      [damaged, open, /^Move the directory away/],
      [damaged, checkQuickly, /^Move the directory away/],
      [join(file, "below"), open, /^Check its permissions/],
      [join(file, "below"), checkQuickly, /^Check its permissions/],
    ] as const) {
      await expect(use(directory)).rejects.toMatchObject({
        message: expect.stringContaining(`the engine's directory ${directory} cannot be used: `),
        hint: expect.stringMatching(hint),
      });
    }
  });

  test("may have a colon, a comma, a space and a backslash in its name", async () => {
    const engine = await TestEngine.open({ directory: join(scratch, "odd: name, it is\\") });
    const base = await engine.importBase("base:1", layout);
    const { image } = await engine.run(base, "touch /x");
    expect((await engine.run(image ?? "", "ls /x")).stdout).toBe("/x\n");
    await engine.engine.close();
  });
});

test.each<[string, Error, string]>([
  ["with a hint", new BoughError("it failed", { hint: "Mend it." }), "it failed. Mend it."],
  [
    "of a program, with a hint,",
    new BoughError("mount: failed.", { hint: "Mend it." }),
    "mount: failed. Mend it.",
  ],
  ["without a hint", new BoughError("mount: failed."), "mount: failed."],
])("an error %s becomes one text", (_, error, text) => {
  expect(describeFault(error, { directory: "/engine", realDirectory: "/engine" })).toBe(text);
});

test.each([
  [1, "1 second"],
  [2, "2 seconds"],
])("%d seconds are shown as %s", (seconds, name) => {
  expect(nameSeconds(seconds)).toBe(name);
});
