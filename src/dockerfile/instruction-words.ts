import type { Instruction } from "./instruction.ts";
import { parseStringArray } from "./text/json.ts";
import { splitCommand } from "./text/split-command.ts";
import { splitAtBlanks, splitTexts } from "./words/words.ts";

/** Returns an instruction's arguments as words before expansion. Only code that analyses the text needs them, not a build. */
export function argumentWords(instruction: Instruction, escapeCharacter: string): string[] {
  const { args } = instruction;
  switch (instruction.name) {
    case "FROM":
    case "EXPOSE":
      return blankSeparated(args);
    case "COPY":
    case "ADD":
    case "VOLUME":
      return ofArray(args) ?? blankSeparated(args);
    case "ARG":
    case "ENV":
    case "LABEL":
      return splitTexts(args, escapeCharacter);
    case "RUN":
    case "CMD":
    case "ENTRYPOINT":
    case "SHELL":
      return ofCommand(args, escapeCharacter);
    case "HEALTHCHECK": {
      const [type = ""] = /^\S*/.exec(args) ?? [];
      const rest = args.slice(type.length).trimStart();
      return type === "" ? [] : [type, ...ofCommand(rest, escapeCharacter)];
    }
    case "USER":
    case "WORKDIR":
    case "STOPSIGNAL":
    case "MAINTAINER":
      return args === "" ? [] : [args];
    case "ONBUILD":
      if (instruction.trigger === undefined) return [];
      return [splitCommand(args).name.text, ...argumentWords(instruction.trigger, escapeCharacter)];
  }
}

/** Returns the elements of a JSON array, or the shell's words with their quotes. */
function ofCommand(text: string, escapeCharacter: string): string[] {
  return ofArray(text) ?? splitTexts(text, escapeCharacter);
}

function ofArray(text: string): string[] | undefined {
  const array = parseStringArray(text);
  return array.kind === "strings" ? array.words : undefined;
}

function blankSeparated(text: string): string[] {
  return splitAtBlanks(text, 0).map((word) => word.text);
}
