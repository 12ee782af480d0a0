import { readFlags } from "../flags.ts";
import type {
  MaintainerInstruction,
  StopsignalInstruction,
  UserInstruction,
  WorkdirInstruction,
} from "../instruction.ts";
import { baseOf, placeOf, type Statement } from "../text/statement.ts";

/** Parses `WORKDIR PATH`: the whole rest of the line is the path, blanks included. */
export function parseWorkdir(statement: Statement): WorkdirInstruction {
  return { ...parseSingle(statement, "WORKDIR", "a path"), path: statement.args.text };
}

/** Parses `USER NAME[:GROUP]`. */
export function parseUser(statement: Statement): UserInstruction {
  return { ...parseSingle(statement, "USER", "a user name or number"), user: statement.args.text };
}

/** Parses `STOPSIGNAL SIGNAL`. */
export function parseStopsignal(statement: Statement): StopsignalInstruction {
  const base = parseSingle(statement, "STOPSIGNAL", "a signal, such as SIGTERM or 15");
  return { ...base, signal: statement.args.text };
}

/** Parses `MAINTAINER NAME`. */
export function parseMaintainer(statement: Statement): MaintainerInstruction {
  return { ...parseSingle(statement, "MAINTAINER", "a name"), maintainer: statement.args.text };
}

function parseSingle<Name extends string>(statement: Statement, name: Name, expected: string) {
  const flags = readFlags(statement);
  const { text } = statement.args;
  if (text === "") {
    const at = placeOf(statement.writtenName);
    statement.report({ message: `${name} requires exactly one argument`, expected, at });
  }
  return baseOf(statement, name, flags.list);
}
