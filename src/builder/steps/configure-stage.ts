import { secretsAmong } from "../../dockerfile/secrets.ts";
import { type ImageConfig, variablesIn, withDefaultPath, withVariables } from "../../image/config.ts";
import type { ImageOrigin } from "../../image/history.ts";
import { formatPlatform } from "../../image/platform.ts";
import { sha256Of } from "../../sha256.ts";
import { configurationTitle } from "../cache/layer-cache.ts";
import { noteBase, noteConfiguration, noteOrigin } from "../cache/noted-images.ts";
import type { AskedBuild, BuildJob } from "../job.ts";
import { originOf } from "../state/history.ts";
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
  const { layer, base, env } = stage;
  const kept = keptVariables(stage, build.asked);
  const keeps = await build.services.supports.stored();
  // The base does not belong to this Dockerfile: another one may start from it.
  const isOwn = layer.image !== base;
  const origin = originOf(stage, build.asked.buildArgs);
  if (!keeps.config) {
    if (isOwn) noteConfiguration(layer.image, configurationOf(stage, kept), build.services.store, occasion);
    if (isOwn && occasion === "result") {
      noteOrigin(layer.image, origin, build.services.store);
      noteBase(layer.image, base, build.services.store);
    }
    return layer;
  }
  const variables = new Map([...variablesIn(stage.config), ...kept]);
  const hasPath = build.asked.dialect.keepsConfiguration || env.size > 0;
  const config = configurationOf(stage, hasPath ? withDefaultPath(variables) : variables);
  // The failed step is not part of the image's history.
  const storedOrigin =
    keeps.origin && occasion === "result" ? { ...origin, ...(await targetPlatform(build)) } : undefined;
  const hash = sha256Of(JSON.stringify(["configuration", layer.image, config, storedOrigin]));
  const known = await build.services.layers.find(hash, layer);
  if (known !== undefined) return known;
  const image = await build.services.service.configureImage(layer.image, config, storedOrigin);
  if (!keeps.origin && isOwn && occasion === "result") noteOrigin(image, origin, build.services.store);
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
  const kept = withVariables(others, new Map(variables));
  return {
    ...others,
    ...(kept.Env?.length === 0 ? {} : { Env: kept.Env }),
    // Nobody has named it: an image without one starts there, too.
    ...(WorkingDir === "/" && workdirAsWritten === undefined
      ? {}
      : { WorkingDir: workdirAsWritten ?? WorkingDir }),
  };
}
