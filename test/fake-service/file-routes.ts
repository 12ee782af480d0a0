import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";
import type { FakeFile } from "./state.ts";

const time = "2026-01-01T00:00:00Z";
const mostKeptBytes = 16 * 1024 * 1024;

export function getFile({ state, parameter, recorded }: RouteCall): Response {
  const file = state.files.get(parameter);
  if (file === undefined) return answerWith.error(404, `no file ${parameter}`);
  return recorded.method === "HEAD" ? new Response(null) : Response.json(publicFields(file));
}

export function listFiles({ state, recorded }: RouteCall): Response {
  const { sha256, limit, offset } = recorded.query;
  if (Number.isNaN(Number(limit ?? 1)) || Number(limit ?? 1) < 1)
    return answerWith.error(400, "limit must be a number from 1");
  const files = [...state.files.values()].filter((file) => sha256 === undefined || file.sha256 === sha256);
  const start = Number(offset ?? 0);
  return Response.json({ files: files.slice(start, start + Number(limit ?? 100)).map(publicFields) });
}

/** Hashes the body as it arrives, for any length. */
export async function storeFile({ state, options, request, recorded }: RouteCall): Promise<Response> {
  const hasher = new Bun.CryptoHasher("sha256");
  let kept: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    hasher.update(chunk);
    size += chunk.byteLength;
    if (size <= mostKeptBytes) kept.push(chunk);
    else kept = [];
  }
  const sha256 = hasher.digest("hex");
  recorded.bytes = { sha256, size };
  const uuid = state.fileId(sha256);
  const content = size <= mostKeptBytes ? { content: Buffer.concat(kept) } : {};
  state.files.set(sha256, { uuid, sha256, size, created_at: time, updated_at: time, ...content });
  return Response.json(options.reportsHashes === false ? { uuid } : { uuid, sha256, size }, { status: 201 });
}

function publicFields({ content: _, ...fields }: FakeFile) {
  return fields;
}
