import { nearest } from "../suggest.ts";
import type { Flag } from "./instruction.ts";
import type { Statement } from "./text/statement.ts";

/** The kind of a flag: a switch, one text, or a text that may be repeated. */
export type FlagKind = "switch" | "text" | "texts";

/** The flags that an instruction was given. */
export class GivenFlags {
  /** All of them in the order given. */
  readonly list: readonly Flag[];

  constructor(list: readonly Flag[]) {
    this.list = list;
  }

  text(name: string): string | undefined {
    const flag = this.find(name);
    return flag && (flag.value ?? "");
  }

  texts(name: string): string[] {
    const values: string[] = [];
    for (const flag of this.list) if (flag.name === name) values.push(flag.value ?? "");
    return values;
  }

  /** Returns a switch's value; `undefined` if it was not given. */
  switch(name: string): boolean | undefined {
    const flag = this.find(name);
    return flag && flag.value?.toLowerCase() !== "false";
  }

  private find(name: string): Flag | undefined {
    for (const flag of this.list) if (flag.name === name) return flag;
    return undefined;
  }
}

const noFlags = new GivenFlags([]);

/** Checks a statement's flags against those that its instruction declares, and reports each invalid one. */
export function readFlags(
  statement: Statement,
  declared: Readonly<Record<string, FlagKind>> = {},
): GivenFlags {
  if (statement.rawFlags.length === 0) return noFlags;
  const list: Flag[] = [];
  for (const { text, offset, length } of statement.rawFlags) {
    const separator = text.indexOf("=");
    const name = separator < 0 ? text.slice(2) : text.slice(2, separator);
    const value = separator < 0 ? undefined : text.slice(separator + 1);
    const kind = Object.hasOwn(declared, name) ? declared[name] : undefined;
    const isRepeated = kind !== "texts" && list.some((flag) => flag.name === name);
    const complaint =
      kind === undefined
        ? unknownFlag(statement.name, name, declared)
        : checkFlag(name, kind, value, isRepeated);
    if (complaint === undefined) list.push({ name, value });
    else statement.report({ ...complaint, at: { offset, length } });
  }
  return new GivenFlags(list);
}

function unknownFlag(instruction: string, name: string, declared: Readonly<Record<string, FlagKind>>) {
  const names = Object.keys(declared);
  const meant = nearest(name, names);
  const message = `unknown flag: --${name}${meant === undefined ? "" : ` (did you mean --${meant}?)`}`;
  const known = names.map((known) => `--${known}`).join(", ");
  return { message, expected: names.length === 0 ? `no flag: ${instruction} takes none` : `one of ${known}` };
}

function checkFlag(name: string, kind: FlagKind, value: string | undefined, isRepeated: boolean) {
  if (isRepeated) return { message: `duplicate flag specified: --${name}`, expected: `--${name} only once` };
  const isMissing = kind === "switch" ? value === "" : value === undefined;
  if (isMissing) return { message: `missing a value on flag: --${name}`, expected: `--${name}=value` };
  if (kind !== "switch" || value === undefined || /^(true|false)$/i.test(value)) return undefined;
  return {
    message: `expecting boolean value for flag --${name}, not: ${value}`,
    expected: `--${name}, --${name}=true or --${name}=false`,
  };
}
