import type { Attestation } from "../../image/attestation-manifest.ts";
import { hexOf } from "../../image/digest.ts";
import type { ImageToWrite } from "../../image/image-writer.ts";
import { statementType } from "../../image/oci-layout.ts";
import { formatPlatform, type Platform } from "../../image/platform.ts";

/** The image that an attestation is about. */
export interface Subject {
  image: ImageToWrite;
  /** The digest of its manifest. */
  digest: string;
  /** The image's names. */
  names: readonly string[];
}

/** https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md */
export function statementOf(
  { image, digest, names }: Subject,
  predicateType: string,
  predicate: object,
): Attestation {
  const urls = names.length === 0 ? ["_"] : names.map((name) => packageUrl(name, image.platform));
  const subject = urls.map((name) => ({ name, digest: digestSet(digest) }));
  const statement = { _type: statementType, subject, predicateType, predicate };
  return { predicateType, statement: JSON.stringify(statement) };
}

export function digestSet(digest: string): { sha256: string } {
  return { sha256: hexOf(digest) };
}

/** https://github.com/package-url/purl-spec/blob/main/types-doc/docker-definition.md */
export function packageUrl(
  reference: string,
  { os, architecture, variant = "" }: ImageToWrite["platform"],
): string {
  const platform: Platform = { os, architecture, variant };
  const [name = "", digest] = reference.replace(/^(docker:\/\/|tag:)/, "").split("@");
  const [, path = "", tag] = /^(.*?)(?::([^:/]*))?$/s.exec(name) ?? [];
  const place = path.split("/").map(encodeURIComponent).join("/");
  const version = tag === undefined ? "" : `@${encodeURIComponent(tag)}`;
  const qualifiers = new URLSearchParams({
    ...(digest === undefined ? {} : { digest }),
    platform: formatPlatform(platform),
  });
  return `pkg:docker/${place}${version}?${qualifiers}`;
}
