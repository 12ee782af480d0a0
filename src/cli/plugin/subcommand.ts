import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import type { Runtime } from "../process/runtime.ts";

/** The call of a command of `docker buildx`. */
export interface SubcommandCall {
  /** The command as the user wrote it: `docker buildx history ls`. */
  name: string;
  runtime: Runtime;
}

/** Options of all commands of buildx, which may also stand before the command. */
export const commonOptions: ArgumentDefinitions = {
  builder: { type: "string" },
  debug: { type: "boolean", alias: "D" },
};

/** Options of a command that bough implements itself, without a command of its own behind it. */
export const commandOptions: ArgumentDefinitions = {
  ...commonOptions,
  help: { type: "boolean", alias: "h" },
};
