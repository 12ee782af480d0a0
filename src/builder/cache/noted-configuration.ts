import { type ImageConfig, parseImageConfig } from "../../image/config.ts";
import { type ImageOrigin, parseOrigin } from "../../image/history.ts";
import type { Store } from "../../store/store.ts";

/** `result`: of an image that a build came to, the latest one. `step`: on the way into a step that failed on it. */
type Occasion = "result" | "step";

/** Keeps what bough has made of images on a service that has no place for it. `Env` has what the Dockerfile sets, and nothing of its base. */
export function noteConfiguration(
  image: string,
  config: ImageConfig,
  { facts }: Pick<Store, "facts">,
  occasion: Occasion = "result",
): void {
  facts.set(image, questions[occasion], JSON.stringify(config));
}

/** What was noted of an image: as a result, else at a failed step. */
export function notedConfiguration(image: string, { facts }: Pick<Store, "facts">): ImageConfig | undefined {
  const noted = facts.get(image, questions.result) ?? facts.get(image, questions.step);
  return noted === undefined ? undefined : parseImageConfig(JSON.parse(noted));
}

/** Keeps an image's author and history where the service has no place for them. */
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
