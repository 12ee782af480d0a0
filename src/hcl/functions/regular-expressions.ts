import type { RE2JS } from "re2js";
import type { EvalBudget } from "../evaluate/budget.ts";
import { ArgumentError } from "../evaluate/eval-context.ts";
import { HclError } from "../hcl-error.ts";
import { stringType, type Type } from "../values/types.ts";
import {
  type HclValue,
  listValue,
  nullOf,
  objectValue,
  stringValue,
  tupleValue,
  typeOf,
} from "../values/value.ts";
import { define, type FunctionTable, text, textIn } from "./define.ts";

/** Regular expressions as Go has them (RE2): matching takes linear time, whatever the pattern. */
export const regularExpressionFunctions: FunctionTable = {
  regex: define([text("pattern"), text("string")], (given, budget) => {
    const { pattern, names } = compile(given, 0);
    const [first] = matchesOf(pattern, textIn(given[1]), budget, 1);
    if (first === undefined) throw new HclError("the pattern does not match");
    return resultOf(first, names);
  }),
  regexall: define([text("pattern"), text("string")], (given, budget) => {
    const { pattern, names } = compile(given, 0);
    const found = matchesOf(pattern, textIn(given[1]), budget).map((match) => resultOf(match, names));
    return listValue(resultType(names), found);
  }),
  regex_replace: define([text("str"), text("pattern"), text("replace")], (given, budget) => {
    const { pattern } = compile(given, 1);
    const [source, replacement] = [textIn(given[0]), textIn(given[2])];
    let made = "";
    let end = 0;
    for (const match of matchesOf(pattern, source, budget)) {
      made += source.slice(end, match.start) + expand(replacement, match, pattern.namedGroups());
      end = match.end;
    }
    return stringValue(made + source.slice(end));
  }),
};

interface Match {
  start: number;
  end: number;
  /** What the groups matched; the first one is the whole match. A group without a match is null. */
  groups: readonly (string | null)[];
}

/** The name of each group, without the whole match; `undefined` for one without. */
type GroupNames = readonly (string | undefined)[];

function compile(given: readonly HclValue[], index: number): { pattern: RE2JS; names: GroupNames } {
  const source = textIn(given[index]);
  // Few files need it, and loading it takes longer than reading most files.
  const { RE2JS: engine } = require("re2js") as typeof import("re2js");
  let pattern: RE2JS;
  try {
    pattern = engine.compile(source);
  } catch (error) {
    throw new ArgumentError(
      index,
      `invalid regular expression: ${error instanceof Error ? error.message : error}`,
    );
  }
  const byIndex = new Map(Object.entries(pattern.namedGroups()).map(([name, group]) => [group, name]));
  const names = Array.from({ length: pattern.groupCount() }, (_, group) => byIndex.get(group + 1));
  if (byIndex.size > 0 && names.includes(undefined) && index === 0)
    throw new ArgumentError(index, "invalid regular expression: either all groups have a name or none");
  return { pattern, names };
}

function matchesOf(
  pattern: RE2JS,
  source: string,
  budget: EvalBudget,
  count = Number.POSITIVE_INFINITY,
): Match[] {
  budget.spend(Math.ceil((pattern.programSize() * (source.length + 1)) / 20));
  const matcher = pattern.matcher(source);
  const matches: Match[] = [];
  let end = -1;
  while (matches.length < count && matcher.find()) {
    const match = {
      start: matcher.start(),
      end: matcher.end(),
      groups: Array.from({ length: pattern.groupCount() + 1 }, (_, group) => matcher.group(group)),
    };
    // As in Go, an empty match directly behind another one does not count.
    if (match.start === match.end && match.start === end) continue;
    end = match.end;
    matches.push(match);
  }
  return matches;
}

/** Returns the text that matched or, of a pattern with groups, their texts. */
function resultOf({ groups }: Match, names: GroupNames): HclValue {
  const values = groups.map((each) => (each === null ? nullOf(stringType) : stringValue(each)));
  const [whole, ...parts] = values;
  if (names.length === 0 || whole === undefined) return whole ?? stringValue("");
  if (names.includes(undefined)) return tupleValue(parts);
  return objectValue(parts.map((each, index) => [names[index] ?? "", each]));
}

function resultType(names: GroupNames): Type {
  return typeOf(resultOf({ start: 0, end: 0, groups: ["", ...names.map(() => "")] }, names));
}

/** Replaces `$1`, `$name` and `${name}` in a replacement, as Go does: a name is as long as it can be; `$$` is a dollar sign. */
function expand(replacement: string, { groups }: Match, named: Readonly<Record<string, number>>): string {
  return replacement.replace(
    /\$(?:(\$)|(\w+)|\{(\w+)\})/g,
    (_, dollar?: string, bare?: string, braced?: string) => {
      if (dollar !== undefined) return "$";
      const name = bare ?? braced ?? "";
      const index = /^\d+$/.test(name) ? Number(name) : named[name];
      return (index === undefined ? undefined : groups[index]) ?? "";
    },
  );
}
