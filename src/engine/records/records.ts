import type { Database } from "bun:sqlite";
import type { Clock } from "../../clock.ts";
import type { Layout } from "../layout.ts";

/** An engine's database and its paths. */
export interface Records {
  database: Database;
  layout: Layout;
  unreachable?: UnreachableSources;
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

/** The time for which a source that failed is not asked again. A build that makes the layers itself is past them by then. */
const rememberedMilliseconds = 60_000;

/**
 * Sources from which this process could not fetch blobs a moment ago. Images with a layer that no other source has do not exist
 * meanwhile: a build makes them again. Their records stay, so that they exist again when the source has the layer.
 */
export class UnreachableSources {
  readonly #clock: Clock;
  readonly #failures = new Map<string, { reason: string; at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records that a blob is missing or damaged in a source, or can't be unpacked. */
  recordBlob({ source, digest }: { source: string; digest: string }, reason: string): void {
    this.#note(`${source} ${digest}`, reason);
  }

  /** Records that a source does not respond. */
  recordSource(source: string, reason: string): void {
    this.#note(source, reason);
  }

  isEmpty(): boolean {
    this.#forgetOld();
    return this.#failures.size === 0;
  }

  /** Returns why a blob can't be fetched from a source. */
  reasonOf({ source, digest }: { source: string; digest: string }): string | undefined {
    if (this.isEmpty()) return undefined;
    return (this.#failures.get(source) ?? this.#failures.get(`${source} ${digest}`))?.reason;
  }

  #note(key: string, reason: string): void {
    this.#failures.set(key, { reason, at: this.#clock.now() });
  }

  #forgetOld(): void {
    for (const [key, { at }] of this.#failures)
      if (Math.abs(this.#clock.now() - at) >= rememberedMilliseconds) this.#failures.delete(key);
  }
}
