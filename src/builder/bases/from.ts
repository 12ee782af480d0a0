import type { FromInstruction, Instruction } from "../../dockerfile/instruction.ts";
import { replacesVariables } from "../../dockerfile/variable-replacement.ts";
import { referencesIn, referencesOf, wordsOfMount } from "../../dockerfile/words/references.ts";
import { defaultPath, type ImageConfig, variablesIn, withDefaultPath } from "../../image/config.ts";
import { formatPlatform, type Platform, requirePlatform } from "../../image/platform.ts";
import { baseHash } from "../cache/chain-hash.ts";
import { recordedConfiguration, recordedOrigin, recordReference } from "../cache/image-records.ts";
import type { AskedBuild, BaseImage, BuildJob } from "../job.ts";
import { titleOf } from "../location.ts";
import type { Layer } from "../state/layer.ts";
import { variableLookup } from "../state/scope.ts";
import { type StageState, startStage } from "../state/state.ts";
import { scratch } from "./base.ts";
import { isLinkedForAll } from "./find-image.ts";
import { findLockedImage } from "./locked-image.ts";

/** Starts a stage from an image. The stage keeps the image's configuration, if the service returns it. */
export async function startFromImage(
  name: string,
  instruction: FromInstruction,
  given: Platform | undefined,
  build: BuildJob,
): Promise<StageState> {
  // Docker's empty image is always for the platform of the build, whatever its FROM says.
  const platform = name === scratch ? build.asked.platform : given;
  const image = await findLockedImage(name, platform, build);
  const { uuid, origin, reference } = image;
  if (!isLinkedForAll(name, build))
    requirePlatform(image.platform, platform && formatPlatform(platform), reference);
  // Docker's empty image has this directory, which the engine's configuration lacks.
  const config =
    reference === scratch && build.asked.dialect.keepsConfiguration
      ? { WorkingDir: "/", ...image.config }
      : image.config;
  if (reference !== scratch) recordReference(uuid, reference, build.services.store);
  // An image that bake has just built has no other name than the one in the Dockerfile.
  build.emit({
    type: "resolved",
    reference: reference === uuid ? instruction.image : reference,
    image: uuid,
  });
  const layer = baseLayer(image, instruction, build);
  if (config === undefined) return startFromRecord(layer, reference, instruction, build);
  const stage = startStage(layer, config, { ...recordedOrigin(uuid, build.services.store), ...origin });
  warnOfConfiguration(reference, config, instruction, build);
  const isFromScratch = reference === scratch;
  return { ...stage, isFromScratch, inherited: withDefaultPath(variablesIn(config)) };
}

/**
 * Starts a stage with the configuration that bough recorded when it built the image, for a service that returns none. The record does
 * not have the variables of the image's own base.
 */
function startFromRecord(
  layer: Layer,
  reference: string,
  instruction: FromInstruction,
  build: BuildJob,
): StageState {
  const recorded = recordedConfiguration(layer.image, build.services.store);
  const origin = recordedOrigin(layer.image, build.services.store);
  if (recorded === undefined) return startStage(layer, {}, origin);
  const { Env: _, ...config } = recorded;
  warnOfConfiguration(reference, config, instruction, build);
  return { ...startStage(layer, config, origin), env: variablesIn(recorded) };
}

function warnOfConfiguration(
  reference: string,
  { OnBuild = [], Shell = [] }: ImageConfig,
  { range }: FromInstruction,
  { emit, asked }: BuildJob,
): void {
  if (asked.dialect.keepsConfiguration) return;
  const ignored = [
    ...OnBuild.map((trigger) => `its trigger ONBUILD ${trigger} is not run`),
    ...(Shell.length === 0
      ? []
      : [`its SHELL ${JSON.stringify(Shell)} is not used: every RUN goes through /bin/sh`]),
  ];
  for (const what of ignored) emit({ type: "warning", message: `${reference}: ${what}`, line: range.start });
}

function baseLayer(
  image: BaseImage,
  instruction: FromInstruction,
  { services, useCache, eagerUploads }: BuildJob,
): Layer {
  const { layers } = services;
  const hash = baseHash(image, services.service);
  const known = layers.findLocal(hash);
  // If the image has no layer yet, this session has never started from it and no step is cached, unless others share their
  // layers.
  if ((known === undefined && !layers.hasOthers) || !useCache) eagerUploads.markNeeded();
  // Several equal images have the same hash.
  if (known?.image === image.uuid) return known;
  const title = titleOf(instruction);
  const layer = layers.put({
    hash,
    image: image.uuid,
    parent: undefined,
    kind: "from",
    title,
    operation: undefined,
  });
  return image.isRemembered === true ? { ...layer, cached: true } : layer;
}

/**
 * Adds the image's own variables to the stage before an instruction that refers to a variable the Dockerfile does not set, as in
 * `ENV PATH=/opt/bin:$PATH`. If the service does not return an image's configuration, one small operation reads them, once for
 * each base image. A RUN needs this only for its mounts: its shell has the variables.
 */
export async function inheritEnvironment(
  instruction: Instruction,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  if (stage.inherited !== undefined || !usesUnknownVariable(instruction, stage, build.asked)) return stage;
  return { ...stage, inherited: await readEnvironment(stage, instruction.range.start, build) };
}

function usesUnknownVariable(
  instruction: Instruction,
  stage: StageState,
  { dialect, dockerfile }: AskedBuild,
): boolean {
  const lookup = variableLookup({ env: stage.env, args: stage.args });
  const { escape } = dockerfile;
  const references = () =>
    instruction.name === "RUN"
      ? instruction.mounts.flatMap(wordsOfMount).flatMap((word) => referencesIn(word, escape))
      : referencesOf(instruction, escape);
  const isExpanded = replacesVariables(instruction.name, dialect.keepsConfiguration);
  return (
    isExpanded &&
    references().some(
      ({ name }) =>
        lookup(name) === undefined &&
        (dialect.hasDockersVariables || mayBeOfImage(name, instruction, stage, escape)),
    )
  );
}

/** The endings of names that images set, such as `JAVA_HOME` and `PYTHON_VERSION`. */
const namesOfImages = /^(LANG|LC_[A-Z]+|PGDATA)$|PATH$|_(HOME|VERSION|MAJOR|DIR|ROOT)$/;

/** Returns false for a name that images hardly ever set: reading the image's variables takes a command on the service. */
function mayBeOfImage(name: string, instruction: Instruction, { args }: StageState, escape: string): boolean {
  if (args.has(name)) return false;
  const isUsedIn = (value: string) =>
    referencesIn(value, escape).some((reference) => reference.name === name);
  const goesOn =
    instruction.name === "ENV" && instruction.pairs.some(({ key, value }) => key === name && isUsedIn(value));
  return goesOn || namesOfImages.test(name);
}

async function readEnvironment(
  stage: StageState,
  line: number,
  build: BuildJob,
): Promise<ReadonlyMap<string, string>> {
  const { imageMetadata } = build.services.store;
  const key = "environment";
  const known = imageMetadata.get(stage.base, key);
  const output = known === undefined ? await probeEnvironment(stage, build) : { text: known };
  // A command that failed may succeed in the next build.
  if (output.failure === undefined) imageMetadata.set(stage.base, key, output.text);
  if (output.text === "") {
    const why = output.failure ?? "no env program reports them";
    const message = `cannot read the image's variables: ${why}; bough takes ${defaultPath} for PATH and an empty value for every other`;
    build.emit({ type: "warning", message, line });
  }
  return withDefaultPath(parseEnvironment(output.text));
}

/** Returns the output of env(1), which is empty if the image has no such program, or why there is none. */
async function probeEnvironment(
  stage: StageState,
  build: BuildJob,
): Promise<{ text: string; failure?: string }> {
  // Loaded on demand: few builds need a probe.
  const { probeImage, cannotBeStarted, describeEnd, exitCodeOf } = await import(
    "../operations/probe-image.ts"
  );
  const probe = { command: "env", args: [], title: "asks for the image's variables", about: stage.base };
  const outcome = await probeImage(probe, stage, build);
  if (exitCodeOf(outcome) === 0) return { text: outcome.stdout.text };
  if (cannotBeStarted(outcome)) return { text: "" };
  return { text: "", failure: `${describeEnd(outcome)} (operation ${outcome.operation})` };
}

/** Variables set by the process that starts a command, not by the image. */
const processVariables = ["HOME", "HOSTNAME", "LOGNAME", "OLDPWD", "PWD", "SHLVL", "TERM", "USER", "_"];

/** Parses the output of env(1), in which a value may span several lines. */
function parseEnvironment(text: string): [string, string][] {
  const variables: [string, string][] = [];
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const [, name, value = ""] = /^([A-Za-z_]\w*)=(.*)$/s.exec(line) ?? [];
    const last = variables.at(-1);
    if (name !== undefined) variables.push([name, value]);
    else if (last !== undefined) last[1] += `\n${line}`;
  }
  return variables.filter(([name]) => !processVariables.includes(name));
}
