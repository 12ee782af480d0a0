import { secretsAmong } from "../../dockerfile/secrets.ts";
import { type ImageConfig, variablesIn, withDefaultPath, withEnv } from "../../image/config.ts";
import type { ImageOrigin } from "../../image/history.ts";
import { formatPlatform } from "../../image/platform.ts";
import { configurationHash } from "../cache/chain-hash.ts";
import { recordBase, recordConfiguration, recordOrigin } from "../cache/image-records.ts";
import { configurationTitle } from "../cache/layer-cache.ts";
import type { AskedBuild, BuildJob } from "../job.ts";
import { imageOriginOf } from "../state/history.ts";
import type { Layer } from "../state/layer.ts";
import type { StageState } from "../state/state.ts";

/**
 * Returns a stage's layer as an image that also has the stage's configuration. If the service can't store one (extension
 * `configure`), bough's own store keeps it under the image's UUID.
 */
export async function configureLayer(
  stage: StageState,
  build: BuildJob,
  occasion: "result" | "step" = "result",
): Promise<Layer> {
  const keeps = await build.services.supports.stored();
  if (!keeps.config) {
    recordInStore(stage, build, occasion);
    return stage.layer;
  }
  const { layer } = stage;
  const config = configurationOf(stage, storedVariables(stage, build.asked));
  const origin = imageOriginOf(stage, build.asked.buildArgs);
  // The failed step is not part of the image's history.
  const isStored = keeps.origin && occasion === "result";
  const storedOrigin = isStored ? { ...origin, ...(await targetPlatform(build)) } : undefined;
  const hash = configurationHash(layer.image, config, storedOrigin);
  const known = await build.services.layers.find(hash, layer);
  if (known !== undefined) return known;
  const image = await build.services.service.configureImage(layer.image, config, storedOrigin);
  if (!keeps.origin && isOwn(stage) && occasion === "result")
    recordOrigin(image, origin, build.services.store);
  if (image === layer.image) return layer;
  const entry = { hash, image, parent: layer, kind: "commit", title: configurationTitle } as const;
  return {
    ...build.services.layers.put({ ...entry, operation: layer.operation ?? undefined }),
    cached: layer.cached,
  };
}

/** Returns the stage with the labels of the command line. */
export function withLabels(stage: StageState, labels: ReadonlyMap<string, string>): StageState {
  if (labels.size === 0) return stage;
  const { config } = stage;
  return { ...stage, config: { ...config, Labels: { ...config.Labels, ...Object.fromEntries(labels) } } };
}

/** Returns the configuration of a stage's image where the service stores it. */
export function resultConfiguration(stage: StageState, asked: Pick<AskedBuild, "dialect">): ImageConfig {
  return configurationOf(stage, new Map([...variablesIn(stage.config), ...keptVariables(stage, asked)]));
}

function recordInStore(stage: StageState, { asked, services }: BuildJob, occasion: "result" | "step"): void {
  if (!isOwn(stage)) return;
  const { layer, base } = stage;
  const { store } = services;
  recordConfiguration(layer.image, configurationOf(stage, keptVariables(stage, asked)), store, occasion);
  if (occasion !== "result") return;
  recordOrigin(layer.image, imageOriginOf(stage, asked.buildArgs), store);
  recordBase(layer.image, base, store);
}

/** Returns false for the base image, which does not belong to this Dockerfile: other ones may start from it. */
function isOwn({ layer, base }: StageState): boolean {
  return layer.image !== base;
}

/** Returns the image's own variables with the stage's, as the service is to store them. */
function storedVariables(stage: StageState, asked: AskedBuild): Iterable<[string, string]> {
  const variables = new Map([...variablesIn(stage.config), ...keptVariables(stage, asked)]);
  return asked.dialect.keepsConfiguration || stage.env.size > 0 ? withDefaultPath(variables) : variables;
}

/** Returns `--platform`: as in Docker, it is that of the result, whatever its FROM asks for. */
async function targetPlatform({
  asked: { platform },
  services,
}: BuildJob): Promise<Pick<ImageOrigin, "platform">> {
  if (platform === undefined || !(await services.supports.platforms())) return {};
  return { platform: formatPlatform(platform) };
}

/** Returns the variables to store with the image: by default no secrets. Docker keeps them, and its checks warn. */
function keptVariables(
  { env, args }: StageState,
  { dialect }: Pick<AskedBuild, "dialect">,
): StageState["env"] {
  if (dialect.hasDockersVariables) return env;
  const declared = Array.from(args, ([name, { value }]): [string, string | undefined] => [name, value]);
  const secrets = secretsAmong([...declared, ...env]);
  return new Map([...env].filter(([name, value]) => !secrets.has(name) && secrets.mask(value) === value));
}

function configurationOf(
  { config, workdirAsWritten }: StageState,
  variables: Iterable<[string, string]>,
): ImageConfig {
  const { WorkingDir, Env: _, ...others } = config;
  const kept = withEnv(others, new Map(variables));
  return {
    ...others,
    ...(kept.Env?.length === 0 ? {} : { Env: kept.Env }),
    // Not set by anyone: an image without a WORKDIR starts in the root, too.
    ...(WorkingDir === "/" && workdirAsWritten === undefined
      ? {}
      : { WorkingDir: workdirAsWritten ?? WorkingDir }),
  };
}
