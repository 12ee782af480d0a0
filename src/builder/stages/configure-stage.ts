import { secretsAmong } from "../../dockerfile/secrets.ts";
import { type ImageConfig, variablesIn, withVariables } from "../../image/config.ts";
import { defaultPath } from "../bases/inherited.ts";
import type { Layer } from "../cache/layer-cache.ts";
import { noteConfiguration } from "../cache/noted-configuration.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";

/**
 * The layer of a stage as an image that has the stage's configuration, too. A service that keeps none (extension `configure`)
 * leaves it to bough's own store, by the image's UUID.
 */
export async function configureLayer(
  stage: StageState,
  build: BuildJob,
  occasion: "result" | "step" = "result",
): Promise<Layer> {
  const { layer, base, env } = stage;
  const kept = keptVariables(stage, build);
  if (!(await isKeptByService(build))) {
    // The base is not the Dockerfile's own: another one may start from it.
    if (layer.image !== base)
      noteConfiguration(layer.image, configurationOf(stage, kept), build.store, occasion);
    return layer;
  }
  const path: [string, string][] = build.mode === "docker" || env.size > 0 ? [["PATH", defaultPath]] : [];
  const config = configurationOf(stage, [...path, ...Object.entries(variablesIn(stage.config)), ...kept]);
  const hash = new Bun.CryptoHasher("sha256")
    .update(JSON.stringify(["configuration", layer.image, config]))
    .digest("hex");
  const known = build.layers.find(hash);
  if (known !== undefined) return known;
  const image = await build.service.configureImage(layer.image, config);
  if (image === layer.image) return layer;
  const entry = { hash, image, parent: layer, kind: "run", title: "configuration" } as const;
  return { ...build.layers.put({ ...entry, operation: layer.operation ?? undefined }), cached: layer.cached };
}

/** A service that told nothing of the base's configuration isn't asked: it is spared one request a build. */
async function isKeptByService({ service: { capabilities } }: BuildJob): Promise<boolean> {
  return capabilities.has("config") && (await capabilities.extensions()).has("configure");
}

/** By default no secret is kept anywhere, as an image's variable either; Docker keeps it, and its checks warn of it. */
function keptVariables({ env, args }: StageState, { mode }: BuildJob): StageState["env"] {
  if (mode === "docker") return env;
  const declared = Array.from(args, ([name, { value }]): [string, string | undefined] => [name, value]);
  const secrets = secretsAmong([...declared, ...env]);
  return new Map([...env].filter(([name, value]) => !secrets.has(name) && secrets.mask(value) === value));
}

function configurationOf({ config }: StageState, variables: Iterable<[string, string]>): ImageConfig {
  const { WorkingDir, Env: _, ...others } = config;
  const kept = withVariables(others, Object.fromEntries(variables));
  return {
    ...others,
    ...(kept.Env?.length === 0 ? {} : { Env: kept.Env }),
    ...(WorkingDir === "/" ? {} : { WorkingDir }),
  };
}
