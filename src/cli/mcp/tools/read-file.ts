import { z } from "zod";
import { BoughError } from "../../../errors.ts";
import { readOnly, type Tool } from "../tool.ts";
import { image, maxBytes, pathInImage, session } from "./fields.ts";
import { withImage } from "./with-image.ts";

const input = z.strictObject({
  path: pathInImage,
  session,
  image,
  offset: z.int().nonnegative().default(0).describe("Bytes to skip"),
  max_bytes: maxBytes(256 * 1024),
});

const output = z.object({
  image: z.string(),
  path: z.string(),
  content: z.string(),
  encoding: z.enum(["utf-8", "base64"]).describe("base64 if the file is not text"),
  bytes: z.number().describe("Number of bytes in content, before encoding"),
  truncated: z.boolean().describe("True if the file has more: continue with offset"),
});

export const readFile: Tool<typeof input, typeof output> = {
  name: "read_file",
  title: "Read a file of an image",
  description: "Read a file of the session's image or another one, without starting anything.",
  input,
  output,
  annotations: readOnly,
  perform: (given, call) =>
    withImage(given, call, async (image, { service }) => {
      const { path } = given;
      const stream = await service.openFile(image, path);
      if (stream === undefined)
        throw new BoughError(`${path} is not a regular file`, {
          hint: "The tool `list_files` lists a directory.",
        });
      const { bytes, isWhole } = await readPart(stream, given.offset, given.max_bytes, call.signal);
      const isCut = { start: given.offset > 0, end: !isWhole };
      const text = isText(bytes, isCut)
        ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)
        : undefined;
      return {
        ...{ image, path },
        content: text ?? Buffer.from(bytes).toString("base64"),
        encoding: text === undefined ? "base64" : "utf-8",
        bytes: bytes.byteLength,
        truncated: !isWhole,
      };
    }),
};

/** Reads at most `most` bytes from `offset`. The rest is not fetched. */
async function readPart(
  stream: ReadableStream<Uint8Array>,
  offset: number,
  most: number,
  signal: AbortSignal,
): Promise<{ bytes: Uint8Array; isWhole: boolean }> {
  const chunks: Uint8Array[] = [];
  let passed = 0;
  for await (const chunk of stream) {
    signal.throwIfAborted();
    const from = Math.max(0, offset - passed);
    const to = offset + most - passed;
    // A copy, because Bun may reuse the chunk's memory.
    if (from < chunk.byteLength) chunks.push(chunk.slice(from, Math.max(from, to)));
    passed += chunk.byteLength;
    if (passed > offset + most) return { bytes: Buffer.concat(chunks), isWhole: false };
  }
  return { bytes: Buffer.concat(chunks), isWhole: true };
}

/** True if the bytes are UTF-8 text. Where they are cut out of the file, a character may be cut, too. */
function isText(bytes: Uint8Array, isCut: { start: boolean; end: boolean }): boolean {
  if (bytes.includes(0)) return false;
  const text = new TextDecoder("utf-8").decode(bytes);
  return !text.slice(isCut.start ? 3 : 0, isCut.end ? -3 : undefined).includes("\ufffd");
}
