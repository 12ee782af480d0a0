import { type ImageConfig, variablesIn, withVariables } from "./config.ts";

/**
 * Adds the configuration of an image's base to its `own`, by Docker's rules, if `own` does not include it. `hasAllButEnv`: only
 * the base's variables are missing.
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
  // ONBUILD triggers are for builds from the base only. An ENTRYPOINT resets the base's CMD.
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
