/** All functions that bake files may call: https://github.com/docker/buildx/blob/master/docs/bake-stdlib.md. */

import type { HclFunction } from "../evaluate/eval-context.ts";
import { outcomeOf } from "../evaluate/outcome.ts";
import { HclError } from "../hcl-error.ts";
import { convert } from "../values/conversion.ts";
import { boolValue, integerValue, stringValue } from "../values/value.ts";
import { dateFunctions } from "./dates.ts";
import { define, type FunctionTable, number } from "./define.ts";
import { digestFunctions } from "./digests.ts";
import { encodingFunctions } from "./encodings.ts";
import { formatFunctions } from "./format.ts";
import { mappingFunctions } from "./mappings.ts";
import { networkFunctions } from "./networks.ts";
import { numberFunctions } from "./numbers.ts";
import { regularExpressionFunctions } from "./regular-expressions.ts";
import { sequenceFunctions } from "./sequences.ts";
import { setFunctions } from "./sets.ts";
import { stringFunctions } from "./strings.ts";
import { typeNamed } from "./type-expressions.ts";

/** The parts of the machine that functions can see. */
export interface FunctionEnvironment {
  now(): Date;
  homeDirectory: string;
}

/** Functions that get expressions instead of values. */
const expressionFunctions: FunctionTable = {
  try: {
    evaluateCall(given, evaluate) {
      const errors: string[] = [];
      for (const each of given) {
        const outcome = outcomeOf(() => evaluate(each));
        if ("value" in outcome) return outcome.value;
        errors.push(outcome.error.message);
      }
      throw new HclError(
        given.length === 0
          ? "try needs at least one argument"
          : `all arguments of try have errors: ${errors.join("; ")}`,
      );
    },
  },
  can: {
    evaluateCall([expression], evaluate) {
      if (expression === undefined) throw new HclError("can needs an argument");
      return boolValue("value" in outcomeOf(() => evaluate(expression)));
    },
  },
  convert: {
    evaluateCall([value, type, ...others], evaluate) {
      if (value === undefined || type === undefined || others.length > 0)
        throw new HclError(
          "convert needs a value and a type",
          undefined,
          "As in convert(items, list(string)).",
        );
      return convert(evaluate(value), typeNamed(type));
    },
  },
};

/** Functions of bytes. No expression makes such a value, but HCL has the functions for programs that do. */
const byteFunctions: FunctionTable = {
  byteslen: define([{ name: "buf", type: { kind: "bytes" } }], () => integerValue(0)),
  bytesslice: define([{ name: "buf", type: { kind: "bytes" } }, number("offset"), number("length")], () =>
    stringValue(""),
  ),
};

export function standardLibrary({
  now,
  homeDirectory,
}: FunctionEnvironment): ReadonlyMap<string, HclFunction> {
  return new Map(
    Object.entries({
      ...numberFunctions,
      ...stringFunctions,
      ...formatFunctions,
      ...regularExpressionFunctions,
      ...sequenceFunctions,
      ...mappingFunctions,
      ...setFunctions,
      ...encodingFunctions,
      ...digestFunctions,
      ...networkFunctions,
      ...dateFunctions(now),
      ...expressionFunctions,
      ...byteFunctions,
      homedir: define([], () => stringValue(homeDirectory)),
    }),
  );
}
