import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { BoughError } from "../../../errors.ts";
import { nameAnnotation } from "../../../image/oci-layout.ts";
import { wording } from "../../../messages/wording.ts";
import { readRegularFile } from "../../../open-for-reading.ts";
import { reasonOf } from "../../../system-error.ts";
import type { LayoutPlace } from "../../entries/context.ts";

/** An image in the index of a layout. */
interface LayoutImage {
  digest: unknown;
  /** Its tag, if the index names one. */
  tag: string | undefined;
}

/**
 * Returns the reference of the image that `oci-layout://PATH[:TAG|@DIGEST]` names: `oci:`, an absolute path and a tag. As in
 * buildx, no tag means `latest`, and the only image of a layout needs no tag.
 *
 * @param option the whole value of `--build-context`, for messages
 * @throws BoughError of kind `usage`
 */
export function layoutReference(
  { path, tag, digest }: LayoutPlace,
  option: string,
  workingDirectory: string,
): string {
  if (path === "") throw unusable(option, "the path is missing");
  const layout = findLayout(resolve(workingDirectory, path), option);
  const images = readIndex(layout, option);
  const meant =
    digest === undefined
      ? images.find((image) => image.tag === (tag ?? "latest"))
      : images.find((image) => image.digest === digest);
  const chosen = meant ?? (digest === undefined && images.length === 1 ? images[0] : undefined);
  if (chosen === undefined) {
    const tags = images.flatMap((image) => image.tag ?? []);
    const has = tags.length === 0 ? "its images have no tags" : `it has ${tags.join(", ")}`;
    throw unusable(option, `there is no image ${digest ?? tag ?? "latest"} in the layout; ${has}`);
  }
  if (images.length === 1) return `oci:${layout}`;
  if (chosen.tag !== undefined && images.filter((image) => image.tag === chosen.tag).length === 1)
    return `oci:${layout}:${chosen.tag}`;
  throw unusable(option, "that image has no tag of its own in a layout of several images");
}

function findLayout(path: string, option: string): string {
  const found = reading(option, path, () => realpathSync(path));
  if (found.includes(":")) throw unusable(option, `a path with a colon is not supported: ${found}`);
  return found;
}

const maxIndexBytes = 16 * 1024 * 1024;

function readIndex(layout: string, option: string): LayoutImage[] {
  const path = join(layout, "index.json");
  const text = reading(option, path, () => readRegularFile(path, maxIndexBytes).toString());
  try {
    const { manifests } = JSON.parse(text) as { manifests?: unknown };
    if (!Array.isArray(manifests)) throw new SyntaxError("it has no manifests");
    return manifests.map(({ digest, annotations }) => {
      const tag: unknown = annotations?.[nameAnnotation];
      return { digest, tag: typeof tag === "string" ? tag : undefined };
    });
  } catch (error) {
    throw unusable(option, `${path} is not the index of an OCI image layout`, error);
  }
}

function reading<Result>(option: string, path: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw unusable(option, `cannot read ${path}: ${reasonOf(error)}`, error);
  }
}

function unusable(option: string, reason: string, cause?: unknown): BoughError {
  return new BoughError(wording`${{ option: "build-context" }} ${option}: ${reason}`, {
    kind: "usage",
    hint: "Give an OCI image layout as oci-layout://PATH:TAG or oci-layout://PATH@sha256:DIGEST.",
    cause,
  });
}
