import type { Type } from "./types.ts";
import type { Value } from "./value.ts";

/** Converts a value of one type. Throws for a value that has none of the other type, as a text that is no number. */
export type Conversion = (value: Value) => Value;

/** A type to which several ones can be converted, with the conversion of each of them; `undefined` where none is needed. */
export interface Unified {
  type: Type;
  conversions: readonly (Conversion | undefined)[];
}

/** What conversions of collections need for the types in them. */
export interface Converter {
  /** Returns the conversion from one type to another, if there is one. `isUnsafe` ones may fail for some values. */
  conversionOf(from: Type, to: Type, isUnsafe: boolean): Conversion | undefined;
  /** Returns the most general of types, or one that all of them can be converted to, if there is one. */
  unify(types: readonly Type[], isUnsafe: boolean): Unified | undefined;
}
