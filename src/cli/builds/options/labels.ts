import type { Dialect } from "../../../builder/dialect.ts";
import { BoughError } from "../../../errors.ts";
import { splitKeyValue } from "./key-value.ts";

/** Reads the values of `--label` as docker build does: a key alone has an empty value, and the last one counts. */
export function readLabels(given: readonly string[], dialect: Dialect): Map<string, string> {
  if (given.length > 0 && !dialect.keepsConfiguration)
    throw new BoughError("--label needs --docker", {
      kind: "usage",
      hint: "Without --docker an image has no labels, not even those of the Dockerfile.",
    });
  return new Map(
    given.map((text): [string, string] => {
      const [key, value = ""] = splitKeyValue(text, "--label");
      return [key, value];
    }),
  );
}
