import { z } from "zod";
import { octalMode } from "../../../image/file-mode.ts";
import { readOnly, type Tool } from "../tool.ts";
import { image, pathInImage, session } from "./fields.ts";
import { withImage } from "./with-image.ts";

const input = z.strictObject({
  path: pathInImage.default("/"),
  session,
  image,
  limit: z.int().positive().max(10_000).default(1000).describe("Maximum number of entries, sorted by name"),
});

const output = z.object({
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

export const listFiles: Tool<typeof input, typeof output> = {
  name: "list_files",
  title: "List files of an image",
  description:
    "List a directory of the session's image or another one, without starting anything. For a path that is not a directory, list only that.",
  input,
  output,
  annotations: readOnly,
  perform: (given, call) =>
    withImage(given, call, async (image, { service }) => {
      const { path } = given;
      const found = (await service.listFiles(image, path)).sort((one, other) =>
        one.name < other.name ? -1 : 1,
      );
      const files = found.slice(0, given.limit).map((file) => ({
        ...file,
        mode: file.mode === null ? null : octalMode(file.mode),
        modified: new Date(file.modified * 1000).toISOString(),
      }));
      return { image, path, files, truncated: found.length > files.length };
    }),
};
