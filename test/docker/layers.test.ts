/** Imported images of random layers have the same files as Docker's import of the same archive. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTree, type Tree } from "../differential/tree.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { dockerVersions } from "../support/docker.ts";
import { TestEngine } from "../support/engine.ts";
import { archiveOf, dockerFiles } from "../support/image-bytes.ts";
import { asItIs, digestOfFiles, keepResults } from "../support/kept-results.ts";
import { runs, seededRandom } from "../support/random.ts";
import { type RawEntry, tarOf } from "../support/tar-bytes.ts";
import { dockerOnDemand } from "./docker-on-demand.ts";

const directory = temporaryDirectory("bough-layers-");
const docker = dockerOnDemand(join(directory, "docker"), () => ({}));
const kept = keepResults({ test: import.meta.path, versions: dockerVersions });
let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
}, 180_000);
afterAll(() => Promise.all([docker.close(), engine?.close()]), 60_000);

test.each(Array.from({ length: runs(5) }, (_, index) => index + 1))(
  "seed %d",
  async (seed) => {
    const layers = randomLayers(seed).map((layer) => tarOf(layer));
    const archive = join(directory, `${seed}.tar`);
    const name = `layers:${seed}`;
    const files = dockerFiles({ layers }, (image) => ({ ...image, RepoTags: [name] }));
    writeFileSync(archive, archiveOf(files));
    const url = `docker-archive:${archive}`;
    const { error, result } = await engine.finish(
      await engine.json("POST", "/v1/images/import", { registry: { url } }),
    );
    expect(error).toBeNull();
    const { body } = await engine.fetch("GET", `/v1/inspect/${result?.image}/archive?path=/`);
    const own = await readTree(body as ReadableStream<Uint8Array>);
    const load = async () => {
      const daemon = await docker.get();
      await daemon.load(archive);
      return linesOf(await daemon.readImage(name));
    };
    await kept.check({ inputs: [seed, digestOfFiles(archive)] }, asItIs<string[]>(), load, (lines) =>
      expect(linesOf(own)).toEqual(lines),
    );
  },
  180_000,
);

/** Returns the lines of a tree, without files that Docker puts into each container. */
function linesOf(tree: Tree): string[] {
  const own = [...tree].filter(([path]) => !/^\/((dev|proc|sys|etc|\.dockerenv)(\/|$)|$)/.test(path));
  return own.map(([path, { line }]) => `${path} ${line}`).sort();
}

const directories = ["a", "b", "a/c", "a/c/d", "b/e"];
const names = ["x", "y", "z"];
const layerCount = 4;
const tries = 12;

/** Returns layers as a builder writes them: directories before their files, each name once, no whiteouts of the layer's own files. */
function randomLayers(seed: number): RawEntry[][] {
  const random = seededRandom(seed);
  const pick = <T>(values: readonly [T, ...T[]]): T =>
    values[Math.floor(random() * values.length)] ?? values[0];
  const owner = () => ({ uid: pick([0, 3]), gid: pick([0, 9]) });
  return Array.from({ length: layerCount }, (_, layer) => {
    const entries: RawEntry[] = [{ name: `layer-${layer}`, content: `${seed}` }];
    const used = new Set<string>();
    const deleted = new Set<string>();
    let file: RawEntry | undefined;
    const enter = (path: string): boolean => {
      if (path === "" || used.has(path)) return true;
      if (deleted.has(path) || !enter(parentOf(path))) return false;
      used.add(path);
      entries.push({ name: `${path}/`, flag: "5", mode: pick([0o755, 0o700, 0o2775]), ...owner() });
      return true;
    };
    const add = (entry: RawEntry, key = entry.name): boolean => {
      if (used.has(key) || deleted.has(key)) return false;
      used.add(key);
      entries.push(entry);
      return true;
    };
    const remove = (path: string) => {
      if (used.has(path) || !enter(parentOf(path)) || deleted.has(path)) return;
      deleted.add(path);
      entries.push({ name: below(parentOf(path), `.wh.${path.slice(path.lastIndexOf("/") + 1)}`), mode: 0 });
    };
    for (let count = 0; count < tries; count++) {
      const place = pick(["", ...directories]);
      if (!enter(place)) continue;
      const name = below(place, pick(["x", ...names]));
      const kind = pick(["file", "file", "file", "symlink", "link", "whiteout", "gone", "opaque"]);
      const made: RawEntry = {
        name,
        content: `${layer} ${count}`,
        mode: pick([0o644, 0o4755, 0o600]),
        ...owner(),
      };
      if (kind === "file" && add(made)) file = made;
      else if (kind === "symlink") add({ name, flag: "2", target: pick(["x", ...names]), mode: 0o777 });
      else if (kind === "link" && file !== undefined) {
        const { content: _, ...attributes } = file;
        add({ ...attributes, name, flag: "1", target: file.name });
      } else if (layer > 0 && kind === "whiteout") remove(name);
      else if (layer > 0 && kind === "gone") remove(pick(["a", ...directories]));
      else if (layer > 0 && kind === "opaque" && place !== "")
        add({ name: `${place}/.wh..wh..opq`, mode: 0 });
    }
    return entries;
  });
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 0));
}

function below(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}
