import { z } from "zod";
import { runBuildCommand } from "../../builds/run-build.ts";
import { invocationFor } from "../call.ts";
import { additive, type Tool } from "../tool.ts";
import { createBuildReport } from "./build-report.ts";
import { buildInputs, buildWords, network, pairs, timeoutSeconds } from "./fields.ts";
import { inTurn } from "./in-turn.ts";

const input = z.strictObject({
  ...buildInputs,
  tags: z.array(z.string().min(1)).optional().describe("Tags of the image, NAME or NAME:TAG"),
  secrets: z
    .array(z.string().min(1))
    .optional()
    .describe("For RUN --mount=type=secret: id=ID[,src=FILE|,env=NAME], a file or variable of this machine"),
  no_cache: z.boolean().optional().describe("Build every layer again, without the cache"),
  no_cache_filter: z
    .array(z.string().min(1))
    .optional()
    .describe("Build only these stages again, by name or number, and what uses them; implies docker"),
  pull: z.boolean().optional().describe("Import the images of FROM again, even if they are stored"),
  timeout_seconds: timeoutSeconds,
  network,
  add_hosts: z
    .record(z.string(), z.string())
    .optional()
    .describe("IP addresses by name, for /etc/hosts of commands; host-gateway is the machine that runs them"),
  shm_size: z.string().min(1).optional().describe("Size of /dev/shm in commands, as in 1g (default: 64m)"),
});

const output = z.object({
  image: z.string().describe("UUID of the image"),
  tags: z.array(z.string()),
  session: z.string().describe("Key of the build's session, which has a branch for each layer"),
  seconds: z.number(),
  uploaded: z.object({ files: z.number(), bytes: z.number() }),
  steps: z.array(
    z.object({
      step: z.number(),
      stage: z.string().nullable(),
      line: z.number(),
      instruction: z.string(),
      cached: z.boolean().nullable().describe("Null if the instruction makes no layer"),
      seconds: z.number(),
      image: z.string().nullable(),
      operation: z.string().nullable(),
    }),
  ),
  warnings: z.array(z.string()).describe("Also the reasons why the image differs from what was asked for"),
});

export const build: Tool<typeof input, typeof output> = {
  name: "build",
  title: "Build an image",
  description:
    "Build an image from a Dockerfile, with cached layers. Reports each step as progress; cancelling stops the build on the service. A failed step is an error with its line and output; the layers before it stay cached.",
  input,
  output,
  annotations: additive,
  async perform(given, call) {
    const { tags = [], secrets, no_cache, no_cache_filter = [], pull, timeout_seconds, network } = given;
    const words = buildWords(given, no_cache_filter.length > 0);
    const invocation = invocationFor(
      {
        ...words,
        flags: [
          ...words.flags,
          ...(no_cache === true ? ["no-cache"] : []),
          ...(pull === true ? ["pull"] : []),
        ],
        texts: { ...words.texts, timeout: timeout_seconds?.toString(), network, "shm-size": given.shm_size },
        lists: {
          ...words.lists,
          tag: tags,
          secret: secrets,
          "no-cache-filter": no_cache_filter,
          "add-host": pairs(given.add_hosts),
        },
      },
      call,
    );
    call.root.requireBuildFiles(invocation);
    const report = createBuildReport(call);
    return inTurn(given.context, call, async () => {
      const result = await report.finish(runBuildCommand(invocation, async () => report.progress));
      return {
        image: result.image,
        tags: [...result.tags],
        session: result.session,
        seconds: result.seconds,
        uploaded: result.uploaded,
        steps: result.steps.map(({ step, stage, line, instruction, cached, seconds, image, operation }) => ({
          ...{ step, stage: stage === null ? null : (stage.name ?? String(stage.index)), line, instruction },
          ...{ cached, seconds, image, operation },
        })),
        warnings: call.warnings.splice(0),
      };
    });
  },
};
