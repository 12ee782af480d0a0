import { z } from "zod";
import { recordConfiguration, recordedConfiguration } from "../../../builder/cache/image-records.ts";
import { BoughError, usageError } from "../../../errors.ts";
import { refuseMissing } from "../../../service/operations/outcome.ts";
import type { InstanceFile } from "../../../service/wire/file.ts";
import type { InstanceRequest } from "../../../service/wire/instance.ts";
import { formatCount } from "../../../terminal/quantity.ts";
import { sessionKey } from "../../references/session-argument.ts";
import { appendEntries, workingBranch } from "../../references/working-branch.ts";
import { requireExitCode, runInstance } from "../../run/instance.ts";
import type { Connection } from "../../service/connection.ts";
import { additive, type Tool } from "../tool.ts";
import { surroundingsFor, type ToolCall } from "../tool-call.ts";
import { image, pathInImage, session, toolInput } from "./fields.ts";
import { withImage } from "./images.ts";

const file = z.strictObject({
  path: pathInImage.refine((path) => !path.endsWith("/"), "The path of a file must not end with a slash"),
  content: z.string(),
  encoding: z.enum(["utf-8", "base64"]).default("utf-8").describe("Encoding of content"),
  mode: z
    .string()
    .regex(/^[0-7]{3,4}$/)
    .default("0644")
    .describe("Octal"),
  uid: z.int().nonnegative().default(0),
  gid: z.int().nonnegative().default(0),
});
const input = toolInput({ files: z.array(file).min(1).max(1000), session, image });

const output = z.object({
  image: z.string().describe("The session's new image"),
  session: z.string(),
  branch: z.string(),
  files: z.number(),
  bytes: z.number(),
});

const timeoutSeconds = 600;

export const writeFiles: Tool<typeof input, typeof output> = {
  name: "write_files",
  title: "Write files into an image",
  description:
    "Put files into the session's image, or into another one that becomes the session's; missing parent directories are created. The result is the session's new image, which `rollback` takes back.",
  input,
  output,
  annotations: additive,
  perform: (given, call) =>
    withImage(given, call, async (image, connection) => {
      const { store } = connection;
      const key = sessionKey(surroundingsFor(call, { session: given.session }));
      const from = workingBranch(store, key);
      const contents = given.files.map((each) => ({ ...each, bytes: decode(each) }));
      const title = `write ${formatCount(contents.length, "file")}: ${contents.map(({ path }) => path).join(" ")}`;
      call.report(title);
      const { operation, image: newImage } = await writeIntoImage(image, contents, call, connection);
      // The session stays as it is if the result is lost.
      await connection.requireKept(newImage);
      const noted = recordedConfiguration(image, store);
      if (noted !== undefined && newImage !== image) recordConfiguration(newImage, noted, store);
      const { branch } = appendEntries(store, from, [
        ...(given.image === undefined
          ? []
          : [{ image, kind: "use" as const, title: `use ${given.image}`, operation: null }]),
        { image: newImage, kind: "run" as const, title, operation },
      ]);
      const bytes = contents.reduce((sum, each) => sum + each.bytes.byteLength, 0);
      return { image: newImage, session: key, branch, files: contents.length, bytes };
    }),
};

type Content = z.infer<typeof file> & { bytes: Uint8Array<ArrayBuffer> };

async function writeIntoImage(
  image: string,
  contents: readonly Content[],
  call: ToolCall,
  { service }: Connection,
): Promise<{ operation: string; image: string }> {
  const files: Record<string, InstanceFile> = {};
  for (const { path, bytes, mode, uid, gid } of contents) {
    const { uuid } = await service.uploadStream(() => new Blob([bytes]).stream(), {
      contentLength: bytes.byteLength,
    });
    files[path] = { uuid, uid, gid, mode: mode.padStart(4, "0") };
  }
  // A service without copies puts files in place only for a command, which needs a shell in the image.
  const needsNoCommand = (await service.capabilities.extensions()).has("copies");
  const request: InstanceRequest = {
    ...{ image, files, cwd: "/", timeout: timeoutSeconds, disposable: false },
    ...(needsNoCommand ? { command: "", shell: false, copies: [] } : { command: ":", shell: true }),
  };
  const { log } = surroundingsFor(call);
  const outcome = await runInstance(request, { service, signal: call.signal, log });
  refuseMissing(outcome);
  const exitCode = requireExitCode(outcome, timeoutSeconds);
  if (exitCode !== 0 || outcome.image === undefined) {
    throw new BoughError(
      `the files could not be written (operation ${outcome.operation}): ${outcome.stderr.text.trim() || `exit code ${exitCode}`}`,
    );
  }
  return { operation: outcome.operation, image: outcome.image };
}

function decode({ path, content, encoding }: z.infer<typeof file>): Uint8Array<ArrayBuffer> {
  if (encoding === "utf-8") return new TextEncoder().encode(content);
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(content.replace(/\s/g, "")))
    throw usageError(`the content of ${path} is not base64`, "Give text with the encoding utf-8.");
  return Uint8Array.from(Buffer.from(content, "base64"));
}
