import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { type ImageOrigin, parseOrigin } from "../../image/history.ts";
import type { Store } from "../../store/store.ts";

/** `result`: the latest build that had the image as its result. `step`: the start of a step that failed on it. */
type Occasion = "result" | "step";

/** Notes an image's configuration if the service can't store it. `Env` has the Dockerfile's variables, none of the base's. */
export function noteConfiguration(
  image: string,
  config: ImageConfig,
  { facts }: Pick<Store, "facts">,
  occasion: Occasion = "result",
): void {
  facts.set(image, questions[occasion], JSON.stringify(config));
}

/** Returns the configuration that was noted for an image as a result; otherwise, for a failed step. */
export function notedConfiguration(image: string, { facts }: Pick<Store, "facts">): ImageConfig | undefined {
  const noted = facts.get(image, questions.result) ?? facts.get(image, questions.step);
  return noted === undefined ? undefined : parseImageConfig(JSON.parse(noted));
}

/** Notes an image's author and history for a service that can't store them. */
export function noteOrigin(image: string, origin: ImageOrigin, { facts }: Pick<Store, "facts">): void {
  facts.set(image, originQuestion, JSON.stringify(origin));
}

export function notedOrigin(image: string, { facts }: Pick<Store, "facts">): ImageOrigin | undefined {
  const noted = facts.get(image, originQuestion);
  return noted === undefined ? undefined : parseOrigin(JSON.parse(noted));
}

const originQuestion = "origin";

const questions: Readonly<Record<Occasion, string>> = {
  result: "configuration",
  step: "configuration at a failed step",
};
