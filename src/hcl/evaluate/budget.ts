import { HclLimitError } from "../hcl-error.ts";
import { type HclValue, isMappingValue, isSequenceValue } from "../values/value.ts";

/** The number of units that take a few seconds: more than any hand-written file needs. */
const maxUnits = 10_000_000;

/** The limit of what evaluating a set of files may cost. A unit is a step, an element of a value, or some characters. */
export class EvalBudget {
  #left: number;
  readonly #sizes = new WeakMap<HclValue, number>();

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

  /** Spends the size of a value, counting all that it contains as often as it occurs. */
  spendOn<Of extends HclValue>(value: Of): Of {
    this.spend(this.#sizeOf(value));
    return value;
  }

  #sizeOf(value: HclValue): number {
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
