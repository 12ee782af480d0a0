import { join, resolve } from "node:path";
import type { NetworkPolicy } from "../../builder/commands/network.ts";
import type { BuildMode } from "../../builder/job.ts";
import { type BuildContext, openBuildContext } from "../../context/build-context.ts";
import type { IgnoreRules } from "../../context/patterns/ignore.ts";
import { readIgnoreRules } from "../../context/patterns/ignore-file.ts";
import { BoughError } from "../../errors.ts";
import type { Invocation } from "../command-line/command.ts";
import { readNetworkPolicy } from "../run/network-option.ts";
import { type DockerfilePlace, readDockerfile } from "./dockerfile-file.ts";
import { readSecretOptions, type SecretSources } from "./secret-options.ts";

/** What a command line says is to be built. */
export interface BuildInputs {
  context: BuildContext;
  dockerfile: {
    /** The path as given, for messages. */
    path: string;
    absolutePath: string;
    text: string;
  };
  ignore: IgnoreRules;
  buildArgs: ReadonlyMap<string, string>;
  /** True if FROM may name an image on this machine. */
  allowsLocalFrom: boolean;
  network: NetworkPolicy;
  mode: BuildMode;
  /** `--target`. */
  target: string | undefined;
  /** `--secret` and `--ssh`, none of them read yet. */
  secrets: SecretSources;
}

type GivenInputs = Pick<Invocation, "values" | "runtime">;

interface InputPlaces {
  /** The argument as given. */
  context: string;
  dockerfile: DockerfilePlace;
  ignore: { contextPath: string; dockerfilePath: string };
}

/** @throws BoughError of kind `usage` where something is not there, or not what it should be */
export async function readBuildInputs(given: GivenInputs): Promise<BuildInputs> {
  const { values, runtime } = given;
  const { workingDirectory, signal } = runtime;
  const network = readNetworkPolicy(values);
  const mode = chooseMode(given);
  const buildArgs = readBuildArgs(values.list("build-arg"), runtime.environment);
  const places = locateInputs(given);
  const context = await openBuildContext(places.context, workingDirectory);
  const text = await readDockerfile(places.dockerfile, signal);
  const dockerfile = { ...places.dockerfile, text };
  const ignore = readIgnoreRules({
    ...places.ignore,
    defaultExcludes: mode === "default" && !values.flag("no-default-excludes"),
  });
  const allowsLocalFrom = values.flag("allow-local-from");
  const target = values.text("target");
  const secrets = readSecretOptions(given);
  return { context, dockerfile, ignore, buildArgs, allowsLocalFrom, network, mode, target, secrets };
}

/** Where everything is to be looked for, whether or not it is there. */
export function locateInputs({ values, runtime: { workingDirectory } }: GivenInputs): InputPlaces {
  const context = values.positionals[0] ?? ".";
  const named = values.text("dockerfile");
  const path = named ?? join(context, "Dockerfile");
  const absolutePath = resolve(workingDirectory, path);
  return {
    context,
    dockerfile: { path, absolutePath, isNamed: named !== undefined },
    ignore: { contextPath: resolve(workingDirectory, context), dockerfilePath: absolutePath },
  };
}

/** `--docker`, `--no-docker` or `--target`, else `BOUGH_DOCKER`. */
function chooseMode({ values, runtime: { environment } }: GivenInputs): BuildMode {
  const [isDocker, isNotDocker] = [values.flag("docker"), values.flag("no-docker")];
  const hasTarget = values.text("target") !== undefined;
  if (isNotDocker && (isDocker || hasTarget)) {
    throw new BoughError(`${isDocker ? "--docker" : "--target"} and --no-docker exclude each other`, {
      kind: "usage",
      hint: "Without --docker every stage is built.",
    });
  }
  if (isNotDocker) return "default";
  if (isDocker || hasTarget) return "docker";
  const { BOUGH_DOCKER: given = "" } = environment;
  if (given === "" || given === "0") return "default";
  if (given === "1") return "docker";
  throw new BoughError(`BOUGH_DOCKER is 1 or 0, not ${JSON.stringify(given)}`, {
    kind: "usage",
    hint: "1 builds as docker build does, as --docker does.",
  });
}

/** A name alone takes its value from the environment, and is not given at all where it is not set there, as in Docker. */
function readBuildArgs(
  given: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Map<string, string> {
  const values = new Map<string, string>();
  for (const text of given) {
    const [, name = "", value = environment[name]] = /^([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
    if (name === "") {
      throw new BoughError(`--build-arg takes KEY=VALUE or KEY, not ${JSON.stringify(text)}`, {
        kind: "usage",
        hint: "The name is missing.",
      });
    }
    if (value === undefined) values.delete(name);
    else values.set(name, value);
  }
  return values;
}
