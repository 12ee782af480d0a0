/** The trusted authorities and logs, from a file or as Sigstore publishes them. */
import { TrustedRoot } from "@sigstore/protobuf-specs";
import { BoughError, messageOf, usageError } from "../errors.ts";
import { parseRecord } from "../service/http/json.ts";

/** Reads a `trusted_root.json`. @param file its name, for messages */
export function readTrustedRoot(bytes: Uint8Array, file: string): TrustedRoot {
  const record = parseRecord(bytes);
  try {
    const root = record && TrustedRoot.fromJSON(record);
    if (root?.mediaType.startsWith("application/vnd.dev.sigstore.trustedroot")) return root;
  } catch {
    // The file is reported below, like one of another kind.
  }
  throw usageError(
    `--trusted-root: ${file} is not a trusted root of Sigstore`,
    "It is a trusted_root.json, as `cosign trusted-root create` writes it.",
  );
}

/**
 * Fetches Sigstore's trusted root by The Update Framework, whose first keys are part of this program. Caches it in a directory until it
 * expires.
 */
export async function fetchTrustedRoot(cachePath: string): Promise<TrustedRoot> {
  const { getTrustedRoot } = await import("@sigstore/tuf");
  try {
    return await getTrustedRoot({ cachePath });
  } catch (error) {
    throw new BoughError(`the trusted root of Sigstore can't be fetched: ${messageOf(innermost(error))}`, {
      hint: "Give --trusted-root FILE, which needs no network, or --key FILE for signatures of a key.",
      cause: error,
    });
  }
}

/** The library's own errors only say that something went wrong. */
function innermost(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? innermost(error.cause) : error;
}
