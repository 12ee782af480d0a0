/** Entries of a transparency log, a public record of signatures: https://docs.sigstore.dev/logging/overview/ */
import { asInteger, asRecord, asText, type JsonRecord, parseRecord } from "../service/http/json.ts";
import type { SigningService } from "./signing-service.ts";

/** An entry of a log. Numbers are text, as in bundles, since they may exceed the safe integers of JavaScript. */
export interface LogEntry {
  index: string;
  /** The SHA-256 digest of the log's key, in hexadecimal digits. */
  logId: string;
  kind: string;
  version: string;
  /** Seconds since 1970. */
  integratedTime: string;
  /** Base64 of the entry's JSON. */
  body: string;
  /** The log's signature, in base64: it promises to include the entry. */
  promise: string | undefined;
  proof: InclusionProof | undefined;
}

/** A proof that a log has an entry. Hashes are hexadecimal digits. */
interface InclusionProof {
  index: string;
  rootHash: string;
  treeSize: string;
  hashes: readonly string[];
  checkpoint: string;
}

/** An entry to add: an envelope with a signed statement, or the digest of the signed bytes, with the signature. */
export type ProposedEntry =
  | { kind: "dsse"; envelope: object; verifier: string }
  | { kind: "hashedrekord"; sha256: string; signature: Uint8Array; verifier: string };

/** Adds a signature to a log. `verifier`: the certificate or public key, in PEM. */
export async function addLogEntry(
  log: SigningService,
  proposed: ProposedEntry,
  signal: AbortSignal,
): Promise<LogEntry> {
  const response = await log.post("api/v1/log/entries", { json: encodeProposed(proposed) }, signal, [409]);
  if (response.status !== 409) return readEntry(response.bytes) ?? log.fail(response);
  // The log has the signature already, for instance after a lost response.
  const id = response.location?.pathname.split("/").pop() ?? "";
  const existing = await log.get(`api/v1/log/entries/${encodeURIComponent(id)}`, signal);
  return readEntry(existing.bytes) ?? log.fail(existing);
}

/** https://github.com/sigstore/rekor/tree/main/pkg/types */
function encodeProposed(proposed: ProposedEntry): object {
  const verifier = Buffer.from(proposed.verifier).toString("base64");
  if (proposed.kind === "dsse")
    return {
      ...{ apiVersion: "0.0.1", kind: "dsse" },
      spec: { proposedContent: { envelope: JSON.stringify(proposed.envelope), verifiers: [verifier] } },
    };
  return {
    ...{ apiVersion: "0.0.1", kind: "hashedrekord" },
    spec: {
      data: { hash: { algorithm: "sha256", value: proposed.sha256 } },
      signature: {
        content: Buffer.from(proposed.signature).toString("base64"),
        publicKey: { content: verifier },
      },
    },
  };
}

/** Reads a response: an object with the entry under its id. */
function readEntry(bytes: Uint8Array): LogEntry | undefined {
  const [entry] = Object.values(parseRecord(bytes) ?? {}).map(asRecord);
  const verification = asRecord(entry?.verification);
  return readLogEntry(entry, {
    promise: asText(verification?.signedEntryTimestamp),
    proof: readProof(asRecord(verification?.inclusionProof)),
  });
}

/** Reads an entry in the log's own form. Returns `undefined` if something is missing. */
export function readLogEntry(
  entry: JsonRecord | undefined,
  proven: Pick<LogEntry, "promise" | "proof">,
): LogEntry | undefined {
  const [body, logId] = [asText(entry?.body), asText(entry?.logID)];
  const [index, integratedTime] = [asCount(entry?.logIndex), asCount(entry?.integratedTime)];
  const content = body === undefined ? undefined : parseRecord(Buffer.from(body, "base64"));
  const [kind, version] = [asText(content?.kind), asText(content?.apiVersion)];
  const isWhole =
    body !== undefined && logId !== undefined && index !== undefined && integratedTime !== undefined;
  return isWhole && kind !== undefined && version !== undefined
    ? { index, logId, kind, version, integratedTime, body, ...proven }
    : undefined;
}

function readProof(proof: JsonRecord | undefined): InclusionProof | undefined {
  const [rootHash, checkpoint] = [asText(proof?.rootHash), asText(proof?.checkpoint)];
  const [index, treeSize] = [asCount(proof?.logIndex), asCount(proof?.treeSize)];
  const hashes: unknown[] = Array.isArray(proof?.hashes) ? proof.hashes : [];
  return rootHash !== undefined && checkpoint !== undefined && index !== undefined && treeSize !== undefined
    ? { index, rootHash, treeSize, checkpoint, hashes: hashes.flatMap((hash) => asText(hash) ?? []) }
    : undefined;
}

function asCount(value: unknown): string | undefined {
  const count = asInteger(value);
  return count === undefined ? undefined : String(count);
}
