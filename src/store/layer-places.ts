/** Where layers were sent: another repository of the same registry can take them from there. */
import type { FactStore } from "./facts.ts";

type Facts = Pick<FactStore, "get" | "set">;

/** Returns the address of the repository that has got a layer first, of the registry of `address` (`docker://HOST/NAME`). */
export function placeOfLayer(facts: Facts, layer: string, address: string): string | undefined {
  return facts.get(layer, questionAbout(address));
}

/** Notes that the repository has a layer, unless another one of the registry is known to. A directory is no repository. */
export function notePlace(facts: Facts, layer: string, address: string): void {
  if (!address.startsWith("docker://")) return;
  if (placeOfLayer(facts, layer, address) === undefined) facts.set(layer, questionAbout(address), address);
}

/** Returns `docker://HOST`. */
export function registryOf(address: string): string {
  return /^docker:\/\/[^/]+/.exec(address)?.[0] ?? address;
}

function questionAbout(address: string): string {
  return `repository of ${registryOf(address)}`;
}
