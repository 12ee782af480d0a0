import { z } from "zod";
import { callForJson } from "../call.ts";
import type { Tool } from "../tool.ts";
import { session } from "./fields.ts";

const input = z.strictObject({
  session,
  steps: z.int().positive().default(1).describe("How many images to go back"),
});
const output = z.looseObject({ session: z.string(), branch: z.string(), image: z.string() });

export const rollback: Tool<typeof input, typeof output> = {
  name: "rollback",
  title: "Go back to an earlier image",
  description:
    "Take the session's branch back to the image before the last `run` or `write_files` that was kept. Nothing is lost: `sessions` still shows what was rolled back.",
  input,
  output,
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  async perform({ session, steps }, call) {
    const words = { session, positionals: [String(steps)] };
    return output.parse(await callForJson(["session", "rollback"], words, call));
  },
};
