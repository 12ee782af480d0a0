import { readFlags } from "../flags.ts";
import type {
  Command,
  ExposeInstruction,
  MaintainerInstruction,
  ShellInstruction,
  StartCommandInstruction,
  StopsignalInstruction,
  UserInstruction,
  VolumeInstruction,
  WorkdirInstruction,
} from "../instruction.ts";
import { parseStringArray } from "../text/json.ts";
import { baseOf, placeOf, type Statement } from "../text/statement.ts";
import { splitAtBlanks, type Word } from "../words/words.ts";

/** Parses `CMD ...` and `ENTRYPOINT ...`. Without arguments, each removes the base image's setting. */
export function parseStartCommand(statement: Statement, name: "CMD" | "ENTRYPOINT"): StartCommandInstruction {
  const flags = readFlags(statement);
  const command = parseCommand(statement, statement.args);
  return { ...baseOf(statement, name, flags.list), command };
}

/** Parses `SHELL ["program", "argument", ...]`, which has only the JSON form. */
export function parseShell(statement: Statement): ShellInstruction {
  const flags = readFlags(statement);
  const command = parseCommand(statement, statement.args);
  const expected = 'a JSON array, as in SHELL ["/bin/bash", "-c"]';
  if (isEmptyCommand(command)) statement.reportNoArguments(expected);
  else if (command.form === "shell") {
    const message = "SHELL requires the arguments to be in JSON form";
    statement.report({ message, expected, at: placeOf(statement.args) });
  }
  return { ...baseOf(statement, "SHELL", flags.list), shell: command.form === "exec" ? command.words : [] };
}

/** Parses `EXPOSE PORT[/PROTOCOL] ...`. */
export function parseExpose(statement: Statement): ExposeInstruction {
  const flags = readFlags(statement);
  const words = splitAtBlanks(statement.args.text, statement.args.offset).map((word) => word.text);
  if (words.length === 0) statement.reportNoArguments("a port, such as 8080 or 53/udp");
  return { ...baseOf(statement, "EXPOSE", flags.list), ports: words };
}

/** Parses `VOLUME PATH ...`, or the same as a JSON array. */
export function parseVolume(statement: Statement): VolumeInstruction {
  const flags = readFlags(statement);
  const list = statement.list();
  const words = list?.words ?? [];
  if (list?.words.length === 0) statement.reportNoArguments("a path");
  for (const word of words) {
    if (word.text.replace(/^(""|'')+$/, "").trim() !== "") continue;
    const at = placeOf(statement.args);
    statement.report({ message: "VOLUME specified can not be an empty string", expected: "a path", at });
  }
  return { ...baseOf(statement, "VOLUME", flags.list), paths: words.map((word) => word.text) };
}

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

/** Parses a command: a JSON array of strings, else shell form, to which Docker falls back. Reports an array of other values. */
export function parseCommand(statement: Statement, args: Word): Command {
  const array = parseStringArray(args.text);
  switch (array.kind) {
    case "strings":
      return { form: "exec", words: array.words };
    case "not-strings":
      statement.report({
        message: "when using JSON array syntax, arrays must be comprised of strings only",
        expected: 'every element in double quotes, as in ["program", "argument"]',
        at: placeOf(args),
      });
      return { form: "exec", words: [args.text] };
    case "not-an-array":
      return { form: "shell", line: args.text };
  }
}

/** True for a command that Docker treats as missing. */
export function isEmptyCommand(command: Command): boolean {
  return command.form === "exec" ? command.words.length === 0 : command.line === "";
}
