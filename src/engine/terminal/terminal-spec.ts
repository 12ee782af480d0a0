import type { TerminalSize } from "../../service/wire/instance.ts";
import {
  optionalFields,
  optionalNumber,
  type RequestFields,
  refuse,
  refuseUnknownFields,
} from "../http/fields.ts";

/** The kernel stores 16 bits for each. */
const maxCharacters = 65_535;

/** Reads `terminal` of a request. */
export function readTerminal(
  body: RequestFields,
  { command }: { command: string },
): TerminalSize | undefined {
  const fields = optionalFields(body, "terminal");
  if (fields === undefined) return undefined;
  if (command === "") refuse("terminal", "must be left out if there is no command");
  return readSize(fields, "terminal.");
}

/** @param within prefix of the fields' names in messages */
export function readSize(fields: RequestFields, within = ""): TerminalSize {
  refuseUnknownFields(fields, ["columns", "rows"], within === "" ? undefined : within.slice(0, -1));
  const read = (name: "columns" | "rows") => {
    const whole = `${within}${name}`;
    const count = optionalNumber({ [whole]: fields[name] }, whole, 1) ?? refuse(whole, "is missing");
    return count > maxCharacters ? refuse(whole, `must be at most ${maxCharacters}`) : count;
  };
  return { columns: read("columns"), rows: read("rows") };
}
