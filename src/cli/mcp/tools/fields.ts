import { z } from "zod";
import { nearest } from "../../../suggest.ts";
import type { BuildRequest } from "../../builds/request.ts";
import { contextOf } from "../../entries/context.ts";
import { isStandardInput } from "../../process/same-file.ts";

/** Creates the input schema of a tool, whose errors about unknown keys suggest a known one, or list all of them. */
export function toolInput<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const names = Object.keys(shape);
  const suggestion = (key: string) => {
    const meant = nearest(key, names);
    return meant === undefined ? ` (its inputs are ${names.join(", ")})` : ` (did you mean ${meant}?)`;
  };
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys.map((key) => `Unrecognized key: ${JSON.stringify(key)}${suggestion(key)}`).join("; ")
        : undefined,
  });
}

/** Inputs that several tools share. */
export const session = z
  .string()
  .min(1)
  .optional()
  .describe(
    "Key of the session: a tree of images, with branches. Give every task its own (default: `default`). The first `write_files`, or `run` with keep, that names an image creates it",
  );
export const image = z
  .string()
  .min(1)
  .optional()
  .describe("UUID or tag of an image (default: the session's image)");
export const pathInImage = z.string().startsWith("/").describe("Absolute path in the image");
export const timeoutSeconds = z
  .int()
  .positive()
  .optional()
  .describe("Seconds that a command may take (default: 600)");
export const network = z
  .enum(["default", "none", "host"])
  .optional()
  .describe(
    "Network of commands: default (the outside, but not this machine's loopback), none, or host (all that this machine can reach)",
  );
export const maxBytes = (defaultBytes: number) =>
  z
    .int()
    .positive()
    .max(8 * 1024 * 1024)
    .default(defaultBytes)
    .describe("Maximum number of bytes; `truncated` says if some are left out");

// Standard input belongs to the protocol.
const isNotStdin = (word: string) => word !== "-" && !isStandardInput(word);
const noStdin = "standard input is not available here";

/** Inputs that name what to build. */
export const buildInputs = {
  context: z
    .string()
    .min(1)
    .refine(isNotStdin, noStdin)
    .default(".")
    .describe(
      "Build context, from which COPY and ADD copy: a directory on this machine (absolute, or relative to where the server was started), or the address of a git repository (https://HOST/X.git#REF:DIRECTORY) or tar archive",
    ),
  dockerfile: z
    .string()
    .min(1)
    .refine(isNotStdin, noStdin)
    .optional()
    .describe(
      "Path on this machine (default: CONTEXT/Dockerfile); if context is an address, a relative path is a path in it",
    ),
  docker: z
    .boolean()
    .optional()
    .describe(
      "Build as `docker build` does: only the stages that are needed, COPY --from, SHELL, ENTRYPOINT and similar instructions, no default excludes. Without it a Dockerfile with several stages gives a different image than Docker's",
    ),
  target: z.string().min(1).optional().describe("The stage to build, by name or number; implies docker"),
  build_args: z.record(z.string().min(1), z.string()).optional().describe("Values of the Dockerfile's ARGs"),
  build_contexts: z
    .record(z.string(), z.string())
    .optional()
    .describe(
      "What FROM NAME, COPY --from=NAME and RUN --mount=from=NAME mean, by NAME: a directory on this machine, docker-image://REFERENCE, oci-layout://PATH:TAG, the address of a git repository (https://HOST/X.git#REF:DIRECTORY), or that of a file, which is then called `context`; implies docker",
    ),
  lock: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File on this machine with the digests of images, the hashes of URLs and the commits of repositories to use. A build writes it if it is missing, and adds what it lacks",
    ),
  no_default_excludes: z
    .boolean()
    .optional()
    .describe("Also copy .git, node_modules, dist, build and similar files, if docker is not given"),
};

/** Converts the inputs into a build request. `needsDocker`: true if an input of the tool itself implies docker. */
export function buildRequest(
  input: z.infer<z.ZodObject<typeof buildInputs>>,
  needsDocker = false,
): BuildRequest {
  const { context, dockerfile, docker, target, lock } = input;
  const contexts = Object.entries(input.build_contexts ?? {}).map(([name, value]) => contextOf(name, value));
  const impliesDocker = needsDocker || target !== undefined || contexts.length > 0;
  return {
    context,
    options: {
      ...{ docker, dockerfile, target, lock },
      "no-docker": docker === false && !impliesDocker,
      "no-default-excludes": input.no_default_excludes,
      "build-arg": new Map(Object.entries(input.build_args ?? {})),
      "build-context": contexts,
    },
  };
}
