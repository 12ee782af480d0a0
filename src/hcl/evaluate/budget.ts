import { HclLimitError } from "../hcl-error.ts";
import { isMappingValue, isSequenceValue, type Value } from "../values/value.ts";

/** More than files need that are written by hand, and what takes a few seconds. */
const maxUnits = 10_000_000;

/** What evaluating a set of files may cost: a unit is a step, an element of a value, or some characters. */
export class Budget {
  #left: number;
  readonly #sizes = new WeakMap<Value, number>();

  constructor(units = maxUnits) {
    this.#left = units;
  }

  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0)
      throw new HclLimitError(
        "evaluating the file takes too long, or its values are too large",
        undefined,
        "Loops and calls within one another multiply.",
      );
  }

  /** Spends what a value costs: by its size, with all that is in it, as often as it is. */
  spendOn<Of extends Value>(value: Of): Of {
    this.spend(this.#sizeOf(value));
    return value;
  }

  #sizeOf(value: Value): number {
    if (value.kind === "string") return 1 + Math.ceil(value.text.length / 16);
    if (!isSequenceValue(value) && !isMappingValue(value)) return 1;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    let size = 1;
    for (const each of isSequenceValue(value) ? value.elements : value.entries.values())
      size += this.#sizeOf(each);
    this.#sizes.set(value, size);
    return size;
  }
}
