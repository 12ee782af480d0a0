/** Checks and defaults that buildx applies to a target with all of its fields, also for `--print`. */
import { messageOf, usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import { requireAnnotationType } from "../export/annotations.ts";
import { parseUlimit } from "../run/limit-options.ts";
import type { Target, TargetFields } from "./target.ts";
import type { TargetEntry } from "./target-entries.ts";

/** Returns the fields with default destinations of outputs. Throws a usage BoughError for an invalid value. */
export function completeFields(
  fields: TargetFields,
  { name, origin }: Pick<Target, "name" | "origin">,
): TargetFields {
  const refuse = (field: string, problem: string, hint?: string) =>
    usageError(`target ${name} (${origin}): ${field}: ${problem}`, hint);
  const size = fields["shm-size"];
  if (size !== undefined && !isSize(size))
    throw refuse("shm-size", `invalid size ${JSON.stringify(size)}`, "As in 128m or 1g.");
  if (fields.secret?.some(({ id }) => id === undefined) === true)
    throw refuse("secret", "an id is missing", "As in id=token,src=token.txt.");
  const attempt = (field: string, check: () => unknown) => {
    try {
      check();
    } catch (error) {
      throw refuse(field, messageOf(error));
    }
  };
  for (const text of fields.ulimits ?? []) attempt("ulimits", () => parseUlimit(text));
  for (const text of fields.annotations ?? []) attempt("annotations", () => requireAnnotationType(text));
  if (fields.output === undefined) return fields;
  const output = fields.output.map((entry) => {
    const { type, dest } = entry;
    if (!isFile(entry) && !isDirectory(entry)) return entry;
    if (isFile(entry)) return dest ? entry : sorted({ ...entry, dest: "-" });
    if (!dest || dest === "-")
      throw refuse("output", `type=${type} needs the path of a directory`, `As in type=${type},dest=out.`);
    return entry;
  });
  if (output.filter(({ dest }) => dest === "-").length > 1)
    throw refuse("output", "several outputs write to standard output", "Give them paths: dest=PATH.");
  return { ...fields, output };
}

/** True for a size as docker reads them. */
function isSize(text: string): boolean {
  return /^\+?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)? ?(?:[kmgtp](?:i?b)?|b)?$/i.test(text);
}

function isDirectory({ type, tar }: TargetEntry): boolean {
  return type === "local" || (type === "oci" && parseGoBoolean(String(tar ?? "")) === false);
}

function isFile(entry: TargetEntry): boolean {
  return entry.type === "tar" || (entry.type === "oci" && !isDirectory(entry));
}

function sorted(entry: TargetEntry): TargetEntry {
  return Object.fromEntries(Object.entries(entry).sort(([one], [other]) => (one < other ? -1 : 1)));
}
