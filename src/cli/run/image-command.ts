import { type ExpandedCommand, quote } from "../../builder/commands/command.ts";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import { BoughError } from "../../errors.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Connection } from "../service/connection.ts";
import { refuseInteractiveShell } from "./interactive-shell.ts";
import type { RunRequest } from "./request.ts";
import { findConfiguration } from "./surroundings.ts";

/** What the command line asks for. */
export interface AskedRun extends Omit<RunRequest, "command" | "title"> {
  /** `undefined`: the image's own. */
  command: ExpandedCommand | undefined;
}

/** The request with its command: the one that was given, else what the image's ENTRYPOINT and CMD name. */
export async function withCommand(
  asked: AskedRun,
  image: string,
  { runtime }: Invocation,
  connection: Connection,
): Promise<RunRequest> {
  const command = asked.command ?? (await findImageCommand(image, runtime.stdin.isTerminal, connection));
  return { ...asked, command, title: secretsAmong(Object.entries(asked.env)).mask(titleOf(command)) };
}

/** @param why no other command is known of: a sentence */
export function whichCommand(why: string): BoughError {
  return new BoughError(`bough run: which command? ${why}`, {
    kind: "usage",
    hint: "It stands after --, as in: bough run -- ls -l /",
  });
}

/** As Docker puts it together, for which an ENTRYPOINT of one empty word is none. */
async function findImageCommand(
  image: string,
  isTerminal: boolean,
  connection: Connection,
): Promise<ExpandedCommand> {
  const { Entrypoint = [], Cmd = [] } = await findConfiguration(image, connection);
  const isReset = Entrypoint.length === 1 && Entrypoint[0] === "";
  const words = [...(isReset ? [] : Entrypoint), ...Cmd];
  if (words.length === 0)
    throw whichCommand(
      "The image has neither ENTRYPOINT nor CMD: `bough build --docker` keeps a Dockerfile's.",
    );
  if (words[0] === "") throw whichCommand("The image's own begins with an empty word.");
  refuseInteractiveShell(words, isTerminal);
  return { form: "exec", words };
}

function titleOf(command: ExpandedCommand): string {
  switch (command.form) {
    case "shell":
      return command.line;
    case "exec":
      return command.words.map(quote).join(" ");
    case "none":
      return "";
  }
}
