import { z } from "zod";
import { callForJson } from "../call.ts";
import { readOnly, type Tool } from "../tool.ts";

const input = z.strictObject({
  tag: z.string().min(1).optional().describe("Only images with a tag that begins with this"),
  all: z.boolean().optional().describe("Also list the image of each layer of a build"),
  tagged: z.boolean().optional().describe("Only images with a tag"),
  since: z.string().min(1).optional().describe("Only images made since a date, or an age such as 24h or 7d"),
  limit: z.int().positive().max(10_000).default(100).describe("Maximum number, newest first"),
});

const list = z.array(z.looseObject({ uuid: z.string(), tag: z.string().nullable(), created_at: z.string() }));
const output = z.object({ images: list });

export const images: Tool<typeof input, typeof output> = {
  name: "images",
  title: "List images",
  description:
    "List the images that have a tag and the newest of each session, the newest first; an image with several tags is listed once for each.",
  input,
  output,
  annotations: readOnly,
  async perform({ tag, all, tagged, since, limit }, call) {
    const words = {
      flags: [...(all === true ? ["all"] : []), ...(tagged === true ? ["tagged"] : [])],
      texts: { tag, since, limit: String(limit) },
    };
    return { images: list.parse(await callForJson(["images", "list"], words, call)) };
  },
};
