import { type ImageConfig, variablesIn, withVariables } from "./config.ts";

/**
 * What an image has of its base's configuration, by Docker's rules, where `own` is known without it. `hasAllButEnv`: only of the
 * variables is anything missing.
 */
export function inheritConfig(
  base: ImageConfig,
  own: ImageConfig,
  { hasAllButEnv }: { hasAllButEnv: boolean },
): ImageConfig {
  const variables = new Map([...variablesIn(base), ...variablesIn(own)]);
  const complete = hasAllButEnv ? own : inherit(base, own);
  return variables.size === 0 ? complete : withVariables(complete, variables);
}

function inherit(base: ImageConfig, own: ImageConfig): ImageConfig {
  // Triggers are of those who build on the base, and an ENTRYPOINT leaves nothing of a CMD that it was not made for.
  const { OnBuild: _, Cmd, ...inherited } = base;
  const command = own.Entrypoint === undefined && Cmd !== undefined ? { Cmd } : {};
  return {
    ...inherited,
    ...command,
    ...own,
    ...union("Labels", base, own),
    ...union("ExposedPorts", base, own),
    ...union("Volumes", base, own),
  };
}

function union<Name extends "Labels" | "ExposedPorts" | "Volumes">(
  name: Name,
  base: ImageConfig,
  own: ImageConfig,
): Pick<ImageConfig, Name> | object {
  const both: Readonly<Record<string, unknown>> = { ...base[name], ...own[name] };
  return Object.keys(both).length === 0 ? {} : { [name]: both };
}
