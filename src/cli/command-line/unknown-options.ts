import { usageError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import { type ArgumentDefinitions, isUndefined } from "./definitions.ts";
import type { ForeignOptions } from "./foreign-options.ts";
import type { Token } from "./tokens.ts";

/** Throws one error that names all options that the command does not have, in their order. */
export function refuseUnknown(
  tokens: readonly Token[],
  definitions: ArgumentDefinitions,
  command: string,
  foreign: ForeignOptions,
): void {
  const hints = new Map<string, string>();
  for (const token of tokens) {
    if (!isUndefined(token, definitions)) continue;
    const known = foreign.find(token.name, token.value);
    if (known?.outcome === "ignored") continue;
    hints.set(token.rawName, known?.text ?? suggestion(token.rawName, definitions, command));
  }
  const names = [...hints.keys()];
  if (names.length === 0) return;
  throw usageError(
    `${command}: unknown option${names.length === 1 ? "" : "s"} ${names.join(", ")}`,
    names.length === 1
      ? [...hints.values()].join()
      : [...hints].map(([name, hint]) => `${name}: ${hint}`).join("\n"),
  );
}

function suggestion(given: string, definitions: ArgumentDefinitions, command: string): string {
  if (command === "bough" && /^-v$/i.test(given)) return "--version prints the version.";
  const names = Object.entries(definitions).flatMap(([name, { type }]) =>
    type === "positional" ? [] : [`--${name}`],
  );
  const name = nearest(given, names);
  if (name !== undefined) return `Did you mean ${name}?`;
  return command === "bough"
    ? "A command's own options go after its name."
    : `\`${command} -h\` lists the options.`;
}
