import type { Type } from "./types.ts";
import type { HclValue } from "./value.ts";

/** Converts a value of one type to another type. Throws for a value that can't be converted, such as a text that is not a number. */
export type Conversion = (value: HclValue) => HclValue;

/** A type to which several ones can be converted, with the conversion of each of them; `undefined` where none is needed. */
export interface Unified {
  type: Type;
  conversions: readonly (Conversion | undefined)[];
}

/** The conversions that those of collections use for the types of elements. */
export interface Converter {
  /** Returns the conversion from one type to another, if there is one. `isUnsafe` ones may fail for some values. */
  conversionOf(from: Type, to: Type, isUnsafe: boolean): Conversion | undefined;
  /** Returns the most general of types, or one that all of them can be converted to, if there is one. */
  unify(types: readonly Type[], isUnsafe: boolean): Unified | undefined;
}
