import { join, resolve } from "node:path";
import { type BuildContext, openBuildContext } from "../context/build-context.ts";
import type { IgnoreRules } from "../context/ignore.ts";
import { readIgnoreRules } from "../context/ignore-file.ts";
import { BoughError } from "../errors.ts";
import type { Invocation } from "./command.ts";
import { readDockerfile } from "./dockerfile-file.ts";

/** What a command line says is to be built. */
export interface BuildInputs {
  context: BuildContext;
  dockerfile: {
    /** As given; for messages. */
    path: string;
    absolutePath: string;
    text: string;
  };
  ignore: IgnoreRules;
  buildArgs: ReadonlyMap<string, string>;
}

/** @throws BoughError of kind `usage` where something is not there, or not what it should be */
export async function readBuildInputs({
  values,
  runtime,
}: Pick<Invocation, "values" | "runtime">): Promise<BuildInputs> {
  const { workingDirectory, signal } = runtime;
  const buildArgs = readBuildArgs(values.list("build-arg"));
  const context = await openBuildContext(values.positionals[0] ?? ".", workingDirectory);
  const named = values.text("dockerfile");
  const path = named ?? join(context.path, "Dockerfile");
  const absolutePath = resolve(workingDirectory, path);
  const text = await readDockerfile({ path, absolutePath, isNamed: named !== undefined }, signal);
  const dockerfile = { path, absolutePath, text };
  const ignore = readIgnoreRules({
    contextPath: resolve(workingDirectory, context.path),
    dockerfilePath: absolutePath,
    defaultExcludes: !values.flag("no-default-excludes"),
  });
  return { context, dockerfile, ignore, buildArgs };
}

function readBuildArgs(given: readonly string[]): Map<string, string> {
  return new Map(
    given.map((text) => {
      const separator = text.indexOf("=");
      if (separator > 0) return [text.slice(0, separator), text.slice(separator + 1)];
      throw new BoughError(`--build-arg takes KEY=VALUE, not ${JSON.stringify(text)}`, {
        kind: "usage",
        hint: separator === 0 ? "The name is missing." : `Write --build-arg ${text}=VALUE.`,
      });
    }),
  );
}
