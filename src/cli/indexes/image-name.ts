import { BoughError, usageError } from "../../errors.ts";
import { parseRepository } from "../../registry/repository.ts";
import type { ArgumentDefinition } from "../command-line/definitions.ts";

/** An image of a registry, as people name it. */
export interface ImageName {
  /** `docker://HOST/NAME` */
  address: string;
  /** `HOST/NAME` */
  repository: string;
  /** The tag or the digest that it is asked for by. A digest counts where both are given. */
  reference: string;
  /** The whole name: `docker.io/library/debian:12`. */
  full: string;
}

export const imageNameDefinition = {
  type: "positional",
  required: true,
  description: "HOST/NAME:TAG or HOST/NAME@DIGEST",
} as const satisfies ArgumentDefinition;

/** Parses `HOST/NAME:TAG`, `HOST/NAME@DIGEST` or `HOST/NAME:TAG@DIGEST`; `latest` if both are left out. */
export function parseImageName(text: string): ImageName {
  const [, name, tag, digest] =
    /^(?:docker:\/\/)?([^\s@]+?)(?::([\w][\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/.exec(text) ?? [];
  if (name === undefined)
    throw usageError(`${JSON.stringify(text)} is not HOST/NAME:TAG or HOST/NAME@DIGEST`);
  try {
    const { address } = parseRepository(name);
    const repository = address.slice("docker://".length);
    const written = tag ?? (digest === undefined ? "latest" : undefined);
    const full = [
      repository,
      ...(written === undefined ? [] : [`:${written}`]),
      ...(digest === undefined ? [] : [`@${digest}`]),
    ].join("");
    return { address, repository, reference: digest ?? tag ?? "latest", full };
  } catch (error) {
    if (error instanceof BoughError) throw usageError(error.message, error.hint);
    throw error;
  }
}
