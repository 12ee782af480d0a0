/** Timestamps of signatures: https://www.rfc-editor.org/rfc/rfc3161 */
import { createHash } from "node:crypto";
import type { SigningService } from "./signing-service.ts";

/** A request in DER for a timestamp with the authority's certificate, up to the SHA-256 digest: version 1, the algorithm's OID. */
const head = Buffer.from("3039020101303130" + "0d06096086480165030402010500" + "0420", "hex");
const tail = Buffer.from("0101ff", "hex");

/** Returns an authority's response, in DER, which proves that the signature existed at that time. */
export async function timestamp(
  authority: SigningService,
  signature: Uint8Array,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const digest = createHash("sha256").update(signature).digest();
  const query = { type: "application/timestamp-query", bytes: Buffer.concat([head, digest, tail]) };
  const response = await authority.post("", query, signal);
  // A response is a sequence in DER.
  const [tag] = response.bytes;
  return tag === 0x30 ? response.bytes : authority.fail(response);
}
