/** The contents of `RUN --mount=type=cache` travel with a cache where `mounts=` asks for it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { writeFiles } from "../../support/files.ts";
import { Registry } from "../../support/registry.ts";
import { buildIn, type Home, newHome } from "./homes.ts";

let registry: Registry;
let source: string;
beforeAll(async () => {
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
  source = temporaryDirectory();
  writeFiles(source, { Dockerfile: "" });
});
afterAll(() => registry.stop());

const mount = (id: string, more = "") => `--mount=type=cache,target=/${id},id=${id}${more}`;

/** Builds one RUN that no other build has, so that it runs. */
async function run(home: Home, command: string, words: readonly string[], mounts = mount("pkg")) {
  const text = `FROM ${registry.host}/base:1\nRUN ${mounts} : ${crypto.randomUUID()}; ${command}\n`;
  writeFileSync(join(source, "Dockerfile"), text);
  const built = await buildIn(home, source, ["--docker", ...words]);
  expect(built.runs, built.stderr).toHaveLength(1);
  return built;
}

const to = (directory: string, fields: string) => `--cache-to=type=local,dest=${directory},${fields}`;
const from = (directory: string) => `--cache-from=type=local,src=${directory}`;

const fill = [
  "mkdir -p /pkg/d && echo data > /pkg/d/file && chmod 600 /pkg/d/file && chown 5:6 /pkg/d/file",
  "ln -s d/file /pkg/link && ln /pkg/d/file /pkg/hard && touch -d '2001-02-03 04:05:06' /pkg/d/file",
  "chmod 1750 /pkg/d && chown 7 /pkg/d",
].join(" && ");
const shows =
  "test \"$(stat -c '%a %u:%g %h %Y' /pkg/hard) $(readlink /pkg/link) $(cat /pkg/link) $(stat -c '%a %u' /pkg/d)\" = " +
  "'600 5:6 2 981173106 d/file data 1750 7'";

test("a machine without a cache gets what the last build left in it", async () => {
  const directory = temporaryDirectory();
  const both = [from(directory), to(directory, "mode=max,mounts=pkg,other")];
  const first = newHome();
  const made = await run(first, `${fill} && touch /left/x`, both, `${mount("pkg")} ${mount("left")}`);
  expect(made.exitCode, made.stderr).toBe(0);
  expect(made.stderr).not.toContain("[WARN]");

  // Only what was asked for, with its attributes; what the second machine adds is the newest.
  const second = newHome();
  const check = `${shows} && ! ls /left/x 2>/dev/null && echo 2 > /pkg/second`;
  const found = await run(second, check, both, `${mount("pkg")} ${mount("left")}`);
  expect(found.exitCode, found.stderr).toBe(0);
  const third = await run(newHome(), `${shows} && cat /pkg/second`, both);
  expect(third.exitCode, third.stderr).toBe(0);

  // The first has a cache, which stays its own.
  const again = await run(first, `${shows} && ! ls /pkg/second 2>/dev/null`, [from(directory)]);
  expect(again.exitCode, again.stderr).toBe(0);
  // Another owner's is another cache.
  const other = await run(newHome(), 'test -z "$(ls /pkg)"', [from(directory)], mount("pkg", ",uid=5"));
  expect(other.exitCode, other.stderr).toBe(0);
}, 120_000);

test("a registry carries them, and steps that are found fetch nothing", async () => {
  const ref = `type=registry,ref=${registry.host}/mounts:main`;
  const words = [`--cache-from=${ref}`, `--cache-to=${ref},mode=max,mounts=*`];
  const made = await run(newHome(), "head -c 300000 /dev/urandom > /pkg/large", words);
  expect(made.exitCode, made.stderr).toBe(0);
  const shown = await runBough(["cache", "show", `${registry.host}/mounts:main`], {
    workingDirectory: "/",
    environment: { BOUGH_HOME: temporaryDirectory() },
  });
  expect(shown.stdout).toMatch(/300 kB +--mount=type=cache,id=pkg$/m);
  const cold = newHome();
  const found = await buildIn(cold, source, ["--docker", ...words]);
  expect([found.exitCode, found.runs], found.stderr).toEqual([0, []]);
  expect(found.receivedBytes).toBeLessThan(64 * 1024);
  expect(found.requests.filter((request) => !/^(GET|HEAD) /.test(request))).toEqual([]);
  const used = await run(cold, "test $(wc -c < /pkg/large) = 300000", words);
  expect(used.exitCode, used.stderr).toBe(0);
}, 180_000);

test("one that is too large is left out, one that is damaged is empty: the build goes on", async () => {
  const directory = temporaryDirectory();
  const large = await run(newHome(), "head -c 300000 /dev/urandom > /pkg/x", [
    to(directory, "mounts=*,mounts-max=100KB"),
  ]);
  expect(large.exitCode, large.stderr).toBe(0);
  expect(large.stderr).toContain('the cache mount "pkg" is not written to');
  expect(large.stderr).toContain("more than 100000 bytes");
  await run(newHome(), "head -c 300000 /dev/urandom > /pkg/x", [to(directory, "mounts=*")]);
  const blobs = join(directory, "blobs/sha256");
  const archive = readdirSync(blobs)
    .map((name) => join(blobs, name))
    .filter((path) => statSync(path).size > 300_000 && statSync(path).size < 302_000);
  expect(archive).toHaveLength(1);
  truncateSync(archive[0] ?? "", 200_000);
  const empty = await run(newHome(), 'test -z "$(ls /pkg)"', [from(directory)]);
  expect(empty.exitCode, empty.stderr).toBe(0);
  expect(empty.stderr).toContain('[WARN] the cache "pkg" is empty at first: ');
}, 180_000);
