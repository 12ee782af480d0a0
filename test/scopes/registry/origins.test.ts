/**
 * Trust follows a layer: what an unsigned cache has put into the local store is not used by a build that verifies, and not signed,
 * whatever way it has taken.
 */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { writeFiles } from "../../support/files.ts";
import { Registry } from "../../support/registry.ts";
import { openCache, readCacheIndex, writeCacheIndex } from "./forge.ts";
import { buildIn, type Home, newHome } from "./homes.ts";

let registry: Registry;
let keys: string;
beforeAll(async () => {
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
  keys = temporaryDirectory();
  for (const words of [
    ["genpkey", "-algorithm", "ed25519", "-out", "key"],
    ["pkey", "-in", "key", "-pubout", "-out", "pub"],
    ["genpkey", "-algorithm", "ed25519", "-out", "other"],
    ["pkey", "-in", "other", "-pubout", "-out", "other.pub"],
  ])
    Bun.spawnSync(["openssl", ...words], { cwd: keys });
});
afterAll(() => registry.stop());

let names = 0;
/** A repository of its own for each test. */
let repository: string;
beforeEach(() => {
  repository = `${registry.host}/origins-${++names}`;
});

const refOf = (tag: string) => `type=registry,ref=${repository}:${tag}`;
const from = (tag: string) => `--cache-from=${refOf(tag)}`;
const to = (tag: string, more = "") => `--cache-to=${refOf(tag)},mode=max${more}`;
const verify = (key = "pub") => ["--cache-verify", join(keys, key)];
const sign = () => ["--cache-sign", join(keys, "key")];

function sourceOf(text: string): string {
  const source = temporaryDirectory();
  writeFiles(source, { Dockerfile: text.replaceAll("BASE", `${registry.host}/base:1`) });
  return source;
}

async function build(home: Home, text: string, ...words: string[]) {
  const built = await buildIn(home, sourceOf(text), ["--docker", ...words]);
  expect(built.exitCode, built.stderr).toBe(0);
  return built;
}

async function read({ context, home }: Home, image: string | undefined, ...paths: string[]) {
  const ran = await runBough(["--local", "run", image ?? "", "cat", ...paths], {
    workingDirectory: context,
    environment: { BOUGH_HOME: home },
  });
  return ran.stdout.trim().split("\n");
}

/** Writes the cache `poisoned`, in which the step of `good` with this title has the image that `evil` has made of its own. */
async function poison(good: string, evil: string, title: string): Promise<void> {
  await build(newHome(), good, to("good"));
  await build(newHome(), evil, to("poisoned"));
  const cache = openCache(`${repository}:poisoned`);
  const [wanted, index] = [
    await readCacheIndex(openCache(`${repository}:good`)),
    await readCacheIndex(cache),
  ];
  const find = ({ layers }: typeof index, part: string) =>
    [...layers].find(([, layer]) => layer.title.includes(part)) ?? [];
  const [hash = "", step] = find(wanted, title);
  const [, layer] = find(index, "EVIL");
  if (step === undefined || layer === undefined) throw new Error("there are no such steps");
  index.layers.clear();
  index.layers.set(hash, { ...layer, title: step.title });
  const blobs = [...index.chains.values()].map(({ mediaType, digest, size }) => ({
    mediaType,
    digest,
    size,
  }));
  await writeCacheIndex(cache, index, blobs);
}

const good = `FROM BASE AS tools
RUN echo GOOD > /tool
FROM BASE
COPY --from=tools /tool /copied
RUN --mount=from=tools,target=/t cat /t/tool > /mounted
RUN cat /copied > /above
FROM BASE
RUN echo end > /end
COPY --from=1 / /all
`;
const files = ["/all/copied", "/all/mounted", "/all/above"];
const three = (word: string) => [word, word, word];

test("a layer of an unsigned cache, and what was made of it, is neither used with --cache-verify nor signed", async () => {
  await poison(good, good.replace("GOOD", "EVIL"), "GOOD");
  const home = newHome();
  const trusting = await build(home, good, from("poisoned"));
  expect(await read(home, trusting.image, ...files)).toEqual(three("EVIL"));
  const careful = await build(home, good, ...verify(), ...sign(), from("release"), to("release"));
  expect(await read(home, careful.image, ...files)).toEqual(three("GOOD"));
  expect(careful.stderr).toContain(
    `[INFO] cache: layers of this machine that come from ${repository}:poisoned are not used: no trusted key has signed that`,
  );
  const fresh = newHome();
  const found = await build(fresh, good, ...verify(), from("release"));
  expect([found.runs, await read(fresh, found.image, ...files)]).toEqual([[], three("GOOD")]);
}, 180_000);

test("without a cache to read, --cache-verify leaves out what came from an unsigned one", async () => {
  await poison(good, good.replace("GOOD", "EVIL"), "GOOD");
  const home = newHome();
  await build(home, good, from("poisoned"));
  const careful = await build(home, good, ...verify());
  expect(await read(home, careful.image, ...files)).toEqual(three("GOOD"));
  // What it has made is its own.
  const again = await build(home, good, ...verify());
  expect([again.runs, again.image]).toEqual([[], careful.image]);
}, 180_000);

test("layers of a signed cache are used by builds that trust its key, and by no other", async () => {
  await build(newHome(), good, ...sign(), to("signed"));
  const home = newHome();
  expect((await build(home, good, ...verify(), from("signed"))).runs).toEqual([]);
  expect((await build(home, good, ...verify())).runs).toEqual([]);
  expect((await build(home, good)).runs).toEqual([]);
  const other = await build(home, good, ...verify("other.pub"));
  expect(other.runs).toHaveLength(6);
  expect(other.stderr).toContain(`that come from ${repository}:signed are not used`);
}, 180_000);

test("a signature that nobody has verified vouches for nothing", async () => {
  await build(newHome(), good, ...sign(), to("signed"));
  const home = newHome();
  expect((await build(home, good, from("signed"))).runs).toEqual([]);
  expect((await build(home, good, ...verify())).runs).toHaveLength(6);
}, 180_000);

test("layers that an earlier bough has stored are used, but not with --cache-verify", async () => {
  const home = newHome();
  await build(home, good);
  using database = new Database(join(home.home, "sessions/embedded.db"));
  database.run("UPDATE history SET origin = NULL");
  expect((await build(home, good)).runs).toEqual([]);
  const careful = await build(home, good, ...verify());
  expect(careful.runs).toHaveLength(6);
  expect(careful.stderr).toContain("[INFO] cache: layers that an earlier bough has stored here are not used");
  expect((await build(home, good, ...verify())).runs).toEqual([]);
}, 180_000);

const mounting = `FROM BASE
RUN --mount=type=cache,target=/pkg,id=pkg test -e /pkg/x || echo GOOD > /pkg/x; cat /pkg/x > /out
`;

test("cache mounts that began with what an unsigned cache had are not used with --cache-verify, nor what was made of them", async () => {
  await build(newHome(), mounting.replace("GOOD", "EVIL"), to("mounts", ",mounts=*"));
  const home = newHome();
  const trusting = await build(home, mounting, from("mounts"));
  expect(await read(home, trusting.image, "/out")).toEqual(["EVIL"]);
  const careful = await build(home, mounting, ...verify(), ...sign(), to("release", ",mounts=*"));
  expect(await read(home, careful.image, "/out")).toEqual(["GOOD"]);
  // A signed cache carries the contents of the mounts that its builds have made.
  const fresh = newHome();
  const later = mounting.replace("RUN", "RUN --network=none");
  const found = await build(fresh, later.replace("GOOD", "NEW"), ...verify(), from("release"));
  expect(await read(fresh, found.image, "/out")).toEqual(["GOOD"]);
}, 180_000);

test("the word of an unsigned cache that a copy has made a layer is not remembered as this machine's own", async () => {
  const text = (tool: string) =>
    `FROM BASE AS tools\nRUN echo ${tool} > /tool\nFROM BASE\nCOPY --from=tools /tool /x\n`;
  // The release build knows the old result. The cache says that the copy of the new one is the same.
  const home = newHome();
  await build(home, text("OLD"), ...verify());
  await build(newHome(), text("OLD"), to("old"));
  await build(newHome(), text("NEW"), to("new"));
  const cache = openCache(`${repository}:new`);
  const [old, index] = [await readCacheIndex(openCache(`${repository}:old`)), await readCacheIndex(cache)];
  const [copied] = old.copies.values();
  for (const [hash, copy] of index.copies) {
    index.layers.delete(copy.layer);
    index.copies.set(hash, { ...copy, layer: copied?.layer ?? "" });
  }
  await writeCacheIndex(cache, index);
  const source = { context: home.context, home: home.home };
  const misled = await build(source, text("NEW"), from("new"));
  expect(await read(home, misled.image, "/x")).toEqual(["OLD"]);
  // A build without a cache takes the word of the local store, and must not make it its own.
  await build(source, text("NEW"));
  const careful = await build(source, text("NEW"), ...verify());
  expect(await read(home, careful.image, "/x")).toEqual(["NEW"]);
}, 180_000);
