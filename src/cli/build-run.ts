import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { buildSession, runBuild } from "../build/build.ts";
import { createImageFacts } from "../build/image-facts.ts";
import type { BuildJob } from "../build/job.ts";
import { refuseUnsupported } from "../build/refusals.ts";
import type { BuildResult } from "../build/result.ts";
import { createStepMemory } from "../build/step-memory.ts";
import { openBuildContext } from "../context/build-context.ts";
import { readIgnoreRules } from "../context/ignore-file.ts";
import type { Dockerfile } from "../dockerfile/instruction.ts";
import { parseDockerfile } from "../dockerfile/parse.ts";
import { BoughError, messageOf } from "../errors.ts";
import { failureOf } from "../output/failure.ts";
import type { Progress } from "../output/progress.ts";
import { renderTable } from "../output/table.ts";
import { parseTag } from "../service/tag.ts";
import { positiveInteger } from "./arguments.ts";
import { withWayIn } from "./build-debugging.ts";
import { prepareResultFiles } from "./build-files.ts";
import { createProgress } from "./build-progress.ts";
import type { Invocation } from "./command.ts";
import { connect } from "./connection.ts";
import { printResult } from "./result.ts";

const defaultTimeoutSeconds = 600;

/** `bough build`, once its command line is known. Answers the exit code. */
export async function runBuildCommand(invocation: Invocation): Promise<number> {
  const progress = await createProgress(invocation);
  try {
    const result = await buildWith(progress, invocation);
    progress.close();
    printResult(invocation, {
      id: result.image,
      json: { image: result.image, tag: result.tag ?? null, session: result.session },
      table: (style) =>
        renderTable(["IMAGE", "TAG", "SESSION"], [[result.image, result.tag ?? "-", result.session]], style),
    });
    return 0;
  } catch (error) {
    progress.close();
    if (progress.fail(error)) return failureOf(error).exitCode;
    throw error;
  }
}

async function buildWith(progress: Progress, { values, runtime, globals }: Invocation): Promise<BuildResult> {
  // Docker's -t is a tag.
  const timeoutHint = "It counts seconds, as in --timeout 1800. A tag is given with --tag NAME:TAG.";
  const timeoutSeconds =
    positiveInteger(values.text("timeout"), "--timeout", timeoutHint) ?? defaultTimeoutSeconds;
  const tag = values.text("tag") === undefined ? undefined : parseTag(values.text("tag") ?? "");
  const buildArgs = readBuildArgs(values.list("build-arg"));
  const context = await openBuildContext(values.positionals[0] ?? ".", runtime.workingDirectory);
  const dockerfilePath = values.text("dockerfile") ?? join(context.path, "Dockerfile");
  const dockerfile = readDockerfile(dockerfilePath, runtime.workingDirectory);
  const ignore = readIgnoreRules({
    contextPath: resolve(runtime.workingDirectory, context.path),
    dockerfilePath: resolve(runtime.workingDirectory, dockerfilePath),
    defaultExcludes: !values.flag("no-default-excludes"),
  });

  const files = prepareResultFiles(values, runtime.workingDirectory);

  const { service, store, close } = await connect(runtime, globals, progress.log);
  const session = buildSession(context.absolutePath);
  try {
    const job: BuildJob = {
      dockerfile,
      context,
      ignore,
      session,
      buildArgs,
      useCache: !values.flag("no-cache"),
      timeoutSeconds,
      tag,
      service,
      facts: createImageFacts(service, store.facts),
      store,
      hashes: store.hashes.open(context.realPath),
      memory: createStepMemory(store.steps, {
        session,
        dockerfile: resolve(runtime.workingDirectory, dockerfilePath),
        explains: values.flag("explain"),
      }),
      fetchUrl: runtime.fetch,
      clock: runtime.clock,
      signal: runtime.signal,
      emit: progress.emit,
    };
    const result = await runBuild(job);
    job.hashes.tidy();
    files.write(result);
    return result;
  } catch (error) {
    throw withWayIn(error, session, globals);
  } finally {
    await close();
  }
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

function readDockerfile(path: string, workingDirectory: string): Dockerfile {
  let text: string;
  try {
    text = readFileSync(resolve(workingDirectory, path), "utf8");
  } catch (error) {
    const reason =
      error instanceof Error && "code" in error && error.code === "ENOENT"
        ? "there is no such file"
        : messageOf(error);
    throw new BoughError(`cannot read the Dockerfile ${path}: ${reason}`, {
      kind: "usage",
      hint: "Name it with --dockerfile PATH, or give the context directory that holds it.",
      cause: error,
    });
  }
  const dockerfile = parseDockerfile(text, path);
  refuseUnsupported(dockerfile);
  return dockerfile;
}
