import { openEntries, type TreeService } from "../../builder/operations/image-entries.ts";
import { BoughError } from "../../errors.ts";
import type { TreeEntry } from "../../image/tree-entry.ts";
import type { Service } from "../../service/client.ts";
import { asText, parseRecord } from "../../service/http/json.ts";

/** A package that npm, or a program like it, has put into a `node_modules` directory. */
export interface NpmPackage {
  name: string;
  version: string;
}

/** Of a package: not the files named so that it has in its own directories. */
const manifestPath = /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^@/][^/]*\/package\.json$/;
const maxManifestBytes = 4 * 1024 * 1024;

/** Finds the packages in all `node_modules` of an image, by name and version. Those that are there several times are listed once. */
export async function findNpmPackages(
  service: TreeService & Pick<Service, "readFile">,
  image: string,
): Promise<NpmPackage[]> {
  const found = new Map<string, NpmPackage>();
  const linked: string[] = [];
  const add = (manifest: Uint8Array) => {
    const each = parseManifest(manifest);
    if (each !== undefined) found.set(JSON.stringify([each.name, each.version]), each);
  };
  for await (const entry of await openEntries(service, image, "/")) {
    if (!manifestPath.test(entry.name)) continue;
    // pnpm links the files of its store, which the archive has once.
    if (entry.type === "hardlink") linked.push(entry.name);
    else if (entry.type === "file") add(await contentOf(entry));
  }
  for (const name of linked) {
    const bytes = await service.readFile(image, `/${name.replace(/^(\.?\/)+/, "")}`);
    if (bytes instanceof Uint8Array) add(bytes);
  }
  return [...found].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, each]) => each);
}

/** Returns `undefined` for what npm would not have installed: it has no name or no version. */
export function parseManifest(manifest: Uint8Array): NpmPackage | undefined {
  const record = parseRecord(manifest);
  const [name, version] = [asText(record?.name), asText(record?.version)];
  return name === undefined || version === undefined ? undefined : { name, version };
}

/** https://github.com/package-url/purl-spec/blob/main/types-doc/npm-definition.md */
export function npmUrl({ name, version }: NpmPackage): string {
  return `pkg:npm/${name.split("/").map(encodeURIComponent).join("/")}@${encodeURIComponent(version)}`;
}

async function contentOf(entry: TreeEntry): Promise<Uint8Array> {
  if (entry.size > maxManifestBytes)
    throw new BoughError(`--sbom: ${entry.name} has ${entry.size} bytes: it does not describe a package`);
  const bytes = new Uint8Array(entry.size);
  for await (const piece of entry.pieces()) bytes.set(piece.bytes, piece.offset);
  return bytes;
}
