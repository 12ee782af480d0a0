/** `bough build --lock` on the embedded engine, with images of a real registry. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

let registry: Registry;
/** Addresses of two images, for the registry. */
let older: string;
let newer: string;
let home: string;
let context: string;
let count = 0;
/** The base of each test, which no other has. */
let base: string;

beforeAll(async () => {
  registry = await Registry.start();
  const layoutOf = async (content: string) =>
    `${await makeBusyboxLayout(temporaryDirectory(), {
      prepare: (root) => writeFiles(root, { version: content }),
    })}`;
  [older, newer] = [await layoutOf("older\n"), await layoutOf("newer\n")];
});
afterAll(() => registry.stop());
beforeEach(() => {
  home = temporaryDirectory();
  context = temporaryDirectory();
  base = `${registry.host}/base${++count}:1`;
});

const bough = (...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: context, environment: { BOUGH_HOME: home } });

async function build(...options: string[]) {
  const before = registry.requests().length;
  const { exitCode, stderr } = await bough("build", "--lock", "bough.lock", ...options);
  const version = /^(older|newer)$/m.exec(stderr)?.[1];
  return { exitCode, stderr, version, requests: registry.requests().slice(before) };
}

const entry = () => JSON.parse(readFileSync(join(context, "bough.lock"), "utf8")).references[0];
const push = (layout: string) => registry.push(layout, base.slice(registry.host.length + 1));

test("a moved tag means the locked image, on each machine, until it is updated", async () => {
  const [first] = [push(older)];
  writeFiles(context, { Dockerfile: `FROM ${base}\nRUN cat /version\n` });
  const written = await build();
  expect(written).toMatchObject({ exitCode: 0, version: "older" });
  expect(written.stderr).toContain(`bough.lock: added ${base} ${first}`);
  expect(entry()).toEqual({ kind: "image", name: base, digest: first, dockerfiles: ["Dockerfile"] });

  const second = push(newer);
  const cached = await build();
  expect(cached).toMatchObject({ exitCode: 0, version: undefined, requests: [] });
  home = temporaryDirectory();
  expect(await build("--locked", "--pull")).toMatchObject({ exitCode: 0, version: "older" });

  const updated = await build(`--update-lock=${base.slice(0, -2)}`);
  expect(updated).toMatchObject({ exitCode: 0, version: "newer" });
  expect(updated.stderr).toContain(`bough.lock: updated ${base} from ${first} to ${second}`);
  expect(entry().digest).toBe(second);
});

test("a lock leaves the cache of builds without one as it is, and imports nothing that is there", async () => {
  push(older);
  writeFiles(context, { Dockerfile: `FROM ${base}\nRUN cat /version\n` });
  expect((await bough("build")).exitCode).toBe(0);
  const locked = await build();
  expect(locked).toMatchObject({ exitCode: 0, version: undefined });
  const { requests } = locked;
  expect(requests.filter((request) => !/^GET \/v2\/(.*\/manifests\/.*)?$/.test(request))).toEqual([]);
  expect(await build()).toMatchObject({ exitCode: 0, version: undefined, requests: [] });
});

test("an image of this machine with a registry's name is not taken for the registry's", async () => {
  push(older);
  writeFiles(context, { Dockerfile: "FROM scratch\nLABEL a=b\n" });
  expect((await bough("build", "--docker", "--tag", base)).exitCode).toBe(0);
  writeFiles(context, { Dockerfile: `FROM ${base}\nRUN cat /version\n` });
  const refused = await build();
  expect(refused.exitCode).toBe(1);
  expect(refused.stderr).toContain(`${base} cannot be locked: it is image `);
  expect(existsSync(join(context, "bough.lock"))).toBe(false);
  expect(await build("--pull")).toMatchObject({ exitCode: 0, version: "older" });
});

test("an image that the registry has lost is named, and so is what to do", async () => {
  const digest = push(older);
  writeFiles(context, { Dockerfile: `FROM ${base}\nRUN cat /version\n` });
  expect((await build()).exitCode).toBe(0);
  const lost = `sha256:${"0".repeat(64)}`;
  writeFiles(context, {
    "bough.lock": readFileSync(join(context, "bough.lock"), "utf8").replace(digest, lost),
  });
  const failed = await build();
  expect(failed.exitCode).toBe(1);
  for (const part of [`${base}@${lost}`, `--update-lock=${base}`]) expect(failed.stderr).toContain(part);
});

test("an image of several platforms has one entry, with the digest of all", async () => {
  const prepare = (root: string, architecture: string) => writeFiles(root, { architecture });
  const layout = await makeBusyboxLayout(temporaryDirectory(), {
    architectures: ["amd64", "arm64"],
    prepare,
  });
  const digest = push(layout);
  writeFiles(context, { Dockerfile: `FROM ${base}\nCOPY Dockerfile /\n` });
  const platforms = ["--docker", "--platform", "linux/amd64,linux/arm64"];
  for (let round = 1; round <= 2; round++) {
    const { exitCode, stderr } = await build(...platforms, "-o", "type=oci,dest=out.tar");
    expect([exitCode, exitCode === 0 ? "" : stderr]).toEqual([0, ""]);
    expect(JSON.parse(readFileSync(join(context, "bough.lock"), "utf8")).references).toEqual([
      { kind: "image", name: base, digest, dockerfiles: ["Dockerfile"] },
    ]);
    push(newer);
    home = temporaryDirectory();
  }
});
