import type { Database } from "bun:sqlite";
import type { Clock } from "../../clock.ts";
import type { Layout } from "../layout.ts";

/** An engine's database and its paths. */
export interface Records {
  database: Database;
  layout: Layout;
  unreachable?: UnreachableLayers;
}

/** Parses a column's JSON object; `undefined` if it is damaged or was edited. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Milliseconds. Until then, nothing waits for a registry in vain again, and a build that makes the layers itself has gone on. */
const rememberedMilliseconds = 60_000;

/**
 * Absent layers that could not be fetched a moment ago, in this process. Images with such a layer do not exist meanwhile: a build
 * makes them again. Their records stay, so that they exist again when their source is back.
 */
export class UnreachableLayers {
  readonly #clock: Clock;
  readonly #failures = new Map<number, { reason: string; at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(layers: readonly number[], reason: string): void {
    for (const layer of layers) this.#failures.set(layer, { reason, at: this.#clock.now() });
  }

  forget(layers: readonly number[]): void {
    for (const layer of layers) this.#failures.delete(layer);
  }

  layers(): number[] {
    for (const [layer, { at }] of this.#failures)
      if (Math.abs(this.#clock.now() - at) >= rememberedMilliseconds) this.#failures.delete(layer);
    return [...this.#failures.keys()];
  }

  /** Returns why the first of these layers that is unreachable could not be fetched. */
  reasonOf(layers: readonly number[]): string | undefined {
    const unreachable = new Set(this.layers());
    const layer = layers.find((id) => unreachable.has(id));
    return layer === undefined ? undefined : this.#failures.get(layer)?.reason;
  }
}
