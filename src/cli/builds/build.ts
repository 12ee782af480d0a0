import { usageError } from "../../errors.ts";
import type { Values } from "../command-line/arguments.ts";
import type { Command, Invocation, Surroundings } from "../command-line/command.ts";
import { readOptions } from "../command-line/options.ts";
import { placeholderKey, withKey } from "./keys/key-in-tags.ts";
import { callOf, inputDefinitions, parseCall, parseCheck } from "./options/input-definitions.ts";
import { resultDefinitions } from "./options/result-definitions.ts";
import type { BuildInvocation, BuildRequest } from "./request.ts";

export const build: Command = {
  definition: {
    meta: {
      name: "build",
      description: "Build an image from a Dockerfile: each RUN is a layer that later builds reuse.",
    },
    args: { ...inputDefinitions, ...resultDefinitions },
    run: ({ data }) => buildOrCheck(data),
  },
  usual: {
    groups: [
      { title: "What to build", options: ["docker", "dockerfile", "target", "build-arg"] },
      { title: "Its result", options: ["tag", "push", "output"] },
      { title: "If something is wrong", options: ["timeout", "no-cache", "check", "on-error"] },
    ],
    agentNote:
      "this command is mutating, the layer cache is per context, and --no-cache bypasses cached layers. See `bough agent`.",
  },
  examples: [
    ["build --docker . --tag app:dev", "what docker build builds, tagged"],
    ["build --docker . --tag HOST/app --push", "and send it to a registry"],
    ["build --docker . --on-error shell", "look around where it fails"],
    [
      "build --docker app --dockerfile app/ci.Dockerfile --build-arg VERSION=1.2",
      "another Dockerfile, an ARG's value",
    ],
    ["build --docker --check", "look for mistakes and build nothing; --format json says what would be done"],
  ],
  agentNote: [
    "This command is mutating: it may start operations, store images and move tags.",
    "The layer cache is per context directory or repository; --no-cache bypasses cached layers, --cache-from uses those of other machines.",
    "The build has a session of its own: -S KEY is harmless and does not move that key's image.",
    "See `bough agent` for the manual.",
  ].join("\n"),
  needs(values) {
    const { call, check } = inputDefinitions;
    const asked = readOptions(values, { call, check }, { call: parseCall, check: parseCheck });
    return callOf(asked).method === "build" ? "service" : undefined;
  },
  foreign: async () => (await import("../foreign/build-options.ts")).foreignBuildOptions,
};

/**
 * Refuses `--check` with `--trace`, `--report` or `--timings`: without a build there is nothing to measure. The formats of reports are
 * for `--check` alone.
 */
function refuseTogether({ options, globals: { report } }: BuildInvocation): void {
  const { method } = callOf(options);
  if (report !== undefined && method !== "check")
    throw usageError(
      `--format ${report} needs --check`,
      "It is a report of what the checks find: build nothing with --check, and build without --format.",
    );
  const measure = (["trace", "report", "timings"] as const).find(
    (name) => (options[name] ?? false) !== false,
  );
  if (method === "build" || measure === undefined) return;
  throw usageError(`--check and --${measure} cannot be used together`, "--check builds nothing.");
}

/** Builds, or runs the checks. Loads the code for it only now, so that `--help` is fast. */
async function buildOrCheck({ values, ...surroundings }: Invocation): Promise<number> {
  const { readBuildRequest } = await import("./options/build-parsers.ts");
  let request: BuildRequest;
  try {
    request = readBuildRequest(values, surroundings.runtime);
  } catch (error) {
    return refuse(error, values, surroundings);
  }
  const invocation: BuildInvocation = { ...surroundings, ...request };
  const { options } = request;
  refuseTogether(invocation);
  const call = callOf(options);
  const { method } = call;
  const isKeyOnly = options["print-key"] === true;
  if (isKeyOnly || method === "build") {
    // The labels that it gives are in the content key.
    const hasRules = options["tag-from"] !== undefined;
    const own = hasRules ? await (await import("./tags/tag-from.ts")).withTagsFrom(invocation) : invocation;
    if (isKeyOnly) return (await import("./keys/print-key.ts")).printKey(own);
    return (await import("./run-build.ts")).runBuildCommand(own);
  }
  // docker's -q leaves out the progress only.
  const { globals, runtime } = invocation;
  const shown = runtime.isPlugin === true ? { ...globals, quiet: false } : globals;
  const own = withKey({ ...invocation, globals: shown }, placeholderKey);
  if (method === "check") return (await import("./check.ts")).runCheckCommand(call, own);
  return (await import("./describe-dockerfile.ts")).describeDockerfile({ ...call, method }, own);
}

/** Ends with an invalid option. A build says so as it says its other failures. */
async function refuse(error: unknown, values: Values, surroundings: Surroundings): Promise<number> {
  const isBuild = ["check", "call"].every((name) => values.text(name) === undefined);
  if (!isBuild || values.flag("print-key")) throw error;
  const [context = "."] = values.positionals;
  const options = { dockerfile: values.text("dockerfile"), iidfile: values.text("iidfile") };
  const { refuseBuild } = await import("./run-build.ts");
  return refuseBuild(error, values.text("progress"), { ...surroundings, context, options });
}
