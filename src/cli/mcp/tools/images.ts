import { z } from "zod";
import { BoughError } from "../../../errors.ts";
import { parseTime } from "../../command-line/option-values.ts";
import { describeFile } from "../../images/files.ts";
import { listImages } from "../../images/list.ts";
import { requireSessionImage, resolveImageArgument } from "../../references/image-argument.ts";
import { sessionKey } from "../../references/session-argument.ts";
import { type Connection, connect } from "../../service/connection.ts";
import { readOnly, type Tool } from "../tool.ts";
import { surroundingsFor, type ToolCall } from "../tool-call.ts";
import { image, maxBytes, pathInImage, session, toolInput } from "./fields.ts";

const imagesInput = toolInput({
  tag: z.string().min(1).optional().describe("Only images with a tag that begins with this"),
  all: z.boolean().optional().describe("Also list the image of each layer of a build"),
  tagged: z.boolean().optional().describe("Only images with a tag"),
  since: z.string().min(1).optional().describe("Only images made since a date, or an age such as 24h or 7d"),
  limit: z.int().positive().max(10_000).default(100).describe("Maximum number, newest first"),
});

const list = z.array(z.looseObject({ uuid: z.string(), tag: z.string().nullable(), created_at: z.string() }));
const imagesOutput = z.object({ images: list });

export const images: Tool<typeof imagesInput, typeof imagesOutput> = {
  name: "images",
  title: "List images",
  description:
    "List the images that have a tag and the newest of each session, the newest first; an image with several tags is listed once for each.",
  input: imagesInput,
  output: imagesOutput,
  annotations: readOnly,
  async perform({ tag, all, tagged, since, limit }, call) {
    const surroundings = surroundingsFor(call);
    const from = since && parseTime(since, "--since", surroundings.runtime.clock);
    return { images: (await listImages({ all, tagged, tag, since: from, limit }, surroundings)).json };
  },
};

const listFilesInput = toolInput({
  path: pathInImage.default("/"),
  session,
  image,
  limit: z.int().positive().max(10_000).default(1000).describe("Maximum number of entries, sorted by name"),
});

const listFilesOutput = z.object({
  image: z.string(),
  path: z.string(),
  files: z.array(
    z.object({
      name: z.string(),
      type: z.enum(["file", "directory", "symlink", "other"]),
      mode: z.string().nullable().describe("Octal"),
      uid: z.number(),
      gid: z.number(),
      size: z.number(),
      modified: z.string().describe("ISO 8601"),
      target: z.string().nullable().describe("Target of a symbolic link"),
    }),
  ),
  truncated: z.boolean(),
});

export const listFiles: Tool<typeof listFilesInput, typeof listFilesOutput> = {
  name: "list_files",
  title: "List files of an image",
  description:
    "List a directory of the session's image or another one, without starting anything. For a path that is not a directory, list only that.",
  input: listFilesInput,
  output: listFilesOutput,
  annotations: readOnly,
  perform: (given, call) =>
    withImage(given, call, async (image, { service }) => {
      const { path } = given;
      const found = (await service.listFiles(image, path)).sort((one, other) =>
        one.name < other.name ? -1 : 1,
      );
      const files = found.slice(0, given.limit).map(describeFile);
      return { image, path, files, truncated: found.length > files.length };
    }),
};

const readFileInput = toolInput({
  path: pathInImage,
  session,
  image,
  offset: z.int().nonnegative().default(0).describe("Bytes to skip"),
  max_bytes: maxBytes(256 * 1024),
});

const readFileOutput = z.object({
  image: z.string(),
  path: z.string(),
  content: z.string(),
  encoding: z.enum(["utf-8", "base64"]).describe("base64 if the file is not text"),
  bytes: z.number().describe("Number of bytes in content, before encoding"),
  truncated: z.boolean().describe("True if the file has more: continue with offset"),
});

export const readFile: Tool<typeof readFileInput, typeof readFileOutput> = {
  name: "read_file",
  title: "Read a file of an image",
  description: "Read a file of the session's image or another one, without starting anything.",
  input: readFileInput,
  output: readFileOutput,
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

/** Reads at most `maxBytes` from `offset`, and does not fetch the rest. */
async function readPart(
  stream: ReadableStream<Uint8Array>,
  offset: number,
  maxBytes: number,
  signal: AbortSignal,
): Promise<{ bytes: Uint8Array; isWhole: boolean }> {
  const chunks: Uint8Array[] = [];
  let passed = 0;
  for await (const chunk of stream) {
    signal.throwIfAborted();
    const from = Math.max(0, offset - passed);
    const to = offset + maxBytes - passed;
    // A copy, because Bun may reuse the chunk's memory.
    if (from < chunk.byteLength) chunks.push(chunk.slice(from, Math.max(from, to)));
    passed += chunk.byteLength;
    if (passed > offset + maxBytes) return { bytes: Buffer.concat(chunks), isWhole: false };
  }
  return { bytes: Buffer.concat(chunks), isWhole: true };
}

/** True if the bytes are UTF-8 text. A character may be incomplete where the bytes are cut out of the file. */
function isText(bytes: Uint8Array, isCut: { start: boolean; end: boolean }): boolean {
  if (bytes.includes(0)) return false;
  const text = new TextDecoder("utf-8").decode(bytes);
  return !text.slice(isCut.start ? 3 : 0, isCut.end ? -3 : undefined).includes("\ufffd");
}

/** An image in a tool's input; the session's if it is absent. */
interface GivenImage {
  image?: string | undefined;
  session?: string | undefined;
}

/** Connects to the service and calls `action` with the image's UUID. */
export async function withImage<Result>(
  { image, session }: GivenImage,
  call: ToolCall,
  action: (image: string, connection: Connection) => Promise<Result>,
): Promise<Result> {
  const invocation = surroundingsFor(call, { session });
  await using connection = await connect(invocation);
  const found =
    image === undefined
      ? requireSessionImage(connection.store, sessionKey(invocation))
      : await resolveImageArgument(connection, image);
  return await action(found, connection);
}
