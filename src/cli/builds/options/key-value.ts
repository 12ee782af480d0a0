import { BoughError } from "../../../errors.ts";

/** Splits `KEY=VALUE` or `KEY`, the value of `option`. */
export function splitKeyValue(text: string, option: string): [key: string, value: string | undefined] {
  const [, key = "", value] = /^([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
  if (key !== "") return [key, value];
  throw new BoughError(`${option} takes KEY=VALUE or KEY, not ${JSON.stringify(text)}`, {
    kind: "usage",
    hint: "The name is missing.",
  });
}
