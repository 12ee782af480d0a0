import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readTree, type Tree } from "./tree.ts";

/** Reads the files of base images with one layer each, by their names. Their sources are in skopeo's terms. */
export async function readBaseTrees(
  sources: Readonly<Record<string, string>>,
): Promise<Record<string, Tree>> {
  const trees = Object.entries(sources).map(async ([name, source]) => [name, await readBaseTree(source)]);
  return Object.fromEntries(await Promise.all(trees));
}

async function readBaseTree(source: string): Promise<Tree> {
  const [transport, place = ""] = source.split(":");
  if (transport === "docker-archive")
    return readTree(Bun.spawn(["tar", "--extract", "--to-stdout", `--file=${place}`, "layer.tar"]).stdout);
  const blob = (digest: string) => readFileSync(join(place, "blobs", digest.replace(":", "/")));
  const index = JSON.parse(readFileSync(join(place, "index.json"), "utf8"));
  const { layers } = JSON.parse(blob(index.manifests[0].digest).toString());
  return readTree(new Blob([Bun.gunzipSync(blob(layers[0].digest))]).stream());
}
